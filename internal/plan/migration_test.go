// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// changing returns a cluster with a ring that spec asks another algorithm of, and the digest of that candidate.
func changing(t *testing.T, s v1alpha1.HashRingSpec) (*cluster, string) {
	t.Helper()
	c := newCluster(t, s)
	c.step()
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Algorithm.PointsPerWeight = 80 })
	c.after(minute)
	return c, c.ring.Status.Candidate.Digest
}

// lock is what the migration controller writes.
func (c *cluster) lock(phase v1alpha1.LockPhase, candidate string, shares ...int32) {
	lock := &v1alpha1.RingLock{Name: "move", UID: "uid-m", Phase: phase, Candidate: candidate}
	for i, points := range shares {
		lock.Seed = 7
		lock.Split = append(lock.Split, v1alpha1.DatacenterShare{Datacenter: fmt.Sprintf("dc%d", i), BasisPoints: points})
	}
	c.ring.Status.Migration = lock
}

// route says in short what the routing file says: the number of each ring and its slot, and the split.
func (c *cluster) route() string {
	c.t.Helper()
	file := c.file()
	text := fmt.Sprintf("%d%s", file.Stable.Revision, file.Stable.Slot)
	if file.Candidate != nil {
		text += fmt.Sprintf(" %d%s", file.Candidate.Revision, file.Candidate.Slot)
	}
	if file.Split != nil {
		text += fmt.Sprint(" ", file.Split.Seed, " ", file.Split.BasisPoints)
	}
	return text
}

// wantRoute also checks that everything is there that the file names, and nothing else.
func (c *cluster) wantRoute(want string) {
	c.t.Helper()
	if got := c.route(); got != want {
		c.t.Fatalf("routing %q, want %q", got, want)
	}
	c.wantReadable()
}

// wantReadable checks that the slots hold what the routing file names.
func (c *cluster) wantReadable() {
	c.t.Helper()
	file := c.file()
	for _, ref := range []*routing.Reference{&file.Stable, file.Candidate} {
		if ref == nil {
			continue
		}
		snapshot := map[routing.Slot][]byte{routing.SlotA: c.slot, routing.SlotB: c.other}[ref.Slot]
		if ring.Digest(snapshot) != ref.Digest {
			c.t.Fatalf("slot %s holds %s, the routing file names %s", ref.Slot, ring.Digest(snapshot), ref.Digest)
		}
	}
}

// TestMigration goes from slot a to slot b and, with the next one, back.
func TestMigration(t *testing.T) {
	c, candidate := changing(t, migrating(20))
	stable := c.ring.Status.Active.Digest
	c.lock(v1alpha1.LockLocked, "")
	if d := c.after(minute); len(d.Writes) != 0 {
		t.Errorf("the lock alone writes %v", names(d.Writes))
	}
	c.lock(v1alpha1.LockSplit, candidate, 0)
	d := c.after(minute)
	if diff := cmp.Diff([]string{"edge-b", "edge-routing"}, names(d.Writes)); diff != "" || d.Step != plan.StepPropose || !d.LiveLock {
		t.Errorf("step %s, writes (-want +got):\n%s", d.Step, diff)
	}
	c.wantRoute("1a 2b 7 map[dc0:0]")
	c.wantRecords("edge-1", "edge-2")
	got := c.ring.Status.Candidate
	if got == nil || got.Digest != candidate || got.Slot != v1alpha1.SlotB || got.Revision != 2 || got.WeightLost != "0.00%" || got.Reason != v1alpha1.ReasonAlgorithmChanged {
		t.Errorf("candidate %+v", got)
	}
	c.want(v1alpha1.ConditionMigrationRequired, metav1.ConditionTrue, v1alpha1.ReasonAlgorithmChanged, "RingMigration move has the ring: revision 2")
	if d := c.after(minute); len(d.Writes)+len(d.Records)+len(d.Outdated)+len(d.Deletes) != 0 {
		t.Errorf("a second step writes %v", names(d.Writes))
	}

	c.lock(v1alpha1.LockSplit, candidate, 100, 5000)
	if d := c.step(); d.Step != plan.StepSplit || !slices.Equal(names(d.Writes), []string{"edge-routing"}) {
		t.Errorf("a share waits: step %s, writes %v, wait %s", d.Step, names(d.Writes), d.Wait)
	}
	c.wantRoute("1a 2b 7 map[dc0:100 dc1:5000]")

	c.lock(v1alpha1.LockPromoted, candidate)
	if d := c.step(); d.Step != plan.StepPromote || !slices.Equal(names(d.Writes), []string{"edge-routing"}) || d.Moved == nil || *d.Moved == 0 {
		t.Errorf("promotion: step %s, writes %v, moved %v", d.Step, names(d.Writes), d.Moved)
	}
	c.wantRoute("2b")
	if ring.Digest(c.slot) != stable {
		t.Error("the old ring is gone")
	}
	if a := c.ring.Status.Active; a.Slot != v1alpha1.SlotB || a.Revision != 2 || a.Digest != candidate || c.ring.Status.Candidate != nil || a.Movement == "" {
		t.Errorf("active %+v, candidate %+v", a, c.ring.Status.Candidate)
	}
	c.want(v1alpha1.ConditionPublished, metav1.ConditionTrue, v1alpha1.ReasonRingPublished, "revision 2 is published in slot b")
	if d := c.step(); len(d.Writes)+len(d.Deletes) != 0 {
		t.Errorf("a second step writes %v", names(d.Writes))
	}
	c.lock(v1alpha1.LockRetired, candidate)
	if d := c.step(); d.Step != plan.StepEmpty || !slices.Equal(names(d.Writes), []string{"edge-a"}) || d.Restores {
		t.Errorf("retirement: step %s, writes %v, restores %v", d.Step, names(d.Writes), d.Restores)
	}
	if string(c.slot) != string(ring.EmptySlot()) || c.seen.SlotA.Annotations[v1alpha1.AnnotationDigest] != "" {
		t.Errorf("slot a holds %d bytes and %v", len(c.slot), c.seen.SlotA.Annotations)
	}

	c.ring.Status.Migration = nil
	if d := c.after(minute); len(d.Writes) != 0 {
		t.Errorf("without the lock it writes %v", names(d.Writes))
	}
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = spec(21).Backends })
	if d := c.after(minute); !slices.Equal(names(d.Writes), []string{"edge-b", "edge-routing"}) || d.LiveLock {
		t.Errorf("an edit writes %v", names(d.Writes))
	}
	c.wantRoute("3b")

	c.edit(func(s *v1alpha1.HashRingSpec) { s.Algorithm.PointsPerWeight = 40 })
	c.after(minute)
	c.lock(v1alpha1.LockSplit, c.ring.Status.Candidate.Digest, 1)
	c.after(minute)
	c.wantRoute("3b 4a 7 map[dc0:1]")
	c.lock(v1alpha1.LockPromoted, c.ring.Status.Candidate.Digest)
	c.step()
	c.lock(v1alpha1.LockRetired, c.file().Stable.Digest)
	c.step()
	c.wantRoute("4a")
	if string(c.other) != string(ring.EmptySlot()) {
		t.Error("slot b is not empty")
	}
}

// TestWithdraw takes the candidate out of the routing file first, and the ring follows spec again.
func TestWithdraw(t *testing.T) {
	c, candidate := changing(t, migrating(20))
	c.lock(v1alpha1.LockSplit, candidate, 100)
	c.after(minute)
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = append(s.Backends, spec(22).Backends[20:]...) })
	if d := c.after(minute); len(d.Writes) != 0 {
		t.Errorf("a frozen ring: writes %v", names(d.Writes))
	}
	c.want(v1alpha1.ConditionMigrationRequired, metav1.ConditionTrue, v1alpha1.ReasonMigrationInProgress,
		"RingMigration move has the ring; until that is over, this waits: 2 backends to join (10.0.0.20:8080, 10.0.0.21:8080)")
	c.lock(v1alpha1.LockLocked, "")
	d := c.step()
	if diff := cmp.Diff([]string{"edge-a", "edge-routing", "edge-b"}, names(d.Writes)); diff != "" || d.Step != plan.StepWithdraw {
		t.Errorf("step %s, writes (-want +got):\n%s", d.Step, diff)
	}
	c.wantRoute("3a")
	if string(c.other) != string(ring.EmptySlot()) {
		t.Error("slot b is not empty")
	}
	if got := c.ring.Status.Candidate; got.Slot != "" || got.WeightLost != "" || got.Digest == candidate {
		t.Errorf("candidate %+v", got)
	}
}

// TestAbandoned: a candidate that a RingMigration left behind is taken out when spec asks for the published algorithm again, and not before.
func TestAbandoned(t *testing.T) {
	c, candidate := changing(t, migrating(20))
	c.lock(v1alpha1.LockSplit, candidate, 5000)
	c.after(minute)
	c.ring.Status.Migration = nil
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Algorithm.PointsPerWeight = 40 })
	if d := c.after(minute); len(d.Writes) != 0 {
		t.Errorf("another algorithm: writes %v", names(d.Writes))
	}
	c.wantRoute("1a 2b 7 map[dc0:5000]")
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Algorithm.PointsPerWeight = 160 })
	d := c.step()
	if diff := cmp.Diff([]string{"edge-routing", "edge-b"}, names(d.Writes)); diff != "" || d.Step != plan.StepWithdraw {
		t.Errorf("step %s, writes (-want +got):\n%s", d.Step, diff)
	}
	c.wantRoute("1a")
}

// TestPairIsFound: wherever the candidate was lost but in one place, the pair stays.
func TestPairIsFound(t *testing.T) {
	for name, row := range map[string]struct {
		damage func(*cluster)
		want   string
	}{
		"nothing":                 {func(*cluster) {}, ""},
		"no lock":                 {func(c *cluster) { c.ring.Status.Migration = nil }, ""},
		"wiped":                   {func(c *cluster) { c.ring.Status = v1alpha1.HashRingStatus{} }, ""},
		"slot b":                  {func(c *cluster) { c.lose("edge-b") }, ""},
		"both slots":              {func(c *cluster) { c.lose("edge-a", "edge-b") }, ""},
		"routing":                 {func(c *cluster) { c.lose("edge-routing") }, ""},
		"everything":              {func(c *cluster) { c.lose("edge-a", "edge-b", "edge-routing") }, ""},
		"records":                 {func(c *cluster) { c.deleteRecord("edge-1"); c.deleteRecord("edge-2") }, ""},
		"wiped, slots":            {func(c *cluster) { c.ring.Status = v1alpha1.HashRingStatus{}; c.lose("edge-a", "edge-b") }, ""},
		"no lock and no routing":  {func(c *cluster) { c.ring.Status.Migration = nil; c.lose("edge-routing") }, "1a 2b"},
		"wiped, and no routing":   {func(c *cluster) { c.ring.Status = v1alpha1.HashRingStatus{}; c.lose("edge-routing") }, "1a"},
		"an edited routing file":  {func(c *cluster) { c.seen.Routing.ContentDigest, c.seen.Routing.FileDigest = "x", "x" }, ""},
		"an edited slot":          {func(c *cluster) { c.seen.SlotB.ContentDigest = "x" }, ""},
		"spec beyond it":          {func(c *cluster) { c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = spec(25).Backends }) }, ""},
		"spec refused":            {func(c *cluster) { c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends[1].Name = s.Backends[0].Name }) }, ""},
		"another algorithm":       {func(c *cluster) { c.edit(func(s *v1alpha1.HashRingSpec) { s.Algorithm.PointsPerWeight = 40 }) }, ""},
		"Immediate":               {func(c *cluster) { c.edit(func(s *v1alpha1.HashRingSpec) { s.ChangePolicy = v1alpha1.ChangeImmediate }) }, ""},
		"a pin":                   {func(c *cluster) { c.edit(func(s *v1alpha1.HashRingSpec) { s.PinnedRevision = ptr.To(int64(1)) }) }, ""},
		"taken back":              {func(c *cluster) { c.edit(func(s *v1alpha1.HashRingSpec) { s.Algorithm.PointsPerWeight = 160 }) }, ""},
		"a digest nobody knows":   {func(c *cluster) { c.ring.Status.Migration.Candidate = "sha256:" + strings.Repeat("0", 64) }, ""},
		"that of the stable ring": {func(c *cluster) { c.ring.Status.Migration.Candidate = c.ring.Status.Active.Digest }, ""},
		"promotion of another":    {func(c *cluster) { c.lock(v1alpha1.LockPromoted, "sha256:"+strings.Repeat("0", 64)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, candidate := changing(t, migrating(20))
			c.lock(v1alpha1.LockSplit, candidate, 100)
			c.after(minute)
			row.damage(c)
			want := row.want
			if want == "" {
				want = "1a 2b 7 map[dc0:100]"
			}
			lost := name == "routing" || name == "everything" || name == "an edited routing file"
			if d := c.after(minute); lost && !d.LiveLock {
				t.Error("the split is written again without a look at the lock")
			}
			c.wantRoute(want)
			if row.want == "" {
				c.wantRecords("edge-1", "edge-2")
			}
		})
	}
}
