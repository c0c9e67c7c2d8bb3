// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"

	"github.com/ringwright/ringwright/internal/balance"
	"github.com/ringwright/ringwright/pkg/ring"
)

// keyRing is a hash ring whose backends have the weights of a controller as factors.
type keyRing struct {
	view *ring.View
}

const (
	// ringPoints is how many points a backend of the weight 1 has, which leaves the ring a little uneven by itself.
	ringPoints = 160
	// ringFactor is the weight of a backend with the factor 1, so that factors have three decimals.
	ringFactor = 1000
)

// shares returns which part of the keys each backend has, and which part of all changed its backend.
func (k *keyRing) shares(weights []balance.Weight) (map[string]float64, float64, error) {
	// V3 has weights in fractions of a point's; 100 % of imbalance is what it does not trim.
	c := ring.Config{Identity: ring.IdentityName}
	c.Algorithm = ring.Algorithm{Version: ring.V3, PointsPerWeight: ringPoints, WeightUnit: ringFactor, MaxImbalance: 1_000_000}
	for _, w := range weights {
		c.Backends = append(c.Backends, ring.Backend{ID: w.ID, Weight: uint32(max(math.Round(w.Weight*ringFactor), 1))})
	}
	r, err := ring.Build(c)
	if err != nil {
		return nil, 0, err
	}
	view, err := r.View()
	if err != nil {
		return nil, 0, err
	}
	before := k.view
	k.view = view
	shares := map[string]float64{}
	for i, s := range view.Shares() {
		shares[r.Config().Backends[i].ID] = float64(s) / ring.KeySpace
	}
	if before == nil {
		return shares, 0, nil
	}
	return shares, float64(ring.Compare(before, view).Total) / ring.KeySpace, nil
}
