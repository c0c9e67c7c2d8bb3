// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ringwright/ringwright/pkg/ring"
)

const (
	// smallView is up to how many backends a view is too small for its limit to be promised.
	smallView = 8
	// joinSeeds is over how many fleets the movement of a join is averaged.
	joinSeeds = 20
	features  = 5
	// trimRounds is how often a V3 ring is built to find how quickly that goes.
	trimRounds = 5
)

// trimmed returns n backends under V3 with a limit of 1 %, weights from 1 to heaviest, and five features that each of them
// has with a chance of 95 %; every combination is declared.
func trimmed(n int, pointsPerWeight, heaviest uint32) ring.Config {
	c := ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V3, PointsPerWeight: pointsPerWeight, WeightUnit: 1, MaxImbalance: 10_000},
		Identity:  ring.IdentityAddress,
	}
	for f := range features {
		c.Features = append(c.Features, fmt.Sprintf("f%d", f))
	}
	chance := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		b := ring.Backend{ID: fmt.Sprintf("10.%d.%d.%d:8080", i>>16, i>>8&255, i&255), Weight: 1 + uint32(i)%heaviest}
		for _, f := range c.Features {
			if chance.Float64() < 0.95 {
				b.Features = append(b.Features, f)
			}
		}
		c.Backends = append(c.Backends, b)
	}
	for set := range 1 << features {
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

// worstBalance returns the largest max/avg of all views that are not too small.
func worstBalance(n int) func() (float64, error) {
	return func() (float64, error) {
		r, err := ring.Build(trimmed(n, 40, 10))
		if err != nil {
			return 0, err
		}
		worst := 0.0
		for _, names := range r.Views() {
			v, err := r.View(names...)
			if err != nil {
				return 0, err
			}
			if v.Len() >= smallView {
				worst = max(worst, v.Stats().MaxOverAverage)
			}
		}
		return worst, nil
	}
}

// joinMovement returns the mean part of the key space that moves when one joins 100 backends of 160 points.
func joinMovement() (float64, error) {
	sum := 0.0
	for seed := range joinSeeds {
		c := trimmed(101, 160, 1)
		c.Views = nil
		for i := range c.Backends {
			c.Backends[i].ID = fmt.Sprintf("10.%d.0.%d:8080", seed, i)
		}
		grown := c
		c.Backends = slices.Clone(c.Backends[:100])
		before, err := ring.Build(c)
		if err != nil {
			return 0, err
		}
		grown.Previous = before
		after, err := ring.Build(grown)
		if err != nil {
			return 0, err
		}
		from, err := before.View()
		if err != nil {
			return 0, err
		}
		to, err := after.View()
		if err != nil {
			return 0, err
		}
		sum += float64(ring.Compare(from, to).Total) / ring.KeySpace
	}
	return sum / joinSeeds, nil
}

// trimSeconds returns how long a V3 ring of 2048 × 40 with 32 views takes to build on one processor, at its quickest.
func trimSeconds() (float64, error) {
	c := trimmed(fleetBackends, 40, 1)
	took, err := quickest(trimRounds, func() error {
		_, err := ring.Build(c)
		return err
	})
	return took.Seconds(), err
}

// trimmedBytes returns the part of a ConfigMap that a V3 ring of 2048 × 40 with 32 views takes.
func trimmedBytes() (float64, error) {
	r, err := ring.Build(trimmed(fleetBackends, 40, 1))
	if err != nil {
		return 0, err
	}
	return float64(len(r.Snapshot())) / (1 << 20), nil
}
