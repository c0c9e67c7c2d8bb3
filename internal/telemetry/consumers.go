// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// The values of label consumers.
const (
	// AppliedOne is a single consumer that is current.
	AppliedOne = "one"
	// AppliedAll is the last consumer of a ring that became current.
	AppliedAll = "all"
)

// resultAnswered is the value of label result of a poll that succeeded; otherwise it is what failed.
const resultAnswered = "answered"

const (
	// maxDatacenterSeries is how many names of datacenters a ring has series for, ever: pods give the names, and each that there
	// was once stays in the memory of Prometheus.
	maxDatacenterSeries = 64
	// otherDatacenters stands for all other names.
	otherDatacenters = "other"
)

var (
	consumersDesc   = describe("consumers", "Pods that read the ring: current, stale; of the stale ones unreachable, mismatched, overridden.", "state")
	datacentersDesc = describe("datacenter_consumers", "Pods that read the ring by the datacenter that they say they are in, the first 64 of those and other: current, stale.", "datacenter", "state")
)

// addConsumers adds what is counted of those who read rings.
func (m *Metrics) addConsumers() {
	m.polls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: prefix + "consumer_polls_total",
		Help: "Consumers that were asked what they have, by result: answered, or what failed.",
	}, []string{"result"})
	m.pollSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    prefix + "consumer_poll_seconds",
		Help:    "How long consumers take to answer, or to fail.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2, 5, 10},
	})
	m.applied = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: prefix + "applied_latency_seconds",
		Help: "From a publication until one of the consumers that there were was seen to have it, and until all were. Those that never have it before the next one count for nothing.",
		// Kubelet takes half a minute on average, and up to one and a half.
		Buckets: []float64{.1, .25, .5, 1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 300, 600},
	}, []string{"consumers"})
	m.polls.WithLabelValues(resultAnswered)
	for _, consumers := range []string{AppliedOne, AppliedAll} {
		m.applied.WithLabelValues(consumers)
	}
}

// ConsumerAsked counts a consumer that was asked and took d; failure says in a word what failed, "" where it answered.
func (m *Metrics) ConsumerAsked(d time.Duration, failure string) {
	if m == nil {
		return
	}
	m.polls.WithLabelValues(cmp.Or(failure, resultAnswered)).Inc()
	m.pollSeconds.Observe(d.Seconds())
}

// Applied counts consumers, AppliedOne or AppliedAll, that were seen to have a publication, after d.
func (m *Metrics) Applied(consumers string, d time.Duration) {
	if m != nil {
		m.applied.WithLabelValues(consumers).Observe(max(d, 0).Seconds())
	}
}

// consumers sends what those who read the ring have.
func (s sender) consumers(c *v1alpha1.ConsumerStatus, datacenters []v1alpha1.DatacenterConsumers) {
	for state, count := range map[string]int32{
		"current": c.Current, "stale": c.Stale, "unreachable": c.Unreachable, "mismatched": c.Mismatched, "overridden": c.Overridden,
	} {
		s.gauge(consumersDesc, float64(count), state)
	}
	for _, dc := range datacenters {
		s.gauge(datacentersDesc, float64(dc.Current), dc.Name, "current")
		s.gauge(datacentersDesc, float64(dc.Total-dc.Current), dc.Name, "stale")
	}
}

// datacenters returns the figures of a ring by datacenter, with one for all whose names came too late to have series. It takes note of
// the names; where too many are new at a time, of those with the most consumers.
func (m *Metrics) datacenters(ring types.NamespacedName, list []v1alpha1.DatacenterConsumers) []v1alpha1.DatacenterConsumers {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.named[ring]
	if known == nil {
		known = map[string]bool{otherDatacenters: true}
		m.named[ring] = known
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b v1alpha1.DatacenterConsumers) int { return cmp.Compare(b.Total, a.Total) })
	other := v1alpha1.DatacenterConsumers{Name: otherDatacenters}
	var named []v1alpha1.DatacenterConsumers
	for _, dc := range list {
		if len(known) <= maxDatacenterSeries { // One of them is that of the others.
			known[dc.Name] = true
		}
		if known[dc.Name] && dc.Name != otherDatacenters {
			named = append(named, dc)
			continue
		}
		other.Total += dc.Total
		other.Current += dc.Current
	}
	if other.Total > 0 {
		named = append(named, other)
	}
	return named
}
