// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"context"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	loadstatsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// lrsStream is a client that speaks the protocol by hand.
type lrsStream struct {
	t *testing.T
	loadstatsv3.LoadReportingService_StreamLoadStatsClient
}

func openLRS(t *testing.T, at string, node *corev3.Node) *lrsStream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	stream, err := loadstatsv3.NewLoadReportingServiceClient(connect(t, at)).StreamLoadStats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&loadstatsv3.LoadStatsRequest{Node: node}); err != nil {
		t.Fatal(err)
	}
	return &lrsStream{t, stream}
}

// want wants an answer.
func (l *lrsStream) want(interval time.Duration, all bool, clusters ...string) {
	l.t.Helper()
	got, err := l.Recv()
	if err != nil {
		l.t.Fatal(err)
	}
	want := &loadstatsv3.LoadStatsResponse{
		Clusters: clusters, SendAllClusters: all, LoadReportingInterval: durationpb.New(interval), ReportEndpointGranularity: true,
	}
	if !proto.Equal(got, want) {
		l.t.Fatalf("got %v; want %v", got, want)
	}
}

// TestAsksForWhatIsWatched: an Envoy is asked for the policies that it watches and that want reports, as that changes; gRPC for all.
func TestAsksForWhatIsWatched(t *testing.T) {
	s, at := start(t, Options{})
	with := func(policy string, version int64, interval time.Duration) {
		set(t, s, Assignment{Policy: policy, Version: version, Endpoints: fleet(1, 1), ReportInterval: interval})
	}
	with("shop/a", 1, 10*time.Second)
	with("shop/b", 1, 5*time.Second)
	with("shop/silent", 1, 0)
	node := nodeOf("envoy", "", "envoy")
	node.ClientFeatures = []string{sendAllFeature}
	lrs := openLRS(t, at, node)
	stream := openSotw(t, at)
	watch := func(names ...string) {
		stream.ask(node, resource.EndpointType, names...)
		if len(names) > 0 {
			stream.next(resource.EndpointType)
		}
	}
	watch("shop/early")
	with("shop/early", 1, 30*time.Second)
	lrs.want(30*time.Second, false, "shop/early")
	watch("shop/a", "shop/silent")
	lrs.want(10*time.Second, false, "shop/a")
	watch("shop/a", "shop/silent", "shop/b")
	lrs.want(5*time.Second, false, "shop/a", "shop/b")
	with("shop/b", 2, 0)
	lrs.want(10*time.Second, false, "shop/a")
	with("shop/silent", 2, 20*time.Second)
	lrs.want(10*time.Second, false, "shop/a", "shop/silent")
	s.Delete("shop/a")
	lrs.want(20*time.Second, false, "shop/silent")
	watch()
	lrs.want(20*time.Second, false)

	client := nodeOf("client", "", "gRPC Go")
	client.ClientFeatures = []string{sendAllFeature}
	reports := openLRS(t, at, client)
	other := openSotw(t, at)
	other.ask(client, resource.EndpointType, "shop/silent")
	reports.want(20*time.Second, true)
}

// TestReportsArrive sends reports by hand: one for each half second, beyond which a stream may send ten at a time.
func TestReportsArrive(t *testing.T) {
	var got sink
	registry := prometheus.NewPedanticRegistry()
	s, at := start(t, Options{
		Identifier: "start-1", Sink: got.take, Metrics: registry, now: func() time.Time { return reportedAt },
		Authorize: func(_ context.Context, c Client) error {
			if c.Node == "bad" {
				return status.Error(codes.Unauthenticated, "no token")
			}
			return nil
		},
	})
	set(t, s, Assignment{Policy: "shop/checkout", Endpoints: fleet(2, 10000), ReportInterval: 5 * time.Second})
	lrs := openLRS(t, at, nodeOf("client", "", "gRPC Go"))
	for range reportBurst + 3 {
		if err := lrs.Send(&loadstatsv3.LoadStatsRequest{ClusterStats: []*endpointv3.ClusterStats{statsOf(ofLocality("pod-000000"))}}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "three are refused", func() bool {
		return testutil.ToFloat64(s.metrics.refusedReports.WithLabelValues(string(reasonOften))) == 3
	})
	if reports := got.of("pod-000000", "client/start-1"); len(reports) != reportBurst || !reports[0].End.Equal(reportedAt) {
		t.Errorf("got %d reports: %+v; want %d", len(reports), reports, reportBurst)
	}
	if _, err := openLRS(t, at, nodeOf("bad", "", "")).Recv(); status.Code(err) != codes.Unauthenticated {
		t.Errorf("who may not: got %v", err)
	}
	if _, err := openLRS(t, at, nil).Recv(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("no node: got %v", err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("the linter of metrics says %v, %v", problems, err)
	}
	want := strings.NewReader(`
# HELP ringwright_xds_load_reports_total Load reports of endpoints that were taken.
# TYPE ringwright_xds_load_reports_total counter
ringwright_xds_load_reports_total 10
# HELP ringwright_xds_policies Policies that are served.
# TYPE ringwright_xds_policies gauge
ringwright_xds_policies 1
# HELP ringwright_xds_streams Streams that are open, by kind: sotw, delta, load_reports.
# TYPE ringwright_xds_streams gauge
ringwright_xds_streams{kind="delta"} 0
ringwright_xds_streams{kind="load_reports"} 1
ringwright_xds_streams{kind="sotw"} 0
# HELP ringwright_xds_streams_refused_total Streams that were refused or ended, by reason.
# TYPE ringwright_xds_streams_refused_total counter
ringwright_xds_streams_refused_total{reason="node"} 1
ringwright_xds_streams_refused_total{reason="unauthorized"} 1
`)
	if err := testutil.GatherAndCompare(registry, want, prefix+"load_reports_total", prefix+"policies", prefix+"streams", prefix+"streams_refused_total"); err != nil {
		t.Error(err)
	}
}
