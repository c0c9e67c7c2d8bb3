// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	balancerv1 "github.com/ringwright/ringwright/api/balancer/v1"
	"github.com/ringwright/ringwright/internal/authn"
	"github.com/ringwright/ringwright/internal/gateway"
	"github.com/ringwright/ringwright/internal/weights"
	"github.com/ringwright/ringwright/internal/xds"
)

// servers are the sockets of a replica.
type servers struct{ grpc, http net.Listener }

func listen(o Options) (*servers, error) {
	s := &servers{}
	var err error
	if s.grpc, err = net.Listen("tcp", o.Listen); err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	if s.http, err = net.Listen("tcp", o.HTTPListen); err != nil {
		s.close()
		return nil, fmt.Errorf("--http-listen: %w", err)
	}
	return s, nil
}

func (s *servers) close() {
	for _, l := range []net.Listener{s.grpc, s.http} {
		if l != nil {
			_ = l.Close() // Nothing was accepted.
		}
	}
}

// The times of connections: those of clients that are gone are found, and those of the living are moved now and then, so that they spread
// over new replicas.
const (
	keepaliveTime     = 30 * time.Second
	keepaliveTimeout  = 10 * time.Second
	minClientInterval = 10 * time.Second
	maxConnectionAge  = 2 * time.Hour
	ageGrace          = 30 * time.Second
	httpTimeout       = 10 * time.Second
	drainTimeout      = 5 * time.Second
)

// serve returns what answers on both sockets until its context is done.
func (p *parts) serve(secure *security, listening *servers) func(context.Context) error {
	return func(ctx context.Context) error {
		server := grpc.NewServer(append(secure.server(),
			grpc.KeepaliveParams(keepalive.ServerParameters{
				Time: keepaliveTime, Timeout: keepaliveTimeout, MaxConnectionAge: maxConnectionAge, MaxConnectionAgeGrace: ageGrace,
			}),
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minClientInterval, PermitWithoutStream: true}),
			grpc.ChainUnaryInterceptor(p.replicasUnary), grpc.ChainStreamInterceptor(p.replicasStream))...)
		draining := make(chan struct{})
		alive := p.register(server, draining)
		web := &http.Server{
			Handler: p.handler(), ReadTimeout: httpTimeout, WriteTimeout: httpTimeout, MaxHeaderBytes: 16 << 10, TLSConfig: secure.tls(),
		}
		group, groupCtx := errgroup.WithContext(ctx)
		group.Go(func() error { return server.Serve(listening.grpc) })
		group.Go(func() error { return ignoreClosed(serveHTTP(web, listening.http)) })
		group.Go(func() error {
			<-groupCtx.Done()
			alive.Shutdown()
			close(draining)
			p.drain(server)
			shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
			defer cancel()
			return web.Shutdown(shutdown)
		})
		return group.Wait()
	}
}

// drain ends the streams, which the clients open again with another replica, and lets calls come to an end.
func (p *parts) drain(server *grpc.Server) {
	if p.xds != nil {
		p.xds.Close()
	}
	stopped := make(chan struct{})
	go func() { server.GracefulStop(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(drainTimeout):
		server.Stop()
	}
}

func serveHTTP(server *http.Server, l net.Listener) error {
	if server.TLSConfig != nil {
		return server.ServeTLS(l, "", "")
	}
	return server.Serve(l)
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// register adds the services of this replica's roles. Streams end once draining is closed.
func (p *parts) register(server *grpc.Server, draining <-chan struct{}) *health.Server {
	if p.xds != nil {
		p.xds.Register(server)
	}
	if p.o.has(RoleGateway) {
		p.gateway().Register(server)
	}
	if p.o.has(RoleOwner) {
		balancerv1.RegisterReplicasServer(server, &replicas{
			receiver: p.receiver(), announcer: &weights.Announcer{Board: p.own, Done: draining},
		})
	}
	alive := health.NewServer()
	healthv1.RegisterHealthServer(server, alive)
	return alive
}

func (p *parts) gateway() *gateway.Gateway {
	return gateway.New(gateway.Options{Directory: p.directory, Sink: p.router.Route, Authenticator: p.authn, Metrics: p.reports})
}

func (p *parts) receiver() *gateway.Receiver {
	return gateway.NewReceiver(gateway.ReceiverOptions{Users: p.o.Replicas, Store: p.store})
}

func (p *parts) handler() http.Handler {
	mux := http.NewServeMux()
	if p.o.has(RoleGateway) {
		mux.Handle("/v1/load", p.gateway().Handler())
	}
	return mux
}

// replicas answers the other replicas.
type replicas struct {
	balancerv1.UnimplementedReplicasServer
	receiver  *gateway.Receiver
	announcer *weights.Announcer
}

func (r *replicas) Report(ctx context.Context, request *balancerv1.ReportRequest) (*balancerv1.ReportResponse, error) {
	return r.receiver.Report(ctx, request)
}

func (r *replicas) Watch(_ *balancerv1.WatchRequest, stream grpc.ServerStreamingServer[balancerv1.WatchResponse]) error {
	if err := r.receiver.Authorize(stream.Context()); err != nil {
		return err
	}
	return r.announcer.Watch(stream)
}

// replicasPrefix is that of the methods between replicas, the only ones whose callers the interceptors authenticate: pods are
// authenticated by the gateway, and clients by authorizeClient.
const replicasPrefix = "/ringwright.balancer.v1.Replicas/"

func (p *parts) replicasUnary(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if strings.HasPrefix(info.FullMethod, replicasPrefix) {
		return p.authn.Unary(ctx, request, info, next)
	}
	return next(ctx, request)
}

func (p *parts) replicasStream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if strings.HasPrefix(info.FullMethod, replicasPrefix) {
		return p.authn.Stream(server, stream, info, next)
	}
	return next(server, stream)
}

// loadReporting is in the name of the method by which clients report.
const loadReporting = "LoadReportingService"

// authorizeClient lets everybody have weights, and takes the reports of clients that have a token, since weights follow them.
func (p *parts) authorizeClient(ctx context.Context, _ xds.Client) error {
	method, _ := grpc.Method(ctx)
	if p.o.AnonymousLRS || !strings.Contains(method, loadReporting) {
		return nil
	}
	token := ""
	if values := metadata.ValueFromIncomingContext(ctx, "authorization"); len(values) > 0 {
		token, _ = strings.CutPrefix(values[0], "Bearer ")
	}
	if token == "" {
		return status.Error(codes.Unauthenticated, "load reports need a service account token for audience "+p.o.Audience)
	}
	if _, err := p.authn.Authenticate(ctx, token); err != nil {
		if errors.Is(err, authn.ErrUnauthenticated) {
			return status.Error(codes.Unauthenticated, err.Error())
		}
		return status.Error(codes.Unavailable, authn.ErrUnavailable.Error())
	}
	return nil
}
