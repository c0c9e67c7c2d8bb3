// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
)

// maxCoarse is by how much of what a factor asks for a weight may miss it, as a divisor: 5 %.
const maxCoarse = 20

// coarse counts the backends whose weight cannot follow their factor.
type coarse struct {
	// count of all backends with a factor, missing it; first is one of those, and asked what its factor asks for.
	all, count int
	first      ring.Backend
	declared   uint32
	// least is the smallest weight that a factor asks for, in ten-thousandths.
	least uint64
}

// coarseWeights warns where weights are too small for their factors to be expressed within 5 %.
func (c *chooser) coarseWeights(backends []ring.Backend) []v1alpha1.Warning {
	found := coarse{}
	for _, b := range backends {
		m := c.roster.find(b.ID)
		if m == nil || b.Weight == 0 {
			continue
		}
		found.add(b, uint32(weight(m.backend)), c.load.factors[b.ID])
	}
	if found.count == 0 {
		return nil
	}
	times := found.times()
	return []v1alpha1.Warning{{Reason: v1alpha1.WarningCoarseWeights, Message: fmt.Sprintf(
		"%d of %d backends with a factor of WeightPolicy %s miss it by more than 5 %%, because weights are whole numbers: %s has weight %d, and gets %d; weights %d times as large in all backends would do (%d for that one), with %s",
		found.count, found.all, c.load.Policy, found.first.ID, found.declared, found.first.Weight, times, found.declared*times, sameSize(c.ring.Spec.Algorithm, times),
	)}}
}

// add counts a backend. A weight that comes from the published ring is looked at all the same: it was made in the same way.
func (f *coarse) add(b ring.Backend, declared uint32, factor int32) {
	if declared == 0 || factor == 0 {
		return
	}
	f.all++
	asked := uint64(declared) * uint64(factor)
	if f.least == 0 || asked < f.least {
		f.least = asked
	}
	got := uint64(b.Weight) * UnitLoadFactor
	if max(got, asked)-min(got, asked) <= asked/maxCoarse {
		return
	}
	if f.count++; f.count == 1 || b.ID < f.first.ID {
		f.first, f.declared = b, declared
	}
}

// times returns by how much weights have to grow so that half a unit is at most 5 % of each: a round number, so that the message stays the same
// while factors change a little.
func (f *coarse) times() uint32 {
	const enough = maxCoarse / 2 * UnitLoadFactor
	for magnitude := uint64(1); ; magnitude *= 10 {
		for _, step := range []uint64{1, 2, 5} {
			if f.least*step*magnitude >= enough {
				return uint32(step * magnitude)
			}
		}
	}
}

// sameSize says how the ring keeps the number of its points.
func sameSize(a v1alpha1.Algorithm, times uint32) string {
	if a.Version == v1alpha1.AlgorithmV3 {
		return fmt.Sprintf("spec.algorithm.weightUnit %d so that the ring has as many points", max(uint32(a.WeightUnit), 1)*times)
	}
	return fmt.Sprintf("spec.algorithm.pointsPerWeight %d (it is %d) so that the ring has about as many points", max(uint32(a.PointsPerWeight)/times, 1), a.PointsPerWeight)
}
