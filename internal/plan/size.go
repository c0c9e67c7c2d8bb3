// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"sort"
	"strings"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
)

// tooManyPoints refuses a ring that is not built, whatever its encoding.
func tooManyPoints(q Request, points uint64) error {
	fits := "fewer backends"
	limit := q.Config.MaxPoints
	if proposal := fewerPoints(q.Config, func(n uint64) bool { return n <= limit }); proposal != "" {
		fits = proposal
	}
	return refusef(v1alpha1.ReasonSnapshotTooLarge, "the ring of %d backends has %d points, at most %d are built: %s would fit",
		len(q.Config.Backends), points, limit, fits)
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
	if q.Encoding != v1alpha1.EncodingPoints {
		return append(list, "fewer backends, or shorter names,") // Points take no place in a recipe.
	}
	if fixedBytes(q.Config) <= q.budget() {
		list = append(list, "spec.publication.encoding Recipe or Auto")
	}
	fixed := fixedBytes(q.Config)
	proposal := fewerPoints(q.Config, func(n uint64) bool {
		return fixed+packedBytes(n, len(q.Config.Backends)) <= q.budget()
	})
	if proposal == "" {
		proposal = "fewer backends, or shorter names,"
	}
	return append(list, proposal)
}

// fewerPoints names the number to change: the points for each unit of weight or, where V1 fixes them or one is too many,
// the sum of the weights. "" where neither helps.
func fewerPoints(c ring.Config, fits func(points uint64) bool) string {
	weight := uint64(0)
	for _, b := range c.Backends {
		weight += uint64(b.Weight)
	}
	largest := func(limit, each uint64) int {
		return sort.Search(int(limit), func(n int) bool { return !fits(uint64(n+1) * each) })
	}
	if n := largest(uint64(c.Algorithm.PointsPerWeight), weight); n > 0 && c.Algorithm.Version != ring.V1 {
		return fmt.Sprintf("spec.algorithm.pointsPerWeight %d", n)
	}
	if n := largest(weight, uint64(c.Algorithm.PointsPerWeight)); n > 0 {
		return fmt.Sprintf("a sum of weights of %d", n)
	}
	return ""
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
