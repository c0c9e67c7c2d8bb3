// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/balance"
)

const (
	minute = time.Minute
	// converged is when every scenario with timely reports has converged.
	converged = 2 * minute
)

// kept are the runs of scenarios that several tests look at.
var kept sync.Map

// runs returns the runs of a scenario with every seed.
func runs(t *testing.T, s Scenario) []*Run {
	t.Helper()
	once, _ := kept.LoadOrStore(fmt.Sprintf("%+v", s), sync.OnceValues(func() (list []*Run, err error) {
		for seed := range uint64(seeds) {
			r, err := Simulate(s, seed)
			if err != nil {
				return nil, err
			}
			list = append(list, r)
		}
		return list, nil
	}))
	list, err := once.(func() ([]*Run, error))()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// worst returns the largest of what is measured of the runs of a scenario.
func worst(t *testing.T, s Scenario, measure func(*Run) float64) float64 {
	t.Helper()
	largest := 0.0
	for _, r := range runs(t, s) {
		largest = max(largest, measure(r))
	}
	return largest
}

// least returns the smallest.
func least(t *testing.T, s Scenario, measure func(*Run) float64) float64 {
	t.Helper()
	smallest := math.Inf(1)
	for _, r := range runs(t, s) {
		smallest = min(smallest, measure(r))
	}
	return smallest
}

// find returns a scenario, changed.
func find(t *testing.T, name string, change func(*Scenario)) Scenario {
	t.Helper()
	s, found := Find(name)
	if !found {
		t.Fatalf("no scenario %s", name)
	}
	if change != nil {
		change(&s)
	}
	return s
}

// worstMinute measures every window of 60 seconds from a time on.
func worstMinute(from time.Duration) func(*Run) float64 {
	return func(r *Run) float64 { return r.Worst(from, r.Scenario.Duration, minute) }
}

func atTime(end time.Duration) func(*Run) float64 {
	return func(r *Run) float64 { return r.Window(end, FrameTime).MaxOverAverage }
}

func lost(r *Run) float64 { return r.Lost(0, r.Scenario.Duration) }

func largestWeight(r *Run) float64 {
	largest := 0.0
	for _, f := range r.Frames {
		largest = max(largest, f.Weights.Max)
	}
	return largest
}

// TestClaims: what the controller is for. Each bound holds for every one of the seeds.
func TestClaims(t *testing.T) {
	delayed := func(interval, delay time.Duration) func(*Scenario) {
		return func(s *Scenario) { s.ReportInterval, s.ReportDelay, s.Duration = interval, delay, 20*minute }
	}
	for _, c := range []struct {
		name, scenario string
		change         func(*Scenario)
		measure        func(*Run) float64
		most           float64
	}{
		{"three speeds, every minute", "three-speeds", nil, worstMinute(converged), 1.02},
		{"three speeds, after a minute", "three-speeds", nil, atTime(minute), 1.05},
		{"noisy neighbours, every minute", "noisy-neighbours", nil, worstMinute(converged), 1.02},
		{"low load", "low-load", nil, worstMinute(converged), 1.02},
		{"reports 5 s old", "three-speeds", delayed(5*time.Second, 5*time.Second), worstMinute(4 * minute), 1.02},
		{"reports 30 s old", "three-speeds", delayed(10*time.Second, 30*time.Second), worstMinute(4 * minute), 1.02},
		{"reports 60 s old", "three-speeds", delayed(10*time.Second, 60*time.Second), worstMinute(6 * minute), 1.02},
		{"reports of 60 s, 60 s old", "very-late-reports", nil, worstMinute(10 * minute), 1.02},
		{"reports of 60 s, 60 s old: weights do not overshoot", "very-late-reports", nil, largestWeight, 1.5},
		{"40 % of the reports lost", "lost-reports", nil, worstMinute(converged), 1.05},
		{"40 % of the servers mute", "mute-minority", nil, worstMinute(converged), 1.05},
		{"60 % of the servers mute", "mute-majority", nil, worstMinute(converged), 1.05},
		{"restart with stored weights", "restart", nil, worstMinute(converged), 1.03},
		{"rolling update: failures", "rolling-update", nil, lost, 0},
		{"shadow", "shadow", nil, (*Run).WorstAgainstIdeal, 1.05},
		{"half of the traffic: weights", "half", nil, (*Run).WorstAgainstIdeal, 1.05},
		{"ring, balance", "ring", nil, func(r *Run) float64 { return r.Worst(30*minute, r.Scenario.Duration, 5*minute) }, 1.04},
		{"ring, keys an hour", "ring", nil, func(r *Run) float64 { return r.MostMoved(30*minute, r.Scenario.Duration, time.Hour) }, 0.02},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := worst(t, find(t, c.scenario, c.change), c.measure)
			t.Logf("worst of %d seeds: %.5g, at most %.5g", seeds, got, c.most)
			if !(got <= c.most) {
				t.Errorf("worst of %d seeds: %.5g, at most %.5g", seeds, got, c.most)
			}
		})
	}
}

// TestStart: the scenarios begin as unbalanced as is said.
func TestStart(t *testing.T) {
	for name, want := range map[string][2]float64{"three-speeds": {1.37, 1.43}, "equal": {1.37, 1.43}, "noisy-neighbours": {1.5, 1.6}, "ring": {1.5, 1.8}} {
		first := worst(t, find(t, name, func(s *Scenario) { s.Duration = minute }), atTime(FrameTime))
		if first < want[0] || first > want[1] {
			t.Errorf("%s begins with %.3f, want %v", name, first, want)
		}
	}
}

// TestBadServersLoseNoMore: a server that fails loses no more requests than it does with equal weights, by any metric.
func TestBadServersLoseNoMore(t *testing.T) {
	for _, name := range []string{"stalled-disk", "black-hole"} {
		for _, metric := range []balance.Metric{balance.MetricCPU, balance.MetricInFlight, balance.MetricMax} {
			t.Run(name+" "+string(metric), func(t *testing.T) {
				t.Parallel()
				balanced := find(t, name, func(s *Scenario) { s.Config.Metric = metric })
				equal := balanced
				equal.Equal = true
				most, least := worst(t, balanced, lost), least(t, equal, lost)
				t.Logf("lost %.3f %% at most, with equal weights %.3f %% at least", 100*most, 100*least)
				if most > least/2 {
					t.Errorf("lost %.3f %%, with equal weights %.3f %%", 100*most, 100*least)
				}
			})
		}
	}
}

// TestFrozenReportsMoveNothing: the weights of servers that repeat one report stay, but for the common factor.
func TestFrozenReportsMoveNothing(t *testing.T) {
	s := find(t, "frozen-reports", nil)
	got := worst(t, s, func(r *Run) float64 {
		before, err := Simulate(find(t, "frozen-reports", func(s *Scenario) { s.Duration = settled }), r.Seed)
		if err != nil {
			t.Fatal(err)
		}
		most := 1.0
		for i, w := range r.state.Weights()[:10] {
			ratio := w.Weight / before.state.Weights()[i].Weight
			most = max(most, ratio, 1/ratio)
		}
		return most
	})
	t.Logf("moved by a factor of %.4f", got)
	if got > 1.01 {
		t.Errorf("weights of servers with frozen reports moved by a factor of %.4f", got)
	}
}

// TestQuorumFreezes: when most servers are silent, clients are told nothing new.
func TestQuorumFreezes(t *testing.T) {
	s := find(t, "mute-majority", nil)
	for seed, r := range runs(t, s) {
		stale := settled + s.staleAfter() + s.Config.Interval
		for _, f := range r.Frames {
			if f.At > stale && (f.Controller.Skipped != balance.SkipFewReports || f.Moved != 0) {
				t.Fatalf("seed %d, at %v: %+v", seed, f.At, f)
			}
		}
	}
}

// TestSameSeedSameRun: and another seed is another run.
func TestSameSeedSameRun(t *testing.T) {
	s := find(t, "moving-neighbours", nil)
	var failed [3]float64
	for i, seed := range []uint64{7, 7, 8} {
		r, err := Simulate(s, seed)
		if err != nil {
			t.Fatal(err)
		}
		failed[i] = r.Worst(0, s.Duration, minute)
	}
	if failed[0] != failed[1] || failed[0] == failed[2] {
		t.Errorf("%v", failed)
	}
}
