// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"math"
	"slices"
	"time"
)

// Weights returns the controller's own weights of the endpoints that are ready, sorted by ID, with a mean of 1.
func (s State) Weights() []Weight {
	weights := make([]Weight, 0, len(s.Endpoints))
	for _, e := range s.Endpoints {
		if e.Ready {
			weights = append(weights, Weight{e.ID, e.Weight})
		}
	}
	return weights
}

// Publish remembers what clients were told, so that a report of load can be compared with the weights that caused it. In shadow
// mode and in a blend these are not the weights of the State. Publications must be told in the order of time; one that is not
// later than the last replaces it.
func (s State) Publish(at time.Time, weights []Weight) State {
	p := Publication{At: InstantOf(at)}
	told := normalised(weights)
	p.Weights = make([]float64, len(told))
	for i, w := range told {
		p.Weights[i] = w.Weight
	}
	p.IDs = s.publishedIDs(told)
	kept := s.Published
	for len(kept) > 0 && kept[len(kept)-1].At >= p.At {
		kept = kept[:len(kept)-1]
	}
	s.Published = append(slices.Clip(kept), p)
	return s
}

// publishedIDs returns the IDs of the last publication if they are the same, because a hundred thousand of them take memory.
func (s State) publishedIDs(told []Weight) []string {
	if n := len(s.Published); n > 0 {
		last := s.Published[n-1].IDs
		if slices.EqualFunc(last, told, func(id string, w Weight) bool { return id == w.ID }) {
			return last
		}
	}
	ids := make([]string, len(told))
	for i, w := range told {
		ids[i] = w.ID
	}
	return ids
}

// moved returns the largest change of a weight since the last publication, see Result.Moved.
func (s State) moved() float64 {
	last := Publication{}
	if n := len(s.Published); n > 0 {
		last = s.Published[n-1]
	}
	change, j := 0.0, 0
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if !e.Ready {
			continue
		}
		if j == len(last.IDs) || last.IDs[j] != e.ID {
			return math.Inf(1)
		}
		change = max(change, math.Abs(e.Weight/last.Weights[j]-1))
		j++
	}
	if j < len(last.IDs) {
		return math.Inf(1)
	}
	return change
}

// forget leaves out the publications that no report that is still fresh can have been caused by.
func forget(published []Publication, before Instant) []Publication {
	first := 0
	for first+1 < len(published) && published[first+1].At <= before {
		first++
	}
	return published[first:]
}
