// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"math"
	"slices"
	"strings"
	"time"
)

// Stored is what has to be kept of an endpoint so that another controller can go on.
type Stored struct {
	ID string
	// Units is the weight, see [Units].
	Units uint32
	// IntegralMillionths and ErrorMillionths are the integral and the last error.
	IntegralMillionths, ErrorMillionths int64
	// Cold says that the endpoint had not found its place.
	Cold bool
}

// Store returns what has to be kept of a State, sorted by ID.
func (s State) Store() []Stored {
	stored := make([]Stored, len(s.Endpoints))
	for i, e := range s.Endpoints {
		stored[i] = Stored{e.ID, Units(e.Weight), millionths(float64(e.Integral)), millionths(float64(e.LastError)), e.Cold}
	}
	return stored
}

func millionths(x float64) int64 { return int64(math.Round(min(max(x, -maxTerm), maxTerm) * 1e6)) }

// maxTerm bounds integrals and errors of any source.
const maxTerm = 1000

// Restore returns a State that goes on from what was stored. Published is what clients were told last, which a shadow or a blend
// makes different from the weights; nil says that it was the stored weights. Reports that end before at are not used: they are of
// a time of which nothing is known.
func Restore(at time.Time, stored []Stored, published []Weight) State {
	s := State{Updated: InstantOf(at)}
	sorted := slices.Clone(stored)
	slices.SortStableFunc(sorted, func(a, b Stored) int { return strings.Compare(a.ID, b.ID) })
	sorted = slices.CompactFunc(sorted, func(a, b Stored) bool { return a.ID == b.ID })
	for _, e := range sorted {
		s.Endpoints = append(s.Endpoints, EndpointState{
			ID: e.ID, Weight: FromUnits(e.Units), Ready: true, Cold: e.Cold, Silent: true, Seen: InstantOf(at),
			Integral: float32(bounded(float64(e.IntegralMillionths)/1e6, maxTerm)), LastError: float32(bounded(float64(e.ErrorMillionths)/1e6, maxTerm)),
		})
	}
	if published == nil {
		published = s.Weights()
	}
	if len(published) == 0 {
		return s
	}
	return s.Publish(at, published)
}

// bounded returns x kept within ±limit.
func bounded(x, limit float64) float64 { return min(max(x, -limit), limit) }
