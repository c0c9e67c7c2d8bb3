// SPDX-License-Identifier: Apache-2.0

package orcareport

import (
	"context"
	"time"

	orcaservicev3 "github.com/cncf/xds/go/xds/service/orca/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// trailerKey is what clients look for.
const trailerKey = "endpoint-load-metrics-bin"

// ServerOptions returns the interceptors that count calls, and put reports into their trailers.
func (r *Reporter) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(r.Unary), grpc.ChainStreamInterceptor(r.Stream)}
}

// Unary counts a call. It is one of ServerOptions.
func (r *Reporter) Unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (response any, err error) {
	if r.options.Skip(info.FullMethod) {
		return next(ctx, request)
	}
	s, returned := r.counter.begin(r.now()), false
	defer func() { // A handler that panics has failed.
		s.end(r.now(), !returned || err != nil && r.options.IsError(status.Code(err)))
	}()
	response, err = next(ctx, request)
	returned = true
	if !r.options.NoTrailers {
		_ = grpc.SetTrailer(ctx, r.trailers()) // It fails where there is no server, and nobody to tell.
	}
	return response, err
}

// Stream counts a stream as one request for as long as it is open. It is one of ServerOptions.
func (r *Reporter) Stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	if r.options.Skip(info.FullMethod) {
		return next(server, stream)
	}
	s, returned := r.counter.begin(r.now()), false
	defer func() {
		s.end(r.now(), !returned || err != nil && r.options.IsError(status.Code(err)))
	}()
	err = next(server, stream)
	returned = true
	if !r.options.NoTrailers {
		stream.SetTrailer(r.trailers())
	}
	return err
}

// trailers returns the report of the last window, encoded. One of the calls makes it anew, and those beside it use the last one.
func (r *Reporter) trailers() metadata.MD {
	now, at := r.now(), r.refreshAt.Load()
	if now >= at && r.refreshAt.CompareAndSwap(at, now+int64(r.options.Window/refreshes)) {
		report, _ := r.Report()
		if encoded, err := proto.Marshal(report); err == nil {
			r.trailer.Store(&metadata.MD{trailerKey: {string(encoded)}})
		}
	}
	if last := r.trailer.Load(); last != nil {
		return *last
	}
	return nil
}

// Register registers the service xds.service.orca.v3.OpenRcaService. Unlike grpc-go's own, it reports as often as it is asked to, down to
// Options.MinInterval.
func (r *Reporter) Register(server grpc.ServiceRegistrar) {
	orcaservicev3.RegisterOpenRcaServiceServer(server, service{Reporter: r})
}

type service struct {
	orcaservicev3.UnimplementedOpenRcaServiceServer
	*Reporter
}

// StreamCoreMetrics sends the load of the last window, and then after each interval that of the interval.
func (s service) StreamCoreMetrics(request *orcaservicev3.OrcaLoadReportRequest, stream orcaservicev3.OpenRcaService_StreamCoreMetricsServer) error {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return status.Errorf(codes.ResourceExhausted, "there are %d streams of load reports already", cap(s.streams))
	}
	interval := s.options.Window
	if asked := request.GetReportInterval(); asked != nil {
		interval = asked.AsDuration()
	}
	ticker := time.NewTicker(max(interval, s.options.MinInterval))
	defer ticker.Stop()
	last := s.total()
	report, _ := s.Report()
	for {
		if err := stream.Send(report); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		case <-ticker.C:
		}
		now := s.total()
		report, _ = s.since(last, now)
		last = now
	}
}
