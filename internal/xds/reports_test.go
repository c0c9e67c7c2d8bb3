// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus/testutil"
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
		Locality: &corev3.Locality{Zone: "zone-a", SubZone: id}, TotalIssuedRequests: 130, TotalSuccessfulRequests: 95, TotalErrorRequests: 5, TotalRequestsInProgress: 8,
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
	idle := ofLocality("pod-000000")
	idle.LoadMetricStats = []*endpointv3.EndpointLoadMetricStats{metric("cpu_utilization", 0, 0)}
	envoy := &endpointv3.UpstreamLocalityStats{Locality: &corev3.Locality{Zone: "zone-a"}, UpstreamEndpointStats: []*endpointv3.UpstreamEndpointStats{
		{
			Address: socket("::ffff:10.0.0.0", 8080), TotalSuccessfulRequests: 95, TotalErrorRequests: 5, TotalRequestsInProgress: 8,
			LoadMetricStats: []*endpointv3.EndpointLoadMetricStats{metric("cpu_utilization", 10, 9), metric("utilization.depth", 1, 3)},
		},
		{Address: socket("10.0.0.1", 8080), TotalSuccessfulRequests: 95, TotalErrorRequests: 5, TotalRequestsInProgress: 8},
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
		"many requests":      {stats(func(l *endpointv3.UpstreamLocalityStats) { l.TotalSuccessfulRequests = maxRequests + 1 }), reasonLarge, 1},
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
