// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

func TestSuddenLoss(t *testing.T) {
	c := newCluster(t, named())
	c.see(pods(10))
	c.step()
	active := c.ring.Status.Active
	list := pods(10)
	for i := range 6 {
		list[i].state = "gone"
	}
	c.see(list)
	c.after(minute)
	c.want(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonSuddenLoss, "6 of 10 backends are lost (gone, not ready or taken out of spec, with no others in their place), more than spec.membership.maxRemoved 50%")
	c.want(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonRingPublished, "") // Nothing would be removed yet.
	since := c.ring.Status.Hold.Since
	c.after(time.Hour)
	c.wantSame(active)
	c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSuddenLoss, "cache-0, cache-1, cache-2, cache-3, cache-4 and 1 more")
	c.want(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonSuddenLoss, "")
	if hold := c.ring.Status.Hold; hold.Count != 6 || hold.Since != since || len(hold.Token) != 16 || hold.Backends[5] != "cache-5" {
		t.Errorf("hold %+v", hold)
	}
	if down := c.file().Down; len(down) != 6 {
		t.Errorf("down %v", down)
	}
	// Some come back: the others get the whole delay once more.
	for i := range 3 {
		list[i].state = "ready"
	}
	c.see(list)
	c.after(minute)
	c.want(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonRingPublished, "")
	c.after(plan.DefaultLeaveDelay - time.Microsecond)
	c.wantSame(active)
	// All do: what is published is what was, but for the routing file.
	generation := c.ring.Status.Routing.Generation
	c.see(pods(10))
	c.after(minute)
	c.wantSame(active)
	c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
	if got := c.ring.Status.Routing.Generation; got != generation+1 || c.ring.Status.Hold != nil {
		t.Errorf("generation %d after %d, hold %+v", got, generation, c.ring.Status.Hold)
	}
}

// TestMaxRemoved: at the limit a loss goes through, over it not, static backends included.
func TestMaxRemoved(t *testing.T) {
	for _, row := range []struct {
		limit string
		lost  int
		held  bool
	}{{"", 5, false}, {"", 6, true}, {"50%", 5, false}, {"30%", 3, false}, {"29.9999%", 3, true}, {"0%", 1, true}, {"100%", 9, false}} {
		t.Run(fmt.Sprintf("%s of %d", row.limit, row.lost), func(t *testing.T) {
			s := spec(10)
			s.Membership.MaxRemoved = row.limit
			c := newCluster(t, s)
			c.step()
			c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = s.Backends[row.lost:] })
			c.after(minute)
			if held := c.ring.Status.Hold != nil; held != row.held || len(c.ids()) == 10 != row.held {
				t.Errorf("held: %v, with %d backends", held, len(c.ids()))
			}
		})
	}
}

// TestRelease: a confirmed loss is carried out at once, and only the one that was confirmed.
func TestRelease(t *testing.T) {
	c := newCluster(t, named())
	c.see(pods(10))
	c.step()
	list := pods(10)
	for i := range 6 {
		list[i].state = "gone"
	}
	c.see(list)
	c.after(minute)
	token := c.ring.Status.Hold.Token
	c.ring.Annotations = map[string]string{v1alpha1.AnnotationRelease: token}
	more := slices.Clone(list)
	more[6].state = "gone"
	c.see(more)
	c.after(minute)
	if c.ring.Status.Hold == nil || c.ring.Status.Hold.Token == token || len(c.ids()) != 10 {
		t.Fatalf("a larger loss was released: %+v", c.ring.Status.Hold)
	}
	c.see(list)
	c.after(minute)
	c.wantIDs("cache-6", "cache-7", "cache-8", "cache-9")
	c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
	c.after(minute)
	c.wantNumbers(2, c.ring.Status.Routing.Generation)
	// They come back and are lost once more, which nobody has confirmed.
	c.see(pods(10))
	c.after(minute)
	c.see(list)
	c.after(minute)
	c.want(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonSuddenLoss, "6 of 10 backends are lost")
}

// TestTwoRollouts: pods that others took the place of, and those that took theirs, are no loss.
func TestTwoRollouts(t *testing.T) {
	c := newCluster(t, addressed())
	var list []pod
	for generation := range 3 {
		for i := range 6 {
			list = append(list, pod{fmt.Sprintf("p-%d-%d", generation, i), fmt.Sprintf("10.244.%d.%d", generation, i+1), "ready"})
			if generation > 0 {
				list[len(list)-7].state = "gone"
			}
			c.see(list)
			c.after(10 * time.Second)
		}
	}
	c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
	c.after(plan.DefaultLeaveDelay)
	if got := c.ids(); len(got) != 6 || got[0] != "10.244.2.1:8080" {
		t.Errorf("on the ring: %v", got)
	}
	// What is lost then is measured against these.
	for i := range 4 {
		list[12+i].state = "gone"
	}
	c.see(list)
	c.after(minute)
	c.want(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonSuddenLoss, "4 of 6 backends are lost")
	// A status that was lost does not let it through.
	c.ring.Status = v1alpha1.HashRingStatus{}
	c.after(minute)
	c.want(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonSuddenLoss, "4 of 6 backends are lost")
}

// TestScaleDown: little by little, a ring may shrink as far as minBackends.
func TestScaleDown(t *testing.T) {
	c := newCluster(t, named())
	for n := 10; n >= 4; n-- {
		c.see(pods(n))
		c.after(4 * time.Minute)
		c.want(v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonNotHeld, "")
	}
	c.after(plan.DefaultLeaveDelay)
	c.wantIDs("cache-0", "cache-1", "cache-2", "cache-3")
}

// TestReplacedInSpec: an edit that takes all static backends out is held, whatever it puts in their place.
func TestReplacedInSpec(t *testing.T) {
	s := spec(10)
	s.Membership = v1alpha1.Membership{}
	c := newCluster(t, s)
	c.step()
	c.edit(func(s *v1alpha1.HashRingSpec) {
		for i := range s.Backends {
			s.Backends[i].Address = fmt.Sprintf("10.9.0.%d", i)
		}
	})
	c.after(minute)
	c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSuddenLoss, "10 of 10 placed backends are taken out of spec at one time")
	c.ring.Annotations = map[string]string{v1alpha1.AnnotationRelease: c.ring.Status.Hold.Token}
	c.after(minute)
	c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
	if got := c.ids(); len(got) != 10 || got[0] != "10.9.0.0:8080" {
		t.Errorf("on the ring: %v", got)
	}
}

func TestMinBackends(t *testing.T) {
	s := named()
	s.Membership = v1alpha1.Membership{MinBackends: 3, MaxRemoved: "100%", LeaveDelay: &metav1.Duration{}}
	c := newCluster(t, s)
	c.see(pods(2))
	c.step()
	c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonBelowMinimum, "2 backends of a weight above 0 are there, spec.membership.minBackends is 3")
	c.see(pods(4))
	c.step()
	active := c.ring.Status.Active
	c.see(pods(2))
	c.after(minute)
	c.wantSame(active)
	c.want(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonBelowMinimum, "2 backends of a weight above 0 would be left")
	c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonBelowMinimum, "revision 1 is published")
	if c.ring.Status.Hold.Token != "" {
		t.Error("a release would end it")
	}
	c.see(pods(3))
	c.after(minute)
	c.wantIDs("cache-0", "cache-1", "cache-2")
	// All gone, by the default of 1.
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Membership.MinBackends = 0 })
	c.see(nil)
	c.after(minute)
	c.want(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonBelowMinimum, "0 backends")
}

// gone returns pods of which the first n are gone.
func gone(list []pod, n int) []pod {
	for i := range n {
		list[i].state = "gone"
	}
	return list
}

// TestReferenceIsNotLoweredByWhatIsNotCarriedOut: neither while a publication waits nor while a budget holds it do further
// losses count against a ring that was never published.
func TestReferenceIsNotLoweredByWhatIsNotCarriedOut(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.HashRingSpec){
		"coalescing": func(s *v1alpha1.HashRingSpec) {
			s.Membership.LeaveDelay, s.Publication.MinInterval = &metav1.Duration{}, &metav1.Duration{Duration: time.Hour}
		},
		"a budget": func(s *v1alpha1.HashRingSpec) {
			s.Membership.LeaveDelay, s.Membership.MaxMovement = &metav1.Duration{}, "10%"
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := named()
			change(&s)
			c := newCluster(t, s)
			c.see(pods(10))
			c.step()
			for _, n := range []int{4, 7, 8} {
				c.see(gone(pods(10), n))
				c.after(minute)
				if got := c.ring.Status.Backends.Reference; got != 10 {
					t.Errorf("%d gone: a loss is measured against %d", n, got)
				}
			}
			c.edit(func(s *v1alpha1.HashRingSpec) { s.Membership.MaxMovement = "" })
			c.after(2 * time.Hour)
			c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSuddenLoss, "8 of 10 backends are lost")
			if got := len(c.ids()); got != 10 {
				t.Errorf("%d backends are on the ring", got)
			}
		})
	}
}

// TestRefusedRingGrowsOutOfIt: the delays of a ring that is refused run, so that the one after them is published.
func TestRefusedRingGrowsOutOfIt(t *testing.T) {
	s := addressed()
	s.Publication.Encoding = v1alpha1.EncodingPoints
	c := newCluster(t, s)
	fleet := func(second int) []pod {
		list := make([]pod, 1000)
		for i := range list {
			list[i] = pod{fmt.Sprintf("p-%d-%d", second, i), fmt.Sprintf("10.%d.%d.%d", second, i/256, i%256), "ready"}
		}
		return list
	}
	c.see(fleet(1))
	c.step()
	c.see(fleet(2))
	d := c.after(minute)
	c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSnapshotTooLarge, "the snapshot of 2000 backends")
	if d.Members.Next.IsZero() || c.ring.Status.Backends.Leaving != 1000 || len(c.file().Down) != 1000 {
		t.Errorf("next at %s, %d leave, %d are down", d.Members.Next, c.ring.Status.Backends.Leaving, len(c.file().Down))
	}
	c.after(plan.DefaultLeaveDelay)
	c.want(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonRingPublished, "")
	if ids := c.ids(); len(ids) != 1000 || ids[0] != "10.2.0.0:8080" {
		t.Errorf("%d backends from %s on", len(ids), ids[0])
	}
}

// TestRefusalKeepsAddressesUpToDate: what is wrong with spec says nothing of where backends are.
func TestRefusalKeepsAddressesUpToDate(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.HashRingSpec){
		"a selector": func(s *v1alpha1.HashRingSpec) {
			s.Features = []v1alpha1.Feature{{Name: "x", Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Inn"}}}}}
		},
		"a pin": func(s *v1alpha1.HashRingSpec) { s.PinnedRevision = ptr.To(int64(99)) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, named())
			c.see(pods(4))
			c.step()
			active := c.ring.Status.Active
			c.edit(change)
			list := gone(pods(4), 1)
			list[3].address = "10.244.7.4"
			c.see(list)
			c.after(time.Hour)
			c.wantSame(active)
			if ready := c.condition(v1alpha1.ConditionReady); ready.Status != metav1.ConditionFalse {
				t.Errorf("ready: %s", ready.Message)
			}
			if file := c.file(); file.Addresses["cache-3"] != "10.244.7.4:8080" || !slices.Equal(file.Down, []string{"cache-0"}) {
				t.Errorf("routing file %+v", file)
			}
		})
	}
}

// TestRefusalKeepsTheHold: a loss that was held is still one when a spec that was refused meanwhile is mended.
func TestRefusalKeepsTheHold(t *testing.T) {
	c := newCluster(t, named())
	c.see(pods(10))
	c.step()
	c.see(gone(pods(10), 6))
	c.after(minute)
	c.after(time.Hour)
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Membership.MaxRemoved = "50" })
	c.after(minute)
	c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec, "maxRemoved")
	c.want(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonSuddenLoss, "")
	c.see(gone(pods(10), 5))
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Membership.MaxRemoved = "50%" })
	c.after(minute)
	c.want(v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonNotHeld, "")
	if got := len(c.ids()); got != 10 {
		t.Errorf("%d backends are on the ring: the others had no delay of their own", got)
	}
}

// TestBudgetDoesNotHideALoss: what somebody has to look at first is the loss.
func TestBudgetDoesNotHideALoss(t *testing.T) {
	s := named()
	s.Membership.MaxMovement = "10%"
	c := newCluster(t, s)
	c.see(pods(10))
	c.step()
	c.see(append(gone(pods(10), 8), pod{"cache-x", "10.1.0.1", "ready"}, pod{"cache-y", "10.1.0.2", "ready"}))
	c.after(minute)
	c.after(time.Hour)
	c.want(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonSuddenLoss, "6 of 10 backends are lost")
	c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSuddenLoss, "")
	c.want(v1alpha1.ConditionMigrationRequired, metav1.ConditionTrue, v1alpha1.ReasonMovementBudget, "")
	if c.ring.Status.Hold.Token == "" || len(c.ids()) != 10 {
		t.Errorf("hold %+v, %d backends", c.ring.Status.Hold, len(c.ids()))
	}
}

// TestDrainingStopsAtMinBackends: a ring of too few backends is not published, whichever way it would come about.
func TestDrainingStopsAtMinBackends(t *testing.T) {
	s := spec(10)
	s.Membership = v1alpha1.Membership{MinBackends: 5}
	c := newCluster(t, s)
	c.step()
	active := c.ring.Status.Active
	drain := func(n int) func(*v1alpha1.HashRingSpec) {
		return func(s *v1alpha1.HashRingSpec) {
			for i := range n {
				s.Backends[i].Weight = ptr.To(int32(0))
			}
		}
	}
	c.edit(drain(6))
	c.after(minute)
	c.wantSame(active)
	c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonBelowMinimum, "4 backends of a weight above 0 would be left, spec.membership.minBackends is 5: none is removed or drained")
	if hold := c.ring.Status.Hold; hold.Count != 6 || hold.Backends[0] != "10.0.0.0:8080" {
		t.Errorf("hold %+v", hold)
	}
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends[5].Weight = ptr.To(int32(1)) })
	c.after(minute)
	c.want(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonRingPublished, "")
	if got := c.ring.Status.Backends; got.Placed != 5 || got.Drained != 5 {
		t.Errorf("counts %+v", got)
	}
}

// TestMinBackendsOverTheRing: a minimum that the published ring does not reach either holds nothing that would not change it.
func TestMinBackendsOverTheRing(t *testing.T) {
	c := newCluster(t, named())
	c.see(pods(3))
	c.step()
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Membership.MinBackends = 5 })
	list := pods(3)
	list[0].state = "starting"
	for _, seen := range [][]pod{pods(3), list, pods(3)} {
		c.see(seen)
		c.after(minute)
		c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
	}
}

// TestDrainedIsNoLoss: neither do drained backends that are not ready count as lost, nor do they hide those that are.
func TestDrainedIsNoLoss(t *testing.T) {
	s := named()
	s.BackendsFrom[0].WeightAnnotation, s.Membership.LeaveDelay = "w", &metav1.Duration{}
	for name, row := range map[string]struct {
		lost int
		want metav1.ConditionStatus
	}{"four drained": {0, "False"}, "four drained and six lost of ten": {6, "True"}, "four drained and three lost of six": {3, "False"}} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, s)
			see := func(list []pod, weight string) {
				c.see(list)
				c.seen.Sources[0].Pods = map[string]plan.Pod{}
				for i, p := range list {
					text := "1"
					if i < 4 {
						text = weight
					}
					c.seen.Sources[0].Pods[p.name] = plan.Pod{Annotations: map[string]string{"w": text}}
				}
			}
			see(pods(10), "1")
			c.step()
			list := pods(10)
			for i := range 4 {
				list[i].state = "starting"
			}
			for i := range row.lost {
				list[9-i].state = "starting"
			}
			see(list, "0")
			c.after(minute)
			if got := c.condition(v1alpha1.ConditionHeld); got.Status != row.want {
				t.Errorf("held: %s, %s", got.Status, got.Message)
			}
		})
	}
}

// TestStartingIsNotStalled: the first ring of pods that are on their way waits, and of a spec that has none asks for help.
func TestStartingIsNotStalled(t *testing.T) {
	s := named()
	s.Membership.MinBackends = 3
	c := newCluster(t, s)
	list := pods(3)
	for i := range list {
		list[i].state = "starting"
	}
	for ready, reason := range []string{"NoBackends", "BelowMinimum", "BelowMinimum"} {
		if ready > 0 {
			list[ready].state = "ready"
		}
		c.see(list)
		c.step()
		c.wantConditions("Ready=False/"+reason, "Published=False/"+reason, "Reconciling=True/"+reason)
	}
	c.see(pods(3))
	c.step()
	c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
}

// TestUnreadSourceKeepsAll: nor is anybody of another source removed meanwhile.
func TestUnreadSourceKeepsAll(t *testing.T) {
	s := named()
	s.BackendsFrom = append(s.BackendsFrom, v1alpha1.BackendSource{Service: v1alpha1.ServicePort{Name: "other"}})
	c := newCluster(t, s)
	other := []pod{{"o-0", "10.9.0.1", "ready"}, {"o-1", "10.9.0.2", "ready"}}
	c.seen.Sources = []plan.BackendSource{service(pods(10)), service(other)}
	c.step()
	active := c.ring.Status.Active
	list := pods(10)
	list[0].state = "starting"
	c.seen.Sources = []plan.BackendSource{service(list), {}}
	c.after(time.Hour)
	c.after(time.Hour)
	c.wantSame(active)
	if down := c.file().Down; !slices.Equal(down, []string{"cache-0"}) {
		t.Errorf("down %v", down)
	}
	c.seen.Sources[1] = service(other)
	c.after(minute)
	c.wantSame(active)
	c.after(plan.DefaultLeaveDelay)
	if got := len(c.ids()); got != 11 {
		t.Errorf("%d backends", got)
	}
}

// TestUnreadSourceKeepsHoldAndDown: nothing is better because nobody can look.
func TestUnreadSourceKeepsHoldAndDown(t *testing.T) {
	c := newCluster(t, named())
	c.see(pods(10))
	c.step()
	c.see(gone(pods(10), 6))
	c.after(minute)
	hold, clocks, down := c.ring.Status.Hold, c.ring.Status.Members, c.file().Down
	c.seen.Sources = []plan.BackendSource{{}}
	c.after(minute)
	if diff := cmp.Diff(hold, c.ring.Status.Hold); diff != "" {
		t.Errorf("hold (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(clocks, c.ring.Status.Members); diff != "" {
		t.Errorf("clocks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(down, c.file().Down); diff != "" || len(down) != 6 {
		t.Errorf("down (-want +got):\n%s", diff)
	}
	c.see(pods(10))
	c.after(minute)
	c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
	if down := c.file().Down; down != nil {
		t.Errorf("down %v", down)
	}
}

// TestHeldWhileCoalescing: what has to wait for minInterval does not hide that somebody has to look.
func TestHeldWhileCoalescing(t *testing.T) {
	s := named()
	s.Membership.LeaveDelay, s.Publication.MinInterval = &metav1.Duration{}, &metav1.Duration{Duration: time.Minute}
	c := newCluster(t, s)
	c.see(pods(10))
	c.step()
	c.see(gone(pods(10), 6))
	c.after(time.Second)
	c.wantConditions("Ready=False/SuddenLoss", "Published=False/Coalescing", "Held=True/SuddenLoss", "Stalled=True/SuddenLoss")
	c.after(time.Minute)
	c.wantConditions("Ready=False/SuddenLoss", "Published=True/RingPublished", "Held=True/SuddenLoss", "Stalled=True/SuddenLoss")
}

// TestPinnedToWhatIsPublished needs no record: that is written again.
func TestPinnedToWhatIsPublished(t *testing.T) {
	c := newCluster(t, spec(3))
	c.step()
	c.edit(func(s *v1alpha1.HashRingSpec) { s.PinnedRevision = ptr.To(int64(1)) })
	c.after(minute)
	c.deleteRecord("edge-1")
	c.after(minute)
	c.want(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonPinned, "")
	c.wantRecords("edge-1")
	c.wantNumbers(1, 1)
}
