// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	subscription "github.com/envoyproxy/go-control-plane/pkg/server/stream/v3"
)

// TestStateOfTheWorld goes through a client's life: a name that is unknown, that comes, that changes, another one, and what did not change.
func TestStateOfTheWorld(t *testing.T) {
	s, at := start(t, Options{})
	stream := openSotw(t, at)
	stream.ask(nodeOf("envoy", "", "envoy"), resource.EndpointType, "shop/a")
	if r := stream.next(resource.EndpointType); len(r.GetResources()) != 0 || !strings.HasPrefix(r.GetVersionInfo(), "TestStateOfTheWorld/") {
		t.Fatalf("an unknown name was answered with %v", r)
	}
	stream.ask(nil, resource.EndpointType, "shop/a")
	eventually(t, "the stream waits", func() bool { return s.endpoints().views[view{}].linear.NumWatches("shop/a") == 1 })
	set(t, s, one("shop/a", 1, 10000))
	wantLines(t, assignments(t, stream.next(resource.EndpointType).GetResources()), "shop/a 0 zone-a/ 10000: 10.0.0.0=10000")
	set(t, s, one("shop/b", 1, 5))
	stream.ask(nil, resource.EndpointType, "shop/a", "shop/b")
	wantLines(t, assignments(t, stream.next(resource.EndpointType).GetResources()), "shop/b 0 zone-a/ 5: 10.0.0.0=5")
	stream.ask(nil, resource.EndpointType, "shop/a", "shop/b")
	eventually(t, "the stream waits", func() bool { return s.endpoints().views[view{}].linear.NumWatches("shop/b") == 1 })
	named := one("shop/a", 2, 10000)
	named.Endpoints[0].Name = "checkout-0" // Nothing that clients see.
	set(t, s, named)
	set(t, s, one("shop/a", 3, 20000))
	wantLines(t, assignments(t, stream.next(resource.EndpointType).GetResources()), "shop/a 0 zone-a/ 20000: 10.0.0.0=20000")

	stream.ask(nil, resource.ListenerType, "shop/a", "shop/nowhere")
	if r := stream.next(resource.ListenerType); len(r.GetResources()) != 1 {
		t.Fatalf("got %d listeners; want one", len(r.GetResources()))
	}
	stream.ask(nil, resource.ListenerType, "shop/a", "shop/nowhere")
	s.Delete("shop/a")
	if r := stream.next(resource.ListenerType); len(r.GetResources()) != 0 {
		t.Fatalf("got %d listeners of a policy that is gone", len(r.GetResources()))
	}
}

// TestWildcardsStandForNothing: a client is given what it names.
func TestWildcardsStandForNothing(t *testing.T) {
	s, at := start(t, Options{})
	set(t, s, one("shop/a", 1, 1))
	set(t, s, one("shop/b", 1, 1))
	other := openSotw(t, at)
	other.ask(nodeOf("other", "", "envoy"), resource.ClusterType, "shop/b")
	other.next(resource.ClusterType)
	stream := openSotw(t, at)
	stream.ask(nodeOf("envoy", "", "envoy"), resource.ClusterType)
	if r := stream.next(resource.ClusterType); len(r.GetResources()) != 0 {
		t.Errorf("all clusters: got %d", len(r.GetResources()))
	}
	stream.ask(nil, resource.ClusterType, "*", "shop/a")
	if r := stream.next(resource.ClusterType); len(r.GetResources()) != 1 {
		t.Errorf("all clusters and one by name: got %d", len(r.GetResources()))
	}
	d := openDelta(t, at)
	d.ask(&discoveryv3.DeltaDiscoveryRequest{Node: nodeOf("envoy", "", "envoy"), TypeUrl: resource.ClusterType, ResourceNamesSubscribe: []string{"*"}})
	if r := d.next(); len(r.GetResources()) != 0 {
		t.Errorf("all clusters, incrementally: got %d", len(r.GetResources()))
	}
}

// TestIncrementsHaveWhatChanged: of two policies that a client watches it is sent the one that changed, and nothing that it has already when
// it comes to another server.
func TestIncrementsHaveWhatChanged(t *testing.T) {
	s, at := start(t, Options{Identifier: "one"})
	other, otherAt := start(t, Options{Identifier: "two"})
	for _, server := range []*Server{s, other} {
		set(t, server, one("shop/a", 1, 1))
		set(t, server, one("shop/b", 1, 1))
	}
	node := nodeOf("envoy", "", "envoy")
	d := openDelta(t, at)
	d.ask(&discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: resource.EndpointType, ResourceNamesSubscribe: []string{"shop/a", "shop/b"}})
	known := make(map[string]string)
	ack := func(r *discoveryv3.DeltaDiscoveryResponse) (names []string) {
		for _, resource := range r.GetResources() {
			known[resource.GetName()] = resource.GetVersion()
			names = append(names, resource.GetName())
		}
		d.ask(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType, ResponseNonce: r.GetNonce()})
		slices.Sort(names)
		return append(names, r.GetRemovedResources()...)
	}
	wantLines(t, ack(d.next()), "shop/a", "shop/b")
	set(t, s, one("shop/b", 2, 2))
	wantLines(t, ack(d.next()), "shop/b")
	s.Delete("shop/a")
	wantLines(t, ack(d.next()), "shop/a")

	again := openDelta(t, otherAt)
	again.ask(&discoveryv3.DeltaDiscoveryRequest{
		Node: node, TypeUrl: resource.EndpointType, ResourceNamesSubscribe: []string{"shop/a", "shop/b"}, InitialResourceVersions: known,
	})
	d = again
	wantLines(t, ack(again.next()), "shop/b")
}

// TestOnlyWhatIsWatchedIsMade, and it is dropped by the second sweep after that.
func TestOnlyWhatIsWatchedIsMade(t *testing.T) {
	s, at := start(t, Options{})
	for i := range 1000 {
		set(t, s, one(fmt.Sprintf("shop/p%d", i), 1, 1))
	}
	count := func() (all int) {
		for _, c := range s.caches {
			resources, unknown := c.count()
			all += resources + unknown
		}
		return all
	}
	if n := count(); n != 0 {
		t.Fatalf("%d resources are held for nobody", n)
	}
	stream := openSotw(t, at)
	stream.ask(nodeOf("envoy", "zone-a", "envoy"), resource.EndpointType, "shop/p7", "shop/unknown")
	stream.next(resource.EndpointType)
	s.sweep()
	s.sweep()
	if s.find("shop/p7").empty() {
		t.Fatal("what is watched is made anew each time")
	}
	if n := count(); n != 2 {
		t.Fatalf("%d names are held; want the two that are watched", n)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stream ends", func() bool { return s.streams.count()[sotw] == 0 })
	if n := count(); n != 1 {
		t.Errorf("%d names are held; the unknown one is forgotten at once", n)
	}
	s.sweep()
	s.sweep()
	if n := count(); n != 0 || len(s.endpoints().views) != 0 || len(s.streams.watched) != 0 || len(s.streams.open) != 0 || !s.find("shop/p7").empty() {
		t.Errorf("%d names, %d views, %d nodes and %d streams are held after all have gone", n, len(s.endpoints().views), len(s.streams.watched), len(s.streams.open))
	}
}

// TestEncodesOnce compares the memory of what two clients are sent.
func TestEncodesOnce(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	set(t, s, Assignment{Policy: "shop/a", Endpoints: fleet(1000, 1)})
	endpoints := s.endpoints()
	var sent [4][]byte
	for i, name := range []string{"first", "second"} {
		node := nodeOf(name, "", "envoy")
		out := make(chan cache.Response, 1)
		if _, err := endpoints.CreateWatch(&cache.Request{Node: node, TypeUrl: resource.EndpointType},
			new(subscription.NewSotwSubscription([]string{"shop/a"}, false)), out); err != nil {
			t.Fatal(err)
		}
		response, err := (<-out).GetDiscoveryResponse()
		if err != nil {
			t.Fatal(err)
		}
		sent[i] = response.GetResources()[0].GetValue()
		increments := make(chan cache.DeltaResponse, 1)
		if _, err := endpoints.CreateDeltaWatch(&cache.DeltaRequest{Node: node, TypeUrl: resource.EndpointType},
			new(subscription.NewDeltaSubscription([]string{"shop/a"}, nil, nil, false)), increments); err != nil {
			t.Fatal(err)
		}
		increment, err := (<-increments).GetDeltaDiscoveryResponse()
		if err != nil {
			t.Fatal(err)
		}
		sent[2+i] = increment.GetResources()[0].GetResource().GetValue()
	}
	for i := range sent {
		if &sent[i][0] != &sent[0][0] {
			t.Errorf("client %d was sent bytes of its own", i)
		}
	}
}
