// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
)

func mustBuild(t testing.TB, c ring.Config) *ring.Ring {
	t.Helper()
	r, err := ring.Build(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustView(t testing.TB, r *ring.Ring, features ...string) *ring.View {
	t.Helper()
	v, err := r.View(features...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// hashes returns positions worth asking for: those of points, their neighbours, the ends, and some at random.
func hashes(rnd *rand.Rand, ref refRing) []uint32 {
	list := []uint32{0, 1, math.MaxUint32 - 1, math.MaxUint32}
	for range 50 {
		list = append(list, rnd.Uint32())
		if len(ref) > 0 {
			h := ref[rnd.IntN(len(ref))].hash
			list = append(list, h-1, h, h+1)
		}
	}
	return list
}

func TestOwnersEqualReference(t *testing.T) {
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		c := randomConfig(rnd)
		r := mustBuild(t, c)
		ref := newRefRing(c, func(ring.Backend) bool { return true })
		if r.PointCount() != len(ref) {
			t.Fatalf("seed %d: %d points, want %d", seed, r.PointCount(), len(ref))
		}
		v := mustView(t, r)
		for _, h := range hashes(rnd, ref) {
			compareOwners(t, v, h, ref.owners(h))
		}
	}
}

// TestViewEqualsRingOfMembers asks every combination of features and compares with a ring of the members alone.
func TestViewEqualsRingOfMembers(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		c := randomConfig(rnd)
		r := mustBuild(t, c)
		for set := range 1 << len(c.Features) {
			var features []string
			for f, name := range c.Features {
				if set>>f&1 != 0 {
					features = append(features, name)
				}
			}
			ref := newRefRing(c, func(b ring.Backend) bool {
				return !slices.ContainsFunc(features, func(f string) bool { return !slices.Contains(b.Features, f) })
			})
			v := mustView(t, r, features...)
			for _, h := range hashes(rnd, ref)[:40] {
				compareOwners(t, v, h, ref.owners(h))
			}
		}
	}
}

func compareOwners(t *testing.T, v *ring.View, hash uint32, want []string) {
	t.Helper()
	var got []string
	for owner := range v.Successors(hash) {
		got = append(got, v.Ring().ID(owner))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("successors of %08x:\n got %v\nwant %v", hash, got, want)
	}
	owner, err := v.Owner(hash)
	switch {
	case len(want) == 0 && !errors.Is(err, ring.ErrNoBackend):
		t.Fatalf("owner of %08x in an empty view: error %v, want ErrNoBackend", hash, err)
	case len(want) > 0 && (err != nil || v.Ring().ID(owner) != want[0]):
		t.Fatalf("owner of %08x: %d, %v, want %s", hash, owner, err, want[0])
	}
}

// TestTiesKeepEveryPoint takes a pair of names with equal checksums, which tie at every point.
func TestTiesKeepEveryPoint(t *testing.T) {
	a, b := shadowPair()
	c := ring.Config{Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 50}, Identity: ring.IdentityName, Features: []string{"f"}}
	c.Backends = []ring.Backend{{ID: b, Weight: 1, Features: []string{"f"}}, {ID: a, Weight: 1}, {ID: "third", Weight: 1, Features: []string{"f"}}}
	r := mustBuild(t, c)
	if r.PointCount() != 150 {
		t.Fatalf("%d points, want 150", r.PointCount())
	}
	loser, _ := r.Find(max(a, b))
	if share := r.Shares()[loser]; share != 0 {
		t.Errorf("the loser of every tie has a share of %d", share)
	}
	if got := r.Stats().Collisions; got != 50 {
		t.Errorf("%d collisions, want 50", got)
	}
	f := mustView(t, r, "f")
	withF, _ := r.Find(b)
	if f.Shares()[withF] == 0 {
		t.Error("the loser owns nothing in a view that lacks the winner")
	}
	warnings := r.Warnings()
	if len(warnings) != 1 || warnings[0].Kind != ring.BackendShadowed || !strings.Contains(warnings[0].Message, max(a, b)+" has all its points") {
		t.Errorf("warnings %+v, want that %s is shadowed by %s", warnings, max(a, b), min(a, b))
	}
}

// shadowPair returns two names with the same CRC-32.
func shadowPair() (string, string) { return nameWithSum(1, 0x5eed), nameWithSum(2, 0x5eed) }

func TestBackendOnFixedPoint(t *testing.T) {
	r := mustBuild(t, ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 100}, Identity: ring.IdentityAddress,
		Backends: []ring.Backend{{ID: "10.0.87.193:3254", Weight: 5}, {ID: "10.0.0.1:80", Weight: 1}},
	})
	if r.PointCount() != 101 {
		t.Errorf("%d points, want 100 and the one of the fixed point", r.PointCount())
	}
	warnings := r.Warnings()
	if len(warnings) != 1 || warnings[0].Kind != ring.BackendOnFixedPoint || !strings.Contains(warnings[0].Message, "10.0.87.193:3254") {
		t.Errorf("warnings: %+v", warnings)
	}
	if err := r.Verify(); err != nil {
		t.Error(err)
	}
}

func TestTieOrderBias(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a ring of nine million points")
	}
	few := mustBuild(t, fleet(100, ring.V2, 1000))
	if w := few.Warnings(); len(w) != 0 {
		t.Errorf("warnings of a plain ring: %+v", w)
	}
	many := mustBuild(t, fleet(90, ring.V2, 100_000))
	if w := many.Warnings(); len(w) != 1 || w[0].Kind != ring.TieOrderBias {
		t.Errorf("warnings at nine million points: %+v", w)
	}
}

func TestOrderOfInputMakesNoDifference(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		c := randomConfig(rnd)
		want := mustBuild(t, c)
		rnd.Shuffle(len(c.Backends), func(i, j int) { c.Backends[i], c.Backends[j] = c.Backends[j], c.Backends[i] })
		for _, b := range c.Backends {
			slices.Reverse(b.Features)
		}
		slices.Reverse(c.Features)
		if got := mustBuild(t, c); !bytes.Equal(got.Snapshot(), want.Snapshot()) {
			t.Fatalf("seed %d: another order of the input gives other bytes", seed)
		}
	}
}

// TestRemovalMovesOnlyItsKeys is what consistent hashing is for.
func TestRemovalMovesOnlyItsKeys(t *testing.T) {
	c := fleet(50, ring.V2, 40)
	before := mustBuild(t, c)
	gone := c.Backends[17].ID
	c.Backends = slices.Delete(c.Backends, 17, 18)
	after := mustBuild(t, c)
	rnd := rand.New(rand.NewPCG(4, 4))
	for range 20_000 {
		h := rnd.Uint32()
		i, _ := before.Owner(h)
		j, _ := after.Owner(h)
		if was, is := before.ID(i), after.ID(j); was != is && was != gone {
			t.Fatalf("position %08x moved from %s to %s although only %s left", h, was, is, gone)
		}
	}
}

func TestSharesAreArcs(t *testing.T) {
	for seed := range uint64(40) {
		c := randomConfig(rand.New(rand.NewPCG(seed, 5)))
		r := mustBuild(t, c)
		ref := newRefRing(c, func(ring.Backend) bool { return true })
		want := map[string]uint64{}
		for i, p := range ref {
			if i > 0 {
				want[p.id] += uint64(p.hash - ref[i-1].hash)
			}
		}
		if len(ref) > 0 {
			want[ref[0].id] += 1<<32 - uint64(ref[len(ref)-1].hash-ref[0].hash)
		}
		for i, share := range r.Shares() {
			if share != want[r.ID(i)] {
				t.Fatalf("seed %d: share of %s is %d, want %d", seed, r.ID(i), share, want[r.ID(i)])
			}
		}
	}
}

func TestStatsNearFormulas(t *testing.T) {
	s := mustBuild(t, fleet(2048, ring.V2, 160)).Stats()
	if want := math.Sqrt(2047.0 / (160*2048 + 1)); math.Abs(s.PredictedCV-want) > 1e-9 {
		t.Errorf("predicted CV %v, want sqrt((N-1)/(kN+1)) = %v", s.PredictedCV, want)
	}
	if math.Abs(s.CV/s.PredictedCV-1) > 0.05 {
		t.Errorf("CV %v is not near the predicted %v", s.CV, s.PredictedCV)
	}
	if s.Points != 327_680 || s.Backends != 2048 || s.MaxOverAverage < 1.2 || s.MaxOverAverage > 1.5 || s.MinOverAverage > 0.8 {
		t.Errorf("stats %+v", s)
	}
	if math.Abs(s.PredictedCollisions-12.5) > 0.01 || s.Collisions > 30 {
		t.Errorf("%d collisions, predicted %v", s.Collisions, s.PredictedCollisions)
	}
}

func TestEmptyRings(t *testing.T) {
	a := ring.Algorithm{Version: ring.V2, PointsPerWeight: 16}
	for name, c := range map[string]ring.Config{
		"no backends":      {Algorithm: a, Identity: ring.IdentityName},
		"drained backends": {Algorithm: a, Identity: ring.IdentityName, Backends: []ring.Backend{{ID: "a"}, {ID: "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := mustBuild(t, c)
			if _, err := r.Owner(7); !errors.Is(err, ring.ErrNoBackend) {
				t.Errorf("owner: %v, want ErrNoBackend", err)
			}
			for owner := range r.Points(7) {
				t.Errorf("point of %d", owner)
			}
			if got := mustView(t, r).AppendOwners(nil, 7, 3, nil); got != nil {
				t.Errorf("owners %v", got)
			}
			if s := r.Stats(); s != (ring.Stats{}) {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

func TestAppendOwners(t *testing.T) {
	r := mustBuild(t, fleet(20, ring.V2, 40))
	v := mustView(t, r)
	all := slices.Collect(v.Successors(12345))
	if len(all) != 20 {
		t.Fatalf("%d successors", len(all))
	}
	if got := v.AppendOwners([]int{-7}, 12345, 3, nil); !slices.Equal(got, append([]int{-7}, all[:3]...)) {
		t.Errorf("owners %v of %v", got, all)
	}
	down := func(b int) bool { return b == all[0] || b == all[2] }
	if got := v.AppendOwners(nil, 12345, 2, down); !slices.Equal(got, []int{all[1], all[3]}) {
		t.Errorf("owners without the first and third: %v of %v", got, all)
	}
	if got := v.AppendOwners(nil, 12345, 100, nil); !slices.Equal(got, all) {
		t.Errorf("asking for more than there are: %v", got)
	}
	if got := v.AppendOwners(nil, 12345, 0, nil); len(got) != 0 {
		t.Errorf("asking for none: %v", got)
	}
}

// TestAppendOwnersEqualsSuccessors compares both ways of collecting owners on random rings, skips included.
func TestAppendOwnersEqualsSuccessors(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 14))
		c := randomConfig(rnd)
		for len(c.Backends) < 80 && seed%2 == 0 {
			c.Backends = append(c.Backends, ring.Backend{ID: randomID(rnd, c.Identity, 100+len(c.Backends)), Weight: 1})
		}
		v := mustView(t, mustBuild(t, c), c.Features[:len(c.Features)/2]...)
		for range 20 {
			h, n, odd := rnd.Uint32(), rnd.IntN(100), rnd.IntN(4)
			skip := func(b int) bool { return odd > 0 && b%odd == 1 }
			var want []int
			for owner := range v.Successors(h) {
				if len(want) < n && !skip(owner) {
					want = append(want, owner)
				}
			}
			if got := v.AppendOwners(nil, h, n, skip); !slices.Equal(got, want) {
				t.Fatalf("seed %d: %d owners of %08x: %v, want %v", seed, n, h, got, want)
			}
		}
	}
}

func TestNoAllocation(t *testing.T) {
	c := fleet(5000, ring.V2, 40)
	c.Features = []string{"half"}
	for i := range c.Backends {
		if i%2 == 0 {
			c.Backends[i].Features = c.Features
		}
	}
	r := mustBuild(t, c)
	v := mustView(t, r, "half")
	buf := make([]int, 0, 8)
	h := uint32(0)
	for name, f := range map[string]func(){
		"Ring.Owner":        func() { h += 77_777_777; _, _ = r.Owner(h) },
		"View.Owner":        func() { h += 77_777_777; _, _ = v.Owner(h) },
		"View.AppendOwners": func() { h += 77_777_777; buf = v.AppendOwners(buf[:0], h, 3, nil) },
		"Ring.ID":           func() { _ = r.ID(77) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func TestUnknownFeature(t *testing.T) {
	r := mustBuild(t, ring.Config{Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 1}, Identity: ring.IdentityName, Features: []string{"eu"}})
	_, err := r.View("eu", "moon")
	if unknown := (*ring.UnknownFeatureError)(nil); !errors.As(err, &unknown) || unknown.Name != "moon" || !strings.Contains(err.Error(), `"eu"`) {
		t.Errorf("error %v", err)
	}
	r = mustBuild(t, ring.Config{Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 1}, Identity: ring.IdentityName})
	if _, err := r.View("moon"); err == nil || err.Error() != `unknown feature "moon": the ring declares none` {
		t.Errorf("without features: %v", err)
	}
}

func TestImportsStandardLibraryOnly(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(string(out)); !slices.Equal(got, []string{"github.com/ringwright/ringwright/pkg/ring"}) {
		t.Errorf("imports beside the standard library: %v", got)
	}
}
