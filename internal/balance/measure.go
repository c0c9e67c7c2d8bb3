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
	cpu, inFlight := 1.0, 1.0
	if u.Metric == MetricMax {
		cpu = u.center(func(s *Sample) float64 { return float64(s.CPU) })
		inFlight = u.center(func(s *Sample) float64 { return float64(s.InFlight) })
	}
	for i := range u.list {
		p, e := &u.points[i], &u.list[i]
		if !e.Ready {
			continue
		}
		u.result.Ready++
		if !u.recent(&e.Last) || e.Last.Published <= 0 {
			continue
		}
		p.figure = figure(u.Metric, &e.Last, cpu, inFlight)
		p.reporting = !math.IsNaN(p.figure)
	}
	u.suspect()
	u.disbelieve()
	u.proportion()
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

// suspect finds endpoints whose load says nothing, because requests wait for something else than a processor, or fail.
//
// Requests in flight for a weight are proportional to the time that a request takes. A slow processor makes it longer too, and
// uses more of the processor for it; that is not what is looked for, so the ratio is divided by that of the processor.
func (u *update) suspect() {
	perWeight := func(of func(*Sample) float64) func(int) float64 {
		return func(i int) float64 {
			if !u.points[i].reporting {
				return math.NaN()
			}
			return of(&u.list[i].Last) / float64(u.list[i].Last.Published)
		}
	}
	flying := perWeight(func(s *Sample) float64 { return float64(s.InFlight) })
	working := perWeight(func(s *Sample) float64 { return float64(s.CPU) })
	usualFlying, usualWorking := median(u.values(flying)), median(u.values(working))
	usualFailed := median(u.values(func(i int) float64 {
		if !u.points[i].reporting {
			return math.NaN()
		}
		return float64(u.list[i].Last.Failed)
	}))
	for i := range u.points {
		p := &u.points[i]
		if !p.reporting {
			continue
		}
		p.excess = float32(max(float64(u.list[i].Last.Failed)-usualFailed, 0))
		if u.list[i].Last.InFlight < 1 || !(usualFlying > 0) {
			continue // Nobody waits where there is less than a request.
		}
		guard := flying(i) / usualFlying
		if slow := working(i) / usualWorking; slow > 1 && !math.IsInf(slow, 1) {
			guard /= slow
		}
		if guard > u.GuardRatio {
			p.guard = float32(min(guard, largest))
		}
	}
}

// disbelieve takes endpoints for silent that claim less load for their weight than the most capable one could have: such an
// endpoint gets no traffic, or lies, and a larger weight would be wrong either way.
func (u *update) disbelieve() {
	cost := func(i int) float64 {
		if !u.points[i].reporting {
			return math.NaN()
		}
		return u.points[i].figure / float64(u.list[i].Last.Published)
	}
	least := median(u.values(cost)) / incredible
	for i := range u.points {
		p := &u.points[i]
		p.reporting = p.reporting && (p.guard > 0 || p.excess > 0 || cost(i) > least || least == 0)
	}
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
	r := &u.result
	most := mostLoad * median(figures)
	sum := 0.0
	for i := range u.points {
		if p := &u.points[i]; p.reporting {
			p.load = p.figure
			if age := u.now.since(u.list[i].Last.End); age != 0 && u.state.Trend != 0 {
				p.load *= math.Exp(u.state.Trend * age)
			}
			p.load = min(p.load, most)
			sum += p.load
			r.Reporting++
		}
	}
	mean := sum / float64(r.Reporting)
	r.Mean = mean
	if u.Metric == MetricMax {
		if r.Mean = u.center(func(s *Sample) float64 { return float64(s.CPU) }); math.IsNaN(r.Mean) {
			r.Mean = u.center(func(s *Sample) float64 { return float64(s.InFlight) })
		}
	}
	r.MaxOverAverage, r.P95OverAverage, r.PredictedMaxOverAverage = math.NaN(), math.NaN(), math.NaN()
	if r.Reporting < 2 || !(mean > 0) {
		return
	}
	largest := 0.0
	for i := range u.points {
		largest = max(largest, u.points[i].load) // 0 of those that do not report.
	}
	r.MaxOverAverage = largest / mean
	r.P95OverAverage = quantile(u.values(func(i int) float64 {
		if !u.points[i].reporting {
			return math.NaN()
		}
		return u.points[i].load
	}), 0.95) / mean
}

// judge finds the load that the weights of the State would have caused, and adds what is wrong with an endpoint.
func (u *update) judge() {
	mean := u.result.average(u.points)
	sum, most := 0.0, 0.0
	for i := range u.points {
		p, e := &u.points[i], &u.list[i]
		if !p.reporting {
			continue
		}
		p.expected = p.load
		if !u.Additive {
			ratio := e.Weight / float64(e.Last.Published)
			switch {
			case ratio > farthest:
				p.reach = 1
			case ratio < 1.0/farthest:
				p.reach = -1
			}
			p.expected *= min(max(ratio, 1.0/farthest), farthest)
		}
		sum += p.expected
		most = max(most, p.expected)
		e.Guarded = p.guard > 0 || u.ErrorPenalty*float64(p.excess) >= failing
		if p.guard > 0 && (u.Metric == MetricCPU || u.Metric == MetricCustom) {
			p.expected = max(p.expected, mean*min(float64(p.guard), mostLoad))
		}
		p.expected += u.ErrorPenalty * float64(p.excess) * mean
	}
	if sum > 0 && u.result.Reporting > 1 {
		u.result.PredictedMaxOverAverage = most / (sum / float64(u.result.Reporting))
	}
	u.estimateNoise()
}

// failing is the penalty, in means, from which an endpoint is guarded.
const failing = 0.5

// average returns the mean of the bounded loads.
func (r *Result) average(points []point) float64 {
	sum := 0.0
	for i := range points {
		sum += points[i].load // 0 of those that do not report.
	}
	return sum / float64(r.Reporting)
}
