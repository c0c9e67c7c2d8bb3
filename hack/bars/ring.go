// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/ringwright/ringwright/internal/sixbyte"
	"github.com/ringwright/ringwright/pkg/ring"
)

const (
	fleetBackends = 2048
	fleetPoints   = 160
	// lookups is how many look-ups a round has: enough to outweigh the clock, few enough to be done before the machine
	// turns to something else.
	lookups = 5000
	// warmLookups is how many go before them untimed: the two rings do not fit into one cache together, and a ring of
	// 20,000 cache lines takes several look-ups a line to come back.
	warmLookups   = 100_000
	lookupRounds  = 75
	buildRounds   = 7
	compareRounds = 25
)

// fleet is the ring of the claims: 2048 backends of 160 points, half of them with a feature.
type fleet struct {
	config ring.Config
}

func newFleet() *fleet {
	return &fleet{backends(fleetBackends, 1, fleetPoints)}
}

// backends returns n backends of one weight. They stand in ring order.
func backends(n int, weight, pointsPerWeight uint32) ring.Config {
	c := ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: pointsPerWeight}, Identity: ring.IdentityAddress,
		Features: []string{"half"},
	}
	for i := range n {
		b := ring.Backend{ID: fmt.Sprintf("10.%d.%d.%d:8080", i>>16, i>>8&255, i&255), Weight: weight}
		if i%2 == 0 {
			b.Features = c.Features
		}
		c.Backends = append(c.Backends, b)
	}
	return c
}

// pointsSectionBytes returns how many bytes a point takes in a snapshot: everything that finding the owner's number needs.
func pointsSectionBytes(pointsPerWeight uint32) func() (float64, error) {
	return func() (float64, error) {
		r, err := ring.Build(backends(fleetBackends, 1, pointsPerWeight))
		if err != nil {
			return 0, err
		}
		for _, s := range r.Sections() {
			if s.Name == "points" {
				return float64(s.Bytes) / float64(r.PointCount()), nil
			}
		}
		return 0, fmt.Errorf("the snapshot has no points")
	}
}

// lookupRatio compares lookups in a ring of so many points for each backend.
func lookupRatio(pointsPerWeight uint32) func() (float64, error) {
	return func() (float64, error) {
		c := backends(fleetBackends, 1, pointsPerWeight)
		r, err := ring.Build(c)
		if err != nil {
			return 0, err
		}
		six := sixbyte.New(c)
		runtime.GC() // What building has left behind must not be cleared away meanwhile.
		x, y := uint32(1), uint32(1)
		packed := func(n int) error {
			for range n {
				owner, err := r.Owner(x)
				if err != nil {
					return err
				}
				x = sixbyte.Next(x, owner)
			}
			return nil
		}
		plain := func(n int) error {
			for range n {
				y = sixbyte.Next(y, six.Owner(y))
			}
			return nil
		}
		ratio, err := speedup(lookupRounds, lookupWay(packed), lookupWay(plain))
		if err == nil && x != y {
			return 0, fmt.Errorf("the two rings gave different owners") // Every position depends on all owners before it.
		}
		return ratio, err
	}
}

func lookupWay(do func(n int) error) way {
	return way{warm: func() error { return do(warmLookups) }, work: func() error { return do(lookups) }}
}

func (f *fleet) buildRatio() (float64, error) {
	packed := func() error {
		_, err := ring.Build(f.config)
		return err
	}
	plain := func() error {
		sixbyte.New(f.config)
		return nil
	}
	return speedup(buildRounds, way{work: packed}, way{work: plain})
}

func (f *fleet) ownerAllocations() (float64, error) {
	r, err := ring.Build(f.config)
	x := uint32(1)
	return allocations(err, func() error {
		owner, err := r.Owner(x)
		x = sixbyte.Next(x, owner)
		return err
	})
}

func (f *fleet) viewOwnerAllocations() (float64, error) {
	v, err := f.half()
	x := uint32(1)
	return allocations(err, func() error {
		owner, err := v.Owner(x)
		x = sixbyte.Next(x, owner)
		return err
	})
}

func (f *fleet) appendOwnersAllocations() (float64, error) {
	v, err := f.half()
	x, buf := uint32(1), make([]int, 0, 3)
	return allocations(err, func() error {
		if buf = v.AppendOwners(buf[:0], x, 3, nil); len(buf) != 3 {
			return fmt.Errorf("%d owners, not 3", len(buf))
		}
		x = sixbyte.Next(x, buf[2])
		return nil
	})
}

func (f *fleet) half() (*ring.View, error) {
	r, err := ring.Build(f.config)
	if err != nil {
		return nil, err
	}
	return r.View("half")
}

// allocations returns how often a look-up allocates, unless preparing it has failed with prepared.
func allocations(prepared error, lookup func() error) (float64, error) {
	if prepared != nil {
		return 0, prepared
	}
	var failed error
	n := testing.AllocsPerRun(10_000, func() {
		if err := lookup(); err != nil {
			failed = err
		}
	})
	return n, failed
}

// openAllocation returns the largest ratio over rings of any shape: mostly points, as many backends as there can be, and
// backends alone.
func openAllocation() (float64, error) {
	worst := 0.0
	for _, c := range []ring.Config{backends(fleetBackends, 1, fleetPoints), backends(ring.MaxBackends, 1, 1), backends(4096, 0, 1)} {
		r, err := ring.Build(c)
		if err != nil {
			return 0, err
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = ring.Open(r.Snapshot())
		runtime.ReadMemStats(&after)
		if err != nil {
			return 0, err
		}
		worst = max(worst, float64(after.TotalAlloc-before.TotalAlloc)/float64(len(r.Snapshot())))
	}
	return worst, nil
}
