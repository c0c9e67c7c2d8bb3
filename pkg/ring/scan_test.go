// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
)

// scanRings are rings of every shape that the directory can have: empty, of one point, spread, with overflowing buckets, and
// large enough for a guide.
func scanRings(t testing.TB) map[string]*Ring {
	t.Helper()
	configs := map[string]Config{
		"empty": {Algorithm: Algorithm{Version: V2, PointsPerWeight: 1}, Identity: IdentityName},
		"one":   {Algorithm: Algorithm{Version: V2, PointsPerWeight: 1}, Identity: IdentityName, Backends: []Backend{{ID: "a", Weight: 1}}},
	}
	for _, row := range []struct {
		name        string
		n, perPoint int
	}{{"small", 30, 7}, {"guided", 300, 1200}} {
		c := Config{Algorithm: Algorithm{Version: V2, PointsPerWeight: uint32(row.perPoint)}, Identity: IdentityName, Features: []string{"few", "half"}}
		for i := range row.n {
			b := Backend{ID: fmt.Sprintf("n%d", i), Weight: 1}
			if i%2 == 0 {
				b.Features = append(b.Features, "half")
			}
			if i%10 == 0 {
				b.Features = append(b.Features, "few")
			}
			c.Backends = append(c.Backends, b)
		}
		configs[row.name] = c
	}
	rings := map[string]*Ring{}
	for name, c := range configs {
		r, err := Build(c)
		if err != nil {
			t.Fatal(err)
		}
		rings[name] = r
	}
	rings["overflow"] = overflowing(t)
	return rings
}

// overflowing is a ring of points that lie together, which no chain would give.
func overflowing(t testing.TB) *Ring {
	t.Helper()
	table, err := newTable(Config{Algorithm: Algorithm{Version: V2, PointsPerWeight: 100}, Identity: IdentityName,
		Backends: []Backend{{ID: "a", Weight: 1}, {ID: "b", Weight: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	var points []point
	for i := range uint32(100) {
		points = append(points, newPoint(0x10000000+i, int(i%2)), newPoint(0xf0000000+i*0x100000, int(i/2%2)))
	}
	slices.Sort(points)
	r, err := Open(table.encode(points, nil))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestScanAndFindEqualTheCursor: three ways over the points of a ring find the same.
func TestScanAndFindEqualTheCursor(t *testing.T) {
	for name, r := range scanRings(t) {
		p := &r.packed
		if guided := p.guide != nil; guided != (name == "guided") {
			t.Errorf("%s: guide: %v", name, guided)
		}
		var scanned []point
		for s := p.scan(); s.next(); {
			if int(s.first) != len(scanned) {
				t.Fatalf("%s: a group of points at %d, not %d", name, s.first, len(scanned))
			}
			scanned = append(scanned, s.points...)
		}
		if len(scanned) != r.PointCount() {
			t.Fatalf("%s: %d points of %d", name, len(scanned), r.PointCount())
		}
		c := p.cursorAt(0, 0)
		for i, want := range scanned {
			if got := c.next(); got != want {
				t.Fatalf("%s: point %d is %x, the cursor finds %x", name, i, want, got)
			}
		}
		for i, want := range scanned {
			first, _ := slices.BinarySearch(scanned, newPoint(want.hash(), 0))
			for _, x := range []uint32{want.hash(), want.hash() + 1} {
				at := first
				if x != want.hash() {
					if at, _ = slices.BinarySearch(scanned, newPoint(x, 0)); x == 0 {
						at = 0
					}
				}
				at %= len(scanned)
				pos, entry := p.find(x)
				if int(pos) != at || entry != p.entry(pos) || int(entry&p.ownerMask) != scanned[at].backend() {
					t.Fatalf("%s: behind point %d, %08x is found at %d with entry %x, not at %d", name, i, x, pos, entry, at)
				}
			}
		}
	}
}

// TestPiecesAddUp: a comparison that is shared between processors finds what one of them does.
func TestPiecesAddUp(t *testing.T) {
	r := scanRings(t)["guided"]
	c := r.Config()
	c.Backends = c.Backends[3:]
	after, err := Build(c)
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, features := range [][]string{nil, {"half"}, {"few"}} {
		from, err := r.View(features...)
		if err != nil {
			t.Fatal(err)
		}
		to, err := after.View()
		if err != nil {
			t.Fatal(err)
		}
		runtime.GOMAXPROCS(1)
		want := Compare(from, to)
		pairs := uint64(0)
		for _, p := range ComparePairs(from, to) {
			pairs += p.Positions
		}
		if pairs != want.Total || want.Total == 0 {
			t.Errorf("%q: %d positions move, in pairs %d", features, want.Total, pairs)
		}
		for _, processors := range []int{2, 3, 64} {
			runtime.GOMAXPROCS(processors)
			got := Compare(from, to)
			if got.Total != want.Total || !slices.Equal(got.Backends, want.Backends) {
				t.Errorf("%q on %d processors: %d positions move, not %d", features, processors, got.Total, want.Total)
			}
		}
	}
}

// TestSparseViewsAreCopied while the budget allows, and it is given back with them.
func TestSparseViewsAreCopied(t *testing.T) {
	r := scanRings(t)["guided"]
	few, err := r.View("few")
	if err != nil {
		t.Fatal(err)
	}
	if half, err := r.View("half"); err != nil || half.points != &r.packed {
		t.Errorf("half of the backends: %v, copied: %v", err, half.points != &r.packed)
	}
	if few.points == &r.packed || few.HeldBytes() < r.PointCount()/10*3 {
		t.Fatalf("a tenth of the backends is not copied: %d bytes", few.HeldBytes())
	}
	plain := *few
	plain.points, plain.whole = &r.packed, false
	for i := range uint32(20_000) {
		x := i * 0x9e3779b1
		got, err := few.Owner(x)
		want, wantErr := plain.Owner(x)
		if got != want || err != nil || wantErr != nil {
			t.Fatalf("%08x: owner %d in the copy, %d in the ring", x, got, want)
		}
	}
	if a, b := few.Stats(), plain.Stats(); a != b {
		t.Errorf("statistics %+v of the copy, %+v of the ring", a, b)
	}
	func() {
		var views []*View
		for range 10 {
			v, err := r.View("few")
			if err != nil {
				t.Fatal(err)
			}
			views = append(views, v)
		}
		if copied := r.copied.Load(); copied > int64(r.packed.heldBytes())/copyBudget || views[9].points != &r.packed {
			t.Errorf("copies take %d bytes beside %d of the ring", copied, r.packed.heldBytes())
		}
		runtime.KeepAlive(views)
	}()
	runtime.KeepAlive(few)
	for range 100 {
		runtime.GC()
		if r.copied.Load() == 0 {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d bytes are still counted for views that are gone", r.copied.Load())
}
