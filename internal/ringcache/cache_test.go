// SPDX-License-Identifier: Apache-2.0

package ringcache

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
)

// request asks for a ring of n backends of a weight.
func request(n int, weight uint32) plan.Request {
	q := plan.Request{
		Encoding: v1alpha1.EncodingAuto, Chunks: 1,
		Config: ring.Config{MaxPoints: plan.MaxPoints, Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 10}, Identity: ring.IdentityName},
	}
	for i := range n {
		q.Config.Backends = append(q.Config.Backends, ring.Backend{ID: fmt.Sprintf("c%d", i), Weight: weight})
	}
	return q
}

func bounded(maxBytes int) *Cache { return newCache(plan.BuildRing, maxBytes, plan.MaxPoints) }

func TestBuildsOnce(t *testing.T) {
	c := bounded(MaxBytes)
	want, err := plan.BuildRing(request(3, 1))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		got, err := c.Build(request(3, 1))
		if err != nil || got.Digest() != want.Digest() || got.Stats() != want.Stats() {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	if c.Builds() != 1 {
		t.Errorf("built %d times", c.Builds())
	}
}

// TestEveryInputCounts: whatever decides the bytes makes another ring.
func TestEveryInputCounts(t *testing.T) {
	previous, err := ring.Build(request(2, 1).Config)
	if err != nil {
		t.Fatal(err)
	}
	c := bounded(MaxBytes)
	changes := []func(*plan.Request){
		func(*plan.Request) {},
		func(q *plan.Request) { q.Encoding = v1alpha1.EncodingRecipe },
		func(q *plan.Request) { q.Chunks = 2 },
		func(q *plan.Request) { q.Config.Algorithm.PointsPerWeight++ },
		func(q *plan.Request) { q.Config.Identity = ring.IdentityNGINX },
		func(q *plan.Request) { q.Config.Backends[0].Weight++ },
		func(q *plan.Request) { q.Config.Backends[0].Zone = "a" },
		func(q *plan.Request) { q.Config.Features = []string{"eu"} },
		func(q *plan.Request) {
			q.Config.Features, q.Config.Backends[0].Features = []string{"eu"}, []string{"eu"}
		},
		func(q *plan.Request) {
			q.Config.Algorithm = ring.Algorithm{Version: ring.V3, PointsPerWeight: 10, WeightUnit: 1, MaxImbalance: 10_000}
		},
		func(q *plan.Request) {
			q.Config.Algorithm = ring.Algorithm{Version: ring.V3, PointsPerWeight: 10, WeightUnit: 1, MaxImbalance: 10_000}
			q.Previous = previous.Recipe()
		},
	}
	for i, change := range changes {
		q := request(3, 1)
		change(&q)
		if _, err := c.Build(q); err != nil {
			t.Fatal(err)
		}
		if c.Builds() != uint64(i+1) {
			t.Errorf("change %d is taken for an earlier request", i)
		}
	}
}

// TestMaxPoints: what one operator may build, another may be kept from.
func TestMaxPoints(t *testing.T) {
	if _, err := New(30).Build(request(3, 1)); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	var refusal *plan.Refusal
	if _, err := New(29).Build(request(3, 1)); !errors.As(err, &refusal) || refusal.Reason != v1alpha1.ReasonSnapshotTooLarge ||
		!strings.Contains(refusal.Message, "30 points, at most 29 are built") {
		t.Errorf("over the limit: %v", err)
	}
}

// TestRemembersErrors: a ring that is refused is not built each time to find that out again.
func TestRemembersErrors(t *testing.T) {
	c := bounded(MaxBytes)
	q := request(3, 1_000_000)
	q.Config.Algorithm.PointsPerWeight = 1000
	for range 3 {
		if _, err := c.Build(q); err == nil {
			t.Fatal("three billion points were built")
		}
	}
	if c.Builds() != 1 {
		t.Errorf("tried %d times", c.Builds())
	}
}

// TestKeepsWhatWasAskedForLast within its bytes, and builds again what it has dropped.
func TestKeepsWhatWasAskedForLast(t *testing.T) {
	one, err := plan.BuildRing(request(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	c := bounded(3 * (entryBytes + len(one.Snapshot())))
	build := func(weight uint32, want uint64) {
		t.Helper()
		if _, err := c.Build(request(1, weight)); err != nil {
			t.Fatal(err)
		}
		if c.Builds() != want {
			t.Errorf("weight %d: built %d times, want %d", weight, c.Builds(), want)
		}
	}
	build(1, 1)
	build(2, 2)
	build(1, 2)
	build(3, 3) // Larger than a third, so that 2 goes.
	build(1, 3)
	build(2, 4)
	if c.bytes > c.maxBytes || c.recent.Len() != len(c.entries) {
		t.Errorf("%d of %d bytes in %d entries of %d", c.bytes, c.maxBytes, c.recent.Len(), len(c.entries))
	}
	tiny := bounded(1)
	for range 2 {
		if _, err := tiny.Build(request(1, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if tiny.Builds() != 2 || tiny.recent.Len() != 0 {
		t.Errorf("with no room at all, built %d times, %d entries", tiny.Builds(), tiny.recent.Len())
	}
}

// TestPointsAtATime: what is built at one time has at most plan.MaxPoints points together.
func TestPointsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		release := make(chan struct{})
		c := newCache(func(q plan.Request) (*plan.Ring, error) {
			most.Store(max(most.Load(), now.Add(int64(min(q.Points(), plan.MaxPoints)))))
			<-release
			now.Add(-int64(min(q.Points(), plan.MaxPoints)))
			return nil, nil
		}, MaxBytes, plan.MaxPoints)
		var builds sync.WaitGroup
		for i := range 6 {
			q := request(1, 1_000_000)
			q.Config.Algorithm.PointsPerWeight = uint32(50 * (i + 1)) // 50 to 300 million points.
			builds.Go(func() { _, _ = c.Build(q) })
		}
		for range 6 {
			synctest.Wait()
			release <- struct{}{}
		}
		builds.Wait()
		if most.Load() == 0 || most.Load() > plan.MaxPoints {
			t.Errorf("%d points at a time", most.Load())
		}
	})
}

// TestMovements: both kinds are what package plan finds out, the second time too.
func TestMovements(t *testing.T) {
	c := bounded(MaxBytes)
	q := request(4, 1)
	q.Config.Features = []string{"eu"}
	build := func(eu int) *plan.Ring {
		for i := range q.Config.Backends {
			q.Config.Backends[i].Features = nil
		}
		q.Config.Backends[eu].Features = []string{"eu"}
		r, err := c.Build(q)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a, b := build(0), build(1)
	for range 2 {
		if moved, err := c.Movement(a, b); moved != 0 || err != nil {
			t.Errorf("the view of all backends moves %d, %v", moved, err)
		}
		if moved, view, err := c.WorstMovement(a, b); moved != ring.KeySpace || !slices.Equal(view, []string{"eu"}) || err != nil {
			t.Errorf("view %v moves %d, %v", view, moved, err)
		}
	}
}

// TestComparesAlone: two rings of more points than one may have are compared while nothing is built, and are compared.
func TestComparesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := newCache(func(plan.Request) (*plan.Ring, error) {
			<-release
			return nil, nil
		}, MaxBytes, 30)
		var rings []*plan.Ring
		for n := range 2 {
			r, err := plan.BuildRing(request(2+n, 1))
			if err != nil {
				t.Fatal(err)
			}
			rings = append(rings, r)
		}
		var work sync.WaitGroup
		var compared atomic.Bool
		work.Go(func() { _, _ = c.Build(request(1, 1)) })
		synctest.Wait()
		work.Go(func() {
			_, err := c.Movement(rings[0], rings[1])
			compared.Store(err == nil)
		})
		synctest.Wait()
		if compared.Load() {
			t.Error("50 points are compared beside 10 that are being built; 30 are the limit")
		}
		close(release)
		work.Wait()
		if !compared.Load() {
			t.Error("they were not compared")
		}
	})
}
