// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
)

// tooManyPoints refuses a ring that is not built, whatever its encoding.
func tooManyPoints(q Request, points uint64) error {
	fits := "fewer backends"
	limit := q.Config.MaxPoints
	if proposal := fewerPoints(q.Config, func(points uint64) bool {
		return points <= limit && (q.Encoding != v1alpha1.EncodingPoints || estimate(q.Config, points) <= q.budget())
	}); proposal != "" {
		fits = proposal
	}
	what := "are built"
	if q.Config.Algorithm.Version == ring.V3 {
		what = "are trimmed, which V3 does"
	}
	return refusef(v1alpha1.ReasonSnapshotTooLarge, "the ring of %d backends has %d points, at most %d %s: %s would fit",
		len(q.Config.Backends), points, limit, what, fits)
}

// tooLarge refuses a snapshot that does not fit into the ConfigMaps that spec allows, and says what would fit.
func tooLarge(q Request, points, bytes uint64) error {
	return refusef(v1alpha1.ReasonSnapshotTooLarge,
		"the snapshot of %d backends has %d points in %d bytes, %s %d: %s would fit",
		len(q.Config.Backends), points, bytes, takers(q.Chunks), q.budget(), strings.Join(whatFits(q, bytes), ", or "))
}

// takers says what takes so many bytes.
func takers(chunks int) string {
	if chunks == 1 {
		return "a ConfigMap takes"
	}
	return fmt.Sprintf("%d ConfigMaps take", chunks)
}

// whatFits names the changes of spec that help, each by itself.
func whatFits(q Request, bytes uint64) []string {
	var list []string
	if chunks := (bytes + ChunkBytes - 1) / ChunkBytes; chunks <= v1alpha1.MaxChunks {
		list = append(list, fmt.Sprintf("spec.publication.chunks %d", chunks))
	}
	less := "fewer backends, or shorter names,"
	if q.Config.Algorithm.Version == ring.V3 {
		less = "fewer backends, shorter names or fewer views,"
	}
	if q.Encoding != v1alpha1.EncodingPoints {
		return append(list, less) // Points take no place in a recipe.
	}
	if points := pointCount(q.Config, q.Config.Algorithm); fixedBytes(q.Config)+viewBytes(q.Config, points) <= q.budget() {
		list = append(list, "spec.publication.encoding Recipe or Auto")
	}
	proposal := fewerPoints(q.Config, func(points uint64) bool { return estimate(q.Config, points) <= q.budget() })
	return append(list, cmp.Or(proposal, less))
}

// fewerPoints names the number to change so that fits says yes to the number of points: the points for each unit of weight;
// with V3, where one is too many, the unit; otherwise the sum of the weights. "" where none of them helps.
func fewerPoints(c ring.Config, fits func(points uint64) bool) string {
	with := func(change func(a *ring.Algorithm)) bool {
		a := c.Algorithm
		change(&a)
		return fits(pointCount(c, a))
	}
	if c.Algorithm.Version != ring.V1 {
		if n := sort.Search(int(c.Algorithm.PointsPerWeight), func(n int) bool {
			return !with(func(a *ring.Algorithm) { a.PointsPerWeight = uint32(n + 1) })
		}); n > 0 {
			return fmt.Sprintf("spec.algorithm.pointsPerWeight %d", n)
		}
	}
	if c.Algorithm.Version == ring.V3 {
		if n := 1 + sort.Search(ring.MaxWeight, func(n int) bool {
			return with(func(a *ring.Algorithm) { a.WeightUnit = uint32(n + 1) })
		}); n <= ring.MaxWeight {
			return fmt.Sprintf("spec.algorithm.weightUnit %d", n)
		}
		return ""
	}
	each := uint64(c.Algorithm.PointsPerWeight)
	if n := sort.Search(int(sumOfWeights(c)), func(n int) bool { return !fits(uint64(n+1) * each) }); n > 0 {
		return fmt.Sprintf("a sum of weights of %d", n)
	}
	return ""
}

func sumOfWeights(c ring.Config) uint64 {
	sum := uint64(0)
	for _, b := range c.Backends {
		sum += uint64(b.Weight)
	}
	return sum
}

// pointCount returns how many points the backends of c have with an algorithm.
func pointCount(c ring.Config, a ring.Algorithm) uint64 {
	if a.Version == ring.V3 {
		return trimmedPoints(c.Backends, a)
	}
	return sumOfWeights(c) * uint64(a.PointsPerWeight)
}

// estimate returns about how large the snapshot of c is with so many points; not less than it is, as a rule.
func estimate(c ring.Config, points uint64) uint64 {
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
