// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// TestLeaderEpoch: a new leader writes its epoch with what it has to write anyway, and nothing for it alone.
func TestLeaderEpoch(t *testing.T) {
	c := newCluster(t, spec(3))
	expect := func(what string, writes int, generation, epoch int64) {
		t.Helper()
		d := c.step()
		file := c.file()
		if len(d.Writes) != writes || file.Generation != generation || file.LeaderEpoch != epoch || c.ring.Status.Routing.LeaderEpoch != epoch {
			t.Errorf("%s: %d writes, generation %d, epoch %d, %d in the status; want %d, %d, %d", what,
				len(d.Writes), file.Generation, file.LeaderEpoch, c.ring.Status.Routing.LeaderEpoch, writes, generation, epoch)
		}
		if last := plan.LastLeaderEpoch(c.ring, c.seen); last != epoch {
			t.Errorf("%s: the last epoch is %d", what, last)
		}
	}
	c.seen.LeaderEpoch = 3
	expect("the first ring", 3, 1, 3)
	c.seen.LeaderEpoch = 4
	expect("another leader", 0, 1, 3)
	c.lose("edge-routing")
	expect("what was lost comes back as it was", 1, 1, 3)
	c.ring.Status.Routing = nil
	expect("a status that was lost too", 0, 1, 3)
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = spec(4).Backends })
	c.now = c.now.Add(plan.DefaultMinInterval)
	expect("a change", 2, 2, 4)
	c.seen.LeaderEpoch = 0
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = spec(5).Backends })
	c.now = c.now.Add(plan.DefaultMinInterval)
	expect("nobody elects a leader any more", 2, 3, 4)
}
