// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"github.com/prometheus/client_golang/prometheus"
)

const prefix = "ringwright_xds_"

// metrics are what a Server counts. Labels have few values: none comes from a client.
type metrics struct {
	server *Server

	pushes, rejections, refusedStreams, refusedReports, refusedAssignments *prometheus.CounterVec
	reports                                                                prometheus.Counter
}

var (
	policiesDesc  = prometheus.NewDesc(prefix+"policies", "Policies that are served.", nil, nil)
	streamsDesc   = prometheus.NewDesc(prefix+"streams", "Streams that are open, by kind: sotw, delta, load_reports.", []string{"kind"}, nil)
	resourcesDesc = prometheus.NewDesc(prefix+"resources", "Resources that are held because clients watch them, by type.", []string{"type"}, nil)
	unknownDesc   = prometheus.NewDesc(prefix+"unknown_names", "Names that clients watch and that stand for no policy, by type.", []string{"type"}, nil)
)

// newMetrics makes those of s, and registers them where it should.
func newMetrics(s *Server) *metrics {
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	}
	m := &metrics{
		server:             s,
		pushes:             counters("pushes_total", "Answers that were sent to clients, by type of resource.", "type"),
		rejections:         counters("rejections_total", "Answers that clients rejected, by type of resource.", "type"),
		refusedStreams:     counters("streams_refused_total", "Streams that were refused or ended, by reason.", "reason"),
		refusedReports:     counters("load_reports_refused_total", "Load reports of endpoints, or whole messages, that were refused, by reason.", "reason"),
		refusedAssignments: counters("assignments_refused_total", "Weights that were to be served and were refused, by reason.", "reason"),
		reports: prometheus.NewCounter(prometheus.CounterOpts{
			Name: prefix + "load_reports_total", Help: "Load reports of endpoints that were taken.",
		}),
	}
	if s.options.Metrics != nil {
		s.options.Metrics.MustRegister(m)
	}
	return m
}

func (m *metrics) counters() []prometheus.Collector {
	return []prometheus.Collector{m.pushes, m.rejections, m.refusedStreams, m.refusedReports, m.refusedAssignments, m.reports}
}

// Describe sends the metrics that Collect can send.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, c := range m.counters() {
		c.Describe(out)
	}
	for _, desc := range []*prometheus.Desc{policiesDesc, streamsDesc, resourcesDesc, unknownDesc} {
		out <- desc
	}
}

// Collect sends what was counted, and what there is now.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	for _, c := range m.counters() {
		c.Collect(out)
	}
	gauge := func(desc *prometheus.Desc, value int, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	m.server.mu.RLock()
	gauge(policiesDesc, len(m.server.policies))
	m.server.mu.RUnlock()
	for kind, n := range m.server.streams.count() {
		gauge(streamsDesc, n, kinds[kind])
	}
	for _, c := range m.server.caches {
		resources, unknown := c.count()
		gauge(resourcesDesc, resources, c.label)
		gauge(unknownDesc, unknown, c.label)
	}
}
