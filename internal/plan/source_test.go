// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"testing"

	"github.com/ringwright/ringwright/internal/plan"
)

// TestDownDoesNotFit: many names that are down make no routing file that is too large, which would freeze addresses as well.
func TestDownDoesNotFit(t *testing.T) {
	s := named()
	s.Algorithm.PointsPerWeight = 1
	c := newCluster(t, s)
	list := make([]pod, plan.MaxBackends)
	for i := range list {
		list[i] = pod{fmt.Sprintf("edge-cache-production-eu-central-1-storage-pool-large-%04d", i), fmt.Sprintf("10.244.%d.%d", i>>8, i&255), "ready"}
	}
	c.see(list)
	c.step()
	for i := range 4000 {
		list[i].state = "gone"
	}
	list[4000].address = "10.250.0.1"
	c.see(list)
	c.after(minute)
	c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished", "Held=True/SuddenLoss")
	if file := c.file(); file.Down != nil || file.Addresses[list[4000].name] != "10.250.0.1:8080" {
		t.Errorf("%d down, %s at %s", len(file.Down), list[4000].name, file.Addresses[list[4000].name])
	}
	if down := c.ring.Status.Backends.Down; down != 4000 {
		t.Errorf("the status counts %d down", down)
	}
	for i := range 1000 {
		list[i].state = "ready"
	}
	c.see(list)
	c.after(minute)
	if down := c.file().Down; len(down) != 3000 {
		t.Errorf("%d down, which would fit", len(down))
	}
}
