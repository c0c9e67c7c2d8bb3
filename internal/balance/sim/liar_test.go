// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	"github.com/ringwright/ringwright/internal/balance"
)

// others measures how uneven the servers but the first are, which is the one that lies, from a time after it began to.
func others(r *Run) float64 {
	worst := 0.0
	for end := settled + minute; end <= r.Scenario.Duration; end += FrameTime {
		busy := append([]float64(nil), r.means(end, minute)[1:]...)
		worst = max(worst, balanceOf(busy).MaxOverAverage)
	}
	return worst
}

// TestLiar: a server that lies does not disturb the others, and wins little for long.
func TestLiar(t *testing.T) {
	for kind, most := range map[Kind]float64{LieZero: 0.7, LieHuge: 0.7, LieNaN: 0.7, LieLow: 2.3} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := find(t, "liar", func(s *Scenario) { s.Events, s.Duration = at(settled, kind, 0), 20*minute })
			if got := worst(t, s, others); got > 1.02 {
				t.Errorf("max/avg of the others %.4f", got)
			}
			// A server of the slowest class has a weight of 0.66.
			weight := worst(t, s, func(r *Run) float64 {
				most := 0.0
				for _, w := range r.liars[settled/FrameTime:] {
					most = max(most, w)
				}
				return most
			})
			lost := worst(t, s, lost)
			t.Logf("largest weight of the liar %.3f, lost %.4f %%", weight, 100*lost)
			if weight > most || lost > 0.002 {
				t.Errorf("largest weight of the liar %.3f, lost %.4f %%", weight, 100*lost)
			}
		})
	}
}

// TestIgnoredWeightsAreNoticed: within two minutes, and never where clients listen.
func TestIgnoredWeightsAreNoticed(t *testing.T) {
	ignored := func(s Scenario) (n int) {
		for _, r := range runs(t, s) {
			for _, f := range r.Frames {
				if f.Controller.Ignored {
					n++
					break
				}
			}
		}
		return n
	}
	for _, ignoring := range []float64{0.8, 1} {
		s := find(t, "ignoring-clients", func(s *Scenario) { s.Ignoring, s.Duration = ignoring, 2*minute })
		if got := ignored(s); got != seeds {
			t.Errorf("%.0f %% ignore the weights: noticed with %d of %d seeds", 100*ignoring, got, seeds)
		}
	}
	for _, name := range []string{
		"three-speeds", "noisy-neighbours", "moving-neighbours", "random-picks", "late-reports", "very-late-reports", "lost-reports", "restart",
		"restart-empty", "stalled-disk", "black-hole", "rolling-update", "shadow", "half", "low-load",
	} {
		if got := ignored(find(t, name, nil)); got != 0 {
			t.Errorf("%s: clients listen, and with %d of %d seeds they are said not to", name, got, seeds)
		}
	}
	for _, ignoring := range []float64{0.1, 0.3} {
		if got := ignored(find(t, "ignoring-clients", func(s *Scenario) { s.Ignoring = ignoring })); got != 0 {
			t.Errorf("%.0f %% ignore the weights: that is said of most with %d of %d seeds", 100*ignoring, got, seeds)
		}
	}
}

// TestIgnoredWeightsAreNoticedInSmallFleets: where there are fewer endpoints than the answers that a verdict of a large fleet takes.
func TestIgnoredWeightsAreNoticedInSmallFleets(t *testing.T) {
	noticed := func(name string, endpoints int) (n int) {
		for _, r := range runs(t, find(t, name, func(s *Scenario) { s.Endpoints = endpoints })) {
			for _, f := range r.Frames {
				if f.Controller.Ignored {
					n++
					break
				}
			}
		}
		return n
	}
	for _, endpoints := range []int{4, 6, 9} {
		if got := noticed("ignoring-clients", endpoints); got != seeds {
			t.Errorf("%d endpoints, whose weights are ignored: noticed with %d of %d seeds", endpoints, got, seeds)
		}
		for _, name := range []string{"three-speeds", "noisy-neighbours", "random-picks"} {
			if got := noticed(name, endpoints); got != 0 {
				t.Errorf("%s with %d endpoints: clients listen, and with %d of %d seeds they are said not to", name, endpoints, got, seeds)
			}
		}
	}
}

// TestDoubtIsRare: honest servers, whose load changes for other reasons, are hardly ever doubted.
func TestDoubtIsRare(t *testing.T) {
	for _, name := range []string{"three-speeds", "noisy-neighbours", "moving-neighbours", "random-picks", "late-reports", "rolling-update", "half"} {
		s := find(t, name, nil)
		frames, doubted := 0, 0
		for _, r := range runs(t, s) {
			for _, f := range r.Frames {
				frames += s.Endpoints
				doubted += f.Controller.Doubted
			}
		}
		part := float64(doubted) / float64(frames)
		t.Logf("%s: doubted %.4f %% of the time", name, 100*part)
		if part > 0.002 {
			t.Errorf("%s: servers are doubted %.3f %% of the time", name, 100*part)
		}
	}
}

// TestLiteralPIDIsStable: it is slow, and comes where it should.
func TestLiteralPIDIsStable(t *testing.T) {
	s := find(t, "three-speeds", func(s *Scenario) { s.Config, _ = balance.Profile(balance.ProfileCustom) })
	if got := worst(t, s, worstMinute(5*minute)); got > 1.05 {
		t.Errorf("max/avg %.3f", got)
	}
}
