// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// TestCandidateOfTooManyChunks is refused before anything is published.
func TestCandidateOfTooManyChunks(t *testing.T) {
	s := large(2, v1alpha1.EncodingPoints)
	s.ChangePolicy = v1alpha1.ChangeMigrate
	c := newCluster(t, s)
	c.step()
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Algorithm.PointsPerWeight = 80 })
	c.after(minute)
	c.lock(v1alpha1.LockSplit, c.ring.Status.Candidate.Digest, 100)
	c.after(minute)
	c.lock(v1alpha1.LockPromoted, c.ring.Status.Candidate.Digest)
	c.after(minute)
	c.lock(v1alpha1.LockRetired, c.file().Stable.Digest)
	c.after(minute)
	c.ring.Status.Migration = nil
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Publication.Chunks = 1 })
	c.after(minute)
	if got := c.file(); got.Stable.Chunks != 0 || got.Stable.Slot != "b" {
		t.Fatalf("stable %+v", got.Stable)
	}
	c.lock(v1alpha1.LockSplit, c.seen.History[0].FileDigest, 100) // The ring before takes two.
	c.after(minute)
	c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSnapshotTooLarge,
		"the candidate that RingMigration move goes to takes 2 ConfigMaps, spec.publication.chunks allows 1 for each slot")
	if got := c.file(); got.Candidate != nil {
		t.Errorf("candidate %+v", got.Candidate)
	}
}

// TestChunksOfBoth: a pair in several chunks, of which spec takes some away: they stay until nothing is in them.
func TestChunksOfBoth(t *testing.T) {
	s := large(2, v1alpha1.EncodingPoints)
	s.ChangePolicy = v1alpha1.ChangeMigrate
	c := newCluster(t, s)
	c.step()
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Algorithm.PointsPerWeight = 100 })
	c.after(minute)
	candidate := c.ring.Status.Candidate.Digest
	c.lock(v1alpha1.LockSplit, candidate, 100)
	c.after(minute)
	c.edit(func(s *v1alpha1.HashRingSpec) {
		s.Publication.Chunks = 1
		s.Publication.Encoding = v1alpha1.EncodingRecipe
	})
	c.after(minute)
	c.after(minute)
	file := c.file()
	if file.Stable.Chunks != 2 || file.Candidate == nil || !plan.StateOf("edge", c.seen).Complete {
		t.Errorf("routing %+v, %+v", file, plan.StateOf("edge", c.seen))
	}
	c.lock(v1alpha1.LockPromoted, candidate)
	c.after(minute)
	c.after(minute)
	for _, name := range []string{"edge-a", "edge-a-1"} {
		if o := c.object(name); o.Annotations[v1alpha1.AnnotationDigest] == "" {
			t.Errorf("%s of the old ring is gone: %+v", name, o)
		}
	}
	c.lock(v1alpha1.LockRetired, candidate)
	c.after(minute)
	c.after(minute)
	if state := plan.StateOf("edge", c.seen); !state.Emptied || !state.Complete {
		t.Errorf("state %+v", state)
	}
	if o := c.object("edge-a-1"); o.Holder != plan.Nobody {
		t.Errorf("edge-a-1 is left: %+v", o)
	}
}

// TestHistoryOfAMigration: with the shortest history the candidate's record stays, and a migration back gets a number of its own.
func TestHistoryOfAMigration(t *testing.T) {
	s := migrating(20)
	s.HistoryLimit = ptr.To(int32(0))
	c := frozen(t, s)
	c.wantRecords("edge-1", "edge-2")
	first := bytes.Clone(c.slot)
	c.lock(v1alpha1.LockPromoted, c.ring.Status.Candidate.Digest)
	c.after(minute)
	c.after(minute)
	c.wantRecords("edge-2")
	c.lock(v1alpha1.LockRetired, c.file().Stable.Digest)
	c.after(minute)
	c.ring.Status.Migration = nil
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Algorithm.PointsPerWeight = 160 })
	c.after(minute)
	c.lock(v1alpha1.LockSplit, c.ring.Status.Candidate.Digest, 1)
	c.after(minute)
	c.wantRoute("2b 3a 7 map[dc0:1]")
	if !bytes.Equal(first, c.slot) {
		t.Error("the same spec gives another ring")
	}
	c.wantRecords("edge-2", "edge-3")

	// A candidate that is withdrawn leaves its number behind.
	c.lock(v1alpha1.LockLocked, "")
	c.after(minute)
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = spec(21).Backends })
	c.after(minute)
	c.wantRoute("4b")
	c.after(minute) // Until then the one before may be needed.
	c.wantRecords("edge-4")
}

// TestOldRecordAsCandidate: a ring that was published before can be the candidate, under a new number.
func TestOldRecordAsCandidate(t *testing.T) {
	s := migrating(20)
	s.HistoryLimit = ptr.To(int32(3))
	c := newCluster(t, s)
	c.step()
	old := c.ring.Status.Active.Digest
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = spec(21).Backends })
	c.after(minute)
	c.lock(v1alpha1.LockSplit, old, 100)
	c.after(minute)
	c.wantRoute("2a 3b 7 map[dc0:100]")
	c.wantRecords("edge-1", "edge-2", "edge-3")
	c.ring.Status.Migration = nil
	if d := c.after(minute); len(d.Writes)+len(d.Records) != 0 {
		t.Errorf("writes %v, records %v", names(d.Writes), d.Records)
	}
}

// TestAnotherCandidateByNow: what a RingMigration asks for and nobody can build is not published, and it is told what can be.
func TestAnotherCandidateByNow(t *testing.T) {
	c, candidate := changing(t, migrating(20))
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = spec(21).Backends })
	c.lock(v1alpha1.LockSplit, candidate, 0)
	if d := c.after(minute); len(d.Writes) != 0 {
		t.Errorf("writes %v", names(d.Writes))
	}
	now := c.ring.Status.Candidate
	if now == nil || now.Digest == candidate || now.Slot != "" {
		t.Fatalf("candidate %+v", now)
	}
	c.lock(v1alpha1.LockSplit, now.Digest, 0)
	c.after(minute)
	c.wantRoute("1a 2b 7 map[dc0:0]")
}

// TestUnreadableCandidate: what was lost everywhere cannot be kept up to date, and can be withdrawn.
func TestUnreadableCandidate(t *testing.T) {
	c := frozen(t, migrating(20))
	c.deleteRecord("edge-2")
	c.lose("edge-b")
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = spec(21).Backends }) // Else spec gives the same again.
	if d := c.after(minute); d.Desired != nil || d.Refusal == nil {
		t.Errorf("desired %+v, refusal %+v", d.Desired, d.Refusal)
	}
	c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRevisionNotFound, "is kept nowhere any more")
	c.lock(v1alpha1.LockLocked, "")
	c.after(minute)
	c.wantRoute("3a")
}

// TestUnreadableCandidateGoesBack: a rollback has its split lowered before it withdraws. Of a candidate that was lost everywhere no split
// but none at all can be published.
func TestUnreadableCandidateGoesBack(t *testing.T) {
	c := frozen(t, migrating(20))
	candidate := c.ring.Status.Candidate.Digest
	c.deleteRecord("edge-2")
	c.lose("edge-b")
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = spec(21).Backends })
	c.lock(v1alpha1.LockSplit, candidate, 50)
	if d := c.after(minute); d.Desired != nil || d.Refusal == nil {
		t.Errorf("with a share desired %+v, refusal %+v", d.Desired, d.Refusal)
	}
	c.lock(v1alpha1.LockSplit, candidate, 0)
	if d := c.after(minute); d.Step != plan.StepWithdraw || !d.LiveLock {
		t.Errorf("step %q, refusal %+v", d.Step, d.Refusal)
	}
	c.wantRoute("1a")
	if d := c.after(minute); len(d.Writes)+len(d.Records) != 0 {
		t.Errorf("a second step writes %v", names(d.Writes))
	}
}

// TestCrashInAMigration stops behind each write of each transition: what follows is what would have been, and readable meanwhile.
func TestCrashInAMigration(t *testing.T) {
	type transition struct {
		name string
		from func(*testing.T) *cluster
		lock func(c *cluster, candidate string)
		want string
	}
	split := func(t *testing.T) *cluster { return frozen(t, migrating(20)) }
	promoted := func(t *testing.T) *cluster {
		c := split(t)
		c.lock(v1alpha1.LockPromoted, c.ring.Status.Candidate.Digest)
		c.step()
		return c
	}
	for _, row := range []transition{
		{"publish", func(t *testing.T) *cluster { c, _ := changing(t, migrating(20)); return c },
			func(c *cluster, candidate string) { c.lock(v1alpha1.LockSplit, candidate, 100) }, "1a 2b 7 map[dc0:100]"},
		{"raise", split, func(c *cluster, candidate string) { c.lock(v1alpha1.LockSplit, candidate, 200) }, "1a 2b 7 map[dc0:200]"},
		{"withdraw", split, func(c *cluster, _ string) { c.lock(v1alpha1.LockLocked, "") }, "1a"},
		{"withdraw, with backends that waited", split, func(c *cluster, _ string) {
			c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = spec(21).Backends })
			c.lock(v1alpha1.LockLocked, "")
		}, "3a"},
		{"promote", split, func(c *cluster, candidate string) { c.lock(v1alpha1.LockPromoted, candidate) }, "2b"},
		{"retire", promoted, func(c *cluster, candidate string) { c.lock(v1alpha1.LockRetired, candidate) }, "2b"},
	} {
		for _, wiped := range []bool{false, true} {
			for written := range 6 {
				t.Run(fmt.Sprintf("%s, %d writes, status wiped %v", row.name, written, wiped), func(t *testing.T) {
					c := row.from(t)
					candidate := c.seen.History[len(c.seen.History)-1].FileDigest
					if c.ring.Status.Candidate != nil {
						candidate = c.ring.Status.Candidate.Digest
					}
					row.lock(c, candidate)
					if done := c.crash(written); !done && wiped { // The lock is put there again.
						c.ring.Status = v1alpha1.HashRingStatus{Migration: c.ring.Status.Migration}
					}
					c.after(minute)
					c.after(minute)
					c.wantRoute(row.want)
					state := plan.StateOf("edge", c.seen)
					if want := !strings.Contains(row.want, " ") && row.name != "promote"; state.Emptied != want || !state.Complete {
						t.Errorf("state %+v", state)
					}
				})
			}
		}
	}
}

// crash carries out so many writes of a decision, and says whether those were all.
func (c *cluster) crash(writes int) bool {
	c.t.Helper()
	c.look()
	d := plan.Decide(c.ring, rings, c.seen, c.now)
	inPlace := slices.ContainsFunc(d.Writes, func(cm plan.ConfigMap) bool {
		return cm.Name == "edge-a" && cm.Annotations[v1alpha1.AnnotationDigest] != ""
	})
	for _, record := range d.Records {
		if writes == 0 {
			return false
		}
		writes--
		c.writeRecord(record)
	}
	for _, cm := range d.Writes {
		if writes == 0 {
			return false
		}
		writes--
		c.write(cm)
		if !inPlace { // A ring that follows spec is replaced in its slot, and readers wait for the routing file.
			c.wantReadable()
		}
	}
	return true
}

// TestBehindInAMigration: of the status and the ConfigMaps one is seen late. Nothing is written over that would not be there already.
func TestBehindInAMigration(t *testing.T) {
	for name, row := range map[string]struct {
		phase v1alpha1.LockPhase
		want  []string
	}{
		"promoted":  {v1alpha1.LockPromoted, []string{"edge-routing"}},
		"retired":   {v1alpha1.LockRetired, []string{"edge-routing", "edge-a"}},
		"withdrawn": {v1alpha1.LockLocked, []string{"edge-routing", "edge-b"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := frozen(t, migrating(20))
			before, status := c.seen, c.ring.Status.DeepCopy()
			c.lock(row.phase, status.Candidate.Digest)
			lock := c.ring.Status.Migration
			c.step()
			after, route := c.seen, c.route()

			c.ring.Status = *status
			c.ring.Status.Migration = lock
			if d := c.step(); len(d.Writes)+len(d.Records) != 0 {
				t.Errorf("with the status of before it writes %v", names(d.Writes))
			}
			c.seen.SlotA, c.seen.SlotB, c.seen.Routing, c.seen.Chunks = before.SlotA, before.SlotB, before.Routing, before.Chunks
			d := c.step()
			if !slices.Equal(names(d.Writes), row.want) || !d.LiveLock { // All of them were written since, and fail.
				t.Errorf("with the ConfigMaps of before it writes %v, want %v", names(d.Writes), row.want)
			}
			if c.route() != route || c.seen.Routing.Text != after.Routing.Text {
				t.Errorf("it makes %s of %s", c.route(), route)
			}
		})
	}
}
