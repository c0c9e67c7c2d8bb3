// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"cmp"
	"math"
	"net/netip"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/loadreport"
)

// Bounds of a message of load reports. What is beyond them is dropped and counted.
const (
	// maxClusters and maxReports are how many clusters and how many endpoints of all of them a message has at most.
	maxClusters = 1_000
	maxReports  = 20_000
	// maxClusterName is how long the name of a cluster is at most.
	maxClusterName = 317
	maxWindow      = time.Hour
	maxRequests    = 1e12
	// maxCPU is the largest utilisation: some servers report 100 times what they may use, and none more.
	maxCPU    = 100
	maxCustom = 1e12
)

// reason is why a report is refused; "" is none.
type reason string

const (
	reasonClusters  reason = "too_many_clusters"
	reasonReports   reason = "too_many_endpoints"
	reasonPolicy    reason = "unknown_policy"
	reasonName      reason = "cluster_name"
	reasonWindow    reason = "window"
	reasonLocality  reason = "not_of_one_endpoint"
	reasonEndpoint  reason = "unknown_endpoint"
	reasonTwice     reason = "duplicate"
	reasonNegative  reason = "negative"
	reasonNotNumber reason = "not_a_number"
	reasonLarge     reason = "too_large"
	reasonOften     reason = "too_often"
)

// reports returns what a message says of endpoints.
func (s *Server) reports(clusters []*endpointv3.ClusterStats, reporter string) []loadreport.Report {
	if len(clusters) > maxClusters {
		s.refuseReport(reasonClusters)
		clusters = clusters[:maxClusters]
	}
	var all []loadreport.Report
	for _, c := range clusters {
		name := cmp.Or(c.GetClusterServiceName(), c.GetClusterName())
		window := c.GetLoadReportInterval()
		p := s.find(name)
		switch {
		case len(c.GetClusterName()) > maxClusterName:
			s.refuseReport(reasonName)
		case p == nil:
			s.refuseReport(reasonPolicy)
		case window.CheckValid() != nil || window.AsDuration() <= 0 || window.AsDuration() > maxWindow:
			s.refuseReport(reasonWindow)
		default:
			r := clusterReports{server: s, policy: p, seen: make(map[string]bool), room: maxReports - len(all)}
			r.report = loadreport.Report{
				Policy: name, Source: v1alpha1.SourceLRS, Reporter: reporter, End: s.options.now(), Window: window.AsDuration(),
			}
			if other := c.GetClusterName(); other != name { // An Envoy may have several clusters with the same endpoints, whose requests add up.
				r.report.Reporter += "/" + other
			}
			for _, locality := range c.GetUpstreamLocalityStats() {
				r.locality(locality)
			}
			all = append(all, r.reports...)
		}
	}
	return all
}

// clusterReports gathers the reports of one cluster.
type clusterReports struct {
	server *Server
	policy *policy
	// report has what all of them have.
	report  loadreport.Report
	reports []loadreport.Report
	seen    map[string]bool
	room    int
}

// stats are what a locality and an endpoint both say.
type stats interface {
	GetTotalSuccessfulRequests() uint64
	GetTotalErrorRequests() uint64
	GetTotalRequestsInProgress() uint64
	GetLoadMetricStats() []*endpointv3.EndpointLoadMetricStats
}

// locality reads what an Envoy says of endpoints, or what a gRPC client says of a locality that stands for one.
func (c *clusterReports) locality(l *endpointv3.UpstreamLocalityStats) {
	endpoints := l.GetUpstreamEndpointStats()
	if len(endpoints) == 0 {
		id := l.GetLocality().GetSubZone()
		if id == "" {
			c.refuse(reasonLocality)
			return
		}
		c.add(id, l, l.GetCpuUtilization())
		return
	}
	for _, e := range endpoints {
		address := addressOf(e.GetAddress())
		id := ""
		if address.IsValid() {
			id = c.policy.byAddress()[address]
		}
		c.add(id, e, nil)
	}
}

func addressOf(a *corev3.Address) netip.AddrPort {
	socket := a.GetSocketAddress()
	ip, err := netip.ParseAddr(socket.GetAddress())
	if err != nil || socket.GetPortValue() > math.MaxUint16 {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(socket.GetPortValue()))
}

// add takes the report of an endpoint, or counts why not.
func (c *clusterReports) add(id string, s stats, cpu *endpointv3.UnnamedEndpointLoadMetricStats) {
	switch {
	case len(c.reports) == c.room:
		c.refuse(reasonReports)
		return
	case !c.policy.has(id):
		c.refuse(reasonEndpoint)
		return
	case c.seen[id]:
		c.refuse(reasonTwice)
		return
	}
	r := c.report
	r.Endpoint = id
	if why := c.figures(&r, s, cpu); why != "" {
		c.refuse(why)
		return
	}
	c.seen[id] = true
	c.reports = append(c.reports, r)
}

// figures fills in what was counted.
func (c *clusterReports) figures(r *loadreport.Report, s stats, cpu *endpointv3.UnnamedEndpointLoadMetricStats) (why reason) {
	// Those that ended, as the errors did: one that was issued in this window may fail in the next. An endpoint that stalls has them in flight.
	r.Requests = float64(s.GetTotalSuccessfulRequests()) + float64(s.GetTotalErrorRequests())
	r.Errors = float64(s.GetTotalErrorRequests())
	r.InFlight = float64(s.GetTotalRequestsInProgress())
	if r.Requests > maxRequests || r.InFlight > maxRequests {
		return reasonLarge
	}
	r.CPU, r.Custom = math.NaN(), math.NaN()
	if cpu != nil {
		if r.CPU, why = mean(cpu.GetTotalMetricValue(), cpu.GetNumRequestsFinishedWithMetric(), maxCPU); why != "" {
			return why
		}
	}
	for _, m := range s.GetLoadMetricStats() {
		var figure *float64
		limit := float64(maxCustom)
		switch name := m.GetMetricName(); {
		case name == cpuMetric:
			figure, limit = &r.CPU, maxCPU
		case c.policy.CustomMetric != "" && (name == namedPrefix+c.policy.CustomMetric || name == utilizationPrefix+c.policy.CustomMetric):
			figure = &r.Custom
		default:
			continue // Nobody asked for it.
		}
		if *figure, why = mean(m.GetTotalMetricValue(), m.GetNumRequestsFinishedWithMetric(), limit); why != "" {
			return why
		}
	}
	return ""
}

// mean returns the mean of a figure over the requests that had it, NaN where none had.
func mean(total float64, requests uint64, limit float64) (float64, reason) {
	value := total / float64(requests)
	switch {
	case math.IsNaN(total):
		return 0, reasonNotNumber
	case total < 0:
		return 0, reasonNegative
	case requests == 0:
		return math.NaN(), ""
	case value > limit:
		return 0, reasonLarge
	}
	return value, ""
}

func (c *clusterReports) refuse(why reason) { c.server.refuseReport(why) }
