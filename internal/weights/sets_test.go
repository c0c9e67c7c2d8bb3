// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/balance"
)

func byLocality(p *v1alpha1.WeightPolicy) {
	p.Spec.Locality = []v1alpha1.LocalityRule{{From: "a", To: map[string]v1alpha1.ZoneShare{"a": 1}}}
}

// TestWhatIsStoredIsRestored: another owner serves the same, and knows the same of each group.
func TestWhatIsStoredIsRestored(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.WeightPolicy){
		"all balance each other": func(*v1alpha1.WeightPolicy) {}, "locality": byLocality,
		"shadow": func(p *v1alpha1.WeightPolicy) { p.Spec.Rollout.Percent = new(int32) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 2501, change)
			for range 20 {
				f.look()
			}
			f.endpoints = append(f.endpoints, Endpoint{ID: "uid-new", Pod: "pod-new", Address: "10.9.9.9", Port: 80, Zone: "a", Ready: true})
			f.look()
			got := restore(f.h.sets(f.policy, "a", f.now), len(f.policy.Spec.Locality) > 0, f.now)
			if diff := cmp.Diff(f.h.served, got.served); diff != "" {
				t.Errorf("served: %s", diff)
			}
			if got.version != f.h.version || !got.storedAt.Equal(f.now) || len(got.states) != len(f.h.states) {
				t.Errorf("version %d of %v in %d groups", got.version, got.storedAt, len(got.states))
			}
			for zone, state := range f.h.states {
				if diff := cmp.Diff(state.Store(), got.states[zone].Store()); diff != "" {
					t.Errorf("group %q: %s", zone, diff)
				}
			}
		})
	}
}

func TestSetsAreSplitAtAThousand(t *testing.T) {
	for _, test := range []struct {
		endpoints int
		want      []int
	}{{0, []int{0}}, {1, []int{1}}, {1000, []int{1000}}, {1001, []int{1000, 1}}, {2500, []int{1000, 1000, 500}}} {
		f := newFleet(t, test.endpoints)
		f.look()
		sets := f.h.sets(f.policy, "a", f.now)
		var sizes []int
		last := ""
		for i, set := range sets {
			sizes = append(sizes, len(set.Endpoints))
			if set.Name != fmt.Sprintf("checkout-%d", i) || int(set.Sets) != len(test.want) || set.Version != f.h.version || set.Epoch != 1 || set.Holder != "a" {
				t.Errorf("set %d is %s of %d, version %d, epoch %d, of %s", i, set.Name, set.Sets, set.Version, set.Epoch, set.Holder)
			}
			for _, e := range set.Endpoints {
				if e.ID <= last {
					t.Fatalf("%s comes after %s", e.ID, last)
				}
				last = e.ID
			}
		}
		if diff := cmp.Diff(test.want, sizes); diff != "" {
			t.Errorf("%d endpoints: %s", test.endpoints, diff)
		}
	}
}

func set(name string, sets int32, version int64) v1alpha1.WeightSet {
	return v1alpha1.WeightSet{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Policy: v1alpha1.PolicyIdentity{Name: "checkout"}, Sets: sets, Version: version,
	}
}

func TestComplete(t *testing.T) {
	for name, test := range map[string]struct {
		sets []v1alpha1.WeightSet
		want []string
	}{
		"none":               {nil, nil},
		"one":                {[]v1alpha1.WeightSet{set("checkout-0", 1, 4)}, []string{"checkout-0"}},
		"in any order":       {[]v1alpha1.WeightSet{set("checkout-10", 11, 4), set("checkout-2", 11, 4)}, nil},
		"three":              {[]v1alpha1.WeightSet{set("checkout-2", 3, 4), set("checkout-0", 3, 4), set("checkout-1", 3, 4)}, []string{"checkout-0", "checkout-1", "checkout-2"}},
		"more than needed":   {[]v1alpha1.WeightSet{set("checkout-1", 2, 3), set("checkout-0", 1, 4)}, []string{"checkout-0"}},
		"the first missing":  {[]v1alpha1.WeightSet{set("checkout-1", 2, 4), set("checkout-2", 2, 4)}, nil},
		"the second missing": {[]v1alpha1.WeightSet{set("checkout-0", 3, 4), set("checkout-2", 3, 4)}, nil},
		"one between":        {[]v1alpha1.WeightSet{set("checkout-0", 2, 4), set("checkout-2", 2, 4)}, nil},
		"mixed versions":     {[]v1alpha1.WeightSet{set("checkout-0", 2, 4), set("checkout-1", 2, 5)}, nil},
		"foreign names": {[]v1alpha1.WeightSet{set("checkout-0", 1, 4), set("checkout-01", 1, 9), set("checkout--1", 1, 9), set("copy", 1, 9), set("checkout-0-0", 1, 9)},
			[]string{"checkout-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(test.sets)
			var got []string
			for _, s := range Complete(test.sets) {
				got = append(got, s.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, test.sets); diff != "" {
				t.Errorf("the argument has changed: %s", diff)
			}
		})
	}
}

func TestOwnSets(t *testing.T) {
	other := set("other-0", 1, 1)
	other.Policy.Name = "other"
	var got []string
	for _, s := range ownSets("checkout", []v1alpha1.WeightSet{set("backup", 1, 1), set("checkout-7", 1, 1), other, set("checkout-0", 1, 1)}) {
		got = append(got, s.Name)
	}
	if diff := cmp.Diff([]string{"checkout-7", "checkout-0"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestRestoreOfOddSets: what people wrote must not end the process, nor give a weight that is none.
func TestRestoreOfOddSets(t *testing.T) {
	odd := set("checkout-0", 7, -3)
	odd.Endpoints = []v1alpha1.WeightedEndpoint{
		{ID: "zero"}, {ID: "negative", Weight: -5, Computed: -9}, {ID: "huge", Weight: 2147483647, Computed: 2147483647, Integral: 1 << 62, LastError: -1 << 62},
		{ID: "twice", Weight: 1}, {ID: "twice", Weight: 30000}, {},
	}
	got := restore([]v1alpha1.WeightSet{odd}, false, epochStart)
	want := Served{"zero": 1, "negative": 1, "huge": 2147483647, "twice": 30000, "": 1}
	if diff := cmp.Diff(want, got.served); diff != "" {
		t.Error(diff)
	}
	f := newFleet(t, 0)
	f.h.served, f.h.states, f.h.version = got.served, got.states, got.version
	f.endpoints = []Endpoint{{ID: "huge", Ready: true}, {ID: "negative", Ready: true}, {ID: "twice", Ready: true}, {ID: "zero", Ready: true}}
	f.look()
	for id, units := range f.h.served {
		if units < 1 || units > maxUnits {
			t.Errorf("%q is served with %d", id, units)
		}
	}
}

func TestStateOf(t *testing.T) {
	all := balance.EndpointState{Guarded: true, Cold: true, Silent: true, Clamped: true}
	for want, test := range map[v1alpha1.EndpointState]struct {
		ready bool
		s     balance.EndpointState
	}{
		v1alpha1.EndpointNotReady: {false, all}, v1alpha1.EndpointGuarded: {true, all},
		v1alpha1.EndpointCold:    {true, balance.EndpointState{Cold: true, Silent: true, Clamped: true}},
		v1alpha1.EndpointSilent:  {true, balance.EndpointState{Silent: true, Clamped: true}},
		v1alpha1.EndpointClamped: {true, balance.EndpointState{Clamped: true}}, v1alpha1.EndpointBalanced: {true, balance.EndpointState{}},
	} {
		if got := stateOf(Endpoint{Ready: test.ready}, test.s); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestWhatASetSays(t *testing.T) {
	f := newFleet(t, 2, func(p *v1alpha1.WeightPolicy) {
		p.Spec.Publish.ConfigMap = &v1alpha1.ConfigMapPublication{Name: "file"}
		p.Spec.TargetRef = v1alpha1.WeightTarget{Kind: v1alpha1.TargetHashRing, Name: "cache"}
	})
	f.h.states = map[string]balance.State{"": {Noise: 0.0125}}
	f.h.endpoints, f.h.served, f.h.version = f.endpoints, Served{"uid-000000": 9000, "uid-000001": 11000}, 8
	got := f.h.sets(f.policy, "replica-1", epochStart.Add(1500*time.Millisecond))[0]
	want := v1alpha1.WeightSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "checkout-0", Annotations: map[string]string{"ringwright.dev/weights-config-map": "file"},
			Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByRingwright, v1alpha1.LabelWeightPolicy: "checkout", v1alpha1.LabelWeightRing: "cache"},
		},
		Policy: v1alpha1.PolicyIdentity{Name: "checkout", UID: "policy-uid", Tombstone: seconds(72 * 3600), Ring: "cache"},
		Epoch:  1, Holder: "replica-1", Version: 8, Sets: 1, UpdatedAt: metav1.NewTime(epochStart.Add(time.Second)), Noise: 12500,
		Endpoints: []v1alpha1.WeightedEndpoint{
			{ID: "uid-000000", Name: "pod-000000", Address: "10.0.0.0", Port: 8080, Zone: "a", Weight: 9000, State: v1alpha1.EndpointBalanced},
			{ID: "uid-000001", Name: "pod-000001", Address: "10.0.0.1", Port: 8080, Zone: "b", Weight: 11000, State: v1alpha1.EndpointBalanced},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
