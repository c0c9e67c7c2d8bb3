// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"testing"
)

// TestProcessorsChangeNothing: the bytes are the same on one processor and on many. One backend is as heavy as the others
// together, so that its chain is shared out.
func TestProcessorsChangeNothing(t *testing.T) {
	c := Config{Algorithm: Algorithm{Version: V2, PointsPerWeight: 100}, Identity: IdentityName}
	for i := range 1000 {
		c.Backends = append(c.Backends, Backend{ID: fmt.Sprintf("n%d", i), Weight: 2})
	}
	c.Backends[500].Weight = 2000
	v3 := c
	v3.Algorithm = Algorithm{Version: V3, PointsPerWeight: 100, WeightUnit: 1, MaxImbalance: 10_000}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, c := range []Config{c, v3} {
		var want []byte
		for _, processors := range []int{1, 2, 7} {
			runtime.GOMAXPROCS(processors)
			r, err := Build(c)
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = r.Snapshot()
				checkPlaced(t, c)
			}
			if !bytes.Equal(want, r.Snapshot()) {
				t.Errorf("%s: on %d processors the bytes are others", c.Algorithm.Version, processors)
			}
		}
	}
}

// checkPlaced compares the points with those that one chain after the other gives.
func checkPlaced(t *testing.T, c Config) {
	t.Helper()
	table, err := newTable(c)
	if err != nil {
		t.Fatal(err)
	}
	var want []point
	for i := range table.ids {
		chain := startChain(table.sums[i])
		for range table.chainPoints(i) {
			want = append(want, newPoint(chain.next(), i))
		}
	}
	got := slices.Clone(table.place())
	slices.Sort(want)
	slices.Sort(got) // The order of ties under V3 has a test of its own.
	if !slices.Equal(want, got) {
		t.Errorf("%s: the points are not those of the chains", c.Algorithm.Version)
	}
}

// TestSorterTakesAnything: points that somebody has made to fall together too.
func TestSorterTakesAnything(t *testing.T) {
	var s sorter
	for name, hash := range map[string]func(i uint32) uint32{
		"spread":   func(i uint32) uint32 { return i * 0x9e3779b1 >> 12 },
		"equal":    func(uint32) uint32 { return 77 },
		"two":      func(i uint32) uint32 { return i % 2 * (1<<20 - 1) },
		"backward": func(i uint32) uint32 { return 1<<20 - 1 - i },
	} {
		for _, n := range []int{0, 1, 2, 33, 5000} {
			var points []point
			for i := range uint32(n) {
				points = append(points, newPoint(hash(i), int(i*7919%65536)))
			}
			want := slices.Clone(points)
			slices.Sort(want)
			if s.sort(points, 20); !slices.Equal(points, want) {
				t.Errorf("%d points %s are not sorted", n, name)
			}
		}
	}
}
