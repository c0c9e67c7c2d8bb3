// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
)

// frozen returns a cluster with both rings published.
func frozen(t *testing.T, s v1alpha1.HashRingSpec) *cluster {
	t.Helper()
	c, candidate := changing(t, s)
	c.lock(v1alpha1.LockSplit, candidate, 100)
	c.after(minute)
	c.wantRoute("1a 2b 7 map[dc0:100]")
	return c
}

// wantPair checks that neither ring has changed, and who is passed over.
func (c *cluster) wantPair(down ...string) {
	c.t.Helper()
	c.wantRoute("1a 2b 7 map[dc0:100]")
	if got := c.file().Down; !slices.Equal(got, down) {
		c.t.Errorf("down %v, want %v", got, down)
	}
}

// TestFrozenSpec: backends that spec takes out or drains are passed over in both rings at once, and nothing else is taken up.
func TestFrozenSpec(t *testing.T) {
	c := frozen(t, migrating(20))
	c.edit(func(s *v1alpha1.HashRingSpec) {
		s.Backends = append(s.Backends[:18:18], v1alpha1.Backend{Name: "new", Address: "10.9.9.9"})
		s.Backends[0].Weight = ptr.To(int32(0))
		s.Backends[1].Weight = ptr.To(int32(3))
		s.Backends[2].Zone = "z"
	})
	c.after(minute)
	c.wantPair("10.0.0.0:8080", "10.0.0.18:8080", "10.0.0.19:8080")
	if got := c.ring.Status.Candidate; got.WeightLost != "15.00%" || c.ring.Status.Backends.Down != 3 {
		t.Errorf("%s of the weight is lost, %d are down", got.WeightLost, c.ring.Status.Backends.Down)
	}
	c.want(v1alpha1.ConditionMigrationRequired, metav1.ConditionTrue, v1alpha1.ReasonMigrationInProgress,
		"this waits: 1 backends to join (10.9.9.9), 1 backends with another weight (10.0.0.1:8080), 1 backends with other features or another zone (10.0.0.2:8080)")
	c.want(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonCandidateWaiting, "RingMigration move has the ring")

	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = spec(20).Backends })
	c.after(minute)
	c.wantPair()
	c.want(v1alpha1.ConditionMigrationRequired, metav1.ConditionTrue, v1alpha1.ReasonAlgorithmChanged, "revision 2")

	c.edit(func(s *v1alpha1.HashRingSpec) {
		s.Algorithm.PointsPerWeight = 40
		s.Features = []v1alpha1.Feature{{Name: "ssd", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"ssd": "1"}}}}
	})
	c.after(minute)
	c.wantPair()
	c.want(v1alpha1.ConditionMigrationRequired, metav1.ConditionTrue, v1alpha1.ReasonMigrationInProgress, "this waits: algorithm V2 with 40 points for each unit of weight")
	if got := c.ring.Status.Candidate; got == nil || got.Algorithm.PointsPerWeight != 80 {
		t.Errorf("candidate %+v", got)
	}
}

// TestFrozenSources: endpoints that go, and come back at another address.
func TestFrozenSources(t *testing.T) {
	s := named()
	s.ChangePolicy = v1alpha1.ChangeMigrate
	s.Membership.LeaveDelay = &metav1.Duration{Duration: 2 * minute}
	c := newCluster(t, s)
	all := pods(4)
	c.see(all)
	c.step()
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Algorithm.PointsPerWeight = 80 })
	c.after(minute)
	c.lock(v1alpha1.LockSplit, c.ring.Status.Candidate.Digest, 100)
	c.after(minute)
	names := c.ids()
	c.see(all[:3])
	c.after(minute)
	c.wantPair(names[3])
	if got := c.ring.Status.Candidate.WeightLost; got != "25.00%" {
		t.Errorf("%s of the weight is lost", got)
	}
	if got := c.ring.Status.Members; len(got) != 1 || got[0].State != v1alpha1.MemberLeaving {
		t.Errorf("clocks %+v", got)
	}
	c.after(time.Hour)
	c.wantPair(names[3])
	if got := c.ring.Status.Members; len(got) != 1 {
		t.Errorf("a delay that is over is forgotten: %+v", got)
	}
	back := slices.Clone(all)
	back[3].address = "10.7.7.7"
	c.see(back)
	c.after(minute)
	c.wantPair()
	if got := c.file().Addresses[names[3]]; !strings.HasPrefix(got, "10.7.7.7") {
		t.Errorf("it is dialled at %s", got)
	}
	c.see(append(back, pods(5)[4]))
	c.after(minute)
	c.wantPair()
	c.want(v1alpha1.ConditionMigrationRequired, metav1.ConditionTrue, v1alpha1.ReasonMigrationInProgress, "1 backends to join")

	// What waited is taken up at once when the ring is free.
	c.see(append(all[:3:3], pods(5)[4]))
	c.after(minute)
	c.after(time.Hour)
	c.lock(v1alpha1.LockLocked, "")
	c.after(minute)
	if got := c.ids(); len(got) != 4 || slices.Contains(got, names[3]) {
		t.Errorf("on the ring are %v", got)
	}
}

// TestFrozenAddressesOfBoth: a backend that only the candidate has is dialled, and down, as the others.
func TestFrozenAddressesOfBoth(t *testing.T) {
	s := spec(4)
	s.Identity, s.ChangePolicy, s.Membership.MaxMovement = v1alpha1.IdentityName, v1alpha1.ChangeMigrate, "1%"
	c := newCluster(t, s)
	c.step()
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = spec(6).Backends[1:] }) // One goes, two come.
	c.after(minute)
	c.lock(v1alpha1.LockSplit, c.ring.Status.Candidate.Digest, 100)
	c.after(minute)
	c.wantPair() // The one that the candidate was made without is not down: the split takes it away bit by bit.
	want := map[string]string{"c0": "10.0.0.0:8080", "c1": "10.0.0.1:8080", "c2": "10.0.0.2:8080", "c3": "10.0.0.3:8080", "c4": "10.0.0.4:8080", "c5": "10.0.0.5:8080"}
	if diff := cmp.Diff(want, c.file().Addresses); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if got := c.ring.Status.Candidate; got.Reason != v1alpha1.ReasonMovementBudget || got.WeightLost != "0.00%" {
		t.Errorf("candidate %+v", got)
	}
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = s.Backends[:4] })
	c.after(minute)
	c.wantPair("c5")
	if c.ring.Status.Candidate == nil {
		t.Error("the candidate is taken for one that is not wanted any more")
	}
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = spec(4).Backends })
	c.after(minute)
	c.wantPair("c4", "c5")
	if c.ring.Status.Candidate != nil {
		t.Error("spec asks for the published ring, and the candidate stays wanted")
	}
	c.want(v1alpha1.ConditionMigrationRequired, metav1.ConditionFalse, v1alpha1.ReasonNoCandidate, "spec asks for the published ring again")
}

// TestTakenBack: spec asks for the published algorithm again, whatever else it asks for.
func TestTakenBack(t *testing.T) {
	c := frozen(t, migrating(20))
	c.edit(func(s *v1alpha1.HashRingSpec) {
		s.Algorithm.PointsPerWeight = 160
		s.Backends = spec(25).Backends
	})
	c.after(minute)
	c.wantPair()
	if c.ring.Status.Candidate != nil {
		t.Errorf("candidate %+v", c.ring.Status.Candidate)
	}
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Algorithm.PointsPerWeight = 80 })
	c.after(minute)
	if got := c.ring.Status.Candidate; got == nil || got.Slot != v1alpha1.SlotB || got.Revision != 2 {
		t.Errorf("candidate %+v", got)
	}
}

// TestFrozenHold: a loss that is held takes nobody out who may run all the same.
func TestFrozenHold(t *testing.T) {
	s := migrating(20)
	s.Membership.MaxRemoved = "50%"
	c := frozen(t, s)
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = s.Backends[:5] })
	c.after(minute)
	c.wantPair()
	c.want(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonSuddenLoss, "15 of 20")
	c.ring.Annotations = map[string]string{v1alpha1.AnnotationRelease: c.ring.Status.Hold.Token}
	c.after(minute)
	if got := len(c.file().Down); got != 15 {
		t.Errorf("after the release %d are down", got)
	}
}

// TestFrozenRefusals: what cannot be is refused, and the pair stays up to date all the same.
func TestFrozenRefusals(t *testing.T) {
	for name, row := range map[string]struct {
		edit   func(*v1alpha1.HashRingSpec)
		reason v1alpha1.ConditionReason
		text   string
	}{
		"a pin": {
			func(s *v1alpha1.HashRingSpec) { s.PinnedRevision = ptr.To(int64(1)) }, v1alpha1.ReasonMigrationInProgress,
			"spec.pinnedRevision 1: RingMigration move has the ring, and both rings stay as they are; roll the migration back first",
		},
		"a name twice": {
			func(s *v1alpha1.HashRingSpec) { s.Backends[1].Name = s.Backends[0].Name }, v1alpha1.ReasonDuplicateIdentity, "the same name",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := frozen(t, migrating(20))
			c.edit(row.edit)
			c.lose("edge-b")
			c.lock(v1alpha1.LockSplit, c.ring.Status.Candidate.Digest, 0)
			c.step() // Lowering a share is never blocked.
			c.wantRoute("1a 2b 7 map[dc0:0]")
			c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, row.reason, row.text)
			if c.ring.Status.Candidate == nil {
				t.Error("the status forgets the candidate")
			}
			c.lock(v1alpha1.LockLocked, "")
			c.step()
			c.wantRoute("1a")
			if string(c.other) != string(ring.EmptySlot()) {
				t.Error("slot b is not empty")
			}
		})
	}
}

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
