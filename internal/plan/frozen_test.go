// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
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
