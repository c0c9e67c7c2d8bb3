// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
)

// trimmed returns a fleet under V3, limit 1 %, with weights 1 to heaviest.
func trimmed(n int, pointsPerWeight, heaviest uint32) ring.Config {
	c := fleet(n, ring.V3, pointsPerWeight)
	c.Algorithm.WeightUnit, c.Algorithm.MaxImbalance = 1, 10_000
	for i := range c.Backends {
		c.Backends[i].Weight = 1 + uint32(i)%heaviest
	}
	return c
}

// withFeatures gives each backend each of n features with a chance, and declares every combination.
func withFeatures(c ring.Config, n int, chance float64) ring.Config {
	rnd := rand.New(rand.NewPCG(1, 12))
	c.Features = numbered(n)
	for i := range c.Backends {
		for _, f := range c.Features {
			if rnd.Float64() < chance {
				c.Backends[i].Features = append(c.Backends[i].Features, f)
			}
		}
	}
	for set := range 1 << n {
		var view []string
		for f, name := range c.Features {
			if set>>f&1 != 0 {
				view = append(view, name)
			}
		}
		c.Views = append(c.Views, view)
	}
	return c
}

func TestTrimmedBalance(t *testing.T) {
	for _, n := range []int{10, 100, 2048} {
		if testing.Short() && n > 100 {
			continue
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			features := 5
			if n > 100 {
				features = 1 // All 32 views of the large ring are a line of "make bars".
			}
			c := withFeatures(trimmed(n, 40, 10), features, 0.95)
			r := mustBuild(t, c)
			for _, features := range r.Views() {
				v := mustView(t, r, features...)
				s := v.Stats()
				if v.Len() >= 8 && s.MaxOverAverage > 1.01 {
					t.Errorf("view %v of %d backends: max/avg %.4f", features, v.Len(), s.MaxOverAverage)
				}
			}
			if err := r.Verify(); err != nil {
				t.Error(err)
			}
			t.Logf("%d points, %d bytes", r.PointCount(), len(r.Snapshot()))
		})
	}
}

// TestTrimmedIsStillTheRing: without trims in reach of a key, V3 places as V2 with as many points.
func TestTrimmedIsStillTheRing(t *testing.T) {
	plain := fleet(200, ring.V2, 160)
	c := trimmed(200, 160, 1)
	m := ring.Compare(mustView(t, mustBuild(t, plain)), mustView(t, mustBuild(t, c)))
	if part := float64(m.Total) / ring.KeySpace; part == 0 || part > 0.1 {
		t.Errorf("from V2 to V3 %.1f %% move", 100*part)
	} else {
		t.Logf("from V2 to V3 %.1f %% move", 100*part)
	}
}

func TestTrimsAreSticky(t *testing.T) {
	sum, sumFresh := 0.0, 0.0
	const seeds = 20
	for seed := range seeds {
		c := trimmed(101, 160, 1)
		for i := range c.Backends {
			c.Backends[i].ID = fmt.Sprintf("10.%d.0.%d:8080", seed, i)
		}
		grown := c
		c.Backends = slices.Clone(c.Backends[:100])
		before := mustBuild(t, c)
		fresh := mustBuild(t, grown)
		grown.Previous = before
		after := mustBuild(t, grown)
		if s := after.Stats(); s.MaxOverAverage > 1.01 {
			t.Errorf("seed %d: max/avg %.4f", seed, s.MaxOverAverage)
		}
		sum += float64(ring.Compare(mustView(t, before), mustView(t, after)).Total) / ring.KeySpace
		sumFresh += float64(ring.Compare(mustView(t, before), mustView(t, fresh)).Total) / ring.KeySpace
		if err := after.Verify(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	t.Logf("one of 100 joins: %.2f %% move, %.2f %% without memory, ideal %.2f %%", 100*sum/seeds, 100*sumFresh/seeds, 100.0/101)
	if mean := sum / seeds; mean > 1.5/101 {
		t.Errorf("mean movement %.4f, limit %.4f", mean, 1.5/101)
	}
}

// TestTrimsDoNotPileUp changes one weight after the other, hundreds of times: the trims stay within their
// budget, and no single change moves much, which it would if everything had to be trimmed anew.
func TestTrimsDoNotPileUp(t *testing.T) {
	c := trimmed(100, 40, 1)
	for i := range c.Backends {
		c.Backends[i].Weight = 10
	}
	c.Algorithm.WeightUnit = 10
	rnd := rand.New(rand.NewPCG(3, 15))
	fresh := trimCount(t, mustBuild(t, c))
	before := mustBuild(t, c)
	most, worst := 0, 0.0
	for range 400 {
		c.Backends[rnd.IntN(100)].Weight = 8 + rnd.Uint32N(5)
		c.Previous = before
		after := mustBuild(t, c)
		moved := float64(ring.Compare(mustView(t, before), mustView(t, after)).Total) / ring.KeySpace
		most, worst = max(most, trimCount(t, after)), max(worst, moved)
		if s := after.Stats(); s.MaxOverAverage > 1.01 {
			t.Fatalf("max/avg %.4f", s.MaxOverAverage)
		}
		before = after
	}
	t.Logf("%d trims in a fresh ring, at most %d in 400 revisions, of which one moved at most %.2f %%", fresh, most, 100*worst)
	if most >= 1000 || worst > 0.03 {
		t.Errorf("%d trims, fresh %d; one revision moved %.2f %%", most, fresh, 100*worst)
	}
}

// trimCount returns how many points the view of all backends leaves out.
func trimCount(t *testing.T, r *ring.Ring) int {
	t.Helper()
	left := 0
	for _, n := range mustView(t, r).PointCounts() {
		left += n
	}
	return r.PointCount() - left
}

// TestMostViews: the view of all backends does not count towards the limit.
func TestMostViews(t *testing.T) {
	c := trimmed(10, 10, 1)
	c.Features = numbered(7)
	for set := 1; set <= ring.MaxViews; set++ {
		var view []string
		for f, name := range c.Features {
			if set>>f&1 != 0 {
				view = append(view, name)
			}
		}
		c.Views = append(c.Views, view)
	}
	r := mustBuild(t, c)
	if got := len(r.Views()); got != ring.MaxViews+1 {
		t.Errorf("%d views", got)
	}
	if err := r.Verify(); err != nil {
		t.Error(err)
	}
}

// TestTrimInvariants builds random rings and checks what always holds.
func TestTrimInvariants(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 13))
		c := withFeatures(trimmed(1+rnd.IntN(30), 1+rnd.Uint32N(40), 1+rnd.Uint32N(5)), rnd.IntN(4), 0.6)
		c.Algorithm.WeightUnit = 1 + rnd.Uint32N(3)
		c.Algorithm.MaxImbalance = 1 + rnd.Uint32N(200_000)
		r := mustBuild(t, c)
		if err := r.Verify(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		rnd.Shuffle(len(c.Backends), func(i, j int) { c.Backends[i], c.Backends[j] = c.Backends[j], c.Backends[i] })
		slices.Reverse(c.Views)
		if again := mustBuild(t, c); !bytes.Equal(again.Snapshot(), r.Snapshot()) {
			t.Fatalf("seed %d: the order of the input makes a difference", seed)
		}
		for _, features := range r.Views() {
			v := mustView(t, r, features...)
			counts := v.PointCounts()
			for i := range r.Len() {
				if v.Has(i) != (counts[i] > 0) {
					t.Fatalf("seed %d: view %v: backend %d has %d points", seed, features, i, counts[i])
				}
			}
			shares := v.Shares()
			for range 30 {
				h := rnd.Uint32()
				owner, err := v.Owner(h)
				if v.Len() == 0 {
					continue
				}
				if err != nil || shares[owner] == 0 {
					t.Fatalf("seed %d: owner %d of share %d, %v", seed, owner, shares[owner], err)
				}
				if first := slices.Collect(v.Successors(h))[0]; first != owner {
					t.Fatalf("seed %d: owner %d, first successor %d", seed, owner, first)
				}
			}
		}
	}
}

// TestEveryBackendGetsItsPoints: V3 mends what V1 and V2 must not.
func TestEveryBackendGetsItsPoints(t *testing.T) {
	a, b := shadowPair()
	c := ring.Config{Algorithm: ring.Algorithm{Version: ring.V3, PointsPerWeight: 50, WeightUnit: 1, MaxImbalance: 10_000}, Identity: ring.IdentityName}
	c.Backends = []ring.Backend{{ID: a, Weight: 1}, {ID: b, Weight: 1}, {ID: nameWithSum(3, ring.FixedPoint), Weight: 1}, {ID: "tiny", Weight: 1}}
	r := mustBuild(t, c)
	if r.PointCount() != 200 || len(r.Warnings()) != 0 {
		t.Errorf("%d points, warnings %+v", r.PointCount(), r.Warnings())
	}
	c.Algorithm.WeightUnit = 1000
	if r := mustBuild(t, c); r.PointCount() != 16 {
		t.Errorf("%d points, want at least 4 for each backend", r.PointCount())
	}
}

func BenchmarkTrim(b *testing.B) {
	c := withFeatures(trimmed(2048, 40, 1), 5, 0.95)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ring.Build(c); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzTrim holds trimming to its promises on rings of any make: what is left out is little enough and nobody's last point, a ring
// that is built again from itself is the same, and so is one whose backends come in another order; and something is left out
// where that helps.
func FuzzTrim(f *testing.F) {
	f.Add(uint64(1), uint16(3), uint32(10_000))
	f.Add(uint64(2), uint16(40), uint32(1))
	f.Add(uint64(3), uint16(160), uint32(1_000_000))
	f.Fuzz(func(t *testing.T, seed uint64, pointsPerWeight uint16, limit uint32) {
		rnd := rand.New(rand.NewPCG(seed, 31))
		c := randomConfig(rnd)
		c.Algorithm = ring.Algorithm{
			Version: ring.V3, PointsPerWeight: 1 + uint32(pointsPerWeight)%200, WeightUnit: 1 + rnd.Uint32N(3), MaxImbalance: 1 + limit%1_000_000,
		}
		for _, f := range c.Features {
			c.Views = append(c.Views, []string{f})
		}
		if rnd.IntN(2) == 0 {
			before := c
			before.Backends = slices.Clone(c.Backends[len(c.Backends)/4:])
			c.Previous = mustBuild(t, before)
		}
		r := mustBuild(t, c)
		if err := r.Verify(); err != nil {
			t.Errorf("built from itself: %v", err)
		}
		shuffled := c
		shuffled.Backends = slices.Clone(c.Backends)
		rnd.Shuffle(len(shuffled.Backends), func(i, j int) {
			shuffled.Backends[i], shuffled.Backends[j] = shuffled.Backends[j], shuffled.Backends[i]
		})
		if !bytes.Equal(mustBuild(t, shuffled).Snapshot(), r.Snapshot()) {
			t.Error("another order of the backends gives other bytes")
		}
		for _, set := range r.Views() {
			checkTrimmedView(t, r, set)
		}
	})
}

func checkTrimmedView(t *testing.T, r *ring.Ring, set []string) {
	t.Helper()
	v := mustView(t, r, set...)
	untrimmed := 0
	left := v.PointCounts()
	for i, n := range left {
		if v.Has(i) != (n > 0) {
			t.Errorf("view %q: backend %s has %d points", set, r.ID(i), n)
		}
		if v.Has(i) {
			untrimmed += int(max((uint64(r.Weight(i))*uint64(r.Algorithm().PointsPerWeight)+uint64(r.Algorithm().WeightUnit)/2)/uint64(r.Algorithm().WeightUnit), 4))
		}
	}
	s := v.Stats()
	if trims := untrimmed - s.Points; trims != len(r.Trims(set...)) || trims*4 > untrimmed {
		t.Errorf("view %q: %d of %d points are left out, %d are listed", set, trims, untrimmed, len(r.Trims(set...)))
	}
	if limit := 1 + float64(r.Algorithm().MaxImbalance)/1e6; len(r.Trims(set...)) == 0 && s.MaxOverAverage > limit && v.Len() > 1 && untrimmed >= 40*v.Len() && limit >= 1.02 {
		t.Errorf("view %q: max/avg %.4f with %d points of %d backends, and nothing is left out", set, s.MaxOverAverage, untrimmed, v.Len())
	}
}
