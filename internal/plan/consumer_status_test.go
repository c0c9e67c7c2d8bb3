// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// TestConsumerFigures: each pod counts once, by what it said of itself.
func TestConsumerFigures(t *testing.T) {
	c := consumed(t)
	c.say(8, func(i int, one *plan.Consumer) {
		switch i {
		case 1:
			one.Said.Datacenter = "ams01"
		case 2:
			one.Said.Datacenter, one.Said.Generation = "ams01", 0
		case 3:
			one.Failure = "no answer within 2s"
		case 4:
			one.Waits, one.Said = "it has no address yet", nil
		case 5:
			one.Said.Forced = "candidate"
		case 6:
			one.Said.Datacenter, one.Said.Stable = "", "sha256:cc"
		case 7:
			one.Said.Ring = "cdn/other"
		}
	})
	c.step()
	want := &v1alpha1.ConsumerStatus{
		Generation: 1, Total: 8, Current: 2, Stale: 6, Unreachable: 1, Mismatched: 1, Overridden: 1,
		StalePods: []v1alpha1.StalePod{
			{Name: "p2", Datacenter: "ams01", Reason: v1alpha1.StaleOldGeneration, Message: "it has generation 0, published is 1"},
			{Name: "p3", Datacenter: "lab01", Reason: v1alpha1.StaleUnreachable, Generation: 1, Message: "no answer within 2s"},
			{Name: "p4", Reason: v1alpha1.StaleNotReady, Message: "it has no address yet"},
			{Name: "p5", Datacenter: "lab01", Reason: v1alpha1.StaleOverridden, Generation: 1, Message: "it was told to use the candidate ring whatever the split says"},
			{Name: "p6", Reason: v1alpha1.StaleDigestMismatch, Generation: 1, Message: "its stable ring is sha256:cc, the published one " + c.ring.Status.Active.Digest},
			{Name: "p7", Datacenter: "lab01", Reason: v1alpha1.StaleOtherRing, Message: "it has the ring of HashRing cdn/other"},
		},
		Datacenters: []v1alpha1.DatacenterConsumers{
			{Name: "", Total: 2}, {Name: "ams01", Total: 2, Current: 1, Stable: 2}, {Name: "lab01", Total: 4, Current: 1, Stable: 2},
		},
	}
	if diff := cmp.Diff(want, c.ring.Status.Consumers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestConsumerBounds: whatever pods say, the status keeps to the bounds of its schema, and is the same each time.
func TestConsumerBounds(t *testing.T) {
	c := consumed(t)
	c.say(3000, func(i int, one *plan.Consumer) {
		one.Pod, one.Said.Datacenter = fmt.Sprintf("p%04d", i), fmt.Sprintf("dc%04d", 9999-i)
		if i >= 2995 {
			one.Said.Datacenter = "zone"
		}
		one.Said.LoadError = strings.Repeat("é", 300)
	})
	c.step()
	s := c.ring.Status.Consumers
	if len(s.StalePods) != 10 || s.StalePods[0].Name != "p0000" || s.StalePods[9].Name != "p0009" {
		t.Errorf("stale pods: %+v", s.StalePods)
	}
	if message := s.StalePods[0].Message; len(message) > 256 || !strings.HasSuffix(message, "é…") {
		t.Errorf("a message of %d bytes: %s", len(message), message)
	}
	if n := len(s.Datacenters); n != 1024 || s.Datacenters[n-1] != (v1alpha1.DatacenterConsumers{Name: "zone", Total: 5, Stable: 5}) || s.Datacenters[0].Name != "dc7005" {
		t.Errorf("%d datacenters, %+v to %+v", n, s.Datacenters[0], s.Datacenters[n-1])
	}
	if s.Stale != 3000 || s.Total != 3000 {
		t.Errorf("figures: %d of %d", s.Stale, s.Total)
	}
	before := c.ring.Status.DeepCopy()
	c.step()
	if diff := cmp.Diff(*before, c.ring.Status); diff != "" {
		t.Errorf("the second time (-want +got):\n%s", diff)
	}
}
