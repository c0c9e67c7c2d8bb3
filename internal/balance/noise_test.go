// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestNoiseAndTrend: both are found from what is reported, whatever the weights do, and a server that changes for good disturbs
// neither.
func TestNoiseAndTrend(t *testing.T) {
	f := newFleet(100)
	chance := rand.New(rand.NewPCG(5, 5))
	traffic := 1.0
	f.change = func(r *Report) bool {
		r.CPU *= traffic * math.Exp(0.02*chance.NormFloat64())
		return true
	}
	for i := range 30 {
		traffic *= 1.01
		if i == 15 {
			f.cost["s00"] *= 2
		}
		f.update()
	}
	near(t, "noise", f.state.Noise, 0.02, 0.006)
	near(t, "trend of a second", f.state.Trend, math.Log(1.01)/10, 0.0004)
	f.change = nil
	for range 20 {
		f.update()
	}
	near(t, "noise when there is none", f.state.Noise, 0, 0.001)
}

// TestNoiseGate: errors that are chance move weights little, and those beyond it nearly as much as without a gate.
func TestNoiseGate(t *testing.T) {
	u := update{}
	u.Config, _ = Profile(ProfileBalanced)
	for noise, want := range map[float64]float64{0: u.MinNoise, 0.02: 0.02, 1: u.MaxNoise} {
		u.state.Noise = noise
		near(t, "half passes", u.gate(want), 0.5, 1e-9)
		near(t, "of three times as much", u.gate(-3*want), 0.9, 1e-9)
	}
	u.DeadBand = 0.03
	if u.gate(0.03) != 0 || u.gate(-0.03) != 0 || u.gate(0.031) == 0 {
		t.Error("the dead band is not what it is said to be")
	}
}
