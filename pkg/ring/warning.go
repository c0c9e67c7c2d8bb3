// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"cmp"
	"fmt"
	"slices"
)

// WarningKind is a way in which a valid ring is not what its weights say.
type WarningKind uint8

const (
	// BackendOnFixedPoint is a backend whose hash input has the checksum FixedPoint: it has one point at any weight.
	BackendOnFixedPoint WarningKind = iota + 1
	// BackendShadowed is a backend whose hash input has the checksum of another's: all their points are the same, and the
	// one that comes later in ring order owns nothing beyond what its greater weight adds.
	BackendShadowed
	// TieOrderBias is a ring with so many points that ties are common, and the order that decides them favours the
	// first backends.
	TieOrderBias
)

// String returns the name of the kind: "BackendOnFixedPoint", "BackendShadowed" or "TieOrderBias".
func (k WarningKind) String() string {
	switch k {
	case BackendOnFixedPoint:
		return "BackendOnFixedPoint"
	case BackendShadowed:
		return "BackendShadowed"
	case TieOrderBias:
		return "TieOrderBias"
	default:
		return fmt.Sprintf("WarningKind(%d)", uint8(k))
	}
}

// tieBiasThreshold is the excess share of the first backend from which TieOrderBias is reported.
const tieBiasThreshold = 0.001

// Warning is a fact about a ring that its owner should know. Under V1 and V2 it cannot be mended without losing
// compatibility.
type Warning struct {
	Kind WarningKind
	// Backends are the numbers of the backends concerned, the winner first; nil for TieOrderBias.
	Backends []int
	// Message says it in a sentence.
	Message string
}

// Warnings returns what is odd about the ring, in a fixed order.
func (r *Ring) Warnings() []Warning {
	var sums []chainSum
	var warnings []Warning
	for i := range r.Len() {
		if r.Weight(i) == 0 {
			continue
		}
		crc := r.checksum(i)
		sums = append(sums, chainSum{crc, i})
		if crc == FixedPoint {
			warnings = append(warnings, Warning{BackendOnFixedPoint, []int{i}, fmt.Sprintf(
				"backend %s has one point at any weight: its CRC-32 is the fixed point %#08x of the chain", r.ID(i), FixedPoint)})
		}
	}
	warnings = append(warnings, r.shadowWarnings(sums)...)
	if bias := float64(r.PointCount()) / (2 * KeySpace); bias >= tieBiasThreshold && r.algorithm.Version != V3 {
		warnings = append(warnings, Warning{Kind: TieOrderBias, Message: fmt.Sprintf(
			"with %d points ties are common: the first backend in ring order gets about %.2f %% more than its share",
			r.PointCount(), bias*100)})
	}
	return warnings
}

// chainSum is a placed backend and the checksum that its chain starts from.
type chainSum struct {
	crc     uint32
	backend int
}

// shadowWarnings compares every backend with the heaviest of those before it that have its checksum: the points of the
// others are among that one's.
func (r *Ring) shadowWarnings(sums []chainSum) []Warning {
	var warnings []Warning
	slices.SortFunc(sums, func(a, b chainSum) int { return cmp.Or(cmp.Compare(a.crc, b.crc), cmp.Compare(a.backend, b.backend)) })
	winner := 0
	for k := 1; k < len(sums); k++ {
		if sums[winner].crc != sums[k].crc {
			winner = k
			continue
		}
		won, lost := sums[winner].backend, sums[k].backend
		common := "all its points"
		if r.Weight(lost) > r.Weight(won) && sums[k].crc != FixedPoint {
			perWeight := uint64(r.algorithm.PointsPerWeight)
			common = fmt.Sprintf("%d of its %d points", uint64(r.Weight(won))*perWeight, uint64(r.Weight(lost))*perWeight)
			winner = k
		}
		warnings = append(warnings, Warning{BackendShadowed, []int{won, lost}, fmt.Sprintf(
			"backend %s has %s in common with %s, which comes first and so wins them: both have the CRC-32 %#08x",
			r.ID(lost), common, r.ID(won), sums[k].crc)})
	}
	return warnings
}
