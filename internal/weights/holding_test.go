// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

func TestAdvanceBalancesAndTellsWhatIsWorthIt(t *testing.T) {
	f := newFleet(t, 12)
	if !f.look() || f.h.version != 1 {
		t.Fatal("the first weights are not told")
	}
	served := f.settle()
	if served["uid-000002"] <= served["uid-000000"]*3/2 {
		t.Errorf("the fast one has %d, the slow one %d", served["uid-000002"], served["uid-000000"])
	}
	version := f.h.version
	if f.look() || f.h.version != version {
		t.Error("weights that are settled are told again")
	}
	f.endpoints = f.endpoints[:11]
	if !f.look() || f.h.version != version+1 || len(f.h.served) != 11 {
		t.Error("an endpoint that went is not told")
	}
}

// TestBetweenUpdatesMembersAreFollowed: an EndpointSlice event comes at any time, and no weight of others moves by it.
func TestBetweenUpdatesMembersAreFollowed(t *testing.T) {
	f := newFleet(t, 100)
	before := f.settle()
	f.now = f.now.Add(time.Second)
	f.endpoints = append(f.endpoints, Endpoint{ID: "uid-zzz", Ready: true})
	c := f.cycle()
	if f.h.due(c) {
		t.Fatal("an update is due")
	}
	if changed, err := f.h.advance(c); err != nil || !changed {
		t.Fatalf("%v, %v", changed, err)
	}
	if change := largestChange(before, f.h.served); change > 0.02 { // The mean of all stays 1, and up to 1 % was not worth telling.
		t.Errorf("others moved by %v", change)
	}
	if got := f.h.served["uid-zzz"]; got < 900 || got > 1100 {
		t.Errorf("the new one has %d, want a cold start", got)
	}
	if next := f.h.nextLook(c); next != 9*time.Second {
		t.Errorf("the next look is in %v", next)
	}
}

// TestEndpointsThatVanishAndComeBack: a Service whose slices are gone for a moment must not forget what its endpoints can do.
func TestEndpointsThatVanishAndComeBack(t *testing.T) {
	f := newFleet(t, 12)
	before := maps.Clone(f.settle())
	version, endpoints := f.h.version, f.endpoints
	f.endpoints = nil
	for range 3 {
		if f.look() || f.h.version != version {
			t.Error("the absence of endpoints is told as weights")
		}
	}
	if o := f.h.overview(); o.counts.Total != 0 || o.counts.Ready != 0 {
		t.Errorf("%+v", o.counts)
	}
	if v := f.h.ready(f.policy, f.h.overview()); v.reason != v1alpha1.ReasonNoEndpoints {
		t.Errorf("Ready is %s, %s", v.status, v.reason)
	}
	if stored := f.h.sets(f.policy, "a", f.now)[0].Endpoints; len(stored) != 12 {
		t.Errorf("%d endpoints are stored, want the last good weights of 12", len(stored))
	}
	f.endpoints, f.silent = endpoints, true
	f.look()
	if change := largestChange(before, f.h.served); change > 0.01 || len(f.h.served) != 12 {
		t.Errorf("weights of %d moved by %v", len(f.h.served), change)
	}
}

// TestLocalityComesAndGoes: endpoints take what is known of them along.
func TestLocalityComesAndGoes(t *testing.T) {
	f := newFleet(t, 12)
	before := maps.Clone(f.settle())
	byLocality(f.policy)
	f.look()
	// Zones a and b have the same speeds, so that weights with a mean of 1 a zone are those of before.
	if change := largestChange(before, f.h.served); change > 0.03 {
		t.Errorf("with locality weights moved by %v: %v to %v", change, before, f.h.served)
	}
	if len(f.h.states) != 2 {
		t.Errorf("%d groups, want 2", len(f.h.states))
	}
	f.policy.Spec.Locality = nil
	f.look()
	if change := largestChange(before, f.h.served); change > 0.03 || len(f.h.states) != 1 {
		t.Errorf("without it they moved by %v, in %d groups", change, len(f.h.states))
	}
}

// TestWhatIsKeptGoesNoFurther: neither weights nor a rollout move while weights are suspended or pinned.
func TestWhatIsKeptGoesNoFurther(t *testing.T) {
	for name, keep := range map[string]func(*fleet){
		"suspended": func(f *fleet) { f.policy.Spec.Suspend = true },
		"pinned":    func(f *fleet) { f.h.pin = pin{revision: 1, weight: func(string) (int32, bool) { return 10000, true }} },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 12, bySteps)
			f.look()
			keep(f)
			f.look()
			served, own := maps.Clone(f.h.served), f.h.states[""].Weights()
			for range 30 {
				f.look()
			}
			if diff := cmp.Diff(served, f.h.served); diff != "" {
				t.Errorf("served: %s", diff)
			}
			if diff := cmp.Diff(own, f.h.states[""].Weights()); diff != "" {
				t.Errorf("computed: %s", diff)
			}
			if f.h.rollout.Step != 0 {
				t.Errorf("the rollout is at step %d", f.h.rollout.Step)
			}
			if o := f.h.overview(); !(o.maxOverAverage > 1.2) {
				t.Errorf("nothing is measured: %v", o.maxOverAverage)
			}
		})
	}
}

func TestAStepOfARolloutIsTold(t *testing.T) {
	f := newFleet(t, 12, bySteps)
	f.look()
	version := f.h.version
	for f.h.rollout.Step == 0 {
		f.look()
	}
	if f.h.version == version || f.h.served["uid-000000"] == f.h.served["uid-000002"] {
		t.Errorf("at %s version %d is served: %v", f.h.rollout.Percent, f.h.version, f.h.served)
	}
}

func TestAdvanceWithAStaticWeightThatIsNone(t *testing.T) {
	f := newFleet(t, 3)
	f.look()
	before := f.h.served
	f.policy.Spec.Rollout.Percent = ptr.To[int32](50)
	f.policy.Spec.Strategy = v1alpha1.WeightStrategy{Type: v1alpha1.StrategyStatic, StaticWeights: staticOf("pod-000000", "?")}
	f.now = f.now.Add(time.Minute)
	if _, err := f.h.advance(f.cycle()); err == nil {
		t.Error("there is no error")
	}
	if diff := cmp.Diff(before, f.h.served); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkAdvance(b *testing.B) {
	for name, follow := range map[string]bool{"update": false, "follow": true} {
		b.Run(name+"/endpoints=100000", func(b *testing.B) {
			f := newFleet(b, 100_000)
			f.look()
			f.look()
			c := f.cycle()
			for b.Loop() {
				if follow {
					c.endpoints = c.endpoints[:len(c.endpoints)-1]
				} else {
					c.now = c.now.Add(10 * time.Second)
					for i := range c.readings {
						c.readings[i].Start, c.readings[i].End = c.now.Add(-5*time.Second), c.now
					}
				}
				if _, err := f.h.advance(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestNothingNewIsNotLookedAt: an event that changes nothing costs nothing, and what does change is seen.
func TestNothingNewIsNotLookedAt(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fleet)
		want   bool
	}{
		"nothing":   {func(*fleet) {}, true},
		"time":      {func(f *fleet) { f.now = f.now.Add(10 * time.Second) }, false},
		"endpoints": {func(f *fleet) { f.endpoints[1].Ready = false }, false},
		"spec":      {func(f *fleet) { f.policy.Generation++ }, false},
		"policy":    {func(f *fleet) { f.policy.UID = "another" }, false},
		"pin":       {func(f *fleet) { f.h.pin.revision = 3 }, false},
	} {
		f := newFleet(t, 3)
		f.look()
		f.now, f.endpoints = f.now.Add(time.Second), newEndpoints(3)
		test.change(f)
		if got := f.h.same(f.cycle()); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
