// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/ringwright/ringwright/internal/movement"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/ringclient/clientmetrics"
)

// requestBuckets are for what takes microseconds; the upper end is where a caller on the same host would be worried.
// Each is a series for each path, method and code that there was.
var requestBuckets = []float64{.00001, .0001, .001, .01, .1}

// metrics are what the agent counts itself, beside what its client does.
type metrics struct {
	// gathering has room for one scrape that collects, which takes a millisecond: many at a time would keep probes waiting.
	gathering  chan struct{}
	registry   *prometheus.Registry
	http, grpc *prometheus.HistogramVec
	listeners  *listenerCollector
	draining   prometheus.Gauge
	// startup is registered once its value is known.
	startup prometheus.Gauge
	// here registers what is told by datacenter.
	here prometheus.Registerer
}

// newMetrics returns a registry with the metrics of the agent, its client, the keys that it saw move, the process and the Go runtime.
func newMetrics(config Config, client *ringclient.Client, seen *movement.Table) *metrics {
	m := &metrics{
		gathering: make(chan struct{}, 1),
		registry:  prometheus.NewRegistry(),
		http: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ringwright_agent_http_request_duration_seconds",
			Help: "How long requests took, by path, method and status code. Everything unknown is \"other\".", Buckets: requestBuckets,
		}, []string{"path", "method", "code"}),
		grpc: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ringwright_agent_grpc_request_duration_seconds",
			Help: "How long gRPC calls took, by method and status code.", Buckets: requestBuckets,
		}, []string{"method", "code"}),
		listeners: &listenerCollector{},
		draining: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ringwright_agent_draining", Help: "1 once the agent was asked to stop, else 0.",
		}),
		startup: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ringwright_agent_startup_seconds", Help: "From the start of the agent to its first ring. There is no series before that.",
		}),
	}
	m.here = m.registry
	if config.Datacenter != "" {
		m.here = prometheus.WrapRegistererWith(prometheus.Labels{"datacenter": config.Datacenter}, m.registry)
	}
	m.here.MustRegister(clientmetrics.NewCollector(client), seen)
	m.registry.MustRegister(
		m.http, m.grpc, m.listeners, m.draining,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// startedUp tells how long it took until the first ring was there.
func (m *metrics) startedUp(took time.Duration) {
	m.startup.Set(took.Seconds())
	m.here.MustRegister(m.startup)
}

// answer writes all metrics.
func (m *metrics) answer(w http.ResponseWriter, r *http.Request) int {
	promhttp.HandlerFor(prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		select {
		case m.gathering <- struct{}{}:
			defer func() { <-m.gathering }()
			return m.registry.Gather()
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}), promhttp.HandlerOpts{}).ServeHTTP(w, r)
	return http.StatusOK
}

// observer returns what counts the requests to a path, which allows methods. The label is that of the path: one for each path that is
// asked for would be anybody's to add.
func (m *metrics) observer(label string, methods []string) *observer {
	o := &observer{vector: m.http, path: label, usual: make(map[string]func() prometheus.Observer)}
	for _, method := range methods {
		o.usual[method] = sync.OnceValue(func() prometheus.Observer { return m.http.WithLabelValues(label, methodLabel(method), "200") })
	}
	return o
}

// observer counts the requests to one path.
type observer struct {
	vector *prometheus.HistogramVec
	path   string
	// usual are those that succeed, by method; there is no series before the first. To look one up by its labels takes longer.
	usual map[string]func() prometheus.Observer
}

func (o *observer) observe(method string, status int, took time.Duration) {
	if usual, found := o.usual[method]; found && status == http.StatusOK {
		usual().Observe(took.Seconds())
		return
	}
	o.vector.WithLabelValues(o.path, methodLabel(method), strconv.Itoa(status)).Observe(took.Seconds())
}

// methodLabel keeps a caller from adding labels.
func methodLabel(method string) string {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH":
		return strings.ToLower(method)
	default:
		return "other"
	}
}

// listenerCollector turns what the listeners count into metrics at every scrape. The listeners are added before it is asked.
type listenerCollector struct{ endpoints []*endpoint }

var (
	connectionsDesc    = prometheus.NewDesc("ringwright_agent_connections", "Connections that are open, by listener.", []string{"listener"}, nil)
	maxConnectionsDesc = prometheus.NewDesc("ringwright_agent_connections_limit", "How many connections can be open, by listener.",
		[]string{"listener"}, nil)
	acceptedDesc = prometheus.NewDesc("ringwright_agent_connections_accepted_total", "Connections that were accepted, by listener.",
		[]string{"listener"}, nil)
	refusedDesc = prometheus.NewDesc("ringwright_agent_connections_refused_total",
		"Connections that were refused because there were too many, by listener.", []string{"listener"}, nil)
)

// Describe sends the metrics that Collect sends.
func (c *listenerCollector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{connectionsDesc, maxConnectionsDesc, acceptedDesc, refusedDesc} {
		out <- desc
	}
}

// Collect sends the figures of each listener.
func (c *listenerCollector) Collect(out chan<- prometheus.Metric) {
	for _, e := range c.endpoints {
		send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64) {
			out <- prometheus.MustNewConstMetric(desc, kind, value, e.name)
		}
		send(connectionsDesc, prometheus.GaugeValue, float64(e.listener.Open()))
		send(maxConnectionsDesc, prometheus.GaugeValue, float64(e.listener.Limit()))
		send(acceptedDesc, prometheus.CounterValue, float64(e.listener.Accepted()))
		send(refusedDesc, prometheus.CounterValue, float64(e.listener.Refused()))
	}
}
