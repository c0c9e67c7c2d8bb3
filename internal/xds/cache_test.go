// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	subscription "github.com/envoyproxy/go-control-plane/pkg/server/stream/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// connect returns a connection to a server.
func connect(t *testing.T, at string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

func nodeOf(id, zone, agent string) *corev3.Node {
	return &corev3.Node{Id: id, Locality: &corev3.Locality{Zone: zone}, UserAgentName: agent}
}

// sotwStream is a client that speaks the protocol by hand.
type sotwStream struct {
	t *testing.T
	discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	last map[string]*discoveryv3.DiscoveryResponse
}

func openSotw(t *testing.T, at string) *sotwStream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(connect(t, at)).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &sotwStream{t, stream, make(map[string]*discoveryv3.DiscoveryResponse)}
}

// ask sends a request, which acknowledges what came last.
func (s *sotwStream) ask(node *corev3.Node, typeURL string, names ...string) {
	s.t.Helper()
	last := s.last[typeURL]
	if err := s.Send(&discoveryv3.DiscoveryRequest{
		Node: node, TypeUrl: typeURL, ResourceNames: names, VersionInfo: last.GetVersionInfo(), ResponseNonce: last.GetNonce(),
	}); err != nil {
		s.t.Fatal(err)
	}
}

// next returns the next answer, which must be of the type.
func (s *sotwStream) next(typeURL string) *discoveryv3.DiscoveryResponse {
	s.t.Helper()
	r, err := s.Recv()
	if err != nil {
		s.t.Fatal(err)
	}
	if r.GetTypeUrl() != typeURL {
		s.t.Fatalf("got an answer of type %s; want %s", r.GetTypeUrl(), typeURL)
	}
	s.last[typeURL] = r
	return r
}

// assignments decodes endpoints.
func assignments(t *testing.T, resources []*anypb.Any) []string {
	t.Helper()
	var lines []string
	for _, r := range resources {
		a := &endpointv3.ClusterLoadAssignment{}
		if err := r.UnmarshalTo(a); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, a.GetClusterName()+" "+strings.Join(render(a), "; "))
	}
	slices.Sort(lines)
	return lines
}

func one(policy string, version int64, weight uint32) Assignment {
	return Assignment{Policy: policy, Version: version, Endpoints: fleet(1, weight)}
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got %q; want %q", got, want)
	}
}

// TestStateOfTheWorld goes through a client's life: a name that is unknown, that comes, that changes, another one, and what did not change.
func TestStateOfTheWorld(t *testing.T) {
	s, at := start(t, Options{})
	stream := openSotw(t, at)
	stream.ask(nodeOf("envoy", "", "envoy"), resource.EndpointType, "shop/a")
	if r := stream.next(resource.EndpointType); len(r.GetResources()) != 0 || !strings.HasPrefix(r.GetVersionInfo(), "TestStateOfTheWorld/") {
		t.Fatalf("an unknown name was answered with %v", r)
	}
	stream.ask(nil, resource.EndpointType, "shop/a")
	eventually(t, "the stream waits", func() bool { return s.caches[1].views[view{}].linear.NumWatches("shop/a") == 1 })
	set(t, s, one("shop/a", 1, 10000))
	wantLines(t, assignments(t, stream.next(resource.EndpointType).GetResources()), "shop/a 0 zone-a/ 10000: 10.0.0.0=10000")
	set(t, s, one("shop/b", 1, 5))
	stream.ask(nil, resource.EndpointType, "shop/a", "shop/b")
	wantLines(t, assignments(t, stream.next(resource.EndpointType).GetResources()), "shop/b 0 zone-a/ 5: 10.0.0.0=5")
	stream.ask(nil, resource.EndpointType, "shop/a", "shop/b")
	set(t, s, one("shop/a", 2, 10000)) // Nothing that clients see.
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

type deltaStream struct {
	t *testing.T
	discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
}

func openDelta(t *testing.T, at string) *deltaStream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(connect(t, at)).DeltaAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &deltaStream{t, stream}
}

func (d *deltaStream) ask(r *discoveryv3.DeltaDiscoveryRequest) {
	d.t.Helper()
	if err := d.Send(r); err != nil {
		d.t.Fatal(err)
	}
}

func (d *deltaStream) next() *discoveryv3.DeltaDiscoveryResponse {
	d.t.Helper()
	r, err := d.Recv()
	if err != nil {
		d.t.Fatal(err)
	}
	return r
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
	if n := count(); n != 0 || len(s.caches[1].views) != 0 || len(s.streams.watched) != 0 || len(s.streams.open) != 0 {
		t.Errorf("%d names, %d views, %d nodes and %d streams are held after all have gone", n, len(s.caches[1].views), len(s.streams.watched), len(s.streams.open))
	}
}

func TestSetRefuses(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	set(t, s, Assignment{Policy: "shop/a", Epoch: 2, Version: 5})
	for _, c := range []struct{ epoch, version int64 }{{1, 9}, {2, 4}} {
		var stale *StaleError
		if err := s.Set(Assignment{Policy: "shop/a", Epoch: c.epoch, Version: c.version}); !errors.As(err, &stale) || stale.ServedEpoch != 2 || stale.ServedVersion != 5 {
			t.Errorf("epoch %d, version %d: got %v", c.epoch, c.version, err)
		}
	}
	for _, c := range []struct{ epoch, version int64 }{{2, 5}, {3, 1}} {
		if err := s.Set(Assignment{Policy: "shop/a", Epoch: c.epoch, Version: c.version}); err != nil {
			t.Errorf("epoch %d, version %d: %v", c.epoch, c.version, err)
		}
	}
	good := Endpoint{ID: "a", Address: "10.0.0.1", Port: 80, Weight: 1}
	with := func(change func(*Endpoint)) Assignment {
		e := good
		change(&e)
		return Assignment{Policy: "shop/b", Endpoints: []Endpoint{good, e}}
	}
	other := func(e *Endpoint) { e.ID, e.Address = "b", "10.0.0.2" }
	rule := func(rules ...v1alpha1.LocalityRule) Assignment { return Assignment{Policy: "shop/b", Locality: rules} }
	for want, a := range map[string]Assignment{
		`policy must be namespace/name; got "shop"`:       {Policy: "shop"},
		`policy must be namespace/name; got "a/b/c"`:      {Policy: "a/b/c"},
		`got "a/\xff" and ""`:                             {Policy: "a/\xff"},
		`got "Sometimes"`:                                 {Policy: "shop/b", Mode: "Sometimes"},
		"must be at least 0; got -1ns":                    {Policy: "shop/b", ReportInterval: -1},
		"at most 100000 endpoints; got 100001":            {Policy: "shop/b", Endpoints: make([]Endpoint, MaxEndpoints+1)},
		`an endpoint must have an ID`:                     with(func(e *Endpoint) { e.ID = "" }),
		`must be UTF-8; got "a\xff"`:                      with(func(e *Endpoint) { e.ID = "a\xff" }),
		`the IDs of endpoints must differ; got "a" again`: with(func(e *Endpoint) { e.Port = 81 }),
		`a and b have 10.0.0.1:80`:                        with(func(e *Endpoint) { e.ID, e.Address = "b", "::ffff:10.0.0.1" }),
		`without a zone; got "web.example"`:               with(func(e *Endpoint) { other(e); e.Address = "web.example" }),
		`without a zone; got "fe80::1%eth0"`:              with(func(e *Endpoint) { other(e); e.Address = "fe80::1%eth0" }),
		"from 1 to 65535; got 0":                          with(func(e *Endpoint) { other(e); e.Port = 0 }),
		"from 1 to 65535; got 65536":                      with(func(e *Endpoint) { other(e); e.Port = 65536 }),
		"weight of endpoint b must be at least 1":         with(func(e *Endpoint) { other(e); e.Weight = 0 }),
		`got "zone-a" again`:                              rule(v1alpha1.LocalityRule{From: "zone-a"}, v1alpha1.LocalityRule{From: "zone-a"}),
		"to[zone-b] must be from 1 to 10000; got 0":       rule(v1alpha1.LocalityRule{To: map[string]v1alpha1.ZoneShare{"zone-b": 0}}),
		"to[zone-b] must be from 1 to 10000; got 10001":   rule(v1alpha1.LocalityRule{To: map[string]v1alpha1.ZoneShare{"zone-b": 10001}}),
	} {
		if err := s.Set(a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %s", err, want)
		}
	}
	if s.find("shop/b") != nil {
		t.Error("what was refused is served")
	}
}

func TestStreamsAreRefused(t *testing.T) {
	denied := errors.New("no")
	s, at := start(t, Options{MaxStreams: 2, MaxNames: 2, Authorize: func(_ context.Context, c Client) error {
		if c != (Client{Node: "bad", Zone: "zone-a", UserAgent: "envoy"}) {
			return nil
		}
		return denied
	}})
	for name, c := range map[string]struct {
		node    *corev3.Node
		typeURL string
		names   []string
		want    codes.Code
	}{
		"no node":        {nil, resource.EndpointType, nil, codes.InvalidArgument},
		"no ID":          {nodeOf("", "", ""), resource.EndpointType, nil, codes.InvalidArgument},
		"a long ID":      {nodeOf(strings.Repeat("x", 254), "", ""), resource.EndpointType, nil, codes.InvalidArgument},
		"another type":   {nodeOf("envoy", "", ""), resource.SecretType, nil, codes.InvalidArgument},
		"no type":        {nodeOf("envoy", "", ""), "", nil, codes.InvalidArgument},
		"unauthorized":   {nodeOf("bad", "zone-a", "envoy"), resource.EndpointType, nil, codes.PermissionDenied},
		"too many names": {nodeOf("envoy", "", ""), resource.EndpointType, []string{"a/a", "a/b", "a/c"}, codes.ResourceExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			stream := openSotw(t, at)
			stream.ask(c.node, c.typeURL, c.names...)
			if _, err := stream.Recv(); status.Code(err) != c.want {
				t.Errorf("state of the world: got %v; want %s", err, c.want)
			}
			d := openDelta(t, at)
			d.ask(&discoveryv3.DeltaDiscoveryRequest{Node: c.node, TypeUrl: c.typeURL, ResourceNamesSubscribe: c.names})
			if _, err := d.Recv(); status.Code(err) != c.want {
				t.Errorf("incremental: got %v; want %s", err, c.want)
			}
		})
	}
	eventually(t, "streams end", func() bool { return s.streams.count() == [kindCount]int{} })
	for range 2 {
		stream := openSotw(t, at)
		stream.ask(nodeOf("envoy", "", ""), resource.EndpointType, "a/a")
		stream.next(resource.EndpointType)
	}
	if _, err := openSotw(t, at).Recv(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("the third stream: got %v", err)
	}
	if len(s.caches[1].views[view{}].names) != 1 {
		t.Errorf("names are left of streams that were refused: %v", s.caches[1].views[view{}].names)
	}
}

// TestNodeStays: what a client was sent depends on its zone, so it cannot move.
func TestNodeStays(t *testing.T) {
	s, at := start(t, Options{})
	a := one("shop/a", 1, 1)
	a.Locality = []v1alpha1.LocalityRule{{From: "zone-b", To: map[string]v1alpha1.ZoneShare{"zone-b": 1}}}
	set(t, s, a)
	stream := openSotw(t, at)
	stream.ask(nodeOf("envoy", "zone-a", "envoy"), resource.EndpointType, "shop/a")
	stream.next(resource.EndpointType)
	stream.ask(nodeOf("envoy", "zone-b", "envoy"), resource.EndpointType, "shop/a")
	a.Version, a.Endpoints = 2, fleet(2, 9)
	eventually(t, "the stream waits", func() bool { return s.caches[1].views[view{zone: "zone-a"}].linear.NumWatches("shop/a") == 1 })
	set(t, s, a)
	wantLines(t, assignments(t, stream.next(resource.EndpointType).GetResources()), "shop/a 0 zone-a/ 9: 10.0.0.0=9; 0 zone-b/ 9: 10.0.0.1=9")
}

// TestEncodesOnce compares the memory of what two clients are sent.
func TestEncodesOnce(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	set(t, s, Assignment{Policy: "shop/a", Endpoints: fleet(1000, 1)})
	endpoints := s.caches[1]
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

// TestCloseEndsStreams, also those that wait for the first weights.
func TestCloseEndsStreams(t *testing.T) {
	s := New(Options{})
	at, _ := serve(t, s, "127.0.0.1:0")
	waiting, reports := openSotw(t, at), openLRS(t, at, nodeOf("envoy", "", ""))
	waiting.ask(nodeOf("envoy", "", ""), resource.EndpointType, "shop/a")
	eventually(t, "the stream is open", func() bool { return s.streams.count()[sotw] == 1 })
	s.Close()
	if _, err := waiting.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("discovery: got %v", err)
	}
	if _, err := reports.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("load reports: got %v", err)
	}
	if _, err := openSotw(t, at).Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("a stream that comes later: got %v", err)
	}
	synced, at := start(t, Options{Identifier: "synced"})
	open, reporting := openSotw(t, at), openLRS(t, at, nodeOf("envoy", "", ""))
	open.ask(nodeOf("envoy", "", ""), resource.EndpointType, "shop/a")
	open.next(resource.EndpointType)
	eventually(t, "the stream is open", func() bool { return synced.streams.count()[loadReports] == 1 })
	synced.Close()
	if _, err := open.Recv(); err == nil {
		t.Error("discovery goes on")
	}
	if _, err := reporting.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("load reports: got %v", err)
	}
}
