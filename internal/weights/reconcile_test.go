// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// TestATakeoverIsNoJump: weights that the dead owner announced and had not stored yet go on to be served, at every moment.
func TestATakeoverIsNoJump(t *testing.T) {
	for name, pods := range map[string]int{"one set": 12, "one set that is full": 999, "three sets": 2100} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, pods)
			board := NewBoard()
			first := c.owner("first", board)
			for range 5 { // Stored after the first, and not again within a minute.
				first.mustLook()
			}
			c.scale(pods + 3)
			first.mustLook()
			before := maps.Clone(c.clients(board))
			if stored := restore(c.sets(), false, epochStart).served; largestChange(stored, before) < 0.1 || len(stored) == len(before) {
				t.Fatal("what is stored is not older than what is served")
			}
			second := c.owner("second", board)
			h, err := second.acquire(t.Context(), c.policy(), endpointsOf(t, second, c.policy()))
			if err != nil {
				t.Fatal(err)
			}
			if change := largestChange(before, c.clients(board)); change != 0 {
				t.Errorf("while the policy is taken over weights move by %v", change)
			}
			if diff := cmp.Diff(before, h.served); diff != "" {
				t.Errorf("taken over: %s", diff)
			}
			second.holdings = map[string]*holding{key.String(): h}
			h.updatedAt = c.clock.Now()
			if _, err := second.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			after := c.clients(board)
			if change := largestChange(before, after); change > 0.011 || len(after) != len(before) {
				t.Errorf("weights of %d moved by %v", len(after), change)
			}
			told, ok := second.Own.Get(key.String())
			if !ok || told.Epoch != 2 {
				t.Errorf("the new owner announces %v, epoch %d", ok, told.Epoch)
			}
			if _, err := first.look(); err != nil { // It was not dead, and finds out.
				t.Fatal(err)
			}
			if diff := cmp.Diff(after, c.clients(board)); diff != "" {
				t.Errorf("the old owner moves them: %s", diff)
			}
		})
	}
}

func endpointsOf(t *testing.T, o *owner, policy *v1alpha1.WeightPolicy) []Endpoint {
	t.Helper()
	endpoints, err := o.Resolver.Resolve(t.Context(), policy)
	if err != nil {
		t.Fatal(err)
	}
	return endpoints
}

// TestWeightSetsDeletedByHand: the epoch goes on, or no replica would believe the next owner.
func TestWeightSetsDeletedByHand(t *testing.T) {
	c := newCluster(t, 6)
	board := NewBoard()
	first := c.owner("first", board)
	first.mustLook()
	remove := func() {
		sets := c.sets()
		for i := range sets {
			if err := c.client.Delete(t.Context(), &sets[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove()
	for range 7 {
		first.mustLook()
	}
	if got := c.sets(); len(got) != 1 || len(got[0].Endpoints) != 6 || got[0].Epoch != 1 {
		t.Fatalf("they are not written again: %v", got)
	}
	remove()
	served := maps.Clone(first.holdings[key.String()].served)
	second := c.owner("second", NewBoard()) // It has heard nothing: the epoch is in the status.
	second.mustLook()
	if got := c.sets()[0].Epoch; got != 2 {
		t.Errorf("the epoch is %d, want 2", got)
	}
	remove()
	for _, act := range []func() error{ // The policy is made again, so that what was heard alone tells.
		func() error { return c.client.Delete(t.Context(), newPolicy()) }, func() error { return c.client.Create(t.Context(), newPolicy()) },
	} {
		if err := act(); err != nil {
			t.Fatal(err)
		}
	}
	third := c.owner("third", board)
	third.mustLook()
	if a, _ := board.Get(key.String()); a.Epoch != 2 || largestChange(served, a.Weights) > 0.02 {
		t.Errorf("the third is heard with epoch %d, weights moved by %v", a.Epoch, largestChange(served, a.Weights))
	}
}

func TestOnlyOneTakesAPolicyOver(t *testing.T) {
	c := newCluster(t, 3)
	first := c.owner("first", NewBoard())
	first.mustLook()
	second := c.owner("second", NewBoard())
	stale := c.sets()[0]
	second.mustLook()
	h := &holding{policy: key, epoch: 2, stored: storedSets{versions: map[string]string{}}}
	if err := first.claim(t.Context(), c.policy(), h, &stale); !errors.Is(err, errLost) {
		t.Errorf("the slower one gets %v", err)
	}
	if got := c.sets()[0]; got.Holder != "second" || got.Epoch != 2 {
		t.Errorf("it is %s's, epoch %d", got.Holder, got.Epoch)
	}
	for range 7 {
		first.mustLook()
	}
	if a, ok := first.Own.Get(key.String()); ok && a.Epoch < 3 {
		t.Errorf("the first one still announces epoch %d", a.Epoch)
	}
}

// TestNothingIsStoredBeforeItIsLookedAt: a policy that is taken over while its target has no endpoint keeps its weights.
func TestNothingIsStoredBeforeItIsLookedAt(t *testing.T) {
	c := newCluster(t, 3)
	first := c.owner("first", NewBoard())
	first.mustLook()
	c.scale(0)
	second := c.owner("second", NewBoard())
	second.mustLook()
	second.mustLook()
	if err := second.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	if got := c.sets(); len(got) != 1 || len(got[0].Endpoints) != 3 || got[0].Epoch != 2 {
		t.Errorf("stored: %+v", got)
	}
	if got := c.ready(); got != "False NoEndpoints" {
		t.Errorf("Ready is %s", got)
	}
}

func TestFlush(t *testing.T) {
	c := newCluster(t, 12)
	board := NewBoard()
	o := c.owner("first", board)
	for range 5 {
		o.mustLook()
	}
	if err := o.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, _ := board.Get(key.String())
	if diff := cmp.Diff(a.Weights, restore(c.sets(), false, epochStart).served); diff != "" {
		t.Error(diff)
	}
	c.owner("second", NewBoard()).mustLook()
	for range 3 {
		c.clock.Step(time.Second)
	}
	if err := o.Flush(t.Context()); err != nil {
		t.Errorf("what another has taken over is an error: %v", err)
	}
	if got := c.sets()[0]; got.Holder != "second" {
		t.Errorf("it is %s's", got.Holder)
	}
}

func TestAPolicyThatIsNotOwnedAnyMore(t *testing.T) {
	c := newCluster(t, 3)
	o := c.owner("first", NewBoard())
	o.mustLook()
	o.owns = false
	o.mustLook()
	if _, ok := o.Own.Get(key.String()); ok || len(o.holdings) != 0 || len(o.Sources.policies) != 0 {
		t.Errorf("it still announces %v, holds %d, has the sources of %d", ok, len(o.holdings), len(o.Sources.policies))
	}
	if _, ok := o.Board.Get(key.String()); !ok {
		t.Error("it does not serve any more")
	}
}
