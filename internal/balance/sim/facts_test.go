// SPDX-License-Identifier: Apache-2.0

//go:build !race

package sim

import (
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/balance"
)

// These tests show what each part of the controller is there for: without it, things go wrong.

// updatesToSettle returns after how many updates every frame is balanced to within 5 %.
func updatesToSettle(r *Run) float64 {
	settled := r.Scenario.Duration
	for i := len(r.Frames) - 1; i >= 0 && r.Frames[i].MaxOverAverage <= 1.05; i-- {
		settled = r.Frames[i].At - FrameTime
	}
	return float64(settled / r.Scenario.Config.Interval)
}

func TestLiteralPIDIsSlow(t *testing.T) {
	for _, c := range []struct {
		name          string
		load          float64
		most, literal float64
	}{
		{"a load of 5 %", 0.05, 5, 25},
		{"a load of 50 %", 0.5, 5, 6},
	} {
		s := find(t, "three-speeds", func(s *Scenario) { s.Load, s.Duration = c.load, 40*minute })
		relative := worst(t, s, updatesToSettle)
		s.Config, _ = balance.Profile(balance.ProfileCustom)
		additive := worst(t, s, updatesToSettle)
		t.Logf("%s: %.0f updates, the literal PID %.0f", c.name, relative, additive)
		if relative > c.most || additive < c.literal {
			t.Errorf("%s: %.0f updates, at most %.0f; the literal PID %.0f, at least %.0f", c.name, relative, c.most, additive, c.literal)
		}
	}
}

// TestWithoutPredictorItRunsAway: reports 30 s old, and a controller that does not know which weights caused them.
func TestWithoutPredictorItRunsAway(t *testing.T) {
	s := find(t, "late-reports", func(s *Scenario) { s.Config.Kp, s.Config.KpFar = 0.5, 0.5 })
	with := worst(t, s, worstMinute(4*minute))
	s.blind = true
	without := least(t, s, worstMinute(4*minute))
	t.Logf("%.3f with, %.3f without", with, without)
	if with > 1.02 || without < 1.3 {
		t.Errorf("max/avg %.3f with the predictor, at least %.3f without", with, without)
	}
}

// TestWithoutGuardAStalledServerIsKept: its processor is idle, so it seems to have room. That it does not use more when it gets
// more keeps it from being fed; only the guard takes its traffic away.
func TestWithoutGuardAStalledServerIsKept(t *testing.T) {
	s := find(t, "stalled-disk", nil)
	with := worst(t, s, lost)
	s.Config.GuardRatio = 1000
	without := worst(t, s, lost)
	t.Logf("lost %.3f %%, without guard %.3f %%", 100*with, 100*without)
	if without < 10*with {
		t.Errorf("lost %.3f %%, without guard %.3f %%", 100*with, 100*without)
	}
}

// TestWithoutErrorTermABlackHoleIsFed: it fails so fast that it is never busy.
func TestWithoutErrorTermABlackHoleIsFed(t *testing.T) {
	s := find(t, "black-hole", func(s *Scenario) { s.Config.ErrorPenalty = 0 })
	without := worst(t, s, lost)
	s.Equal = true
	equal := worst(t, s, lost)
	t.Logf("lost %.3f %% without the error term, %.3f %% with equal weights", 100*without, 100*equal)
	if without < 0.9*equal {
		t.Errorf("lost %.3f %% without the error term, %.3f %% with equal weights", 100*without, 100*equal)
	}
}

// TestColdStartAtFullWeightFails: new servers are slow at first.
func TestColdStartAtFullWeightFails(t *testing.T) {
	failed := func(r *Run) float64 { return r.Failed }
	s := find(t, "rolling-update", func(s *Scenario) { s.Config.ColdStartWeight = 1 })
	if got := worst(t, s, failed); got < 1000 {
		t.Errorf("%.0f requests failed with new servers at full weight", got)
	} else {
		t.Logf("%.0f requests failed", got)
	}
}

func TestRestartWithoutStoredWeightsStartsOver(t *testing.T) {
	s := find(t, "restart-empty", nil)
	if got := worst(t, s, func(r *Run) float64 { return r.Worst(settled, settled+2*minute, 10*time.Second) }); got < 1.3 {
		t.Errorf("max/avg %.3f", got)
	}
}

// TestDefaultProfileIsNotForRings: it moves keys all the time.
func TestDefaultProfileIsNotForRings(t *testing.T) {
	s := find(t, "ring", func(s *Scenario) {
		s.Config, _ = balance.Profile(balance.ProfileBalanced)
		s.Duration = time.Hour
	})
	r, err := Simulate(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	got := r.MostMoved(15*minute, s.Duration, 30*minute) * 2
	t.Logf("%.0f %% of the keys an hour", 100*got)
	if got < 0.2 {
		t.Errorf("%.2f %% of the keys an hour", 100*got)
	}
}

// TestRandomPicks: where clients draw servers, chance alone makes them uneven; the controller adds little to that, and says so.
func TestRandomPicks(t *testing.T) {
	s := find(t, "random-picks", nil)
	ratio := worst(t, s, func(r *Run) float64 {
		own := r.Worst(converged, s.Duration, minute)
		perfect := s
		perfect.ideal = true
		best, err := Simulate(perfect, r.Seed)
		if err != nil {
			t.Fatal(err)
		}
		return own / best.Worst(converged, s.Duration, minute)
	})
	t.Logf("%.4f times as uneven as with perfect weights", ratio)
	if ratio > 1.012 {
		t.Errorf("%.4f times as uneven as with perfect weights", ratio)
	}
}
