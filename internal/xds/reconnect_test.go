// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/loadreport"
)

// TestClientsReport takes the reports of two real clients, one of whose backends fails.
func TestClientsReport(t *testing.T) {
	var got sink
	s, at := start(t, Options{Sink: got.take})
	backends := startBackends(t, 2)
	backends[0].cpu.Store(250)
	backends[1].cpu.Store(750)
	backends[1].failing.Store(true)
	set(t, s, Assignment{
		Policy: "shop/checkout", Endpoints: endpointsOf(backends, 10000, 10000), ReportInterval: 100 * time.Millisecond, CustomMetric: "depth",
	})
	first, second := dial(t, at, "first", "zone-a"), dial(t, at, "second", "zone-b")
	for range 100 {
		for _, client := range []healthpb.HealthClient{first, second} {
			if err := call(t, client); err != nil && status.Code(err) != codes.Internal {
				t.Fatal(err)
			}
		}
	}
	eventually(t, "every request is reported once, by who sent it", func() bool {
		for i, b := range backends {
			id, all := fmt.Sprintf("pod-%d", i), 0.0
			for _, r := range got.of(id, "") {
				all += r.Requests
			}
			if all != float64(b.calls.Load()) || len(got.of(id, "first/")) == 0 || len(got.of(id, "second/")) == 0 {
				return false
			}
		}
		return true
	})
	for id, cpu := range map[string]float64{"pod-0": 0.25, "pod-1": 0.75} {
		for _, r := range got.of(id, "") {
			if r.Policy != "shop/checkout" || r.Source != v1alpha1.SourceLRS || r.Window <= 0 || time.Since(r.End) > patience {
				t.Errorf("got the report %+v", r)
			}
			if id == "pod-1" && r.Errors != r.Requests || id == "pod-0" && r.Errors != 0 {
				t.Errorf("%s: %v of %v requests failed", id, r.Errors, r.Requests)
			}
			if !math.IsNaN(r.CPU) && math.Abs(r.CPU-cpu) > 1e-9 || !math.IsNaN(r.Custom) && r.Custom != 7 {
				t.Errorf("%s: got a CPU utilisation of %v and a custom metric of %v; want %v and 7", id, r.CPU, r.Custom, cpu)
			}
		}
	}
	if !slices.ContainsFunc(got.of("pod-0", ""), func(r loadreport.Report) bool { return r.CPU == 0.25 && r.Custom == 7 }) {
		t.Errorf("no report of %+v has the figures of ORCA", got.of("pod-0", ""))
	}
}

// TestClientsOutliveTheServer stops the server: the client goes on with the last weights, and follows new ones from the server that comes.
func TestClientsOutliveTheServer(t *testing.T) {
	backends := startBackends(t, 2)
	old := New(Options{Identifier: "one"})
	old.Synced()
	at, stop := serve(t, old, "127.0.0.1:0")
	set(t, old, Assignment{Policy: "shop/checkout", Epoch: 3, Version: 70, Endpoints: endpointsOf(backends, 4000, 16000)})
	client := dial(t, at, "client", "zone-a")
	reached(t, client, backends...)
	stop()
	near(t, "without a server", shares(t, client, 2000, backends...), 0.2, 0.8)

	next := New(Options{Identifier: "two"})
	if again, _ := serve(t, next, at); again != at {
		t.Fatalf("the server came back at %s, not at %s", again, at)
	}
	eventually(t, "the client comes back", func() bool { return next.streams.count()[sotw] == 1 })
	near(t, "while the server has nothing yet", shares(t, client, 2000, backends...), 0.2, 0.8)
	set(t, next, Assignment{Policy: "shop/checkout", Epoch: 3, Version: 70, Endpoints: endpointsOf(backends, 16000, 4000)})
	next.Synced()
	eventually(t, "the client has the new weights", func() bool { return shares(t, client, 200, backends...)[0] > 0.6 })
	near(t, "with the next server", shares(t, client, 2000, backends...), 0.8, 0.2)
}

// TestClientsComeBeforeThePolicy has a client wait for a policy that comes later, and lose it again.
func TestClientsComeBeforeThePolicy(t *testing.T) {
	backends := startBackends(t, 1)
	s, at := start(t, Options{})
	client := dial(t, at, "client", "zone-a")
	failed := make(chan error, 1)
	go func() { failed <- call(t, client) }()
	eventually(t, "the client asks", func() bool {
		_, unknown := s.caches[len(s.caches)-1].count()
		return unknown == 1
	})
	set(t, s, Assignment{Policy: "shop/checkout", Endpoints: endpointsOf(backends, 10000)})
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	s.Delete("shop/checkout")
	eventually(t, "the client is told", func() bool {
		_, err := client.Check(t.Context(), nil)
		return err != nil
	})
}

// near wants two parts within five standard deviations of a choice by chance.
func near(t *testing.T, when string, got []float64, want ...float64) {
	t.Helper()
	if off := farthest(got, want); off > 0.045 {
		t.Errorf("%s: the backends had %.3f of the requests; want %.3f", when, got, want)
	}
}
