// SPDX-License-Identifier: Apache-2.0

package orcareport

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	orcaservicev3 "github.com/cncf/xds/go/xds/service/orca/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	balancerv1 "github.com/ringwright/ringwright/api/balancer/v1"
)

// shop is a service whose calls take some time and CPU.
type shop struct {
	balancerv1.UnimplementedLoadReportsServer
	work func()
}

func (s shop) Push(context.Context, *balancerv1.PushRequest) (*balancerv1.PushResponse, error) {
	s.work()
	return nil, status.Error(codes.Internal, "it fails")
}

// serve runs a server with a reporter, and returns a connection.
func serve(t *testing.T, r *Reporter, work func()) *grpc.ClientConn {
	t.Helper()
	server := grpc.NewServer(r.ServerOptions()...)
	balancerv1.RegisterLoadReportsServer(server, shop{work: work})
	r.Register(server)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return conn
}

// burn uses CPU for a while.
func burn(d time.Duration) func() {
	return func() {
		for end := time.Now().Add(d); time.Now().Before(end); {
		}
	}
}

// TestTrailers has a real client that reads the load of a server from the trailers of its calls.
func TestTrailers(t *testing.T) {
	r := New(Options{Window: 500 * time.Millisecond})
	client := balancerv1.NewLoadReportsClient(serve(t, r, burn(5*time.Millisecond)))
	var last *orcav3.OrcaLoadReport
	for end := time.Now().Add(700 * time.Millisecond); time.Now().Before(end); {
		var trailer metadata.MD
		_, err := client.Push(t.Context(), &balancerv1.PushRequest{}, grpc.Trailer(&trailer))
		if status.Code(err) != codes.Internal {
			t.Fatal(err)
		}
		values := trailer.Get("endpoint-load-metrics-bin")
		if len(values) != 1 {
			t.Fatalf("%d reports", len(values))
		}
		last = &orcav3.OrcaLoadReport{}
		if err := proto.Unmarshal([]byte(values[0]), last); err != nil {
			t.Fatal(err)
		}
	}
	// One call at a time, nearly all the time, and all of them fail.
	if f := last.NamedMetrics[InFlight]; f < 0.3 || f > 1 {
		t.Errorf("in flight %g", f)
	}
	if last.CpuUtilization < 0.01 || last.RpsFractional < 5 || last.Eps < 0.9*last.RpsFractional {
		t.Errorf("%v", last)
	}
}

// TestOutOfBand has three calls in flight, and a real client that reads it on a stream, which is none of them.
func TestOutOfBand(t *testing.T) {
	r := New(Options{MinInterval: 50 * time.Millisecond, MaxStreams: 1})
	release := make(chan struct{})
	conn := serve(t, r, func() { <-release })
	var calls sync.WaitGroup
	for range 3 {
		calls.Go(func() {
			_, _ = balancerv1.NewLoadReportsClient(conn).Push(context.WithoutCancel(t.Context()), &balancerv1.PushRequest{})
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	client := orcaservicev3.NewOpenRcaServiceClient(conn)
	stream, err := client.StreamCoreMetrics(ctx, &orcaservicev3.OrcaLoadReportRequest{ReportInterval: durationpb.New(time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for n := 0; ; n++ {
		report, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if f := report.NamedMetrics[InFlight]; f > 2.99 && f < 3.01 && report.CpuUtilization > 0 {
			if took := time.Since(began); took < time.Duration(n)*40*time.Millisecond {
				t.Errorf("%d reports in %s", n, took)
			}
			break
		}
	}
	second, err := client.StreamCoreMetrics(ctx, &orcaservicev3.OrcaLoadReportRequest{})
	if err == nil {
		_, err = second.Recv()
	}
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a second stream: %v", err)
	}
	close(release)
	calls.Wait()
	if c := r.counter.sum(r.now()); c.requests != 3 || c.errors != 3 {
		t.Errorf("%+v", c)
	}
}

// TestStreamIsOneRequest watches health with a server that counts that.
func TestStreamIsOneRequest(t *testing.T) {
	r := New(Options{Skip: func(string) bool { return false }})
	conn := serve(t, r, func() {})
	stream, err := healthv1.NewHealthClient(conn).Watch(t.Context(), &healthv1.HealthCheckRequest{}) // Which the server does not have.
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Unimplemented {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	load, err := orcaservicev3.NewOpenRcaServiceClient(conn).StreamCoreMetrics(ctx, &orcaservicev3.OrcaLoadReportRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := load.Recv(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := load.Recv(); status.Code(err) != codes.Canceled {
		t.Fatal(err)
	}
	for r.counter.sum(r.now()).requests < 1 {
		<-time.After(time.Millisecond)
	}
	if c := r.counter.sum(r.now()); c.errors != 0 { // That the caller leaves is no error.
		t.Fatalf("%+v", c)
	}
}
