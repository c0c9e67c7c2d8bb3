// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/orca"
	"google.golang.org/grpc/status"
	xdsclient "google.golang.org/grpc/xds"

	"github.com/ringwright/ringwright/internal/loadreport"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// serve starts a server at an address, "127.0.0.1:0" for any, and returns where it is and what stops it.
func serve(t *testing.T, s *Server, address string) (at string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	s.Register(g)
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(listener) }()
	stop = sync.OnceFunc(func() {
		s.Close()
		g.Stop()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(stop)
	return listener.Addr().String(), stop
}

// start makes a server that is synced, and serves it.
func start(t *testing.T, options Options) (*Server, string) {
	t.Helper()
	if options.Identifier == "" {
		options.Identifier = t.Name()
	}
	s := New(options)
	s.Synced()
	at, _ := serve(t, s, "127.0.0.1:0")
	return s, at
}

func set(t *testing.T, s *Server, a Assignment) {
	t.Helper()
	if err := s.Set(a); err != nil {
		t.Fatal(err)
	}
}

// backend is a small gRPC server.
type backend struct {
	healthpb.UnimplementedHealthServer
	address string
	port    int32
	calls   atomic.Int64
	// cpu is what it says that it uses, in thousandths, and qps what it says that it serves; failing has all calls fail.
	cpu, qps atomic.Int64
	failing  atomic.Bool
}

// Check answers, and reports its load.
func (b *backend) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	b.calls.Add(1)
	recorder := orca.CallMetricsRecorderFromContext(ctx)
	recorder.SetCPUUtilization(float64(b.cpu.Load()) / 1000)
	recorder.SetQPS(float64(b.qps.Load()))
	recorder.SetNamedMetric("depth", 7)
	if b.failing.Load() {
		return nil, status.Error(codes.Internal, "failing")
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

func startBackends(t *testing.T, n int) []*backend {
	t.Helper()
	backends := make([]*backend, n)
	for i := range backends {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		b := &backend{address: listener.Addr().String(), port: int32(listener.Addr().(*net.TCPAddr).Port)}
		b.cpu.Store(500)
		b.qps.Store(100)
		g := grpc.NewServer(orca.CallMetricsServerOption(nil))
		healthpb.RegisterHealthServer(g, b)
		ended := make(chan error, 1)
		go func() { ended <- g.Serve(listener) }()
		t.Cleanup(func() {
			g.Stop()
			if err := <-ended; err != nil {
				t.Errorf("Serve: %v", err)
			}
		})
		backends[i] = b
	}
	return backends
}

// endpointsOf makes endpoints with IDs pod-0, pod-1 and so on.
func endpointsOf(backends []*backend, weights ...uint32) []Endpoint {
	endpoints := make([]Endpoint, len(backends))
	for i, b := range backends {
		endpoints[i] = Endpoint{
			ID: fmt.Sprintf("pod-%d", i), Address: "127.0.0.1", Port: b.port, Zone: "zone-a", Weight: weights[i], Ready: true,
		}
	}
	return endpoints
}

// dial returns a gRPC client of shop/checkout that is in a zone.
func dial(t *testing.T, server, node, zone string) healthpb.HealthClient {
	t.Helper()
	builder, err := xdsclient.NewXDSResolverWithConfigForTesting(bootstrap(server, node, zone))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("xds:///shop/checkout",
		grpc.WithResolvers(builder), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithIdleTimeout(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return healthpb.NewHealthClient(conn)
}

func bootstrap(server, node, zone string) []byte {
	return fmt.Appendf(nil, `{
  "xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3"]}],
  "node": {"id": %q, "locality": {"zone": %q}}
}`, server, node, zone)
}

// call sends a request, which may wait for a connection.
func call(t *testing.T, client healthpb.HealthClient) error {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := client.Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
	return err
}

// reached sends requests until each of the backends has had one, and forgets them.
func reached(t *testing.T, client healthpb.HealthClient, backends ...*backend) {
	t.Helper()
	eventually(t, "every backend has a request", func() bool {
		if err := call(t, client); err != nil && status.Code(err) != codes.Internal {
			t.Fatal(err)
		}
		for _, b := range backends {
			if b.calls.Load() == 0 {
				return false
			}
		}
		return true
	})
	for _, b := range backends {
		b.calls.Store(0)
	}
}

// shares sends requests and returns the part of each backend.
func shares(t *testing.T, client healthpb.HealthClient, requests int, backends ...*backend) []float64 {
	t.Helper()
	for _, b := range backends {
		b.calls.Store(0)
	}
	for range requests {
		if err := call(t, client); err != nil {
			t.Fatal(err)
		}
	}
	parts := make([]float64, len(backends))
	for i, b := range backends {
		parts[i] = float64(b.calls.Load()) / float64(requests)
	}
	return parts
}

// sink keeps reports.
type sink struct {
	mu      sync.Mutex
	reports []loadreport.Report
}

func (s *sink) take(_ context.Context, reports []loadreport.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports = append(s.reports, reports...)
}

func (s *sink) all() []loadreport.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]loadreport.Report(nil), s.reports...)
}

// of returns the reports of an endpoint whose reporter begins so.
func (s *sink) of(id, reporter string) []loadreport.Report {
	var found []loadreport.Report
	for _, r := range s.all() {
		if r.Endpoint == id && strings.HasPrefix(r.Reporter, reporter) {
			found = append(found, r)
		}
	}
	return found
}
