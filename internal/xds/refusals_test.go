// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	subscription "github.com/envoyproxy/go-control-plane/pkg/server/stream/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

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
	if len(s.endpoints().views[view{}].names) != 1 {
		t.Errorf("names are left of streams that were refused: %v", s.endpoints().views[view{}].names)
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
	eventually(t, "the stream waits", func() bool { return s.endpoints().views[view{zone: "zone-a"}].linear.NumWatches("shop/a") == 1 })
	set(t, s, a)
	wantLines(t, assignments(t, stream.next(resource.EndpointType).GetResources()), "shop/a 0 zone-a/ 9: 10.0.0.0=9; 0 zone-b/ 9: 10.0.0.1=9")
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

// TestZonesAreBounded: clients may say that they are anywhere.
func TestZonesAreBounded(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	watch := func(zone string) error {
		_, err := s.endpoints().CreateWatch(&cache.Request{Node: nodeOf("envoy", zone, "envoy"), TypeUrl: resource.EndpointType},
			new(subscription.NewSotwSubscription([]string{"shop/a"}, false)), make(chan cache.Response, 1))
		return err
	}
	for i := range maxViews {
		if err := watch(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := watch("another"); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one more zone: got %v", err)
	}
	if err := watch("0"); err != nil {
		t.Errorf("a zone that is there: %v", err)
	}
	if got := viewOf(nodeOf("envoy", strings.Repeat("x", 64), "")); got != (view{}) {
		t.Errorf("a zone of 64 bytes is %q", got.zone)
	}
}
