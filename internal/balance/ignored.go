// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"math"
	"time"
)

// Evidence is how load followed published weights lately: endpoints are watched from when their error is large until their
// published weight has moved enough to see whether their load did too.
type Evidence struct {
	// Sum and Count are the responses that were seen, 1 for load that moved as the weight did and 0 for load that did not, both
	// fading with every update.
	Sum, Count float64
	// Ignored is the verdict, which stays until there is evidence of the contrary.
	Ignored bool
}

// Probe is an endpoint's question: what its load relative to the mean, and its published weight, were when it was asked, as
// logarithms, and what its own weight was.
//
// That a weight moved and the load did not follow says nothing in itself: weights follow what happens to endpoints, and if one
// becomes slower, its load is the same again after its weight was lowered. So the question is asked only where the error
// was there first, and is large: if clients listen it becomes smaller by as much as the weight moves.
type Probe struct {
	Load, Weight, Own float32
	Open              bool
}

// answered says whether a published weight has moved enough for an answer: half of what was wrong is put right, or would be, or as
// much as can be told from chance in any case.
func (q Probe) answered(moved float64) bool {
	asked := float64(q.Load)
	return moved*asked < 0 && math.Abs(moved) >= min(math.Abs(asked)/2, enoughMoved)
}

const (
	// evidenceMemory is the part of the evidence that an update keeps.
	evidenceMemory = 0.99
	// enoughEvidence is the Count from which there is a verdict, and leastEvidence that of a fleet with so few endpoints that they do not
	// come to it: half as many answers as endpoints.
	enoughEvidence, leastEvidence = 5.0, 2.0
	// Below ignoring the weights are ignored, above following they are not; between them an earlier verdict stays.
	ignoring, following = 0.4, 0.6
	// leastQuestion is the error from which a question is asked, which must also be many deviations of a measurement.
	leastQuestion, clearly = 0.1, 5
	// enoughMoved is the change of a weight, as a logarithm, after which there is an answer to any question.
	enoughMoved = 0.3
	// unmoved is the response below which an endpoint that was given more is doubted, for doubtTime at first, which doubles with
	// every further time up to maxDoubts.
	unmoved   = 0.25
	doubtTime = 10 * time.Minute
	maxDoubts = 5
	// saturated is the CPU from which load cannot follow: with twice the traffic it is the same.
	saturated = 0.9
)

// enough is the Count from which there is a verdict about a number of endpoints.
func enough(endpoints int) float64 {
	return min(enoughEvidence, max(leastEvidence, float64(endpoints)/2))
}

func (e Evidence) response(endpoints int) float64 {
	if e.Count < enough(endpoints) {
		return math.NaN()
	}
	return e.Sum / e.Count
}

// watch asks and answers the question of an endpoint's probe.
func (u *update) watch(p *point, e *EndpointState) {
	if !(p.load >= smallest*u.average) {
		return
	}
	if e.Guarded || e.Cold || e.Last.CPU > saturated {
		if e.Guarded && e.Probe.Open {
			u.doubt(e, 0) // It asked for more, and now it fails.
		}
		e.Probe = Probe{}
		return
	}
	if ratio := p.load / u.average; !e.Probe.Open && ratio > 1-leastQuestion/2 && ratio < 1+leastQuestion {
		return // Which is nearly all, most of the time; logarithms take time.
	}
	load, weight, asked := math.Log(p.load/u.average), math.Log(float64(e.Last.Published)), float64(e.Probe.Load)
	if moved := weight - float64(e.Probe.Weight); e.Probe.Open && e.Probe.answered(moved) {
		response := (load - asked) / moved
		u.state.Evidence.add(response)
		u.doubt(e, response)
		e.Probe = Probe{}
	} else if load*asked <= 0 {
		e.Probe = Probe{} // It came right by itself.
	}
	if !e.Probe.Open && math.Abs(load) >= max(leastQuestion, clearly*u.chance(e)) {
		e.Probe = Probe{Open: true, Load: float32(load), Weight: float32(weight), Own: float32(e.Weight)}
	}
}

func (e *Evidence) add(response float64) {
	e.Sum += bounded(response, 2)
	e.Count++
}

// fade lets old evidence count less.
func (e *Evidence) fade() {
	e.Sum, e.Count = e.Sum*evidenceMemory, e.Count*evidenceMemory
}

// judge comes to a verdict if there is enough evidence about a number of endpoints.
func (e *Evidence) judge(endpoints int) {
	if e.Count < enough(endpoints) {
		return
	}
	switch response := e.Sum / e.Count; {
	case response < ignoring:
		e.Ignored = true
	case response > following:
		e.Ignored = false
	}
}

// chance returns the standard deviation of an endpoint's load by chance: what is seen of all, or what so few requests have.
func (u *update) chance(e *EndpointState) float64 {
	if e.Last.Requests > 0 {
		return max(u.state.Noise, math.Sqrt(requestNoise/float64(e.Last.Requests)))
	}
	return u.state.Noise
}

// doubt remembers that an endpoint which asked for more got more and did not report it: it lies, or the weight does not reach it.
// Either way a larger one would do harm, and no good.
func (u *update) doubt(e *EndpointState, response float64) {
	switch {
	case e.Probe.Load > 0:
	case response >= unmoved:
		e.Doubts = 0
	default:
		e.Doubts = min(e.Doubts+1, maxDoubts)
		e.DoubtedUntil = u.now.add(doubtTime << (e.Doubts - 1))
		e.Trusted = e.Probe.Own
	}
}
