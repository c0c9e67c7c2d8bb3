// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	loadstatsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	// sendAllFeature is what clients that honour send_all_clusters say of themselves.
	sendAllFeature = "envoy.lrs.supports_send_all_clusters"
	// reportEvery and reportBurst are how often a stream may report: the shortest interval of a policy is a second.
	reportEvery = 500 * time.Millisecond
	reportBurst = 10
)

// loadReporting is the load reporting service.
type loadReporting struct {
	loadstatsv3.UnimplementedLoadReportingServiceServer
	server *Server
	opened atomic.Int64
}

// StreamLoadStats asks a client for reports of what its node watches, and takes them. Nothing is asked for before the node watches a policy
// that wants reports: grpc-go heeds the first answer only.
func (l *loadReporting) StreamLoadStats(stream loadstatsv3.LoadReportingService_StreamLoadStatsServer) error {
	s := l.server
	if err := s.waitUntilSynced(stream.Context()); err != nil {
		return err
	}
	received := make(chan *loadstatsv3.LoadStatsRequest)
	failed := make(chan error, 1)
	ended := make(chan struct{})
	defer close(ended)
	go receive(stream, received, failed, ended)
	var r *reporter
	select {
	case first := <-received:
		var err error
		if r, err = l.reporter(stream.Context(), first.GetNode()); err != nil {
			return err
		}
	case err := <-failed:
		return err
	case <-s.stopped.Done():
		return status.Error(codes.Unavailable, "the server ends")
	}
	changed, closed := s.streams.listen(r.node.GetId(), s.options.MaxStreams)
	if closed == nil {
		return s.refuse("too_many", codes.ResourceExhausted, "there are %d streams of load reports already", s.options.MaxStreams)
	}
	defer closed()
	for {
		select {
		case <-changed:
			if err := r.ask(stream); err != nil {
				return err
			}
		case message := <-received:
			r.take(stream.Context(), message)
		case err := <-failed:
			return err
		case <-s.stopped.Done():
			return status.Error(codes.Unavailable, "the server ends")
		}
	}
}

// receive passes on what comes until the stream ends.
func receive(
	stream loadstatsv3.LoadReportingService_StreamLoadStatsServer, received chan<- *loadstatsv3.LoadStatsRequest, failed chan<- error, ended <-chan struct{},
) {
	for {
		message, err := stream.Recv()
		if err == io.EOF {
			err = nil
		}
		if message == nil {
			failed <- err
			return
		}
		select {
		case received <- message:
		case <-ended:
			return
		}
	}
}

// reporter is a client that reports on one stream.
type reporter struct {
	server *Server
	node   *corev3.Node
	name   string
	limit  *rate.Limiter
	asked  *loadstatsv3.LoadStatsResponse
}

func (l *loadReporting) reporter(ctx context.Context, node *corev3.Node) (*reporter, error) {
	if err := l.server.admit(ctx, node); err != nil {
		return nil, err
	}
	return &reporter{
		server: l.server, node: node, limit: rate.NewLimiter(rate.Every(reportEvery), reportBurst),
		// The requests of several clients add up, and those of one that comes again are not those of before.
		name: fmt.Sprintf("%s/%s%d", node.GetId(), l.server.options.Identifier, l.opened.Add(1)),
	}, nil
}

// ask says what the client is to report, where that has changed.
func (r *reporter) ask(stream loadstatsv3.LoadReportingService_StreamLoadStatsServer) error {
	response := &loadstatsv3.LoadStatsResponse{ReportEndpointGranularity: true}
	var shortest time.Duration
	for _, name := range r.server.streams.names(r.node.GetId()) {
		p := r.server.find(name)
		if p == nil || p.ReportInterval == 0 {
			continue
		}
		response.Clusters = append(response.Clusters, name)
		if shortest == 0 || p.ReportInterval < shortest {
			shortest = p.ReportInterval
		}
	}
	if len(response.Clusters) == 0 && r.asked == nil {
		return nil
	}
	if shortest > 0 {
		response.LoadReportingInterval = durationpb.New(shortest)
	} else {
		response.LoadReportingInterval = r.asked.GetLoadReportingInterval()
	}
	if r.sendsAll() {
		response.SendAllClusters, response.Clusters = true, nil
	}
	if proto.Equal(response, r.asked) {
		return nil
	}
	r.asked = response
	return stream.Send(response)
}

// sendsAll says that the client reports all clusters that have this server for their reports. Only gRPC does so: an Envoy would send all that
// it has, and grpc-go would never report what it comes to watch later.
func (r *reporter) sendsAll() bool {
	return viewOf(r.node).grpc && slices.Contains(r.node.GetClientFeatures(), sendAllFeature)
}

// take hands the reports of a message on.
func (r *reporter) take(ctx context.Context, message *loadstatsv3.LoadStatsRequest) {
	s := r.server
	if len(message.GetClusterStats()) == 0 {
		return
	}
	if !r.limit.AllowN(s.options.now(), 1) {
		s.refuseReport(reasonOften)
		return
	}
	reports := s.reports(message.GetClusterStats(), r.name)
	if len(reports) == 0 {
		return
	}
	s.metrics.reports.Add(float64(len(reports)))
	if s.options.Sink != nil {
		s.options.Sink(ctx, reports)
	}
}

// refuseReport counts a report, or a message, that is dropped.
func (s *Server) refuseReport(why reason) {
	s.metrics.refusedReports.WithLabelValues(string(why)).Inc()
}
