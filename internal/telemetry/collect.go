// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// listTimeout is how long a scrape waits for a cache that is not filled yet.
const listTimeout = 2 * time.Second

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prefix+name, help, append([]string{"namespace", "name"}, labels...), nil)
}

var (
	readyDesc             = describe("ready", "1 where condition Ready is True, else 0, with its reason.", "reason")
	resolvedDesc          = describe("backends_resolved", "1 where every source of backends was read and understood, else 0, with the reason.", "reason")
	heldDesc              = describe("held", "Always 1, while something keeps the ring from following spec or its sources, with the reason.", "reason")
	heldBackendsDesc      = describe("held_backends", "Backends that the hold is about.")
	candidateDesc         = describe("candidate_waiting", "Always 1, while a ring that was built waits, with the reason.", "reason")
	candidateMovementDesc = describe("candidate_movement_ratio", "Part of the key space, 0 to 1, that the candidate would move.")
	pendingMovementDesc   = describe("pending_movement_ratio", "Part of the key space, 0 to 1, that moves once the delays that run are over.")
	movedDesc             = describe("moved_ratio_total", "Sum over publications of the part of the key space, 0 to 1, that each of them moved.")
	backendsDesc          = describe("backends", "Backends: placed, drained; of the placed ones down, leaving; and those that wait to be placed, joining.", "state")
	pointsDesc            = describe("points", "Points on the published ring.")
	bytesDesc             = describe("snapshot_bytes", "Size of the published snapshot, all chunks together.")
	budgetDesc            = describe("snapshot_budget_used_ratio", "Part of the ConfigMaps that spec allows that the snapshot takes, rounded up to whole hundredths.")
	maxOverAverageDesc    = describe("max_over_average_ratio", "Largest share of a backend relative to what its weight asks for; 1 is perfect.")
	variationDesc         = describe("share_variation_ratio", "Coefficient of variation of the backends' shares relative to what their weights ask for; 0 is perfect.")
	warningsDesc          = describe("warnings", "Oddities of the published ring that do not keep it from being used.")
	revisionDesc          = describe("revision", "Revision that is published.")
	generationDesc        = describe("routing_generation", "Generation of the routing file that is published.")
	publishedDesc         = describe("published_timestamp_seconds", "When what is published last changed.")
)

// descs are those that are sent for each HashRing.
var descs = []*prometheus.Desc{
	readyDesc, resolvedDesc, heldDesc, heldBackendsDesc, candidateDesc, candidateMovementDesc, pendingMovementDesc, movedDesc,
	backendsDesc, pointsDesc, bytesDesc, budgetDesc, maxOverAverageDesc, variationDesc, warningsDesc, revisionDesc,
	generationDesc, publishedDesc, consumersDesc, datacentersDesc,
}

func (m *Metrics) counters() []prometheus.Collector {
	return append([]prometheus.Collector{
		m.publications, m.latency, m.movement, m.restores, m.polls, m.pollSeconds, m.applied, m.touches, m.touchLatency, m.touchWait,
	}, m.builds...)
}

// Describe sends the metrics that Collect can send.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, c := range m.counters() {
		c.Describe(out)
	}
	for _, desc := range descs {
		out <- desc
	}
}

// Collect sends what was counted, and what the HashRings are now. Where they cannot be listed it leaves the latter out: a
// scrape that fails as a whole would hide the rest.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	for _, c := range m.counters() {
		c.Collect(out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	list := &v1alpha1.HashRingList{}
	if err := m.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil { // They are only read.
		log.Log.WithName("telemetry").Error(err, "Listing HashRings for a scrape")
		return
	}
	moved := m.settle(list)
	for i := range list.Items {
		ring := &list.Items[i]
		s := sender{out: out, namespace: ring.Namespace, name: ring.Name}
		s.send(movedDesc, prometheus.CounterValue, moved[client.ObjectKeyFromObject(ring)])
		s.conditions(ring)
		s.published(ring.Status)
		if c := ring.Status.Consumers; c != nil {
			s.consumers(c, m.datacenters(client.ObjectKeyFromObject(ring), c.Datacenters))
		}
	}
}

// settle forgets the rings that are gone, and returns what the others moved.
func (m *Metrics) settle(list *v1alpha1.HashRingList) map[types.NamespacedName]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	moved := make(map[types.NamespacedName]float64, len(list.Items))
	for i := range list.Items {
		key := client.ObjectKeyFromObject(&list.Items[i])
		moved[key] = 0
		if a := m.rings[key]; a != nil {
			moved[key] = a.moved
		}
	}
	for key := range m.rings {
		if _, exists := moved[key]; !exists {
			delete(m.rings, key)
		}
	}
	for key := range m.named {
		if _, exists := moved[key]; !exists {
			delete(m.named, key)
		}
	}
	return moved
}

// sender sends the metrics of one HashRing.
type sender struct {
	out             chan<- prometheus.Metric
	namespace, name string
}

func (s sender) send(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
	s.out <- prometheus.MustNewConstMetric(desc, kind, value, append([]string{s.namespace, s.name}, labels...)...)
}

func (s sender) gauge(desc *prometheus.Desc, value float64, labels ...string) {
	s.send(desc, prometheus.GaugeValue, value, labels...)
}

// conditions sends what keeps the ring, or does not.
func (s sender) conditions(ring *v1alpha1.HashRing) {
	for desc, kind := range map[*prometheus.Desc]v1alpha1.ConditionType{
		readyDesc: v1alpha1.ConditionReady, resolvedDesc: v1alpha1.ConditionBackendsResolved,
	} {
		condition := meta.FindStatusCondition(ring.Status.Conditions, string(kind))
		switch {
		case condition != nil && condition.Status == metav1.ConditionTrue:
			s.gauge(desc, 1, condition.Reason)
		case condition != nil:
			s.gauge(desc, 0, condition.Reason)
		case kind == v1alpha1.ConditionReady: // Nobody has looked at it yet, which must not look as if it were not there.
			s.gauge(desc, 0, "")
		}
	}
	if hold := ring.Status.Hold; hold != nil {
		s.gauge(heldDesc, 1, string(hold.Reason))
		s.gauge(heldBackendsDesc, float64(hold.Count))
	}
	if candidate := ring.Status.Candidate; candidate != nil {
		s.gauge(candidateDesc, 1, string(candidate.Reason))
		s.text(candidateMovementDesc, candidate.Movement)
	}
	if pending := ring.Status.Pending; pending != nil {
		s.text(pendingMovementDesc, pending.Movement)
	}
	s.gauge(warningsDesc, float64(len(ring.Status.Warnings)))
}

// published sends what the published ring is.
func (s sender) published(status v1alpha1.HashRingStatus) {
	if b := status.Backends; b != nil {
		for state, count := range map[string]int32{
			"placed": b.Placed, "drained": b.Drained, "down": b.Down, "joining": b.Joining, "leaving": b.Leaving,
		} {
			s.gauge(backendsDesc, float64(count), state)
		}
	}
	if snapshot := status.Snapshot; snapshot != nil {
		s.gauge(pointsDesc, float64(snapshot.Points))
		s.gauge(bytesDesc, float64(snapshot.Bytes))
		s.text(budgetDesc, snapshot.BudgetUsed)
	}
	if balance := status.Balance; balance != nil {
		s.text(maxOverAverageDesc, balance.MaxOverAverage)
		s.text(variationDesc, balance.CoefficientOfVariation)
	}
	if active := status.Active; active != nil {
		s.gauge(revisionDesc, float64(active.Revision))
		s.gauge(publishedDesc, float64(active.PublishedAt.UnixMicro())/1e6)
	}
	if routing := status.Routing; routing != nil {
		s.gauge(generationDesc, float64(routing.Generation))
	}
}

// text sends a number or percentage of the status, and nothing where there is none.
func (s sender) text(desc *prometheus.Desc, text string) {
	digits, percent := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return
	}
	if percent {
		value /= 100
	}
	s.gauge(desc, value)
}
