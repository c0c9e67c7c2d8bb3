// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"sort"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
)

// tooLarge refuses a snapshot that no ConfigMap takes, and says what would fit.
func tooLarge(c ring.Config, points, bytes uint64) error {
	return refusef(v1alpha1.ReasonSnapshotTooLarge,
		"the snapshot of %d backends has %d points in %d bytes, a ConfigMap takes %d: %s would fit",
		len(c.Backends), points, bytes, MaxSnapshotBytes, whatFits(c))
}

// whatFits names the number to change: the points for each unit of weight or, where V1 fixes them or one is too many, the
// sum of the weights.
func whatFits(c ring.Config) string {
	weight := uint64(0)
	for _, b := range c.Backends {
		weight += uint64(b.Weight)
	}
	fixed := fixedBytes(c)
	largest := func(limit, each uint64) int {
		return sort.Search(int(limit), func(n int) bool {
			return fixed+packedBytes(uint64(n+1)*each, len(c.Backends)) > MaxSnapshotBytes
		})
	}
	if n := largest(uint64(c.Algorithm.PointsPerWeight), weight); n > 0 && c.Algorithm.Version != ring.V1 {
		return fmt.Sprintf("spec.algorithm.pointsPerWeight %d", n)
	}
	if n := largest(weight, uint64(c.Algorithm.PointsPerWeight)); n > 0 {
		return fmt.Sprintf("a sum of weights of %d", n)
	}
	return "fewer backends, or shorter names,"
}

func packedBytes(points uint64, backends int) uint64 {
	return ring.PackedBytes(uint32(min(points, ring.HardMaxPoints)), backends)
}

// fixedBytes is an upper estimate of what a snapshot holds beside its points. The slack covers frame, alignment and a few
// overfull buckets.
func fixedBytes(c ring.Config) uint64 {
	const frame, slack, columns = 256, 4096, 12
	n := uint64(frame + slack)
	for _, b := range c.Backends {
		n += uint64(len(b.ID) + len(b.Zone) + columns)
	}
	for _, f := range c.Features {
		n += uint64(len(f) + 1 + (len(c.Backends)+7)/8)
	}
	return n
}
