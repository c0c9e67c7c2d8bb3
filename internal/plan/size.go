// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math"
	"slices"
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

// pointLimit returns up to how many points a ring is built at all. With V3 it is what would fit if it had nothing else:
// trimming more, only to refuse the result, would take many seconds.
func pointLimit(version ring.Version, backends int) uint64 {
	if version != ring.V3 {
		return maxPoints
	}
	return uint64(sort.Search(maxPoints, func(n int) bool { return packedBytes(uint64(n+1), backends) > MaxSnapshotBytes }))
}

// whatFits names the number to change: the points for each unit of weight; where V1 fixes them or one is too many, the sum
// of the weights; with V3 the unit instead.
func whatFits(c ring.Config) string {
	fits := func(a ring.Algorithm) bool { return estimate(c, a) <= MaxSnapshotBytes }
	with := func(change func(a *ring.Algorithm)) ring.Algorithm {
		a := c.Algorithm
		change(&a)
		return a
	}
	if c.Algorithm.Version != ring.V1 {
		if n := sort.Search(int(c.Algorithm.PointsPerWeight), func(n int) bool {
			return !fits(with(func(a *ring.Algorithm) { a.PointsPerWeight = uint32(n + 1) }))
		}); n > 0 {
			return fmt.Sprintf("spec.algorithm.pointsPerWeight %d", n)
		}
	}
	if c.Algorithm.Version == ring.V3 {
		if n := 1 + sort.Search(ring.MaxWeight, func(n int) bool {
			return fits(with(func(a *ring.Algorithm) { a.WeightUnit = uint32(n + 1) }))
		}); n <= ring.MaxWeight {
			return fmt.Sprintf("spec.algorithm.weightUnit %d", n)
		}
		return "fewer backends, shorter names or fewer views,"
	}
	weight, fixed, each := sumOfWeights(c), fixedBytes(c), uint64(c.Algorithm.PointsPerWeight)
	if n := sort.Search(int(weight), func(n int) bool {
		return fixed+packedBytes(uint64(n+1)*each, len(c.Backends)) > MaxSnapshotBytes
	}); n > 0 {
		return fmt.Sprintf("a sum of weights of %d", n)
	}
	return "fewer backends, or shorter names,"
}

func sumOfWeights(c ring.Config) uint64 {
	sum := uint64(0)
	for _, b := range c.Backends {
		sum += uint64(b.Weight)
	}
	return sum
}

// estimate returns about how large the snapshot of c is with another algorithm; not less than it is, as a rule.
func estimate(c ring.Config, a ring.Algorithm) uint64 {
	points := sumOfWeights(c) * uint64(a.PointsPerWeight)
	if a.Version == ring.V3 {
		points = trimmedPoints(c.Backends, a)
	}
	return fixedBytes(c) + packedBytes(points, len(c.Backends)) + viewBytes(c, points)
}

// trimmedPoints counts the points of a V3 ring as the engine does, those that are trimmed included.
func trimmedPoints(backends []ring.Backend, a ring.Algorithm) uint64 {
	const least = 4
	points, unit := uint64(0), uint64(max(a.WeightUnit, 1))
	for _, b := range backends {
		if b.Weight > 0 {
			points += max((uint64(b.Weight)*uint64(a.PointsPerWeight)+unit/2)/unit, least)
		}
	}
	return points
}

// viewBytes estimates what the trims of a V3 ring take. How many there are depends on the limit and on the backends of a
// view, and hardly on its points: 2.7, 1.9 and 1.1 a backend at 0.1 %, 1 % and 5 % were the most that was measured. A trim
// takes two bytes where it is 128 points and more behind the one before, otherwise one.
func viewBytes(c ring.Config, points uint64) uint64 {
	if c.Algorithm.Version != ring.V3 {
		return 0
	}
	const head = 16
	each := 2.7
	switch {
	case c.Algorithm.MaxImbalance >= 50_000:
		each = 1.1
	case c.Algorithm.MaxImbalance >= 10_000:
		each = 1.9
	}
	bytes := 0.0
	for _, view := range append([][]string{nil}, c.Views...) {
		trims := each * float64(membersOf(c.Backends, view))
		bytes += head + trims*(1+math.Exp(-128*trims/float64(max(points, 1))))
	}
	return uint64(bytes)
}

// membersOf counts the backends of a view.
func membersOf(backends []ring.Backend, features []string) int {
	n := 0
	for _, b := range backends {
		if b.Weight > 0 && !slices.ContainsFunc(features, func(f string) bool { return !slices.Contains(b.Features, f) }) {
			n++
		}
	}
	return n
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
