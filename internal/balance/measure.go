// SPDX-License-Identifier: Apache-2.0

package balance

import "math"

// mostLoad bounds the load of an endpoint relative to the median, and what its error can be: what is beyond says no more than
// "far too much" or "far too little", and a liar must not move the mean.
const mostLoad = 4

// incredible is how many times as capable as the median no endpoint is: twice what the default MaxWeight could make use of.
const incredible = 16

// farthest is the largest ratio between the weights of the State and those that caused a load that is extrapolated over: see point.reach.
const farthest = 3

// measure finds out who reports, and the load of those, before anything is taken into account.
func (u *update) measure() {
	u.cpu, u.inFlight = 1, 1
	if u.Metric == MetricMax {
		u.cpu = u.center(func(s *Sample) float64 { return float64(s.CPU) })
		u.inFlight = u.center(func(s *Sample) float64 { return float64(s.InFlight) })
	}
	usual := u.usual()
	for i := range u.list {
		p, e := &u.points[i], &u.list[i]
		count(&u.result.Ready, e.Ready)
		p.figure = u.figure(e)
		if p.reporting = !math.IsNaN(p.figure); p.reporting {
			u.suspect(p, &e.Last, &usual)
			p.reporting = usual.believes(p, e)
		}
	}
	u.proportion()
}

// figure returns the load of an endpoint as it is reported; NaN if there is nothing to be said of it.
func (u *update) figure(e *EndpointState) float64 {
	if !e.Ready || !u.recent(&e.Last) || e.Last.Published <= 0 {
		return math.NaN()
	}
	return figure(u.Metric, &e.Last, u.cpu, u.inFlight)
}

// recent says whether a sample can be used.
func (u *update) recent(s *Sample) bool {
	return s.End > u.oldest && s.End <= u.latest
}

// figure returns the load by a metric; NaN if the sample does not have it.
func figure(m Metric, s *Sample, cpu, inFlight float64) float64 {
	switch m {
	case MetricInFlight:
		return float64(s.InFlight)
	case MetricCustom:
		return float64(s.Custom)
	case MetricMax:
		a, b := relative(float64(s.CPU), cpu), relative(float64(s.InFlight), inFlight)
		switch {
		case math.IsNaN(a):
			return b
		case math.IsNaN(b):
			return a
		}
		return max(a, b)
	default:
		return float64(s.CPU)
	}
}

// relative returns a figure in means, because units differ; NaN where the mean is so small that this says nothing.
func relative(x, mean float64) float64 {
	if !(mean >= smallest) {
		return math.NaN()
	}
	return x / mean
}

// sampled is how many endpoints at least are looked at to find what is usual, where there are more.
const sampled = 4096

// values returns what of gives of the endpoints that can be used, without NaN; of many endpoints a part, taken at equal distances,
// which does for a median. The slice is valid until the next call.
func (u *update) values(of func(i int) float64) []float64 {
	u.scratch = u.scratch[:0]
	for i := 0; i < len(u.list); i += u.stride {
		if x := of(i); !math.IsNaN(x) {
			u.scratch = append(u.scratch, x)
		}
	}
	return u.scratch
}

// center returns the mean of a figure, with what is out of proportion left at the bound.
func (u *update) center(of func(*Sample) float64) float64 {
	usable := func(i int) float64 {
		if e := &u.list[i]; e.Ready && u.recent(&e.Last) {
			return of(&e.Last)
		}
		return math.NaN()
	}
	return boundedMean(u.values(usable))
}

// boundedMean returns the mean of values, each at most mostLoad medians. It changes their order, by a rule that does not depend
// on it.
func boundedMean(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	most, sum := mostLoad*median(values), 0.0
	for _, x := range values {
		sum += min(x, most)
	}
	return sum / float64(len(values))
}

// usual is what most endpoints have, for a weight of 1; NaN where none reports it.
type usual struct {
	inFlight, cpu, cost float64
	// failed is the part of the requests.
	failed float64
}

func (u *update) usual() usual {
	of := func(value func(e *EndpointState, figure float64) float64) float64 {
		return median(u.values(func(i int) float64 {
			e := &u.list[i]
			figure := u.figure(e)
			if math.IsNaN(figure) {
				return figure
			}
			return value(e, figure)
		}))
	}
	return usual{
		inFlight: of(func(e *EndpointState, _ float64) float64 { return perWeight(float64(e.Last.InFlight), e) }),
		cpu:      of(func(e *EndpointState, _ float64) float64 { return perWeight(float64(e.Last.CPU), e) }),
		cost:     of(func(e *EndpointState, figure float64) float64 { return perWeight(figure, e) }),
		failed:   of(func(e *EndpointState, _ float64) float64 { return float64(e.Last.Failed) }),
	}
}

func perWeight(x float64, e *EndpointState) float64 { return x / float64(e.Last.Published) }

// suspect finds out whether the load of an endpoint says nothing, because requests wait for something else than a processor, or fail.
//
// Requests in flight for a weight are proportional to the time that a request takes. A slow processor makes it longer too, and
// uses more of the processor for it; that is not what is looked for, so the ratio is divided by that of the processor.
func (u *update) suspect(p *point, s *Sample, usual *usual) {
	p.excess = float32(max(float64(s.Failed)-usual.failed, 0))
	if s.InFlight < 1 || !(usual.inFlight > 0) {
		return // Nobody waits where there is less than a request.
	}
	guard := float64(s.InFlight) / float64(s.Published) / usual.inFlight
	if slow := float64(s.CPU) / float64(s.Published) / usual.cpu; slow > 1 && !math.IsInf(slow, 1) {
		guard /= slow
	}
	if guard > u.GuardRatio {
		p.guard = float32(min(guard, largest))
	}
}

// believes says whether an endpoint can be taken at its word. Those that claim less load for their weight than the most capable one could
// have are taken for silent: such an endpoint gets no traffic, or lies, and a larger weight would be wrong either way.
func (usual *usual) believes(p *point, e *EndpointState) bool {
	least := usual.cost / incredible
	return p.guard > 0 || p.excess > 0 || perWeight(p.figure, e) > least || least == 0
}

// proportion bounds the loads, and finds the figures of the result that are of loads alone. Reports are of different times, and
// traffic grows and shrinks; each is taken to what it would be now, so that they can be compared.
func (u *update) proportion() {
	figures := u.values(func(i int) float64 {
		if !u.points[i].reporting {
			return math.NaN()
		}
		return u.points[i].figure
	})
	most, sum, largest := mostLoad*median(figures), 0.0, 0.0
	r := &u.result
	for i := range u.points {
		p := &u.points[i]
		if !p.reporting {
			continue
		}
		p.load = p.figure
		if age := u.now.since(u.list[i].Last.End); age != 0 && u.state.Trend != 0 {
			p.load *= math.Exp(u.state.Trend * age)
		}
		p.load = min(p.load, most)
		sum += p.load
		largest = max(largest, p.load)
		u.fresh = u.fresh || p.fresh
		r.Reporting++
	}
	mean := sum / float64(r.Reporting)
	r.Mean, u.average = mean, mean
	if u.Metric == MetricMax {
		if r.Mean = u.center(func(s *Sample) float64 { return float64(s.CPU) }); math.IsNaN(r.Mean) {
			r.Mean = u.center(func(s *Sample) float64 { return float64(s.InFlight) })
		}
	}
	r.MaxOverAverage, r.P95OverAverage, r.PredictedMaxOverAverage = math.NaN(), math.NaN(), math.NaN()
	if r.Reporting < 2 || !(mean > 0) {
		return
	}
	r.MaxOverAverage = largest / mean
	r.P95OverAverage = quantile(u.values(func(i int) float64 {
		if !u.points[i].reporting {
			return math.NaN()
		}
		return u.points[i].load
	}), 0.95) / mean
}

// judge finds the load that the weights of the State would have caused, adds what is wrong with an endpoint, and returns the mean that
// they are to have.
func (u *update) judge() float64 {
	changes := u.newChanges()
	sum, most := 0.0, 0.0
	var all, free meanOf
	for i := range u.points {
		p, e := &u.points[i], &u.list[i]
		if !p.reporting {
			continue
		}
		u.predict(p, e)
		sum += p.expected
		most = max(most, p.expected)
		u.penalize(p, e)
		if p.fresh && p.figure >= smallest {
			changes.note(p, e, i%u.stride == 0)
		}
		all.sum, all.n = all.sum+p.expected, all.n+1
		// Endpoints that no weight can bring to the mean, because they are guarded or at a limit, are not part of it: they would shift it for
		// all others, whose errors would then all be large enough to pass the noise gate.
		if !e.Guarded && !e.Clamped {
			free.sum, free.n = free.sum+p.expected, free.n+1
		}
	}
	if sum > 0 && u.result.Reporting > 1 {
		u.result.PredictedMaxOverAverage = most / (sum / float64(u.result.Reporting))
	}
	u.estimateNoise(changes)
	if mean := free.value(); mean >= smallest {
		return mean
	}
	return all.value()
}

// predict finds the load that the weight of the State would have caused.
func (u *update) predict(p *point, e *EndpointState) {
	p.expected = p.load
	if u.Additive {
		return
	}
	ratio := e.Weight / float64(e.Last.Published)
	switch {
	case ratio > farthest:
		p.reach = 1
	case ratio < 1.0/farthest:
		p.reach = -1
	}
	p.expected *= min(max(ratio, 1.0/farthest), farthest)
}

// penalize adds what is wrong with an endpoint to its load.
func (u *update) penalize(p *point, e *EndpointState) {
	e.Guarded = p.guard > 0 || u.ErrorPenalty*float64(p.excess) >= failing
	if p.guard > 0 && (u.Metric == MetricCPU || u.Metric == MetricCustom) {
		p.expected = max(p.expected, u.average*min(float64(p.guard), mostLoad))
	}
	p.expected += u.ErrorPenalty * float64(p.excess) * u.average
}

// failing is the penalty, in means, from which an endpoint is guarded.
const failing = 0.5
