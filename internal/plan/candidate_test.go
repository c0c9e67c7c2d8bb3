// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
)

// migrating is a spec whose changes of algorithm wait.
func migrating(n int) v1alpha1.HashRingSpec {
	s := spec(n)
	s.ChangePolicy = v1alpha1.ChangeMigrate
	return s
}

// movementOf is what a decision's ring moves against the one that is published, found out by itself.
func movementOf(t *testing.T, from, to *ring.Ring) string {
	t.Helper()
	return fmt.Sprintf("%.2f%%", moved(t, from, to)*100)
}

// TestChangeOfAlgorithmWaits: it is built and shown, and the published ring goes on following its backends meanwhile.
func TestChangeOfAlgorithmWaits(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.Algorithm){
		"points":  func(a *v1alpha1.Algorithm) { a.PointsPerWeight = 80 },
		"version": func(a *v1alpha1.Algorithm) { a.Version, a.WeightUnit = v1alpha1.AlgorithmV3, 1 },
		"to V1":   func(a *v1alpha1.Algorithm) { a.Version = v1alpha1.AlgorithmV1 },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, migrating(20))
			c.step()
			active := c.ring.Status.Active
			c.edit(func(s *v1alpha1.HashRingSpec) { change(&s.Algorithm) })
			d := c.after(minute)
			c.wantSame(active)
			c.want(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonCandidateWaiting, "changePolicy Immediate")
			c.want(v1alpha1.ConditionMigrationRequired, metav1.ConditionTrue, v1alpha1.ReasonAlgorithmChanged, "of the key space")
			opened, err := d.Candidate.Ring.Open()
			if err != nil {
				t.Fatal(err)
			}
			want := movementOf(t, c.published(), opened)
			if got := c.ring.Status.Candidate; got.Movement != want || got.Digest != d.Candidate.Ring.Digest() || got.Revision != 2 || got.Reason != v1alpha1.ReasonAlgorithmChanged {
				t.Errorf("candidate %+v, want a movement of %s", got, want)
			}

			c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = spec(21).Backends })
			c.after(minute)
			c.wantNumbers(2, 2)
			if got := c.config(); got.Algorithm != (ring.Algorithm{Version: ring.V2, PointsPerWeight: 160}) || len(got.Backends) != 21 {
				t.Errorf("published: %+v with %d backends", got.Algorithm, len(got.Backends))
			}
			if got := c.ring.Status.Candidate; got.Revision != 3 || got.Digest == d.Candidate.Ring.Digest() {
				t.Errorf("the candidate does not follow: %+v", got)
			}

			// A status that was lost does not make the change go through.
			c.ring.Status = v1alpha1.HashRingStatus{}
			c.after(minute)
			c.want(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonCandidateWaiting, "")

			// Reverting drops it.
			c.edit(func(s *v1alpha1.HashRingSpec) { s.Algorithm = spec(1).Algorithm })
			c.after(minute)
			c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
			if c.ring.Status.Candidate != nil {
				t.Errorf("candidate %+v", c.ring.Status.Candidate)
			}
			c.wantNumbers(2, 2)

			// Immediate takes it.
			c.edit(func(s *v1alpha1.HashRingSpec) { change(&s.Algorithm); s.ChangePolicy = v1alpha1.ChangeImmediate })
			c.after(minute)
			c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
			c.wantNumbers(3, 3)
			if want := d.Candidate.Ring.Algorithm(); c.config().Algorithm != want {
				t.Errorf("published: %+v, want %+v", c.config().Algorithm, want)
			}
		})
	}
}

// TestBackFromV3Waits, and the views that it is trimmed for follow the features meanwhile.
func TestBackFromV3Waits(t *testing.T) {
	s := migrating(20)
	s.Algorithm.Version, s.Algorithm.WeightUnit = v1alpha1.AlgorithmV3, 1
	s.Features = []v1alpha1.Feature{{Name: "a", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "a"}}}}
	for i := range 10 {
		s.Backends[i].Labels = map[string]string{"a": "a"}
	}
	c := newCluster(t, s)
	c.step()
	active := c.ring.Status.Active
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Algorithm.Version = v1alpha1.AlgorithmV2 })
	c.after(minute)
	c.wantSame(active)
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Features = nil })
	c.after(minute)
	if got := c.config(); got.Algorithm.Version != ring.V3 || len(got.Views) != 0 || len(got.Features) != 0 {
		t.Errorf("published: %s, views %v, features %v", got.Algorithm.Version, got.Views, got.Features)
	}
	c.want(v1alpha1.ConditionMigrationRequired, metav1.ConditionTrue, v1alpha1.ReasonAlgorithmChanged, "V2")
}

// TestCandidateThatCannotBeBuilt: spec is refused, and the published ring is kept up to date all the same.
func TestCandidateThatCannotBeBuilt(t *testing.T) {
	c := newCluster(t, migrating(20))
	c.step()
	c.edit(func(s *v1alpha1.HashRingSpec) {
		s.Algorithm.PointsPerWeight, s.Publication.Encoding = 100_000, v1alpha1.EncodingPoints
		s.Backends = spec(21).Backends
		s.Publication.Encoding = v1alpha1.EncodingPoints
	})
	c.after(minute)
	c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSnapshotTooLarge, "")
	if got := len(c.ids()); got != 21 {
		t.Errorf("%d backends on the published ring", got)
	}
}

func TestMaxMovement(t *testing.T) {
	s := migrating(20)
	s.Membership.MaxMovement = "10%"
	c := newCluster(t, s)
	c.step()
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = spec(21).Backends }) // A twenty-first.
	c.after(minute)
	c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
	active := c.ring.Status.Active
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = spec(30).Backends })
	d := c.after(minute)
	c.wantSame(active)
	opened, err := d.Candidate.Ring.Open()
	if err != nil {
		t.Fatal(err)
	}
	want := movementOf(t, c.published(), opened)
	c.want(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonMovementBudget, "would move "+want+" of the key space, more than spec.membership.maxMovement 10%")
	c.want(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonCandidateWaiting, "")
	if got := c.ring.Status.Candidate; got.Movement != want || got.Reason != v1alpha1.ReasonMovementBudget {
		t.Errorf("candidate %+v", got)
	}
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Membership.MaxMovement = want }) // Rounded: at the limit or a little beside it.
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Membership.MaxMovement = "50%" })
	c.after(minute)
	c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
	if got := c.ring.Status.Active; got.Movement != want || got.Revision != active.Revision+1 || c.ring.Status.Candidate != nil {
		t.Errorf("active %+v", got)
	}
}

// TestMaxMovementOfViews: a change that moves nothing but keys of the readers of one feature, or of one view, counts.
func TestMaxMovementOfViews(t *testing.T) {
	trimmed := func(s *v1alpha1.HashRingSpec) {
		s.Algorithm = v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV3, PointsPerWeight: 160, WeightUnit: 1, MaxImbalance: "100%"}
		s.Views, s.ViewList = v1alpha1.ViewsListed, []v1alpha1.View{{"hot", "near"}}
	}
	near := func(s *v1alpha1.HashRingSpec, from int) { // Four of them.
		for i := range s.Backends {
			s.Backends[i].Labels["region"] = map[bool]string{true: "eu", false: "us"}[i >= from && i < from+4]
		}
	}
	relabel := func(s *v1alpha1.HashRingSpec) { near(s, 16) }
	for name, test := range map[string]struct {
		prepare, change func(*v1alpha1.HashRingSpec)
		want            string
	}{
		"feature":       {func(*v1alpha1.HashRingSpec) {}, relabel, "100.00% of the key space in the view of near, more than"},
		"feature of V3": {trimmed, relabel, "100.00% of the key space in the view of near, more than"},
		"view": {trimmed, func(s *v1alpha1.HashRingSpec) {
			s.Backends[0].Labels["tier"], s.Backends[19].Labels["tier"] = "cold", "hot"
		}, " of the key space in the view of hot,near, more than"},
		"no view in common": {func(*v1alpha1.HashRingSpec) {}, func(s *v1alpha1.HashRingSpec) {
			relabel(s)
			s.Features[0].Name = "close"
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := migrating(20)
			s.Membership.MaxMovement = "15%"
			for i := range s.Backends {
				s.Backends[i].Labels = map[string]string{"tier": map[bool]string{true: "hot", false: "cold"}[i < 19]}
			}
			near(&s, 0)
			s.Features = []v1alpha1.Feature{
				{Name: "near", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}}},
				{Name: "hot", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "hot"}}},
			}
			test.prepare(&s)
			c := newCluster(t, s)
			c.step()
			active := c.ring.Status.Active
			c.edit(test.change)
			c.after(minute)
			if test.want == "" {
				c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
				return
			}
			c.wantSame(active)
			c.want(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonMovementBudget, test.want)
			if got := c.ring.Status.Candidate; got == nil || got.Movement != "0.00%" {
				t.Errorf("candidate %+v moves keys of the view of all backends", got)
			}
			c.edit(func(s *v1alpha1.HashRingSpec) { s.Membership.MaxMovement = "" })
			c.after(minute)
			c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
		})
	}
}

// TestCandidateWithConflict: a candidate stays in the status while a name that is needed is taken.
func TestCandidateWithConflict(t *testing.T) {
	c := newCluster(t, migrating(20))
	c.step()
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Algorithm.PointsPerWeight = 100 })
	c.after(minute)
	want := c.ring.Status.Candidate
	c.seen.SlotB.Holder = plan.Foreign
	c.after(minute)
	c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNameConflict, "edge-b")
	c.want(v1alpha1.ConditionMigrationRequired, metav1.ConditionTrue, v1alpha1.ReasonAlgorithmChanged, "it is status.candidate")
	if diff := cmp.Diff(want, c.ring.Status.Candidate); diff != "" || want == nil || want.Revision != 2 {
		t.Errorf("candidate (-before +after):\n%s", diff)
	}
}

// TestPinned goes back to a revision whatever else spec asks for, and forward again.
func TestPinned(t *testing.T) {
	s := spec(3)
	s.HistoryLimit = ptr.To(int32(2))
	c := newCluster(t, s)
	c.step()
	first := c.ring.Status.Active.Digest
	for n := 4; n <= 5; n++ {
		c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = spec(n).Backends })
		c.after(minute)
	}
	c.edit(func(s *v1alpha1.HashRingSpec) {
		s.PinnedRevision, s.ChangePolicy = ptr.To(int64(1)), v1alpha1.ChangeMigrate
		s.Algorithm.PointsPerWeight, s.Membership = 10, v1alpha1.Membership{MaxRemoved: "0%", MinBackends: 100, MaxMovement: "0%"}
	})
	c.after(minute)
	c.wantNumbers(4, 4)
	if got := c.ring.Status.Active.Digest; got != first {
		t.Errorf("published %s, not %s", got, first)
	}
	c.want(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPinned, "revision 1 is published, whatever the rest of spec asks for; it is revision 4 now")
	c.want(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonPinned, "")
	c.want(v1alpha1.ConditionMigrationRequired, metav1.ConditionFalse, v1alpha1.ReasonNoCandidate, "")
	c.after(minute)
	c.wantNumbers(4, 4)
	c.wantRecords("edge-1", "edge-2", "edge-3", "edge-4") // The pinned one stays beside the two of the limit.
	if got := c.after(minute); len(got.Writes) != 0 || len(got.Records) != 0 || len(got.Outdated) != 0 {
		t.Errorf("another look writes %v, deletes %v", names(got.Writes), got.Outdated)
	}

	// It is pinned to what is not there: the last good ring stays.
	c.edit(func(s *v1alpha1.HashRingSpec) { s.PinnedRevision = ptr.To(int64(17)) })
	c.after(minute)
	c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRevisionNotFound,
		"spec.pinnedRevision 17 is not kept; revisions that are: 1, 2, 3, 4; revision 4 stays published")
	c.wantNumbers(4, 4)

	c.edit(func(s *v1alpha1.HashRingSpec) { *s = spec(5) })
	c.after(minute)
	c.wantNumbers(5, 5)
	c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
}

// TestPinnedNames: a backend that nobody knows any more is passed over.
func TestPinnedNames(t *testing.T) {
	c := newCluster(t, named())
	c.see(pods(3))
	c.step()
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Membership.LeaveDelay = &metav1.Duration{} })
	c.see(pods(2))
	c.after(minute)
	c.edit(func(s *v1alpha1.HashRingSpec) { s.PinnedRevision = ptr.To(int64(1)) })
	c.after(minute)
	c.wantIDs("cache-0", "cache-1", "cache-2")
	file := c.file()
	if diff := cmp.Diff([]string{"cache-2"}, file.Down); diff != "" || len(file.Addresses) != 2 {
		t.Errorf("down (-want +got):\n%s, addresses %v", diff, file.Addresses)
	}
	c.see(pods(3))
	c.after(minute)
	if file := c.file(); file.Down != nil || len(file.Addresses) != 3 {
		t.Errorf("routing file %+v", file)
	}
}

// TestHistoryLimit keeps as many revisions as spec says beside the published one.
func TestHistoryLimit(t *testing.T) {
	s := spec(1)
	s.HistoryLimit = nil
	c := newCluster(t, s)
	for n := 1; n <= 15; n++ {
		c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = spec(n).Backends })
		c.after(minute)
	}
	c.after(minute)
	if got := len(c.records()); got != plan.DefaultHistoryLimit+1 {
		t.Errorf("%d records, want %d", got, plan.DefaultHistoryLimit+1)
	}
	c.edit(func(s *v1alpha1.HashRingSpec) { s.HistoryLimit = ptr.To(int32(1)) })
	c.after(minute)
	c.wantRecords("edge-14", "edge-15")
	// Each of them gives the bytes that were published.
	for name, recipe := range c.recipes {
		r, err := ring.Open(recipe)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ring.Build(r.Config())
		if err != nil {
			t.Fatal(err)
		}
		if want := c.seen.History[len(c.seen.History)-1]; name == want.Name && again.Digest() != want.FileDigest {
			t.Errorf("%s gives %s, not %s", name, again.Digest(), want.FileDigest)
		}
	}
}
