// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// TestMinIntervalBehindCache: what is seen of the last publication arrives one object after the other, the status last. The next one
// waits all the same.
func TestMinIntervalBehindCache(t *testing.T) {
	s := named()
	s.Publication.MinInterval = &metav1.Duration{Duration: minute}
	c := newCluster(t, s)
	c.see(pods(3))
	c.step()
	c.after(minute)
	before, status := c.seen, c.ring.Status
	c.see(pods(4))
	at := c.now
	c.step()
	c.wantNumbers(2, 2)
	after := c.seen
	c.see(pods(5))
	for name, seen := range map[string]plan.Observation{
		"nothing":                   before,
		"the slot":                  {SlotA: after.SlotA, SlotB: after.SlotB, Routing: before.Routing},
		"the slot and routing.json": after,
	} {
		seen.Sources, seen.History, seen.Published = c.seen.Sources, after.History, after.Published
		look := func(age time.Duration) plan.Decision {
			ring := c.ring.DeepCopy()
			ring.Status = *status.DeepCopy()
			return plan.Decide(ring, rings, seen, at.Add(age))
		}
		if d := look(time.Second); d.Wait != 0 && name != "nothing" {
			t.Errorf("%s seen: it waits for %s although this process has published nothing", name, d.Wait)
		}
		seen.PublishedAt = at
		d := look(time.Second)
		if want := minute - time.Second; d.Wait != want || len(d.Writes) > 0 || len(d.Records) != 0 {
			t.Errorf("%s seen: it waits for %s and writes %v, want %s and nothing", name, d.Wait, names(d.Writes), want)
		}
		if d := look(minute); d.Wait != 0 {
			t.Errorf("%s seen: it waits for %s after the interval", name, d.Wait)
		}
		seen.Routing.ContentDigest, seen.Routing.FileDigest = "edited", "edited"
		if d := look(time.Second); d.Wait != 0 || !slices.Contains(names(d.Writes), "edge-routing") {
			t.Errorf("%s seen, routing.json edited: it waits for %s and writes %v", name, d.Wait, names(d.Writes))
		}
	}
	c.ring.Status = status
	c.seen = after
	c.seen.PublishedAt = at
	c.see(pods(5))
	c.after(time.Second)
	c.want(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonCoalescing, "a newer one than revision 1 is published")
}
