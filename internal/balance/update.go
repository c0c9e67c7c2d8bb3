// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"math"
	"slices"
)

// point is what an update works out of an endpoint.
type point struct {
	// figure is the load as reported, load the same kept from being out of all proportion, expected the load that the weights of
	// the State would have caused.
	figure, load, expected float64
	// err is the error, before the weight before the update.
	err, before float64
	// guard is how many times as many requests in flight as usual there are, excess how many more of the requests fail.
	guard, excess float32
	// reach is 1 where the weight of the State is so much larger than the one that caused the load that nothing can be said of
	// what still larger ones would, and -1 where it is so much smaller.
	reach int8
	// fresh says that a report came since the last update, reporting that the last one can still be used.
	fresh, reporting bool
}

// update is one call of Update.
type update struct {
	Config
	now, oldest, latest Instant
	state               State
	list                []EndpointState
	points              []point
	told                toldWeights
	scratch             []float64
	stride              int
	result              Result
	// cpu and inFlight are the means that MetricMax compares with, average is the mean of the loads of those that report.
	cpu, inFlight, average float64
	// fresh says that a report came since the last update.
	fresh bool
}

// Update returns the state after in, and what was found. The Config must be valid.
//
// Weights are within MinWeight and MaxWeight, or GuardedMinWeight and MaxWeight for an endpoint that is or was guarded: one that
// was comes back in steps. The exception is a fleet in which so many endpoints are at a limit that no weights within them
// have a mean of 1; the mean is kept then, up to the limits of all.
func Update(c Config, s State, in Input) (State, Result) {
	now := InstantOf(in.Now)
	s = s.rewound(now)
	u := &update{Config: c, now: now, oldest: now.add(-c.StaleAfter), latest: now.add(clockSkew), state: s}
	u.list = members(c, s.Endpoints, in.Endpoints)
	u.points = make([]point, len(u.list))
	u.stride = len(u.list)/sampled | 1
	u.told = newToldWeights(s.Published, u.list)
	u.collect(in.Reports)
	u.measure()
	if u.result.Skipped = u.skip(); u.result.Skipped == SkipNone {
		u.move(u.judge())
		u.state.Updated = u.now
	} else {
		u.list = members(c, s.Endpoints, in.Endpoints) // The reports will be used when there are enough.
		for i := range u.list {
			u.list[i].Silent = !u.points[i].reporting
		}
	}
	u.state.Endpoints = u.list
	u.state.Published = forget(s.Published, u.oldest.add(-c.StaleAfter))
	u.conclude()
	return u.state, u.result
}

// rewound returns a state in which nothing is later than now, for when the clock was set back.
func (s State) rewound(now Instant) State {
	latest := now.add(clockSkew)
	s.Updated = min(s.Updated, latest)
	later := func(e *EndpointState) bool {
		return e.Seen > latest || e.DoubtedUntil > latest.add(doubtTime<<maxDoubts)
	}
	copied := false
	for i := range s.Endpoints {
		if !later(&s.Endpoints[i]) {
			continue
		}
		if !copied {
			s.Endpoints, copied = slices.Clone(s.Endpoints), true
		}
		e := &s.Endpoints[i]
		e.Seen, e.Last, e.DoubtedUntil = now, Sample{}, now
	}
	if n := len(s.Published); n > 0 && s.Published[n-1].At > latest {
		s.Published = []Publication{{now, s.Published[n-1].IDs, s.Published[n-1].Weights}}
	}
	return s
}

// skip says why the update cannot happen.
func (u *update) skip() SkipReason {
	r := &u.result
	needed := min(max(int(math.Ceil(u.MinReporting*float64(r.Ready))), 2), r.Ready)
	switch {
	case r.Ready == 0:
		return SkipNoEndpoints
	case r.Reporting < needed:
		return SkipFewReports
	case !(r.Mean >= max(u.MinLoad, smallest)):
		return SkipLowTraffic
	case !u.fresh:
		return SkipNothingNew
	}
	return SkipNone
}

// smallest is the mean load below which quotients say nothing.
const smallest = 1e-9

// compare finds the error of an endpoint.
func (u *update) compare(p *point, mean float64) {
	switch {
	case !(mean >= smallest):
		p.err = 0
	case u.Additive:
		p.err = mean - p.expected
	default:
		p.err = math.Log(mean / max(p.expected, mean/mostLoad))
	}
}

// gate lets errors through that are larger than what chance makes of one measurement, smoothly, so that there is no error at
// which a weight starts to move with a jerk.
func (u *update) gate(err float64) float64 {
	if math.Abs(err) <= u.DeadBand {
		return 0
	}
	if u.Additive {
		return 1
	}
	width := gateWidth * min(max(u.state.Noise, u.MinNoise/gateWidth), u.MaxNoise/gateWidth)
	x := err / width
	return x * x / (1 + x*x)
}

// gateWidth is how many standard deviations of a measurement an error has of which one half passes.
const gateWidth = 1.0

// control returns what is done about the error of an endpoint, as a logarithm, and keeps its integral.
func (u *update) control(e *EndpointState, p *point) float64 {
	kp, last := u.Kp, float64(e.LastError)
	if math.Abs(p.err) > u.FarError {
		kp = u.KpFar
	}
	step := kp * p.err * u.gate(p.err)
	if u.Ki > 0 {
		integral := bounded(leak*float64(e.Integral)+p.err, maxIntegral/u.Ki)
		step += u.Ki * integral
		e.Integral = float32(integral)
	}
	step += u.Kd * (p.err - last)
	if u.Additive {
		step = math.Log(max(e.Weight+step, e.Weight/maxWeight) / e.Weight)
	}
	// Beyond the reach of what was tried, nothing is known: the weight waits until clients have been told.
	if p.reach > 0 && step > 0 || p.reach < 0 && step < 0 && !e.Guarded {
		step = 0
	}
	if u.now < e.DoubtedUntil {
		step = min(step, math.Log(float64(e.Trusted)/e.Weight))
	}
	return bounded(step, u.MaxStep)
}

const (
	// leak is the part of an integral that is left after an update.
	leak = 0.9
	// maxIntegral is the most that the integral adds to a step.
	maxIntegral = 0.1
)

// move changes the weights of the endpoints with a new report, for a load that is the mean. The sum of those that report stays, so that
// the part of the traffic of the silent ones does.
func (u *update) move(mean float64) {
	u.state.Evidence.fade()
	before, after := 0.0, 0.0
	for i := range u.list {
		e, p := &u.list[i], &u.points[i]
		e.Silent, e.Clamped = !p.reporting, e.Clamped && !p.reporting
		if !p.reporting {
			continue
		}
		p.before = e.Weight
		before += e.Weight
		u.compare(p, mean)
		if p.fresh {
			u.watch(p, e)
			e.Weight *= math.Exp(u.control(e, p))
			e.LastError = float32(p.err)
			e.Cold = e.Cold && p.err > u.FarError
		}
		after += e.Weight
	}
	u.state.Evidence.judge(u.result.Reporting)
	u.scale(before, after)
}

// scale brings the weights that have moved to the sum of before.
func (u *update) scale(before, after float64) {
	inside, factor := true, before/after
	for i := range u.list {
		if e, p := &u.list[i], &u.points[i]; p.reporting {
			e.Weight *= factor
			inside = inside && e.Weight > u.lowest(e, p) && e.Weight < u.MaxWeight
		}
	}
	if !inside {
		u.limit(before)
	}
}

// lowest returns the lower limit of an endpoint: one that was guarded comes back in steps.
func (u *update) lowest(e *EndpointState, p *point) float64 {
	low := u.MinWeight
	if e.Guarded {
		low = u.GuardedMinWeight
	}
	return max(min(low, p.before), u.GuardedMinWeight)
}

// limit brings the weights that have moved to their limits.
func (u *update) limit(sum float64) {
	reporting := make([]limited, 0, u.result.Reporting)
	for i := range u.list {
		if e, p := &u.list[i], &u.points[i]; p.reporting {
			reporting = append(reporting, limited{index: int32(i), weight: e.Weight, low: u.lowest(e, p), high: u.MaxWeight})
		}
	}
	spread(reporting, sum)
	for _, l := range reporting {
		e, err := &u.list[l.index], u.points[l.index].err
		e.Weight = l.weight
		e.Clamped = l.weight >= l.high && err > 0 || l.weight <= l.low && err < 0
	}
}
