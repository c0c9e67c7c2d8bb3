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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

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
	c.want(v1alpha1.ConditionBackendsResolved, metav1.ConditionFalse, v1alpha1.ReasonPodNotFound, "pod cache-0 are not known")
	c.want(v1alpha1.ConditionBackendsResolved, metav1.ConditionFalse, v1alpha1.ReasonPodNotFound, "pod cache-2 are not known")
	c.seen.Sources[0].Pods = maps.Clone(known)
	c.seen.Sources[0].Pods["cache-2"] = plan.Pod{}
	c.after(minute)
	c.wantIDs("cache-0", "cache-1", "cache-2")
	c.want(v1alpha1.ConditionBackendsResolved, metav1.ConditionTrue, v1alpha1.ReasonResolved, "")
	// One that goes away is no problem.
	list := pods(3)
	list[2].state = "draining"
	c.see(list)
	c.seen.Sources[0].Pods = known
	c.after(minute)
	c.want(v1alpha1.ConditionBackendsResolved, metav1.ConditionTrue, v1alpha1.ReasonResolved, "")
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
