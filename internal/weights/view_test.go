// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/xds"
)

// serving remembers what is served.
type serving struct {
	last   map[string]xds.Assignment
	synced bool
}

func (s *serving) Set(a xds.Assignment) error { s.last[a.Policy] = a; return nil }
func (s *serving) Delete(policy string)       { delete(s.last, policy) }
func (s *serving) Synced()                    { s.synced = true }

func (s *serving) weights() map[string]uint32 {
	weights := map[string]uint32{}
	for _, e := range s.last[key.String()].Endpoints {
		weights[e.ID] = e.Weight
	}
	return weights
}

func TestWhatIsServedWhen(t *testing.T) {
	c := newCluster(t, 3)
	s := &serving{last: map[string]xds.Assignment{}}
	v := &View{Client: c.client, Resolver: &Resolver{Reader: c.client, Live: c.client}, Board: NewBoard(), Serving: s, Directory: NewDirectory()}
	expect := func(when string, want map[string]uint32) {
		t.Helper()
		if err := v.serve(t.Context(), key); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if diff := cmp.Diff(want, s.weights()); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
	expect("nothing is known", map[string]uint32{"uid-000000": 10000, "uid-000001": 10000, "uid-000002": 10000})

	half := set("checkout-1", 2, 4)
	half.Namespace, half.Labels = "shop", map[string]string{v1alpha1.LabelWeightPolicy: "checkout"}
	half.Endpoints = []v1alpha1.WeightedEndpoint{{ID: "uid-000000", Weight: 7000}, {ID: "uid-000001", Weight: 13000}}
	if err := c.client.Create(t.Context(), &half); err != nil {
		t.Fatal(err)
	}
	expect("one of two sets is there", map[string]uint32{"uid-000000": 7000, "uid-000001": 13000, "uid-000002": 1000})

	first := set("checkout-0", 2, 4)
	first.Namespace, first.Labels, first.Epoch = "shop", half.Labels, 1
	first.Endpoints = []v1alpha1.WeightedEndpoint{{ID: "uid-000002", Weight: 9999}}
	if err := c.client.Create(t.Context(), &first); err != nil {
		t.Fatal(err)
	}
	expect("both are", map[string]uint32{"uid-000000": 7000, "uid-000001": 13000, "uid-000002": 9999})

	announced := map[string]uint32{"uid-000000": 8000, "uid-000001": 12000, "uid-000002": 10000}
	v.Board.Put(Announcement{Policy: key.String(), Epoch: 1, Version: 5, Weights: announced})
	expect("later ones are announced", announced)
	v.Board.Put(Announcement{Policy: key.String(), Epoch: 0, Version: 9, Weights: Served{"uid-000000": 1}})
	expect("an old owner speaks", announced)

	if err := c.client.Delete(t.Context(), newPolicy()); err != nil {
		t.Fatal(err)
	}
	expect("the policy is deleted: the latest go on", announced)
	for _, set := range c.sets() {
		if err := c.client.Delete(t.Context(), &set); err != nil {
			t.Fatal(err)
		}
	}
	expect("nothing is left", map[string]uint32{})
	if _, ok := v.Board.Get(key.String()); ok {
		t.Error("the board remembers it")
	}
}
