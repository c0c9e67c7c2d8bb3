// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"cmp"
	"math"
	"slices"
)

// UnitsPerMean is the weight 1 on the wire.
const UnitsPerMean = 10_000

// maxWeight bounds weights of any source, so that sums of them are finite and their units fit 32 bits.
const maxWeight = 100_000

// Units returns a weight as Envoy and gRPC take it: a whole number with 10000 for the mean, at least 1, for NaN too.
func Units(weight float64) uint32 {
	if math.IsNaN(weight) {
		return 1
	}
	return uint32(min(max(math.Round(weight*UnitsPerMean), 1), maxWeight*UnitsPerMean))
}

// FromUnits returns the weight that units stand for; 0 is taken for 1 unit.
func FromUnits(units uint32) float64 {
	return float64(max(units, 1)) / UnitsPerMean
}

// Equal returns the weight 1 for each endpoint of weights.
func Equal(weights []Weight) []Weight {
	equal := make([]Weight, len(weights))
	for i, w := range weights {
		equal[i] = Weight{w.ID, 1}
	}
	return equal
}

// Blend mixes two sets of weights: percent of the traffic is split by to, the rest by from. 0 is all from and 100 all to; below
// and above count as those. The endpoints are those of to; one that from does not have gets its part of to alone. The result
// is sorted by ID and has a mean of 1.
func Blend(from, to []Weight, percent float64) []Weight {
	part := min(max(percent, 0), 100) / 100
	if math.IsNaN(percent) {
		part = 0
	}
	to, from = normalised(to), normalised(from)
	mixed, j := make([]Weight, len(to)), 0
	for i, w := range to {
		for j < len(from) && from[j].ID < w.ID {
			j++
		}
		mixed[i] = w
		if j < len(from) && from[j].ID == w.ID {
			mixed[i].Weight = part*w.Weight + (1-part)*from[j].Weight
		}
	}
	return normalised(mixed)
}

// normalised returns weights sorted by ID, without duplicates, each positive and finite, with a mean of 1.
func normalised(weights []Weight) []Weight {
	sorted := slices.Clone(weights)
	byID := func(a, b Weight) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Weight, b.Weight))
	}
	if !slices.IsSortedFunc(sorted, byID) {
		slices.SortFunc(sorted, byID)
	}
	sorted = slices.CompactFunc(sorted, func(a, b Weight) bool { return a.ID == b.ID })
	sum := 0.0
	for i := range sorted {
		sorted[i].Weight = sane(sorted[i].Weight)
		sum += sorted[i].Weight
	}
	for i := range sorted {
		sorted[i].Weight *= float64(len(sorted)) / sum
	}
	return sorted
}

// sane returns a weight that can be worked with: NaN is 1, and others are kept away from zero and infinity.
func sane(weight float64) float64 {
	if math.IsNaN(weight) {
		return 1
	}
	return min(max(weight, 1.0/UnitsPerMean), maxWeight)
}

// Change returns the largest change of a weight between two sets, as a part of what it was; infinite if the sets have not the
// same endpoints.
func Change(from, to []Weight) float64 {
	from, to = normalised(from), normalised(to)
	if len(from) != len(to) {
		return math.Inf(1)
	}
	change := 0.0
	for i := range to {
		if from[i].ID != to[i].ID {
			return math.Inf(1)
		}
		change = max(change, math.Abs(to[i].Weight/from[i].Weight-1))
	}
	return change
}

// PublishFrom is the change of a weight, as a part of it, from which clients should be told.
const PublishFrom = 0.01

// Settled returns weights to publish where every change costs, as on a ring, on which it moves keys: those that differ from what
// was told by more than a part of it, and for the others what was told. Without it a common factor that keeps the mean at 1
// would change all a little whenever one changes. The result is sorted by ID; its mean is 1 up to that part.
func Settled(told, weights []Weight, part float64) []Weight {
	told, wanted := normalised(told), normalised(weights)
	j := 0
	for i, w := range wanted {
		for j < len(told) && told[j].ID < w.ID {
			j++
		}
		if j < len(told) && told[j].ID == w.ID && math.Abs(w.Weight/told[j].Weight-1) <= part {
			wanted[i].Weight = told[j].Weight
		}
	}
	return wanted
}
