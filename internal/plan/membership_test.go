// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

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
	if diff := cmp.Diff([]string{"Ready", "BackendsResolved", "Published", "Held", "MigrationRequired"}, all); diff != "" {
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
	c.want(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonSuddenLoss, "6 backends are gone, not ready or taken out of spec, and 4 of 10 are left")
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
	c.want(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonSuddenLoss, "6 backends")
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
	c.want(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonSuddenLoss, "2 of 6 are left")
	// A status that was lost does not let it through.
	c.ring.Status = v1alpha1.HashRingStatus{}
	c.after(minute)
	c.want(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonSuddenLoss, "2 of 6 are left")
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
	c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSuddenLoss, "10 backends are gone, not ready or taken out of spec")
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

// TestUnreadSource: what cannot be read is not taken for gone.
func TestUnreadSource(t *testing.T) {
	c := newCluster(t, named())
	c.step()
	c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSourcesUnread, "the first ring waits for every source")
	c.want(v1alpha1.ConditionReconciling, metav1.ConditionTrue, v1alpha1.ReasonSourcesUnread, "")
	c.want(v1alpha1.ConditionBackendsResolved, metav1.ConditionFalse, v1alpha1.ReasonServiceNotFound, "spec.backendsFrom[0] (Service cache): it does not exist")
	c.see(pods(3))
	c.step()
	active := c.ring.Status.Active
	c.seen.Sources = []plan.BackendSource{{}}
	c.after(24 * time.Hour)
	c.wantSame(active)
	c.want(v1alpha1.ConditionBackendsResolved, metav1.ConditionFalse, v1alpha1.ReasonServiceNotFound, "")
	c.want(v1alpha1.ConditionHeld, metav1.ConditionFalse, v1alpha1.ReasonNotHeld, "")
	if down := c.file().Down; down != nil {
		t.Errorf("down %v", down)
	}
}

func TestPorts(t *testing.T) {
	two := []plan.Port{{Name: "http", Number: 80}, {Name: "admin", Number: 81}}
	for name, row := range map[string]struct {
		port    *intstr.IntOrString
		service plan.Service
		reason  v1alpha1.ConditionReason
		text    string
	}{
		"by name":        {ptr.To(intstr.FromString("http")), plan.Service{Ports: two}, v1alpha1.ReasonResolved, ""},
		"by number":      {ptr.To(intstr.FromInt32(80)), plan.Service{Ports: two}, v1alpha1.ReasonResolved, ""},
		"the only one":   {nil, plan.Service{Ports: two[:1]}, v1alpha1.ReasonResolved, ""},
		"one of two":     {nil, plan.Service{Ports: two}, v1alpha1.ReasonPortNotFound, "it has 2 ports (http 80, admin 81): service.port must name one"},
		"no such name":   {ptr.To(intstr.FromString("https")), plan.Service{Ports: two}, v1alpha1.ReasonPortNotFound, "no port https, but http 80, admin 81"},
		"no such number": {ptr.To(intstr.FromInt32(8080)), plan.Service{Ports: two}, v1alpha1.ReasonPortNotFound, "no port 8080"},
		"no port at all": {nil, plan.Service{}, v1alpha1.ReasonPortNotFound, "it has 0 ports (none)"},
		"an alias":       {nil, plan.Service{ExternalName: true, Ports: two[:1]}, v1alpha1.ReasonServiceNotFound, "of type ExternalName"},
	} {
		t.Run(name, func(t *testing.T) {
			s := named()
			s.BackendsFrom[0].Service.Port = row.port
			c := newCluster(t, s)
			c.see(pods(3))
			c.seen.Sources[0].Service = &row.service
			c.step()
			if got := c.condition(v1alpha1.ConditionBackendsResolved); got.Reason != string(row.reason) || !strings.Contains(got.Message, row.text) {
				t.Errorf("%s: %s", got.Reason, got.Message)
			}
			if row.reason == v1alpha1.ReasonResolved {
				c.wantIDs("cache-0", "cache-1", "cache-2")
			}
		})
	}
}

func TestSourceIdentity(t *testing.T) {
	for name, row := range map[string]struct {
		identity v1alpha1.Identity
		source   v1alpha1.SourceIdentity
		want     []string
	}{
		"hostname":          {v1alpha1.IdentityName, v1alpha1.SourceHostname, []string{"host-0", "host-1"}},
		"hostname unsaid":   {v1alpha1.IdentityName, "", []string{"host-0", "host-1"}},
		"pod":               {v1alpha1.IdentityName, v1alpha1.SourcePodName, []string{"cache-0", "cache-1"}},
		"address as a name": {v1alpha1.IdentityName, v1alpha1.SourceAddress, []string{"10.244.0.1:8080", "10.244.0.2:8080"}},
		"address":           {v1alpha1.IdentityAddress, "", []string{"10.244.0.1:8080", "10.244.0.2:8080"}},
		"NGINX":             {v1alpha1.IdentityNGINX, v1alpha1.SourceAddress, []string{"10.244.0.1:8080", "10.244.0.2:8080"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := named()
			s.Identity, s.BackendsFrom[0].Identity = row.identity, row.source
			c := newCluster(t, s)
			c.see(pods(2))
			for i := range c.seen.Sources[0].Slices[0].Endpoints {
				c.seen.Sources[0].Slices[0].Endpoints[i].Hostname = fmt.Sprintf("host-%d", i)
			}
			c.step()
			c.wantIDs(row.want...)
			if zone := c.config().Backends[0].Zone; zone != "a" {
				t.Errorf("zone %q", zone)
			}
		})
	}
	t.Run("NGINX over IPv6", func(t *testing.T) {
		s := named()
		s.Identity = v1alpha1.IdentityNGINX
		c := newCluster(t, s)
		c.see([]pod{{"cache-0", "2001:db8::0:1", "ready"}})
		c.seen.Sources[0].Slices[0].Family = v1alpha1.IPv6
		c.step()
		c.wantIDs("[2001:db8::1]:8080")
	})
	t.Run("missing", func(t *testing.T) {
		c := newCluster(t, named())
		c.see(pods(3))
		c.seen.Sources[0].Slices[0].Endpoints[1].Hostname = ""
		c.step()
		c.wantIDs("cache-0", "cache-2")
		c.want(v1alpha1.ConditionBackendsResolved, metav1.ConditionFalse, v1alpha1.ReasonMissingIdentity, "10.244.0.2 (pod cache-1) has no hostname")
	})
	t.Run("twice", func(t *testing.T) {
		c := newCluster(t, named())
		c.see(pods(3))
		c.seen.Sources[0].Slices[0].Endpoints[1].Hostname = "cache-0"
		c.step()
		c.wantIDs("cache-0", "cache-2")
		c.want(v1alpha1.ConditionBackendsResolved, metav1.ConditionFalse, v1alpha1.ReasonDuplicateIdentity, `pod cache-0 and pod cache-1 are both "cache-0"`)
	})
}

func TestWeights(t *testing.T) {
	s := named()
	s.BackendsFrom[0].Weight, s.BackendsFrom[0].WeightAnnotation = ptr.To(int32(3)), "example.com/weight"
	s.Algorithm.PointsPerWeight = 1 // The largest weight is a million.
	c := newCluster(t, s)
	weigh := func(texts ...string) {
		c.see(pods(len(texts)))
		c.seen.Sources[0].Pods = map[string]plan.Pod{}
		for i, text := range texts {
			p := plan.Pod{}
			if text != "" {
				p.Annotations = map[string]string{"example.com/weight": text}
			}
			c.seen.Sources[0].Pods[fmt.Sprintf("cache-%d", i)] = p
		}
	}
	wantWeights := func(want ...uint32) {
		t.Helper()
		var got []uint32
		for _, b := range c.config().Backends {
			got = append(got, b.Weight)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("weights (-want +got):\n%s", diff)
		}
	}
	weigh("7", "", "1000", "0")
	c.step()
	wantWeights(7, 3, 1000, 0)
	if got := c.ring.Status.Backends; got.Drained != 1 || got.Placed != 3 {
		t.Errorf("counts %+v", got)
	}
	for _, bad := range []string{"heavy", "-1", "1000001", "1.5", ""} {
		weigh("7", "", bad, "0")
		c.after(minute)
		if bad == "" { // No annotation is the weight of the source.
			wantWeights(7, 3, 3, 0)
			continue
		}
		wantWeights(7, 3, 1000, 0)
		c.want(v1alpha1.ConditionBackendsResolved, metav1.ConditionFalse, v1alpha1.ReasonInvalidWeight,
			fmt.Sprintf("annotation example.com/weight of pod cache-2 is %q, not a number from 0 to 1000000", bad))
	}
	weigh("7", "", "3", "0", "bad") // A new one takes that of the source.
	c.after(minute)
	wantWeights(7, 3, 3, 0, 3)
	weigh("", "", "3", "1000000", "5")
	c.seen.Sources[0].Slices[0].Annotations = map[string]string{"example.com/weight": "9"}
	c.after(minute)
	wantWeights(9, 9, 3, 1000000, 5)
}

// TestLabels: those of the pod go before those of the source, and a pod that is not known yet costs nothing.
func TestLabels(t *testing.T) {
	s := named()
	s.BackendsFrom[0].Labels, s.BackendsFrom[0].LabelsFromPod = map[string]string{"tier": "ssd", "eu": "no"}, []string{"eu"}
	s.Features = []v1alpha1.Feature{
		{Name: "eu", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"eu": "yes"}}},
		{Name: "ssd", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "ssd"}}},
	}
	c := newCluster(t, s)
	c.see(pods(2))
	known := map[string]plan.Pod{"cache-0": {Labels: map[string]string{"eu": "yes", "tier": "hdd"}}, "cache-1": {}}
	c.seen.Sources[0].Pods = known
	c.step()
	want := [][]string{{"eu", "ssd"}, {"ssd"}}
	for i, b := range c.config().Backends {
		if diff := cmp.Diff(want[i], b.Features); diff != "" {
			t.Errorf("features of %s (-want +got):\n%s", b.ID, diff)
		}
	}
	active := c.ring.Status.Active
	c.see(pods(3))
	c.seen.Sources[0].Pods = map[string]plan.Pod{"cache-1": {}}
	c.after(minute)
	c.wantSame(active) // cache-0 keeps its features, cache-2 waits for its own.
	c.seen.Sources[0].Pods = maps.Clone(known)
	c.seen.Sources[0].Pods["cache-2"] = plan.Pod{}
	c.after(minute)
	c.wantIDs("cache-0", "cache-1", "cache-2")
}

// TestSlicesDoNotMatter: however endpoints are spread over slices, in whatever order, twice or in two families, the bytes are
// the same.
func TestSlicesDoNotMatter(t *testing.T) {
	for _, base := range []v1alpha1.HashRingSpec{named(), addressed()} {
		plain := newCluster(t, base)
		plain.see(pods(20))
		plain.step()
		for seed := range uint64(30) {
			random := rand.New(rand.NewPCG(seed, 1))
			c := newCluster(t, base)
			c.seen.Sources = []plan.BackendSource{scattered(random, service(pods(20)))}
			c.step()
			if diff := cmp.Diff(plain.slot, c.slot); diff != "" {
				t.Fatalf("%s, seed %d: other bytes", base.Identity, seed)
			}
			if diff := cmp.Diff(plain.file(), c.file()); diff != "" {
				t.Fatalf("%s, seed %d (-want +got):\n%s", base.Identity, seed, diff)
			}
		}
	}
}

// scattered spreads the endpoints of a source over slices of both families, some of them twice.
func scattered(random *rand.Rand, source plan.BackendSource) plan.BackendSource {
	whole := source.Slices[0]
	pieces := make([]plan.Slice, 6)
	for i := range pieces {
		pieces[i] = plan.Slice{Name: fmt.Sprintf("cache-%d", i), Family: v1alpha1.IPv4, Ports: whole.Ports}
		if i >= 4 {
			pieces[i].Family = v1alpha1.IPv6
		}
	}
	for i, e := range whole.Endpoints {
		for range 1 + random.IntN(2) {
			k := random.IntN(4)
			pieces[k].Endpoints = append(pieces[k].Endpoints, e)
		}
		e.Address = fmt.Sprintf("2001:db8::%x", i+1)
		k := 4 + random.IntN(2)
		pieces[k].Endpoints = append(pieces[k].Endpoints, e)
	}
	for _, p := range pieces {
		random.Shuffle(len(p.Endpoints), func(i, j int) { p.Endpoints[i], p.Endpoints[j] = p.Endpoints[j], p.Endpoints[i] })
	}
	random.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	source.Slices = pieces
	return source
}

func TestPreferredIPFamily(t *testing.T) {
	s := addressed()
	s.BackendsFrom[0].PreferredIPFamily = v1alpha1.IPv6
	c := newCluster(t, s)
	c.seen.Sources = []plan.BackendSource{scattered(rand.New(rand.NewPCG(1, 1)), service(pods(2)))}
	c.seen.Sources[0].Slices = append(c.seen.Sources[0].Slices, service([]pod{{"old", "10.0.0.9", "ready"}}).Slices...)
	c.step()
	c.wantIDs("10.0.0.9:8080", "[2001:db8::1]:8080", "[2001:db8::2]:8080") // One has a single family.
}

// TestSeveralSources: with static backends beside them, each identity once, whatever the order of the sources.
func TestSeveralSources(t *testing.T) {
	s := named()
	s.Backends = []v1alpha1.Backend{{Name: "fixed", Address: "10.9.9.9", Port: ptr.To(int32(80)), Weight: ptr.To(int32(1))}}
	s.BackendsFrom = append(s.BackendsFrom, v1alpha1.BackendSource{
		Service: v1alpha1.ServicePort{Name: "also"}, Labels: map[string]string{"b": "b"},
	})
	s.BackendsFrom[0].Labels = map[string]string{"a": "a"}
	s.Features = []v1alpha1.Feature{
		{Name: "a", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "a"}}},
		{Name: "b", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"b": "b"}}},
	}
	c := newCluster(t, s)
	c.seen.Sources = []plan.BackendSource{service(pods(3)), service(pods(2))}
	c.step()
	c.wantIDs("cache-0", "cache-1", "cache-2", "fixed")
	if diff := cmp.Diff([]string{"a", "b"}, c.config().Backends[0].Features); diff != "" {
		t.Errorf("features of one that two sources have (-want +got):\n%s", diff)
	}
	active := c.ring.Status.Active
	c.edit(func(s *v1alpha1.HashRingSpec) { slices.Reverse(s.BackendsFrom) })
	slices.Reverse(c.seen.Sources)
	c.after(minute)
	c.wantSame(active)

	// What somebody takes out of spec goes at once, and an endpoint that is gone after its delay.
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends = nil })
	list := pods(3)
	list[2].state = "gone"
	c.seen.Sources = []plan.BackendSource{service(pods(2)), service(list)}
	c.after(minute)
	c.wantIDs("cache-0", "cache-1", "cache-2")
	if diff := cmp.Diff([]string{"cache-2"}, c.file().Down); diff != "" {
		t.Errorf("down (-want +got):\n%s", diff)
	}
}

// TestStaticGoesFirst: a source does not change a backend that spec declares.
func TestStaticGoesFirst(t *testing.T) {
	s := named()
	s.Backends = []v1alpha1.Backend{{Name: "cache-0", Address: "10.9.9.9", Port: ptr.To(int32(80)), Weight: ptr.To(int32(5))}}
	c := newCluster(t, s)
	c.see(pods(2))
	c.step()
	if got := c.file().Addresses["cache-0"]; got != "10.9.9.9:80" || c.config().Backends[0].Weight != 5 {
		t.Errorf("cache-0 is at %s, %+v", got, c.config().Backends[0])
	}
	c.want(v1alpha1.ConditionBackendsResolved, metav1.ConditionFalse, v1alpha1.ReasonDuplicateIdentity, `"cache-0" at 10.244.0.1:8080 is at 10.9.9.9:80 already`)
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

func TestTooManyBackends(t *testing.T) {
	s := named()
	s.Algorithm.PointsPerWeight = 1
	list := make([]pod, plan.MaxBackends+1)
	for i := range list {
		list[i] = pod{fmt.Sprintf("cache-%d", i), fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), "ready"}
	}
	c := newCluster(t, s)
	c.see(list)
	c.step()
	c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec, "4097 backends in all, the limit is 4096")
	c.see(list[1:])
	c.step()
	c.want(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonRingPublished, "")
}
