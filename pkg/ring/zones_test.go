// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
)

// TestAppendOwnersByZone compares with what the doc comment says, done slowly: on random rings, views and failures.
func TestAppendOwnersByZone(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 21))
		c := randomConfig(rng)
		zones := 1 + rng.IntN(4)
		for i := range c.Backends {
			c.Backends[i].Zone = []string{"", "a", "b", "c"}[rng.IntN(zones)]
		}
		r := mustBuild(t, c)
		down := map[int]bool{}
		for i := range r.Len() {
			down[i] = rng.IntN(4) == 0 || zones > 1 && seed%2 == 0 && r.Zone(i) == "a"
		}
		skip := func(i int) bool { return down[i] }
		if seed%5 == 0 {
			skip, down = nil, nil
		}
		v := mustView(t, r, r.Features()[:min(len(r.Features()), rng.IntN(2))]...)
		for range 20 {
			hash, n := rng.Uint32(), rng.IntN(9)
			got := v.AppendOwnersByZone([]int{77}, hash, n, skip)
			if want := append([]int{77}, zoned(v, hash, n, down)...); !slices.Equal(got, want) {
				t.Fatalf("seed %d, %08x, %d owners: %v, want %v", seed, hash, n, got, want)
			}
		}
	}
}

func zoned(v *ring.View, hash uint32, n int, down map[int]bool) []int {
	var owners, later []int
	used := map[string]bool{}
	for owner := range v.Successors(hash) {
		switch zone := v.Ring().Zone(owner); {
		case down[owner]:
		case used[zone]:
			later = append(later, owner)
		default:
			used[zone] = true
			owners = append(owners, owner)
		}
	}
	owners = append(owners, later...)
	return owners[:min(n, len(owners))]
}

// TestZonesWithoutAllocation: nor when a zone is down, nor with more zones than a word has bits.
func TestZonesWithoutAllocation(t *testing.T) {
	c := fleet(600, ring.V2, 40)
	for i := range c.Backends {
		c.Backends[i].Zone = fmt.Sprintf("z%d", i%100)
	}
	r := mustBuild(t, c)
	v, buf, h := mustView(t, r), make([]int, 0, 100), uint32(0)
	asked := 0
	down := func(i int) bool { asked++; return r.Zone(i) == "z7" }
	for _, n := range []int{3, 100} {
		calls := testing.AllocsPerRun(20, func() { h += 77_777_777; buf = v.AppendOwnersByZone(buf[:0], h, n, down) })
		if calls != 0 || len(buf) != n {
			t.Errorf("%d owners, %v allocations", len(buf), calls)
		}
	}
	used := map[string]bool{}
	for _, i := range buf {
		used[r.Zone(i)] = true
	}
	if len(used) != 99 || asked > 21*100*r.Len() {
		t.Errorf("%d zones of 99 are used, skip was asked %d times", len(used), asked)
	}
}
