// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/balance"
)

func staticOf(weights ...string) *v1alpha1.StaticWeights {
	s := &v1alpha1.StaticWeights{}
	for i := 0; i < len(weights); i += 2 {
		s.Endpoints = append(s.Endpoints, v1alpha1.StaticWeight{Name: weights[i], Weight: weights[i+1]})
	}
	return s
}

func TestServe(t *testing.T) {
	computed := []balance.Weight{{ID: "uid-000000", Weight: 0.5}, {ID: "uid-000001", Weight: 1}, {ID: "uid-000002", Weight: 1.5}}
	for name, test := range map[string]struct {
		change  func(*v1alpha1.WeightPolicySpec)
		percent int32
		h       *holding
		ready   func([]Endpoint)
		want    Served
	}{
		"computed": {percent: 100, want: Served{"uid-000000": 5000, "uid-000001": 10000, "uid-000002": 15000}},
		"shadow":   {percent: 0, want: Served{"uid-000000": 10000, "uid-000001": 10000, "uid-000002": 10000}},
		"a half":   {percent: 50, want: Served{"uid-000000": 7500, "uid-000001": 10000, "uid-000002": 12500}},
		"equal": {percent: 100, change: func(s *v1alpha1.WeightPolicySpec) { s.Strategy.Type = v1alpha1.StrategyEqual },
			want: Served{"uid-000000": 10000, "uid-000001": 10000, "uid-000002": 10000}},
		"static by the name of the pod, 1 for others": {percent: 100, change: func(s *v1alpha1.WeightPolicySpec) {
			s.Strategy = v1alpha1.WeightStrategy{Type: v1alpha1.StrategyStatic, StaticWeights: staticOf("pod-000001", "4", "uid-000002", "9")}
		}, want: Served{"uid-000000": 5000, "uid-000001": 20000, "uid-000002": 5000}},
		"from static": {percent: 50, change: func(s *v1alpha1.WeightPolicySpec) {
			s.Rollout.From = v1alpha1.RolloutFrom{Type: v1alpha1.StrategyStatic, StaticWeights: staticOf("pod-000001", "4")}
		}, want: Served{"uid-000000": 5000, "uid-000001": 15000, "uid-000002": 10000}},
		"suspended": {percent: 100, change: func(s *v1alpha1.WeightPolicySpec) { s.Suspend = true },
			h: &holding{served: Served{"uid-000000": 7000, "uid-000002": 13000}}, want: Served{"uid-000000": 7000, "uid-000001": 2000, "uid-000002": 13000}},
		"suspended from the beginning": {percent: 100, change: func(s *v1alpha1.WeightPolicySpec) { s.Suspend = true },
			want: Served{"uid-000000": 5000, "uid-000001": 10000, "uid-000002": 15000}},
		"pinned": {percent: 100, h: &holding{served: Served{"uid-000000": 1}, pin: pin{revision: 3, weight: func(id string) (int32, bool) {
			weights := map[string]int32{"uid-000000": 25000, "uid-000001": -1}
			w, ok := weights[id]
			return w, ok
		}}}, want: Served{"uid-000000": 25000, "uid-000001": 1, "uid-000002": 2000}},
		"not ready keeps what it had": {percent: 100, h: &holding{served: Served{"uid-000002": 12345}}, ready: func(e []Endpoint) { e[2].Ready = false },
			want: Served{"uid-000000": 6667, "uid-000001": 13333, "uid-000002": 12345}},
		"not ready and new is cold": {percent: 100, ready: func(e []Endpoint) { e[2].Ready = false },
			want: Served{"uid-000000": 6667, "uid-000001": 13333, "uid-000002": 2000}},
	} {
		t.Run(name, func(t *testing.T) {
			spec, endpoints := newPolicy().Spec, newEndpoints(3)
			if test.change != nil {
				test.change(&spec)
			}
			if test.ready != nil {
				test.ready(endpoints)
			}
			if test.h == nil {
				test.h = &holding{}
			}
			state := balance.State{}
			for i, w := range computed {
				state.Endpoints = append(state.Endpoints, balance.EndpointState{ID: w.ID, Weight: w.Weight, Ready: endpoints[i].Ready})
			}
			weights, err := test.h.serve(&spec, endpoints, state, test.percent, 0.2)
			if err != nil {
				t.Fatal(err)
			}
			got := Served{}
			test.h.units(got, endpoints, weights, 0.2)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestServedFitsIntoWhatKeepsIt: the API server takes no more than a million, and refuses the whole WeightSet.
func TestServedFitsIntoWhatKeepsIt(t *testing.T) {
	f := newFleet(t, 1000, func(p *v1alpha1.WeightPolicy) {
		names := []string{"pod-000000", "100"}
		for _, e := range newEndpoints(1000)[1:] {
			names = append(names, e.Pod, "0.01")
		}
		p.Spec.Strategy = v1alpha1.WeightStrategy{Type: v1alpha1.StrategyStatic, StaticWeights: staticOf(names...)}
		p.Spec.Rollout.Percent = ptr.To[int32](100)
	})
	f.look()
	for _, e := range f.h.sets(f.policy, "a", f.now)[0].Endpoints {
		if e.Weight < 1 || e.Weight > 1_000_000 || e.Computed < 0 || e.Computed > 1_000_000 {
			t.Fatalf("%s has weight %d, computed %d", e.ID, e.Weight, e.Computed)
		}
	}
	if got := f.h.served["uid-000000"]; got != 1_000_000 {
		t.Errorf("the one with nearly everything has %d", got)
	}
}

func TestWorthTelling(t *testing.T) {
	for name, test := range map[string]struct {
		after Served
		want  bool
	}{
		"the same": {Served{"a": 10000, "b": 10000}, false}, "1 % more": {Served{"a": 10099, "b": 10000}, false},
		"more than that": {Served{"a": 10102, "b": 10000}, true}, "less": {Served{"a": 9898, "b": 10000}, true},
	} {
		if got := worthTelling(Served{"a": 10000, "b": 10000}, test.after); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if sameEndpoints(Served{"a": 1}, Served{"b": 1}) || sameEndpoints(Served{"a": 1}, Served{}) || !sameEndpoints(Served{"a": 1}, Served{"a": 2}) {
		t.Error("sameEndpoints is wrong")
	}
	if !math.IsNaN((&holding{}).overview().maxOverAverage) {
		t.Error("a holding without results has a ratio")
	}
}
