// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/internal/ringcache"
)

// prefix is that of all names.
const prefix = "ringwright_hashring_"

// keySpace is the number of positions that keys have.
const keySpace = 1 << 32

// The values of label result.
const (
	resultPublished = "published"
	resultFailed    = "failed"
)

// Metrics counts what happens, and collects what is. Its methods may be called concurrently, and on nil, which counts nothing.
type Metrics struct {
	reader   client.Reader
	registry prometheus.Registerer

	publications *prometheus.CounterVec
	latency      prometheus.Histogram
	movement     prometheus.Histogram
	restores     prometheus.Counter
	polls        *prometheus.CounterVec
	pollSeconds  prometheus.Histogram
	applied      *prometheus.HistogramVec
	touches      *prometheus.CounterVec
	touchLatency prometheus.Histogram
	touchWait    prometheus.Histogram
	builds       []prometheus.Collector

	mu sync.Mutex
	// rings is what is known of single rings. Those that are gone are forgotten at the next scrape.
	rings map[types.NamespacedName]*activity
	// named has the names of datacenters that have had series, by ring.
	named map[types.NamespacedName]map[string]bool
}

// activity is what happened to one ring.
type activity struct {
	// due is when what is not published yet could have been; zero where nothing waits.
	due time.Time
	// moved is the sum of what its publications moved.
	moved float64
}

// New returns metrics of the HashRings that reader lists, which is a cache, and of rings. They are served by registry while
// Start runs.
func New(reader client.Reader, rings *ringcache.Cache, registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		reader: reader, registry: registry, rings: map[types.NamespacedName]*activity{}, named: map[types.NamespacedName]map[string]bool{},
		publications: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "publications_total",
			Help: "Publications of a changed ring or routing file, by result: published, or failed, which is tried again.",
		}, []string{"result"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: prefix + "publish_latency_seconds",
			Help: "From when the operator saw that something must be published, and minInterval allowed it, until it was written.",
			// A write takes milliseconds; the issue is with those that take seconds.
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60},
		}),
		movement: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    prefix + "movement_ratio",
			Help:    "Part of the key space, 0 to 1, that a publication of another ring moved to other owners.",
			Buckets: []float64{0, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1},
		}),
		restores: prometheus.NewCounter(prometheus.CounterOpts{
			Name: prefix + "restores_total",
			Help: "Published objects that somebody had edited or deleted and that were written again.",
		}),
	}
	m.addConsumers()
	m.addTouches()
	counter := func(name, help string, read func() uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: prefix + name, Help: help}, func() float64 { return float64(read()) })
	}
	m.builds = []prometheus.Collector{
		counter("builds_total", "Rings that were built, or refused, because they were not known.", rings.Builds),
		counter("builds_avoided_total", "Rings that were asked for and were known.", rings.Hits),
	}
	for _, result := range []string{resultPublished, resultFailed} {
		m.publications.WithLabelValues(result) // There from the start, so that the first one is an increase.
	}
	return m
}

// Start serves the metrics until ctx ends. A second operator in the same process, as tests have it, serves none.
func (m *Metrics) Start(ctx context.Context) error {
	err := m.registry.Register(m)
	if errors.As(err, &prometheus.AlreadyRegisteredError{}) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("registering the metrics of HashRings: %w", err)
	}
	<-ctx.Done()
	m.registry.Unregister(m)
	return nil
}

// NeedLeaderElection has only the leader serve them.
func (*Metrics) NeedLeaderElection() bool { return true }

// Waits takes note that something of a ring must be published and may be at due, which is now where nothing delays it. What
// waits already keeps its time.
func (m *Metrics) Waits(ring types.NamespacedName, due time.Time) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.activity(ring); a.due.IsZero() {
		a.due = due
	}
}

// Published counts a publication that was written at now by a reconciliation that began at began, and gave moved positions of
// the key space, of 2^32, to other owners; nil where the ring is the same or the first one, or nobody found out. What was noted
// by Waits is over.
func (m *Metrics) Published(ring types.NamespacedName, moved *uint64, began, now time.Time) {
	if m == nil {
		return
	}
	m.mu.Lock()
	a := m.activity(ring)
	if a.due.IsZero() {
		a.due = began
	}
	latency := now.Sub(a.due)
	a.due = time.Time{}
	if moved != nil {
		movement := float64(*moved) / keySpace
		a.moved += movement
		m.movement.Observe(movement)
	}
	m.mu.Unlock()
	m.publications.WithLabelValues(resultPublished).Inc()
	m.latency.Observe(max(latency, 0).Seconds())
}

// Failed counts a publication that failed in a reconciliation that began at began.
func (m *Metrics) Failed(ring types.NamespacedName, began time.Time) {
	if m == nil {
		return
	}
	m.Waits(ring, began)
	m.publications.WithLabelValues(resultFailed).Inc()
}

// Settled takes note that nothing of a ring must be published any more, as where an edit was taken back before its time.
func (m *Metrics) Settled(ring types.NamespacedName) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.rings[ring]; a != nil {
		a.due = time.Time{}
	}
}

// Restored counts published objects that were written again.
func (m *Metrics) Restored(objects int) {
	if m != nil {
		m.restores.Add(float64(objects))
	}
}

// activity returns what is known of a ring. The caller holds mu.
func (m *Metrics) activity(ring types.NamespacedName) *activity {
	a := m.rings[ring]
	if a == nil {
		a = &activity{}
		m.rings[ring] = a
	}
	return a
}
