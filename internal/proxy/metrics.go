// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// class is the first digit of a status code, or how else a request ended. It is a label of metrics.
type class uint8

const (
	// classAborted is an answer that was cut off, classCanceled a request whose client left.
	classAborted class = iota + 5 // Behind the five of status codes.
	classCanceled
	classCount
)

var classNames = [classCount]string{"1xx", "2xx", "3xx", "4xx", "5xx", "aborted", "canceled"}

// classFailed is that of a request to a backend that gave no answer, so that the proxy gave one.
const classFailed = "failed"

// roleLabel is the ring that decided: none where the proxy answered before.
type roleLabel uint8

const (
	roleNone roleLabel = iota
	roleStable
	roleCandidate
	roleCount
)

var roleNames = [roleCount]string{"none", "stable", "candidate"}

// metrics are what a proxy counts. Labels have few values: none comes from a request.
type metrics struct {
	requestsVec    *prometheus.CounterVec
	requests       [roleCount][classCount]prometheus.Counter
	attempts       prometheus.Counter
	failovers      *prometheus.CounterVec
	retriesRefused *prometheus.CounterVec
	errors         *prometheus.CounterVec
	backendErrors  *prometheus.CounterVec
	firstByteVec   *prometheus.HistogramVec
	firstByte      [roleCount]prometheus.Observer
	receivedBytes  prometheus.Counter
	sentBytes      prometheus.Counter
	passedOver     prometheus.Counter
	notKept        prometheus.CounterFunc
	replayBytes    prometheus.GaugeFunc
	// cacheAnswers is nil without a header to count by.
	cacheAnswers *cacheAnswers
	// backends is nil unless it was asked for; counted has those of which there are series.
	backends    *prometheus.CounterVec
	counted     sync.Map
	inFlight    prometheus.GaugeFunc
	connections prometheus.GaugeFunc
}

const namespace = "ringwright_proxy_"

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: namespace + name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: namespace + name, Help: help}, labels)
}

func gauge(name, help string, value func() int64) prometheus.GaugeFunc {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: namespace + name, Help: help}, func() float64 { return float64(value()) })
}

func (p *Proxy) newMetrics() *metrics {
	m := &metrics{
		requestsVec: counters("requests_total",
			"Requests that ended, by class of the answer (aborted: it was cut off; canceled: the client left) and ring that decided.", "class", "role"),
		attempts: counter("attempts_total", "Times that a request was sent to a backend, or that was tried."),
		failovers: counters("failovers_total",
			"Times that another backend or another connection was tried, by why the one before failed and ring that decided.", "reason", "role"),
		retriesRefused: counters("retries_refused_total", "Failed attempts after which nothing else was tried though it could have helped, by why not.", "reason"),
		errors:         counters("errors_total", "Requests that the proxy answered with an error of its own, by reason and ring that decided.", "reason", "role"),
		backendErrors: counters("backend_errors_total",
			"Times that a backend gave no answer, or not all of one, and is to blame for it, by reason and ring that gave it.", "reason", "role"),
		firstByteVec: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: namespace + "first_byte_seconds", Help: "From the header of a request to that of its answer, all attempts included, by ring that decided.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"role"}),
		receivedBytes: counter("received_bytes_total", "Bytes of bodies that came from clients, those of tunnels included."),
		sentBytes:     counter("sent_bytes_total", "Bytes of bodies that came from backends, those of tunnels included."),
		passedOver:    counter("passed_over_total", "Times that a backend was reported as failed, so that lookups pass over it for a while."),
		notKept: prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: namespace + "replay_refused_total", Help: "Request bodies that could not be sent again because too much was kept of others.",
		}, func() float64 { return float64(p.replay.refused.Load()) }),
		replayBytes: gauge("replay_bytes", "Memory that is held for request bodies that may be sent again.", p.replay.held.Load),
		inFlight:    gauge("requests_in_flight", "Requests that are running.", p.inFlight.Load),
		connections: gauge("backend_connections", "Connections to backends that are open.", p.dialer.open.Load),
	}
	for role := range roleCount {
		for class := range classNames {
			m.requests[role][class] = m.requestsVec.WithLabelValues(classNames[class], roleNames[role])
		}
		m.firstByte[role] = m.firstByteVec.WithLabelValues(roleNames[role])
	}
	m.begin()
	if p.config.CacheStatusHeader != "" {
		m.cacheAnswers = newCacheAnswers()
	}
	if p.config.BackendMetrics {
		m.backends = counters("backend_requests_total", "Requests that ended, by backend that was tried last and class of its answer (failed: it gave none).", "backend", "class")
	}
	return m
}

// begin has those counters of both rings begin at 0 that are compared with each other.
func (m *metrics) begin() {
	for _, role := range []roleLabel{roleStable, roleCandidate} {
		for _, r := range blamed {
			m.backendErrors.WithLabelValues(string(r), roleNames[role])
		}
		for _, r := range failedOver {
			m.failovers.WithLabelValues(string(r), roleNames[role])
		}
	}
}

// all returns the collectors.
func (m *metrics) all() []prometheus.Collector {
	list := []prometheus.Collector{
		m.requestsVec, m.attempts, m.failovers, m.retriesRefused, m.errors, m.backendErrors, m.firstByteVec, m.receivedBytes, m.sentBytes,
		m.passedOver, m.notKept, m.replayBytes, m.inFlight, m.connections,
	}
	if m.backends != nil {
		list = append(list, m.backends)
	}
	if m.cacheAnswers != nil {
		list = append(list, m.cacheAnswers.vec)
	}
	return list
}

// countBackend counts a request by its backend. It is noted only then that there is something to forget, so that nothing stays.
func (m *metrics) countBackend(id, class string) {
	if m.backends == nil {
		return
	}
	m.backends.WithLabelValues(id, class).Inc()
	if _, known := m.counted.Load(id); !known {
		m.counted.Store(id, nil)
	}
}

// forget drops the series of backends that left.
func (m *metrics) forget(left func(id string) bool) {
	m.counted.Range(func(key, _ any) bool {
		if id, ok := key.(string); ok && left(id) {
			m.counted.Delete(id)
			m.backends.DeletePartialMatch(prometheus.Labels{"backend": id})
		}
		return true
	})
}

// Describe sends the metrics that Collect can send.
func (p *Proxy) Describe(out chan<- *prometheus.Desc) {
	for _, c := range p.metrics.all() {
		c.Describe(out)
	}
}

// Collect sends the metrics of the proxy; it is a prometheus.Collector.
func (p *Proxy) Collect(out chan<- prometheus.Metric) {
	for _, c := range p.metrics.all() {
		c.Collect(out)
	}
}
