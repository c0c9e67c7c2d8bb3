// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
)

// refMovement compares two plain rings at every point of either.
func refMovement(from, to refRing) (total uint64, pairs map[[2]string]uint64) {
	cuts := []uint64{1 << 32}
	for _, r := range []refRing{from, to} {
		for _, p := range r {
			cuts = append(cuts, uint64(p.hash)+1)
		}
	}
	slices.Sort(cuts)
	pairs = map[[2]string]uint64{}
	start := uint64(0)
	for _, end := range slices.Compact(cuts) {
		a, b := first(from.owners(uint32(end-1))), first(to.owners(uint32(end-1)))
		if a != b {
			total += end - start
			pairs[[2]string{a, b}] += end - start
		}
		start = end
	}
	return total, pairs
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func TestCompareEqualsReference(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		c := randomConfig(rnd)
		for len(c.Backends) > 8 {
			c.Backends = c.Backends[:8]
		}
		c.Algorithm = ring.Algorithm{Version: ring.V2, PointsPerWeight: 1 + rnd.Uint32N(10)}
		d := c
		d.Backends = slices.Clone(c.Backends)
		if len(d.Backends) > 0 {
			d.Backends[0].Weight++
			d.Backends = d.Backends[:1+rnd.IntN(len(d.Backends))]
		}
		from, to := mustView(t, mustBuild(t, c)), mustView(t, mustBuild(t, d))
		all := func(ring.Backend) bool { return true }
		total, pairs := refMovement(newRefRing(c, all), newRefRing(d, all))
		m := ring.Compare(from, to)
		if m.Total != total {
			t.Fatalf("seed %d: total %d, want %d", seed, m.Total, total)
		}
		got := ring.ComparePairs(from, to)
		if len(got) != len(pairs) {
			t.Fatalf("seed %d: %d pairs, want %d", seed, len(got), len(pairs))
		}
		lost, gained := map[string]uint64{}, map[string]uint64{}
		for i, p := range got {
			if want := pairs[[2]string{p.From, p.To}]; p.Positions != want {
				t.Fatalf("seed %d: %s to %s %d, want %d", seed, p.From, p.To, p.Positions, want)
			}
			if i > 0 && got[i-1].Positions < p.Positions {
				t.Fatalf("seed %d: pairs are not sorted", seed)
			}
			lost[p.From] += p.Positions
			gained[p.To] += p.Positions
		}
		for _, b := range m.Backends {
			if b.Lost != lost[b.ID] || b.Gained != gained[b.ID] {
				t.Fatalf("seed %d: %+v, want gained %d, lost %d", seed, b, gained[b.ID], lost[b.ID])
			}
		}
	}
}

func TestCompareKnown(t *testing.T) {
	c := fleet(100, ring.V2, 160)
	before := mustView(t, mustBuild(t, c))
	if m := ring.Compare(before, before); m.Total != 0 || m.Backends != nil {
		t.Errorf("a ring against itself: %+v", m)
	}
	c.Backends = append(c.Backends, ring.Backend{ID: "10.9.9.9:8080", Weight: 1})
	after := mustView(t, mustBuild(t, c))
	m := ring.Compare(before, after)
	index, _ := after.Ring().Find("10.9.9.9:8080")
	if share := after.Shares()[index]; m.Total != share {
		t.Errorf("a backend that joins moves %d, its share is %d", m.Total, share)
	}
	for _, pair := range ring.ComparePairs(before, after) {
		if pair.To != "10.9.9.9:8080" {
			t.Errorf("moved to %s", pair.To)
		}
	}
	c.Backends = nil
	if m := ring.Compare(after, mustView(t, mustBuild(t, c))); m.Total != ring.KeySpace {
		t.Errorf("losing every backend moves %d", m.Total)
	}
}
