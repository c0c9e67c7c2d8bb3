// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	loadstatsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/loadreport"
)

var reportedAt = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// reporting returns a server with two endpoints of shop/checkout, pod-000000 at 10.0.0.0 and pod-000001 at 10.0.0.1.
func reporting(t *testing.T) *Server {
	t.Helper()
	s := New(Options{now: func() time.Time { return reportedAt }})
	t.Cleanup(s.Close)
	set(t, s, Assignment{Policy: "shop/checkout", Endpoints: fleet(2, 10000), ReportInterval: 5 * time.Second, CustomMetric: "depth"})
	return s
}

func ofLocality(id string) *endpointv3.UpstreamLocalityStats {
	return &endpointv3.UpstreamLocalityStats{
		Locality: &corev3.Locality{Zone: "zone-a", SubZone: id}, TotalIssuedRequests: 100, TotalSuccessfulRequests: 90, TotalErrorRequests: 5, TotalRequestsInProgress: 8,
	}
}

func metric(name string, requests uint64, total float64) *endpointv3.EndpointLoadMetricStats {
	return &endpointv3.EndpointLoadMetricStats{MetricName: name, NumRequestsFinishedWithMetric: requests, TotalMetricValue: total}
}

func statsOf(localities ...*endpointv3.UpstreamLocalityStats) *endpointv3.ClusterStats {
	return &endpointv3.ClusterStats{ClusterName: "shop/checkout", UpstreamLocalityStats: localities, LoadReportInterval: durationpb.New(5 * time.Second)}
}

func TestReports(t *testing.T) {
	base := loadreport.Report{
		Policy: "shop/checkout", Source: v1alpha1.SourceLRS, Reporter: "client/1", End: reportedAt, Window: 5 * time.Second,
		Endpoint: "pod-000000", Requests: 100, Errors: 5, InFlight: 8, CPU: math.NaN(), Custom: math.NaN(),
	}
	with := func(change func(*loadreport.Report)) loadreport.Report {
		r := base
		change(&r)
		return r
	}
	orca := ofLocality("pod-000000")
	orca.CpuUtilization = &endpointv3.UnnamedEndpointLoadMetricStats{NumRequestsFinishedWithMetric: 4, TotalMetricValue: 2}
	orca.LoadMetricStats = []*endpointv3.EndpointLoadMetricStats{metric("named_metrics.depth", 2, 14), metric("named_metrics.other", 1, math.NaN())}
	old := ofLocality("pod-000000")
	old.TotalIssuedRequests = 0
	idle := ofLocality("pod-000000")
	idle.LoadMetricStats = []*endpointv3.EndpointLoadMetricStats{metric("cpu_utilization", 0, 0)}
	envoy := &endpointv3.UpstreamLocalityStats{Locality: &corev3.Locality{Zone: "zone-a"}, UpstreamEndpointStats: []*endpointv3.UpstreamEndpointStats{
		{
			Address: socket("::ffff:10.0.0.0", 8080), TotalIssuedRequests: 100, TotalErrorRequests: 5, TotalRequestsInProgress: 8,
			LoadMetricStats: []*endpointv3.EndpointLoadMetricStats{metric("cpu_utilization", 10, 9), metric("utilization.depth", 1, 3)},
		},
		{Address: socket("10.0.0.1", 8080), TotalIssuedRequests: 100, TotalErrorRequests: 5, TotalRequestsInProgress: 8},
	}}
	named := statsOf(envoy)
	named.ClusterName, named.ClusterServiceName = "checkout_v2", "shop/checkout"
	second := with(func(r *loadreport.Report) { r.Endpoint = "pod-000001" })
	for name, c := range map[string]struct {
		stats *endpointv3.ClusterStats
		want  []loadreport.Report
	}{
		"gRPC, without ORCA": {statsOf(ofLocality("pod-000000")), []loadreport.Report{base}},
		"gRPC":               {statsOf(orca), []loadreport.Report{with(func(r *loadreport.Report) { r.CPU, r.Custom = 0.5, 7 })}},
		"an old gRPC":        {statsOf(old), []loadreport.Report{with(func(r *loadreport.Report) { r.Requests = 95 })}},
		"no request had it":  {statsOf(idle), []loadreport.Report{base}},
		"Envoy": {statsOf(envoy), []loadreport.Report{
			with(func(r *loadreport.Report) { r.CPU, r.Custom = 0.9, 3 }), second,
		}},
		"Envoy, its own cluster": {named, []loadreport.Report{
			with(func(r *loadreport.Report) { r.CPU, r.Custom, r.Reporter = 0.9, 3, "client/1/checkout_v2" }),
			with(func(r *loadreport.Report) { r.Endpoint, r.Reporter = "pod-000001", "client/1/checkout_v2" }),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := reporting(t).reports([]*endpointv3.ClusterStats{c.stats}, "client/1")
			if diff := cmp.Diff(c.want, got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func socket(address string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

// TestReportsAreRefused has one report that is wrong beside one that is right, which counts.
func TestReportsAreRefused(t *testing.T) {
	stats := func(change func(*endpointv3.UpstreamLocalityStats)) *endpointv3.ClusterStats {
		l := ofLocality("pod-000000")
		change(l)
		return statsOf(l, ofLocality("pod-000001"))
	}
	metrics := func(m ...*endpointv3.EndpointLoadMetricStats) *endpointv3.ClusterStats {
		return stats(func(l *endpointv3.UpstreamLocalityStats) { l.LoadMetricStats = m })
	}
	endpoint := func(address string, port uint32) *endpointv3.ClusterStats {
		return stats(func(l *endpointv3.UpstreamLocalityStats) {
			l.UpstreamEndpointStats = []*endpointv3.UpstreamEndpointStats{{Address: socket(address, port)}}
		})
	}
	cluster := func(change func(*endpointv3.ClusterStats)) *endpointv3.ClusterStats {
		c := statsOf(ofLocality("pod-000000"))
		change(c)
		return c
	}
	for name, c := range map[string]struct {
		stats *endpointv3.ClusterStats
		why   reason
		left  int
	}{
		"another policy": {cluster(func(c *endpointv3.ClusterStats) { c.ClusterName = "shop/other" }), reasonPolicy, 0},
		"a long name": {cluster(func(c *endpointv3.ClusterStats) {
			c.ClusterName, c.ClusterServiceName = strings.Repeat("x", 318), "shop/checkout"
		}), reasonName, 0},
		"no window":          {cluster(func(c *endpointv3.ClusterStats) { c.LoadReportInterval = nil }), reasonWindow, 0},
		"a negative window":  {cluster(func(c *endpointv3.ClusterStats) { c.LoadReportInterval = durationpb.New(-1) }), reasonWindow, 0},
		"a long window":      {cluster(func(c *endpointv3.ClusterStats) { c.LoadReportInterval = durationpb.New(time.Hour + 1) }), reasonWindow, 0},
		"an invalid window":  {cluster(func(c *endpointv3.ClusterStats) { c.LoadReportInterval = &durationpb.Duration{Seconds: math.MaxInt64} }), reasonWindow, 0},
		"of a zone":          {stats(func(l *endpointv3.UpstreamLocalityStats) { l.Locality.SubZone = "" }), reasonLocality, 1},
		"no locality":        {stats(func(l *endpointv3.UpstreamLocalityStats) { l.Locality = nil }), reasonLocality, 1},
		"another endpoint":   {stats(func(l *endpointv3.UpstreamLocalityStats) { l.Locality.SubZone = "pod-9" }), reasonEndpoint, 1},
		"twice":              {stats(func(l *endpointv3.UpstreamLocalityStats) { l.Locality.SubZone = "pod-000001" }), reasonTwice, 1},
		"another address":    {endpoint("10.0.0.9", 8080), reasonEndpoint, 1},
		"another port":       {endpoint("10.0.0.0", 8080+1<<16), reasonEndpoint, 1},
		"a host name":        {endpoint("web.example", 8080), reasonEndpoint, 1},
		"many requests":      {stats(func(l *endpointv3.UpstreamLocalityStats) { l.TotalIssuedRequests = maxRequests + 1 }), reasonLarge, 1},
		"a sum that is huge": {stats(func(l *endpointv3.UpstreamLocalityStats) { l.TotalErrorRequests = math.MaxUint64 }), reasonLarge, 1},
		"many in flight":     {stats(func(l *endpointv3.UpstreamLocalityStats) { l.TotalRequestsInProgress = maxRequests + 1 }), reasonLarge, 1},
		"no number":          {metrics(metric("cpu_utilization", 1, math.NaN())), reasonNotNumber, 1},
		"no number, no one":  {metrics(metric("cpu_utilization", 0, math.NaN())), reasonNotNumber, 1},
		"negative":           {metrics(metric("cpu_utilization", 1, -0.1)), reasonNegative, 1},
		"negative infinity":  {metrics(metric("named_metrics.depth", 1, math.Inf(-1))), reasonNegative, 1},
		"large":              {metrics(metric("cpu_utilization", 1, maxCPU+0.1)), reasonLarge, 1},
		"infinite":           {metrics(metric("named_metrics.depth", 1, math.Inf(1))), reasonLarge, 1},
		"large, gRPC": {stats(func(l *endpointv3.UpstreamLocalityStats) {
			l.CpuUtilization = &endpointv3.UnnamedEndpointLoadMetricStats{NumRequestsFinishedWithMetric: 2, TotalMetricValue: 2*maxCPU + 1}
		}), reasonLarge, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := reporting(t)
			got := s.reports([]*endpointv3.ClusterStats{c.stats}, "client/1")
			if len(got) != c.left || testutil.ToFloat64(s.metrics.refusedReports.WithLabelValues(string(c.why))) != 1 {
				t.Errorf("%d reports are left, %d reasons; want %d and one for %s", len(got), testutil.CollectAndCount(s.metrics.refusedReports), c.left, c.why)
			}
		})
	}
}

// TestReportsHaveBounds sends as much as fits, and one more.
func TestReportsHaveBounds(t *testing.T) {
	s := reporting(t)
	set(t, s, Assignment{Policy: "shop/large", Endpoints: fleet(maxReports, 1)})
	all := &endpointv3.ClusterStats{ClusterName: "shop/large", LoadReportInterval: durationpb.New(time.Second)}
	for i := range maxReports {
		all.UpstreamLocalityStats = append(all.UpstreamLocalityStats, ofLocality(fmt.Sprintf("pod-%06d", i)))
	}
	if got := s.reports([]*endpointv3.ClusterStats{all, statsOf(ofLocality("pod-000000"))}, "client"); len(got) != maxReports {
		t.Errorf("%d reports were taken; want %d", len(got), maxReports)
	}
	many := make([]*endpointv3.ClusterStats, maxClusters)
	for i := range many {
		many[i] = statsOf()
	}
	if got := s.reports(append(many, statsOf(ofLocality("pod-000000"))), "client"); len(got) != 0 {
		t.Errorf("%d reports of one cluster too many were taken", len(got))
	}
	for _, why := range []reason{reasonReports, reasonClusters} {
		if n := testutil.ToFloat64(s.metrics.refusedReports.WithLabelValues(string(why))); n != 1 {
			t.Errorf("%v were refused for %s; want 1", n, why)
		}
	}
}

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
