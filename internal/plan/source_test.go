// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// TestPortRenamed: between a Service that has given its port another name and its slices, nobody is gone.
func TestPortRenamed(t *testing.T) {
	c := newCluster(t, named())
	c.see(pods(10))
	c.step()
	c.seen.Sources[0].Service.Ports[0].Name = "web"
	if d := c.after(minute); len(d.Writes) != 0 || len(d.Members.Clocks) != 0 {
		t.Errorf("writes %v, clocks %v", names(d.Writes), d.Members.Clocks)
	}
	c.want(v1alpha1.ConditionBackendsResolved, metav1.ConditionFalse, v1alpha1.ReasonPortNotFound, `none of its EndpointSlices has the port "web", but http 8080`)
	// One that has it is enough: pods without a port are in slices without it.
	c.seen.Sources[0].Slices = append(c.seen.Sources[0].Slices, plan.Slice{Name: "cache-2", Family: v1alpha1.IPv4, Ports: []plan.Port{{Name: "web", Number: 80}}})
	c.after(minute)
	c.want(v1alpha1.ConditionBackendsResolved, metav1.ConditionTrue, v1alpha1.ReasonResolved, "")
	if down := c.file().Down; len(down) != 10 {
		t.Errorf("down %v", down)
	}
}

// TestNoEndpoints: a Service without slices, or with empty ones, was read.
func TestNoEndpoints(t *testing.T) {
	for name, list := range map[string][]plan.Slice{"no slices": nil, "an empty one": {{Name: "cache-1", Family: v1alpha1.IPv4}}} {
		c := newCluster(t, named())
		c.see(pods(2))
		c.step()
		c.seen.Sources[0].Slices = list
		c.after(minute)
		c.want(v1alpha1.ConditionBackendsResolved, metav1.ConditionTrue, v1alpha1.ReasonResolved, "")
		if down := c.file().Down; len(down) != 2 {
			t.Errorf("%s: down %v", name, down)
		}
	}
}

// TestDualStack: the slice of one family is written a moment before that of the other, and a pod is one backend all the same.
func TestDualStack(t *testing.T) {
	both := []v1alpha1.IPFamily{v1alpha1.IPv6, v1alpha1.IPv4}
	for name, row := range map[string]struct {
		spec     v1alpha1.HashRingSpec
		families []v1alpha1.IPFamily
		waits    bool
		id       string
	}{
		"both families": {addressed(), both, true, "10.244.0.3:8080"},
		"IPv6 alone":    {addressed(), both[:1], false, "[2001:db8::3]:8080"},
		"not known":     {addressed(), nil, false, "[2001:db8::3]:8080"},
		"by name":       {named(), both, false, "cache-2"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, row.spec)
			see := func(inFour, inSix int) {
				source := service(pods(inFour))
				source.Service.Families = row.families
				six := plan.Slice{Name: "cache-6", Family: v1alpha1.IPv6, Ports: []plan.Port{{Name: "http", Number: 8080}}}
				for i := range inSix {
					name := fmt.Sprintf("cache-%d", i)
					six.Endpoints = append(six.Endpoints, plan.Endpoint{
						Address: fmt.Sprintf("2001:db8::%d", i+1), Pod: name, Hostname: name, Zone: "a", Ready: true, Serving: true,
					})
				}
				source.Slices = append(source.Slices, six)
				c.seen.Sources = []plan.BackendSource{source}
			}
			see(2, 2)
			c.step()
			see(2, 3)
			c.after(minute)
			if got := !slices.Contains(c.ids(), row.id); got != row.waits || len(c.ids()) == 2 != row.waits {
				t.Errorf("it waits: %v, with %v on the ring", got, c.ids())
			}
			if !row.waits {
				return
			}
			see(3, 3)
			c.after(minute)
			c.wantIDs("10.244.0.1:8080", "10.244.0.2:8080", row.id)
		})
	}
}

// TestNGINXSpelling: a backend of spec and the same endpoint of a source are one backend, spelled as in spec.
func TestNGINXSpelling(t *testing.T) {
	s := addressed()
	s.Identity = v1alpha1.IdentityNGINX
	s.Backends = []v1alpha1.Backend{
		{Name: "a", Address: "[2001:DB8::1]", Port: ptr.To(int32(8080)), Weight: ptr.To(int32(1))},
		{Name: "b", Address: "[2001:db8::2]", Port: ptr.To(int32(8080)), Weight: ptr.To(int32(1))},
	}
	c := newCluster(t, s)
	slice := plan.Slice{Name: "six", Family: v1alpha1.IPv6, Ports: []plan.Port{{Name: "http", Number: 8080}}}
	for _, address := range []string{"2001:db8:0::1", "2001:db8::2", "2001:DB8::3"} {
		slice.Endpoints = append(slice.Endpoints, plan.Endpoint{Address: address, Ready: true, Serving: true})
	}
	c.see(nil)
	c.seen.Sources[0].Slices = []plan.Slice{slice}
	c.step()
	c.wantIDs("[2001:DB8::1]:8080", "[2001:db8::2]:8080", "[2001:db8::3]:8080")
	c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
}

// TestSourceTwice: where two sources name the same port with different weights, their order decides nothing.
func TestSourceTwice(t *testing.T) {
	digests := map[string]bool{}
	for _, weights := range [][]int32{{1, 5}, {5, 1}} {
		s := named()
		s.BackendsFrom = append(s.BackendsFrom, s.BackendsFrom[0])
		s.BackendsFrom[0].Weight, s.BackendsFrom[1].Weight = &weights[0], &weights[1]
		c := newCluster(t, s)
		c.seen.Sources = []plan.BackendSource{service(pods(3)), service(pods(3))}
		c.step()
		digests[c.ring.Status.Active.Digest] = true
	}
	if len(digests) != 1 {
		t.Error("the order of sources makes another ring")
	}
}

// TestManyClocks: the status has room for the clocks of all that leave and of as many that join, and keeps these by identity.
func TestManyClocks(t *testing.T) {
	s := named()
	s.Membership.JoinDelay = &metav1.Duration{Duration: minute}
	c := newCluster(t, s)
	c.see(pods(3))
	c.step()
	list := make([]pod, 9000)
	for i := range list {
		list[i] = pod{fmt.Sprintf("new-%04d", i), fmt.Sprintf("10.1.%d.%d", i>>8, i&255), "ready"}
	}
	c.see(list)
	c.after(10 * time.Second)
	members := c.ring.Status.Members
	if len(members) != 3+plan.MaxBackends || members[3].ID != "new-0000" || members[len(members)-1].ID != "new-4095" {
		t.Errorf("%d clocks, from %v to %v", len(members), members[0], members[len(members)-1])
	}
	c.see(append(pods(3), list...))
	c.after(minute)
	c.want(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec, "9003 backends in all, the limit is 4096")
	if n := len(c.ring.Status.Members); n > 2*plan.MaxBackends {
		t.Errorf("%d clocks", n)
	}
}

// TestDownDoesNotFit: many names that are down make no routing file that is too large, which would freeze addresses as well.
func TestDownDoesNotFit(t *testing.T) {
	s := named()
	s.Algorithm.PointsPerWeight = 1
	c := newCluster(t, s)
	list := make([]pod, plan.MaxBackends)
	for i := range list {
		list[i] = pod{fmt.Sprintf("edge-cache-production-eu-central-1-storage-pool-large-%04d", i), fmt.Sprintf("10.244.%d.%d", i>>8, i&255), "ready"}
	}
	c.see(list)
	c.step()
	for i := range 4000 {
		list[i].state = "gone"
	}
	list[4000].address = "10.250.0.1"
	c.see(list)
	c.after(minute)
	c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished", "Held=True/SuddenLoss")
	if file := c.file(); file.Down != nil || file.Addresses[list[4000].name] != "10.250.0.1:8080" {
		t.Errorf("%d down, %s at %s", len(file.Down), list[4000].name, file.Addresses[list[4000].name])
	}
	if down := c.ring.Status.Backends.Down; down != 4000 {
		t.Errorf("the status counts %d down", down)
	}
	for i := range 1000 {
		list[i].state = "ready"
	}
	c.see(list)
	c.after(minute)
	if down := c.file().Down; len(down) != 3000 {
		t.Errorf("%d down, which would fit", len(down))
	}
}
