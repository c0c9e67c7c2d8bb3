// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/ringwright/ringwright/pkg/orcareport"
)

const (
	// serverWorkers is how many requests a server works on at a time; the others wait.
	serverWorkers = 16
	// slowest is how long a request keeps a worker of a server of speed 1 busy.
	slowest = 48 * time.Millisecond
)

// speeds are those of the servers: of three kinds of hardware.
var speeds = []float64{1, 1, 1, 1.5, 1.5, 1.5, 1.5, 2, 2, 2}

// server is a small gRPC server. It keeps a worker busy with each request for as long as its speed says, and uses next to none of this
// machine's processor, so that the demo does not measure that: what it reports as CPU is the part of the time that its workers were busy.
type server struct {
	healthpb.UnimplementedHealthServer
	name     string
	port     int32
	reporter *orcareport.Reporter
	workers  chan struct{}
	// work is how long a request takes, busy the sum of that, both in nanoseconds.
	work, busy atomic.Int64
	grpc       *grpc.Server
	served     chan error
	// quit ends its reports.
	quit   context.CancelFunc
	pushes sync.WaitGroup
	dead   atomic.Bool
}

// startServer starts one that listens on loopback.
func startServer(name string, speed float64) (*server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{name: name, port: int32(listener.Addr().(*net.TCPAddr).Port), workers: make(chan struct{}, serverWorkers), served: make(chan error, 1)}
	s.setSpeed(speed)
	s.reporter = orcareport.New(orcareport.Options{
		Window: time.Second, CPU: s.used,
		Skip: func(string) bool { return false }, // The requests of the demo are those of the health service, which are not counted otherwise.
	})
	s.grpc = grpc.NewServer(s.reporter.ServerOptions()...)
	healthpb.RegisterHealthServer(s.grpc, s)
	go func() { s.served <- s.grpc.Serve(listener) }()
	return s, nil
}

func (s *server) setSpeed(speed float64) { s.work.Store(int64(float64(slowest) / speed)) }

// used is what its workers were busy for.
func (s *server) used() (time.Duration, float64, bool) {
	return time.Duration(s.busy.Load()), serverWorkers, true
}

// Check answers a request.
func (s *server) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	select {
	case s.workers <- struct{}{}:
		defer func() { <-s.workers }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	work := s.work.Load()
	pause(ctx, time.Duration(work))
	s.busy.Add(work)
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
}

// report has it push its load to the balancer with the token of its pod.
func (s *server) report(ctx context.Context, balancer, tokenFile string) {
	ctx, s.quit = context.WithCancel(ctx)
	s.pushes.Go(func() { _ = s.reporter.Push(ctx, balancer, tokenFile) }) // It ends with the context.
}

// stop ends it at once, in the middle of whatever it answers.
func (s *server) stop() error {
	if s.dead.Swap(true) {
		return nil
	}
	s.grpc.Stop()
	if s.quit != nil {
		s.quit()
		s.pushes.Wait()
	}
	if err := <-s.served; err != nil {
		return fmt.Errorf("server %s ended with %w", s.name, err)
	}
	return nil
}

// describeSpeeds is how many servers there are of which speed, for people.
func describeSpeeds(speeds []float64) string {
	var parts []string
	for i := 0; i < len(speeds); {
		n := 0
		for i+n < len(speeds) && speeds[i+n] == speeds[i] {
			n++
		}
		parts = append(parts, fmt.Sprintf("%d of speed %g", n, speeds[i]))
		i += n
	}
	return strings.Join(parts, ", ")
}
