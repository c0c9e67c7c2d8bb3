// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// named returns a spec whose backends are the pods of a StatefulSet, with the defaults of membership.
func named() v1alpha1.HashRingSpec {
	s := spec(0)
	s.Identity, s.ChangePolicy, s.Membership = v1alpha1.IdentityName, v1alpha1.ChangeMigrate, v1alpha1.Membership{}
	s.BackendsFrom = []v1alpha1.BackendSource{{Service: v1alpha1.ServicePort{Name: "cache"}}}
	return s
}

// addressed is the same of the pods of a Deployment.
func addressed() v1alpha1.HashRingSpec {
	s := named()
	s.Identity = v1alpha1.IdentityAddress
	return s
}

// pod is an endpoint as a test speaks of it.
type pod struct {
	name, address string
	// state is "ready", "starting", "draining" (it serves and ends), or "gone".
	state string
}

// pods returns n ready pods of a StatefulSet.
func pods(n int) []pod {
	list := make([]pod, n)
	for i := range list {
		list[i] = pod{fmt.Sprintf("cache-%d", i), fmt.Sprintf("10.244.0.%d", i+1), "ready"}
	}
	return list
}

// service returns what is seen of a Service with the port http, 80, and these pods in one slice.
func service(list []pod) plan.BackendSource {
	slice := plan.Slice{Name: "cache-1", Family: v1alpha1.IPv4, Ports: []plan.Port{{Name: "http", Number: 8080}}}
	for _, p := range list {
		e := plan.Endpoint{Address: p.address, Hostname: p.name, Pod: p.name, Zone: "a"}
		switch p.state {
		case "ready":
			e.Ready, e.Serving = true, true
		case "draining":
			e.Serving, e.Terminating = true, true
		case "gone":
			continue
		}
		slice.Endpoints = append(slice.Endpoints, e)
	}
	return plan.BackendSource{Service: &plan.Service{Ports: []plan.Port{{Name: "http", Number: 80}}}, Slices: []plan.Slice{slice}}
}

// see lets the cluster have these pods.
func (c *cluster) see(list []pod) { c.seen.Sources = []plan.BackendSource{service(list)} }

// after lets time pass and steps.
func (c *cluster) after(d time.Duration) plan.Decision {
	c.now = c.now.Add(d)
	return c.step()
}

// file returns the routing file that is published.
func (c *cluster) file() routing.File {
	c.t.Helper()
	f, err := routing.Parse([]byte(c.seen.Routing.Text))
	if err != nil {
		c.t.Fatal(err)
	}
	return f
}

func (c *cluster) condition(kind v1alpha1.ConditionType) metav1.Condition {
	c.t.Helper()
	found := meta.FindStatusCondition(c.ring.Status.Conditions, string(kind))
	if found == nil {
		c.t.Fatalf("no condition %s", kind)
	}
	return *found
}

func (c *cluster) want(kind v1alpha1.ConditionType, status metav1.ConditionStatus, reason v1alpha1.ConditionReason, text string) {
	c.t.Helper()
	got := c.condition(kind)
	if got.Status != status || got.Reason != string(reason) || !strings.Contains(got.Message, text) {
		c.t.Errorf("%s is %s, %s: %s\nwant %s, %s, with %q", kind, got.Status, got.Reason, got.Message, status, reason, text)
	}
}

// ids returns the backends of the published ring.
func (c *cluster) ids() []string {
	c.t.Helper()
	var list []string
	for _, b := range c.config().Backends {
		list = append(list, b.ID)
	}
	return list
}

func (c *cluster) config() ring.Config {
	c.t.Helper()
	config, err := ring.ReadConfig(c.slot)
	if err != nil {
		c.t.Fatal(err)
	}
	return config
}

func (c *cluster) wantIDs(want ...string) {
	c.t.Helper()
	if diff := cmp.Diff(want, c.ids()); diff != "" {
		c.t.Errorf("backends of the ring (-want +got):\n%s", diff)
	}
}

// wantSame checks that the same snapshot is published under the same revision.
func (c *cluster) wantSame(active *v1alpha1.ActiveRing) {
	c.t.Helper()
	now := c.ring.Status.Active
	if now.Digest != active.Digest || now.Revision != active.Revision {
		c.t.Errorf("revision %d, %s is published, not %d, %s", now.Revision, now.Digest, active.Revision, active.Digest)
	}
}

// TestFirstRing places whoever is ready at once, and nobody else.
func TestFirstRing(t *testing.T) {
	s := named()
	s.Membership.JoinDelay = &metav1.Duration{Duration: time.Hour}
	c := newCluster(t, s)
	list := pods(4)
	list[2].state, list[3].state = "starting", "draining"
	c.see(list)
	c.step()
	c.wantIDs("cache-0", "cache-1")
	c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
	if got := c.ring.Status.Backends; got.Joining != 0 || got.Leaving != 0 || got.Down != 0 {
		t.Errorf("counts %+v", got)
	}
	var all []string
	for _, condition := range c.ring.Status.Conditions {
		all = append(all, condition.Type)
	}
	if diff := cmp.Diff([]string{"Ready", "BackendsResolved", "Published", "Held", "MigrationRequired", "Applied"}, all); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func TestJoinDelay(t *testing.T) {
	s := named()
	s.Membership.JoinDelay = &metav1.Duration{Duration: 30 * time.Second}
	c := newCluster(t, s)
	c.see(pods(2))
	c.step()
	c.see(pods(3))
	d := c.after(minute)
	c.wantIDs("cache-0", "cache-1")
	if got := c.ring.Status.Backends.Joining; got != 1 || d.Members.Next.Sub(c.now.Truncate(time.Microsecond)) != 30*time.Second {
		t.Errorf("%d join, the next at %s of %s", got, d.Members.Next, c.now)
	}
	// It is not ready for a moment: the delay begins anew.
	c.see(pods(2))
	c.after(20 * time.Second)
	c.see(pods(3))
	c.after(5 * time.Second)
	c.after(29 * time.Second)
	c.wantIDs("cache-0", "cache-1")
	pending := c.ring.Status.Pending.Movement
	c.after(time.Second)
	c.wantIDs("cache-0", "cache-1", "cache-2")
	if got := c.ring.Status.Active.Movement; got != pending || got == "0.00%" {
		t.Errorf("it moved %s; %s was said before", got, pending)
	}
	if c.ring.Status.Pending != nil || c.ring.Status.Members != nil {
		t.Errorf("still pending: %+v, %+v", c.ring.Status.Pending, c.ring.Status.Members)
	}
}

func TestLeaveDelay(t *testing.T) {
	for _, state := range []string{"starting", "draining", "gone"} {
		t.Run(state, func(t *testing.T) {
			c := newCluster(t, named())
			c.see(pods(4))
			c.step()
			active := c.ring.Status.Active
			list := pods(4)
			list[3].state = state
			c.see(list)
			c.after(minute)
			c.wantSame(active)
			wantDown := []string{"cache-3"}
			if state == "draining" { // It still takes requests.
				wantDown = nil
			}
			if diff := cmp.Diff(wantDown, c.file().Down); diff != "" {
				t.Errorf("down (-want +got):\n%s", diff)
			}
			c.after(plan.DefaultLeaveDelay - time.Microsecond)
			c.wantSame(active)
			c.after(time.Microsecond)
			c.wantIDs("cache-0", "cache-1", "cache-2")
			if down := c.file().Down; down != nil {
				t.Errorf("down %v", down)
			}
		})
	}
}

// TestRollingRestart: every pod of a StatefulSet comes back with another address, and no key moves.
func TestRollingRestart(t *testing.T) {
	c := newCluster(t, named())
	list := pods(10)
	c.see(list)
	c.step()
	active := c.ring.Status.Active
	for i := range list {
		for _, state := range []string{"draining", "starting", "gone", "starting", "ready"} {
			if state == "gone" {
				list[i].address = fmt.Sprintf("10.244.1.%d", i+1)
			}
			list[i].state = state
			c.see(list)
			c.after(20 * time.Second)
			c.wantSame(active)
		}
	}
	file := c.file()
	if len(file.Down) > 0 || len(file.Addresses) != 10 {
		t.Errorf("routing file %+v", file)
	}
	for i, p := range list {
		if got, want := file.Addresses[p.name], fmt.Sprintf("10.244.1.%d:8080", i+1); got != want {
			t.Errorf("%s is dialled at %s, not %s", p.name, got, want)
		}
	}
	if c.ring.Status.Members != nil || c.ring.Status.Pending != nil {
		t.Errorf("left over: %+v, %+v", c.ring.Status.Members, c.ring.Status.Pending)
	}
}

// TestRolloutByAddress: the pods of a Deployment are others afterwards. The status says before what that moves, and nothing is held
// as long as new ones come before the old ones go.
func TestRolloutByAddress(t *testing.T) {
	c := newCluster(t, addressed())
	list := pods(6)
	c.see(list)
	c.step()
	told := false
	for i := range 6 {
		list = append(list, pod{fmt.Sprintf("new-%d", i), fmt.Sprintf("10.244.1.%d", i+1), "ready"})
		list[i].state = "gone"
		c.see(list)
		c.after(20 * time.Second)
		told = told || c.ring.Status.Pending != nil && c.ring.Status.Pending.Movement != "0.00%"
		c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
	}
	if !told {
		t.Error("the status never said what it would move")
	}
	c.after(plan.DefaultLeaveDelay)
	want := []string{"10.244.1.1:8080", "10.244.1.2:8080", "10.244.1.3:8080", "10.244.1.4:8080", "10.244.1.5:8080", "10.244.1.6:8080"}
	c.wantIDs(want...)
}

// TestClocksOutliveCoalescing: a delay that is over while minInterval runs is not begun anew.
func TestClocksOutliveCoalescing(t *testing.T) {
	s := named()
	s.Publication.MinInterval = &metav1.Duration{Duration: time.Minute}
	s.Membership.LeaveDelay = &metav1.Duration{Duration: 30 * time.Second}
	c := newCluster(t, s)
	c.see(pods(4))
	c.step()
	c.see(pods(3))
	c.after(50 * time.Second) // It waits to be listed as down.
	c.after(30 * time.Second) // It is, and goes with that.
	c.wantIDs("cache-0", "cache-1", "cache-2")
	c.see(pods(2))
	c.after(20 * time.Second)
	c.after(35 * time.Second)
	c.wantIDs("cache-0", "cache-1", "cache-2")
	if got := c.ring.Status.Backends.Leaving; got != 1 || c.ring.Status.Members[0].ID != "cache-2" {
		t.Errorf("%d leave: %+v", got, c.ring.Status.Members)
	}
	c.after(5 * time.Second)
	c.wantIDs("cache-0", "cache-1")
	if c.ring.Status.Members != nil {
		t.Errorf("left over: %+v", c.ring.Status.Members)
	}
}

// TestRestartChangesNothing: a step is decided from what is in the cluster alone, so the same step twice decides the same.
func TestRestartChangesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2))
	c := newCluster(t, named())
	list := pods(12)
	states := []string{"ready", "ready", "ready", "starting", "draining", "gone"}
	for range 60 {
		for i := range list {
			if random.IntN(4) == 0 {
				list[i].state = states[random.IntN(len(states))]
			}
		}
		c.see(list)
		c.after(time.Duration(random.IntN(120)) * time.Second)
		before := c.ring.Status.DeepCopy()
		c.step()
		if diff := cmp.Diff(before, &c.ring.Status); diff != "" {
			t.Fatalf("another look at the same changes the status:\n%s", diff)
		}
	}
}

// TestAThousandEventsASecond: of three seconds of endpoints that come and go each millisecond, one publication an interval is made,
// and the last state is published when the interval after it is over.
func TestAThousandEventsASecond(t *testing.T) {
	const interval = 500 * time.Millisecond
	s := named()
	s.Algorithm.PointsPerWeight = 4
	s.Publication.MinInterval = &metav1.Duration{Duration: interval}
	s.Membership.LeaveDelay, s.Membership.MaxRemoved = &metav1.Duration{}, "100%"
	c := newCluster(t, s)
	c.see(pods(20))
	c.step()
	random := rand.New(rand.NewPCG(1, 2))
	var published []time.Time
	note := func(d plan.Decision) {
		if d.Wait == 0 && len(d.Writes) > 0 {
			published = append(published, c.now)
		}
	}
	began := c.now
	last := 0
	for range 3000 {
		last = 5 + random.IntN(15)
		c.see(pods(last))
		note(c.after(time.Millisecond))
	}
	for c.now.Sub(began) < 3*time.Second+interval+time.Millisecond && len(c.ids()) != last {
		note(c.after(time.Millisecond))
	}
	if got := len(c.ids()); got != last || c.now.Sub(began) > 3*time.Second+interval+time.Millisecond {
		t.Errorf("%d backends after %s, want the last %d", got, c.now.Sub(began), last)
	}
	for i := 1; i < len(published); i++ {
		if gap := published[i].Sub(published[i-1]); gap < interval {
			t.Errorf("publication %d came %s after the one before", i, gap)
		}
	}
	if len(published) < 4 {
		t.Errorf("%d publications in all", len(published))
	}
}
