// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
)

// TestRestoresV3 takes away what it can and wants the same bytes.
func TestRestoresV3(t *testing.T) {
	for name, damage := range map[string]func(*cluster){
		"nothing": func(*cluster) {},
		"slot":    func(c *cluster) { c.lose("edge-a") },
		"all":     func(c *cluster) { c.lose("edge-a", "edge-b", "edge-routing") },
		"record":  func(c *cluster) { c.deleteRecord("edge-3") },
		"both records": func(c *cluster) {
			c.deleteRecord("edge-2")
			c.deleteRecord("edge-3")
		},
		"all and the record": func(c *cluster) { // From the ring before, the same spec gives the same ring.
			c.lose("edge-a", "edge-b", "edge-routing")
			c.deleteRecord("edge-3")
		},
		"status": func(c *cluster) { c.ring.Status = v1alpha1.HashRingStatus{} },
		"status and slot": func(c *cluster) {
			c.ring.Status = v1alpha1.HashRingStatus{}
			c.lose("edge-a")
		},
		"status and all": func(c *cluster) {
			c.ring.Status = v1alpha1.HashRingStatus{}
			c.lose("edge-a", "edge-b", "edge-routing")
		},
		"slot, by another ring": func(c *cluster) {
			c.slot = build(c.t, trimmed(7, 0)).Snapshot()
			c.seen.SlotA.FileDigest, c.seen.SlotA.ContentDigest = ring.Digest(c.slot), "x"
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, trimmed(60, 1))
			c.step()
			for i := range 2 {
				c.now = c.now.Add(minute)
				c.edit(func(s *v1alpha1.HashRingSpec) { *s.Backends[i].Weight = 3 })
				c.step()
			}
			before := c.slot
			damage(c)
			c.step()
			if !bytes.Equal(before, c.slot) {
				t.Error("the bytes are others than before")
			}
			if got := c.ring.Status.Active.Revision; got != 3 {
				t.Errorf("revision %d, want 3", got)
			}
			if !slices.Contains(c.records(), "edge-3") {
				t.Errorf("records %v", c.records())
			}
		})
	}
}

// lose deletes ConfigMaps.
func (c *cluster) lose(names ...string) {
	for _, name := range names {
		*c.object(name) = plan.Object{Name: name}
		switch name {
		case "edge-a":
			c.slot = nil
		case "edge-b":
			c.other = nil
		}
	}
}

// TestCrashBetweenWritesOfV3 stops behind each write of a publication: what follows is what would have been.
func TestCrashBetweenWritesOfV3(t *testing.T) {
	prepare := func() *cluster {
		c := newCluster(t, trimmed(60, 1))
		c.step()
		c.now = c.now.Add(minute)
		c.edit(func(s *v1alpha1.HashRingSpec) { *s.Backends[0].Weight = 3 })
		return c
	}
	undisturbed := prepare()
	undisturbed.step()
	for written := range 3 {
		c := prepare()
		c.look()
		d := plan.Decide(c.ring, rings, c.seen, c.now)
		c.writeRecord(d.Records[0])
		for _, cm := range d.Writes[:written] {
			c.write(cm)
		}
		c.step()
		c.wantNumbers(2, 2)
		c.wantRecords("edge-1", "edge-2")
		if !bytes.Equal(undisturbed.slot, c.slot) {
			t.Errorf("after the record and %d writes the bytes are others than undisturbed", written)
		}
	}
}

// TestSpecChangesAfterACrash: the number of a record that was never published is not given to another ring, and nothing is
// built from it.
func TestSpecChangesAfterACrash(t *testing.T) {
	prepare := func() *cluster {
		c := newCluster(t, trimmed(60, 1))
		c.step()
		c.now = c.now.Add(minute)
		return c
	}
	change := func(s *v1alpha1.HashRingSpec) { *s.Backends[1].Weight = 2 }
	undisturbed := prepare()
	undisturbed.edit(change)
	undisturbed.step()

	c := prepare()
	c.edit(func(s *v1alpha1.HashRingSpec) { *s.Backends[0].Weight = 30 })
	c.look()
	c.writeRecord(plan.Decide(c.ring, rings, c.seen, c.now).Records[0])
	c.edit(func(s *v1alpha1.HashRingSpec) { *s = prepare().ring.Spec })
	c.edit(change)
	c.step()
	c.wantNumbers(3, 2)
	c.wantRecords("edge-1", "edge-3")
	if !bytes.Equal(undisturbed.slot, c.slot) {
		t.Error("what was published depends on what was not")
	}
}
