// SPDX-License-Identifier: Apache-2.0

package balance

import "math"

const (
	// madToDeviation makes a standard deviation of a median absolute deviation.
	madToDeviation = 1.4826
	// noiseMemory is the part of the estimate that an update keeps.
	noiseMemory = 0.7
	// fewChanges is how many endpoints it takes to estimate anything.
	fewChanges = 4
)

// changes are by how much the load for a weight of 1 changed from one measurement to the next, as logarithms, and in a second.
type changes struct{ all, rates []float64 }

func (u *update) newChanges() changes {
	n := len(u.list)/u.stride + 1
	return changes{make([]float64, 0, n), make([]float64, 0, n)}
}

// note remembers the load of an endpoint for the next time, and by how much it changed where that is wanted.
func (c *changes) note(p *point, e *EndpointState, wanted bool) {
	cost := p.figure / float64(e.Last.Published)
	if wanted && e.Cost > 0 && !e.Guarded {
		change := math.Log(cost / float64(e.Cost))
		c.all = append(c.all, change)
		c.rates = append(c.rates, change/max(e.Last.End.since(e.CostEnd), 1))
	}
	e.Cost, e.CostEnd = float32(cost), e.Last.End
}

// estimateNoise finds how much one measurement differs from the next by chance. The median leaves out the few for which something
// really changed, and is the change of all traffic.
func (u *update) estimateNoise(c changes) {
	if len(c.all) < fewChanges {
		return
	}
	center := median(c.all)
	for i := range c.all {
		c.all[i] = math.Abs(c.all[i] - center)
	}
	now := median(c.all) * madToDeviation / math.Sqrt2
	if u.state.Noise > 0 {
		now = noiseMemory*u.state.Noise + (1-noiseMemory)*now
	}
	u.state.Noise = min(now, 1)
	u.state.Trend = bounded(noiseMemory*u.state.Trend+(1-noiseMemory)*median(c.rates), mostTrend)
}

// mostTrend bounds what all traffic is taken to grow by in a second: it doubles in a minute.
const mostTrend = math.Ln2 / 60

// requestNoise is k of the noise floor: the variance of the work that n requests are, in units of n times the square of one's
// work. It is 1 for requests that are alike and arrive independently of each other.
const requestNoise = 1

// noiseFloor returns the MaxOverAverage that chance alone gives: from how many requests there were, at how many of the endpoints, or where
// that is not reported from how much measurements differ.
func (u *update) noiseFloor(requests float64, n int) float64 {
	deviation := u.state.Noise
	if n > 0 {
		deviation = math.Sqrt(requestNoise * float64(n) / requests)
	}
	return 1 + expectedMaximum(u.result.Reporting)*deviation
}

// conclude counts.
func (u *update) conclude() {
	r := &u.result
	requests, n := 0.0, 0
	for i := range u.list {
		e := &u.list[i]
		if !e.Ready {
			continue
		}
		count(&r.Cold, e.Cold)
		count(&r.Clamped, e.Clamped)
		count(&r.Guarded, e.Guarded)
		count(&r.Silent, e.Silent)
		count(&r.Doubted, u.now < e.DoubtedUntil)
		if u.points[i].reporting && e.Last.Requests > 0 {
			requests += float64(e.Last.Requests)
			n++
		}
	}
	r.NoiseFloor = math.NaN()
	if r.Reporting > 1 {
		r.NoiseFloor = u.noiseFloor(requests, n)
	}
	r.Ignored, r.Response = u.state.Evidence.Ignored, u.state.Evidence.response(r.Reporting)
	r.Moved = u.state.moved()
}

func count(n *int, fact bool) {
	if fact {
		*n++
	}
}
