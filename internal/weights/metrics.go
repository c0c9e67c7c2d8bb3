// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// Metrics are the figures of the policies that this replica owns. Its methods may be called concurrently, and on nil, which counts nothing.
type Metrics struct {
	utilization                      *prometheus.GaugeVec
	maxOverAverage, noise, predicted *prometheus.GaugeVec
	endpoints, conditions            *prometheus.GaugeVec
	version, rollout                 *prometheus.GaugeVec
	policies                         prometheus.Gauge
	takeovers, staleEpochs           prometheus.Counter
	updates                          prometheus.Histogram
}

// NewMetrics returns metrics that registry serves.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "ringwright_" + name, Help: help}, append([]string{"namespace", "policy"}, labels...))
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "ringwright_" + name, Help: help})
	}
	m := &Metrics{
		utilization:    gauge("weight_policy_utilization", "Utilisation of the endpoints that report: max, p95, mean and p5.", "quantile"),
		maxOverAverage: gauge("weight_policy_max_over_average", "Utilisation of the busiest endpoint over the mean."),
		noise:          gauge("weight_policy_noise_floor", "What max_over_average would be by chance with perfect weights."),
		predicted:      gauge("weight_policy_predicted_max_over_average", "What max_over_average would be with the computed weights at 100 %."),
		endpoints:      gauge("weight_policy_endpoints", "Endpoints of the target by state.", "state"),
		conditions:     gauge("weight_policy_condition", "1 for the status and reason that a condition has.", "type", "status", "reason"),
		version:        gauge("weight_policy_version", "Version of the weights that are served."),
		rollout:        gauge("weight_policy_rollout_percent", "Part of the computed weights that is served."),
		policies:       prometheus.NewGauge(prometheus.GaugeOpts{Name: "ringwright_balancer_policies_owned", Help: "WeightPolicies that this replica owns."}),
		takeovers:      counter("balancer_takeovers_total", "WeightPolicies that this replica has taken over."),
		staleEpochs:    counter("balancer_stale_epoch_total", "Weights of a lower epoch that were refused."),
		updates: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ringwright_balancer_update_seconds", Help: "Time that an update of a policy took, from reading its target until what was due was written.",
			Buckets: []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		}),
	}
	registry.MustRegister(m.utilization, m.maxOverAverage, m.noise, m.predicted, m.endpoints, m.conditions, m.version, m.rollout,
		m.policies, m.takeovers, m.staleEpochs, m.updates)
	return m
}

// StaleEpoch counts weights that came too late.
func (m *Metrics) StaleEpoch() {
	if m != nil {
		m.staleEpochs.Inc()
	}
}

func (m *Metrics) tookOver() {
	if m != nil {
		m.takeovers.Inc()
	}
}

func (m *Metrics) updated(took time.Duration) {
	if m != nil {
		m.updates.Observe(took.Seconds())
	}
}

func (m *Metrics) owned(n int) {
	if m != nil {
		m.policies.Set(float64(n))
	}
}

// observe sets the figures of a policy.
func (m *Metrics) observe(policy string, h *holding) {
	if m == nil {
		return
	}
	labels := policyLabels(policy)
	o := h.overview()
	set := func(vec *prometheus.GaugeVec, value float64) {
		if math.IsNaN(value) {
			vec.Delete(labels)
			return
		}
		vec.With(labels).Set(value)
	}
	set(m.maxOverAverage, o.maxOverAverage)
	set(m.noise, o.noiseFloor)
	set(m.predicted, o.predicted)
	m.version.With(labels).Set(float64(h.version))
	percent, _ := strconv.ParseFloat(strings.TrimSuffix(h.rollout.Percent, "%"), 64)
	m.rollout.With(labels).Set(percent)
	for state, n := range map[string]int32{
		"total": o.counts.Total, "ready": o.counts.Ready, "reporting": o.counts.Reporting, "cold": o.counts.Cold, "clamped": o.counts.Clamped, "guarded": o.counts.Guarded,
	} {
		m.endpoints.With(with(labels, "state", state)).Set(float64(n))
	}
	quantiles := h.quantiles(o.mean)
	if quantiles == nil {
		m.utilization.DeletePartialMatch(labels)
	}
	for quantile, value := range quantiles {
		m.utilization.With(with(labels, "quantile", quantile)).Set(value)
	}
}

// quantiles describes the utilisation of the endpoints that report; nil where nobody does.
func (h *holding) quantiles(mean float64) map[string]float64 {
	var values []float64
	for _, r := range h.readings {
		if figure := h.metric(r); !math.IsNaN(figure) {
			values = append(values, figure)
		}
	}
	if len(values) == 0 || math.IsNaN(mean) {
		return nil
	}
	slices.Sort(values)
	at := func(q float64) float64 { return values[int(math.Round(q*float64(len(values)-1)))] }
	return map[string]float64{"max": at(1), "p95": at(0.95), "mean": mean, "p5": at(0.05)}
}

// conditionsOf sets the conditions of a policy.
func (m *Metrics) conditionsOf(policy *v1alpha1.WeightPolicy) {
	if m == nil {
		return
	}
	labels := policyLabels(policyName(policy))
	m.conditions.DeletePartialMatch(labels)
	for _, c := range policy.Status.Conditions {
		m.conditions.With(with(with(with(labels, "type", c.Type), "status", string(c.Status)), "reason", c.Reason)).Set(1)
	}
}

// forget ends the figures of a policy.
func (m *Metrics) forget(policy string) {
	if m == nil {
		return
	}
	labels := policyLabels(policy)
	for _, vec := range []*prometheus.GaugeVec{m.utilization, m.maxOverAverage, m.noise, m.predicted, m.endpoints, m.conditions, m.version, m.rollout} {
		vec.DeletePartialMatch(labels)
	}
}

func policyLabels(policy string) prometheus.Labels {
	namespace, name, _ := strings.Cut(policy, "/")
	return prometheus.Labels{"namespace": namespace, "policy": name}
}

func with(labels prometheus.Labels, name, value string) prometheus.Labels {
	all := prometheus.Labels{name: value}
	for k, v := range labels {
		all[k] = v
	}
	return all
}
