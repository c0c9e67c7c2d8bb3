// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"slices"
	"testing"
)

// TestTieRank pins the mix that decides ties of V3; the value for 1 is in docs/snapshot-format.md.
func TestTieRank(t *testing.T) {
	for _, row := range []struct{ hash, sum, want uint32 }{{1, 0, 0x514e28b7}, {0, 1, 0x514e28b7}, {7, 7, 0}, {0xffffffff, 0, 0x81f16f39}} {
		if got := tieRank(row.hash, row.sum); got != row.want {
			t.Errorf("tieRank(%#x, %#x) = %#x, want %#x", row.hash, row.sum, got, row.want)
		}
	}
}

// TestChainAt: any point of a chain can be computed directly.
func TestChainAt(t *testing.T) {
	for _, sum := range []uint32{0, 1, FixedPoint, 0xdeadbeef, 0xffffffff} {
		c := startChain(sum)
		for n := range uint32(5000) {
			if at := chainAt(sum, n); at != c {
				t.Fatalf("sum %08x: behind %d points the chain is at %08x, stepping leads to %08x", sum, n, at.hash, c.hash)
			}
			c.next()
		}
		for _, n := range []uint32{1 << 16, 1<<24 + 12345, 1<<31 - 1} {
			far, again := chainAt(sum, n), chainAt(sum, n-1000)
			for range 1000 {
				again.next()
			}
			if far != again {
				t.Errorf("sum %08x: 1000 steps before point %d lead elsewhere", sum, n)
			}
		}
	}
}

// TestEachBlockYieldsEveryPoint, whatever the runs: of lengths that end with a block and within one, one alone, more than
// there are lanes, none.
func TestEachBlockYieldsEveryPoint(t *testing.T) {
	table := &table{sums: []uint32{7, 8, 9, 10, 11, 12}}
	for name, runs := range map[string][]run{
		"none": nil, "one": {{0, 0, 130}}, "short and long": {{0, 0, 1}, {1, 0, 500}, {2, 3, 64}, {3, 0, 2}, {4, 100, 63}, {5, 0, 65}, {0, 1, 7}},
		"in step": {{0, 0, 64}, {1, 0, 64}, {2, 0, 64}, {3, 0, 64}, {4, 0, 64}},
	} {
		var want, got []point
		for _, r := range runs {
			c := chainAt(table.sums[r.backend], r.first)
			for range r.points {
				want = append(want, newPoint(c.next(), r.backend))
			}
		}
		table.eachBlock(runs, func(backend int, hashes []uint32) {
			for _, h := range hashes {
				got = append(got, newPoint(h, backend))
			}
		})
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Errorf("%s: %d points, not the %d of the runs", name, len(got), len(want))
		}
	}
}
