// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net"
	"path"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	agentv1 "github.com/ringwright/ringwright/api/agent/v1"
)

// Bounds of gRPC connections.
const (
	// grpcStreams is how many calls one connection can have at a time.
	grpcStreams = 256
	// grpcPingInterval is after how long without a word a client is asked whether it is still there, and grpcPingTimeout how long it
	// may take to answer.
	grpcPingInterval = time.Minute
	grpcPingTimeout  = 10 * time.Second
	// grpcMinPing is how often a client may ask the same.
	grpcMinPing = 10 * time.Second
	// grpcBuffer is how many bytes are read and written at a time: a lookup has about a hundred.
	grpcBuffer = 4 << 10
	// grpcHeaderBytes bounds the headers of a call.
	grpcHeaderBytes = 16 << 10
)

// grpcServer serves lookups over gRPC.
type grpcServer struct {
	*grpc.Server
	health *health.Server
}

func newGRPCServer(h *handler) *grpcServer {
	s := &grpcServer{
		Server: grpc.NewServer(
			grpc.MaxRecvMsgSize(MaxBodyBytes),
			grpc.MaxConcurrentStreams(grpcStreams),
			grpc.MaxHeaderListSize(grpcHeaderBytes),
			grpc.ConnectionTimeout(readHeaderTimeout),
			grpc.ReadBufferSize(grpcBuffer), grpc.WriteBufferSize(grpcBuffer),
			grpc.KeepaliveParams(keepalive.ServerParameters{
				MaxConnectionIdle: idleTimeout, Time: grpcPingInterval, Timeout: grpcPingTimeout,
			}),
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: grpcMinPing, PermitWithoutStream: true}),
			grpc.UnaryInterceptor(h.measureCall),
		),
		health: health.NewServer(),
	}
	agentv1.RegisterLookupServer(s.Server, &lookupService{handler: h})
	healthv1.RegisterHealthServer(s.Server, s.health)
	s.setServing(h.client.State() != nil)
	return s
}

// setServing says by the health service whether lookups should come here, of the whole server and of the one service.
func (s *grpcServer) setServing(serving bool) {
	now := healthv1.HealthCheckResponse_NOT_SERVING
	if serving {
		now = healthv1.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus("", now)
	s.health.SetServingStatus(agentv1.Lookup_ServiceDesc.ServiceName, now)
}

// Draining says so by the health service, for good.
func (s *grpcServer) Draining() { s.health.Shutdown() }

// Shutdown tells every connection to make no new call, and lets the running ones end, until ctx does.
func (s *grpcServer) Shutdown(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.GracefulStop()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		s.Stop()
		<-ended
		return ctx.Err()
	}
}

// Close ends all calls.
func (s *grpcServer) Close() error {
	s.Stop()
	return nil
}

// Serve answers until the listener is closed.
func (s *grpcServer) Serve(listener net.Listener) error { return s.Server.Serve(listener) }

// measureCall counts a call.
func (h *handler) measureCall(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	started := time.Now()
	response, err := next(ctx, request)
	// The methods are those that are registered: others do not get here.
	h.metrics.grpc.WithLabelValues(path.Base(info.FullMethod), status.Code(err).String()).Observe(time.Since(started).Seconds())
	return response, err
}

// healthReporter makes the health services follow the client: they serve once a ring is loaded. It also tells how long that took.
type healthReporter struct{ handler *handler }

// Run waits for the first ring.
func (r *healthReporter) Run(ctx context.Context) error {
	if r.handler.client.Wait(ctx) != nil { // There will be none any more.
		return nil
	}
	r.handler.metrics.startedUp(time.Since(r.handler.started))
	for _, e := range r.handler.metrics.listeners.endpoints {
		if s, ok := e.server.(*grpcServer); ok {
			s.setServing(true)
		}
	}
	return nil
}

// callError returns a problem as the error of a call.
func callError(code codes.Code, p *problem) error { return status.Error(code, p.text()) }

// codeOf returns the code of a problem of a lookup, by the status that it has over HTTP.
func codeOf(p *problem) codes.Code {
	switch {
	case p.status < 500:
		return codes.InvalidArgument
	case p.Field != "":
		return codes.FailedPrecondition
	default:
		return codes.Internal
	}
}
