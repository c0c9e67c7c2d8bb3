// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringwright/ringwright/pkg/ring"
)

// This file holds rings that were made to be slow or large, and bounds that a correct engine stays under a thousand times
// over, so that a busy machine does not fail them.

// sameSum returns n backends with equal checksums, each of this weight: every point of the ring is tied n times.
func sameSum(n int, weight uint32) []ring.Backend {
	list := make([]ring.Backend, n)
	for i := range list {
		list[i] = ring.Backend{ID: nameWithSum(i, 0xfeedbeef), Weight: weight}
	}
	return list
}

// TestEveryPointTied looks keys up in buckets that hold a thousand points each.
func TestEveryPointTied(t *testing.T) {
	c := ring.Config{Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 100}, Identity: ring.IdentityName,
		Backends: sameSum(1000, 1), Features: []string{"last"}}
	first := slices.MinFunc(c.Backends, func(a, b ring.Backend) int { return strings.Compare(a.ID, b.ID) }).ID
	last := slices.IndexFunc(c.Backends, func(b ring.Backend) bool {
		return b.ID == slices.MaxFunc(c.Backends, func(a, b ring.Backend) int { return strings.Compare(a.ID, b.ID) }).ID
	})
	c.Backends[last].Features = []string{"last"}
	r := mustBuild(t, c)
	v := mustView(t, r, "last")
	for h := uint32(0); h < 0xf0000000; h += 0x0fffffff {
		if owner, err := r.Owner(h); err != nil || r.ID(owner) != first {
			t.Fatalf("owner of %08x: %d, %v", h, owner, err)
		}
		if owner, err := v.Owner(h); err != nil || r.ID(owner) != c.Backends[last].ID {
			t.Fatalf("owner of %08x in the view of the last: %d, %v", h, owner, err)
		}
	}
	if err := r.Verify(); err != nil {
		t.Error(err)
	}
}

// TestFixedPointCostsNothing: the weight of a backend that has one point at any weight must not cost time or memory, or a
// snapshot of 200 bytes keeps whoever verifies it busy.
func TestFixedPointCostsNothing(t *testing.T) {
	c := ring.Config{Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 2000}, Identity: ring.IdentityAddress,
		Backends: []ring.Backend{{ID: "10.0.87.193:3254", Weight: ring.MaxWeight}}, MaxPoints: ring.HardMaxPoints}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := mustBuild(t, c)
	if err := r.Verify(); err != nil {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("a ring of %d point allocated %d bytes", r.PointCount(), got)
	}
}

// TestOwnersStopAtTheLast: having found the owners, AppendOwners does not go on to the next backend, which may be
// half a ring away.
func TestOwnersStopAtTheLast(t *testing.T) {
	v := mustView(t, mustBuild(t, ring.Config{Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 10}, Identity: ring.IdentityName,
		Backends: []ring.Backend{{ID: "heavy", Weight: 100_000}, {ID: "light", Weight: 0}, {ID: "single", Weight: 1}}}))
	start, buf, h := time.Now(), make([]int, 0, 4), uint32(0)
	for range 10_000 {
		h += 0x9e3779b9
		buf = v.AppendOwners(buf[:0], h, 1, nil)
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("10,000 lookups of one owner took %v", took)
	}
}

// TestNoAllocationUpToTheLimitOfTheResource: a HashRing has up to 4,096 backends.
func TestNoAllocationUpToTheLimitOfTheResource(t *testing.T) {
	v := mustView(t, mustBuild(t, fleet(4096, ring.V2, 4)))
	buf, h := make([]int, 0, 4), uint32(0)
	if n := testing.AllocsPerRun(100, func() { h += 77_777_777; buf = v.AppendOwners(buf[:0], h, 3, nil) }); n != 0 {
		t.Errorf("AppendOwners allocates %v times", n)
	}
}

// TestBuildMemory holds Build to its doc comment: 8 bytes a point, the result of 3, and 1000 points to share what a backend takes.
func TestBuildMemory(t *testing.T) {
	c := fleet(2048, ring.V2, 1000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := mustBuild(t, c)
	runtime.ReadMemStats(&after)
	if got := float64(after.TotalAlloc-before.TotalAlloc) / float64(r.PointCount()); got > 18 {
		t.Errorf("Build allocated %.1f bytes a point", got)
	}
}

// TestShadowedBackends: what a warning says of a backend in the shadow of others is what it owns.
func TestShadowedBackends(t *testing.T) {
	backends := sameSum(4, 1)
	slices.SortFunc(backends, func(a, b ring.Backend) int { return strings.Compare(a.ID, b.ID) })
	backends[0].Weight, backends[2].Weight = 2, 5
	r := mustBuild(t, ring.Config{Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 10}, Identity: ring.IdentityName, Backends: backends})
	shares := r.Shares()
	for i, own := range []bool{true, false, true, false} {
		if (shares[i] > 0) != own {
			t.Fatalf("shares %v", shares)
		}
	}
	var got []string
	for _, w := range r.Warnings() {
		got = append(got, fmt.Sprint(w.Backends, w.Message[strings.Index(w.Message, " has "):strings.Index(w.Message, " in common")]))
	}
	want := []string{"[0 1] has all its points", "[0 2] has 20 of its 50 points", "[2 3] has all its points"}
	if !slices.Equal(got, want) {
		t.Errorf("warnings:\n got %q\nwant %q", got, want)
	}
}

// TestOpenDoesNotChangeItsInput: the bytes may be a read-only mapping.
func TestOpenDoesNotChangeItsInput(t *testing.T) {
	snapshot := mustBuild(t, workedExample()).Snapshot()
	copied := bytes.Clone(snapshot)
	r, err := ring.Open(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = r.Owner(77)
	if err := r.Verify(); err != nil || !bytes.Equal(copied, snapshot) {
		t.Errorf("the snapshot has changed, or Verify failed: %v", err)
	}
}
