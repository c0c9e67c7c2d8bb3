// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringwright/ringwright/internal/migration"
)

// results are all that there are.
var results = []migration.Result{migration.Pass, migration.Fail, migration.NoData, migration.Error, migration.Inconclusive}

// The labels of what is known of one gate.
var gateLabels = []string{"namespace", "name", "gate"}

var (
	resultDesc = prometheus.NewDesc("ringwright_migration_gate_result",
		"1 for what a gate of a RingMigration said last, 0 for the other results.", append(gateLabels[:3:3], "result"), nil)
	valueDesc = prometheus.NewDesc("ringwright_migration_gate_value",
		"The number behind it: value, baseline or samples. There is none of a number that is not known.", append(gateLabels[:3:3], "number"), nil)
	measuredDesc = prometheus.NewDesc("ringwright_migration_gate_timestamp_seconds", "When the data is from.", gateLabels, nil)
	openDesc     = prometheus.NewDesc("ringwright_gate_provider_open",
		"Circuit breakers of the Prometheus at an address that are not closed: with it, gates say Error without asking.", []string{"address"}, nil)
)

// metrics counts measurements, and collects the newest results.
type metrics struct {
	runner       *Runner
	measurements *prometheus.CounterVec
	seconds      *prometheus.HistogramVec
}

func newMetrics(r *Runner) *metrics {
	m := &metrics{
		runner: r,
		measurements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ringwright_gate_measurements_total", Help: "Measurements of gates, by kind of gate and result.",
		}, []string{"kind", "result"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ringwright_gate_query_duration_seconds",
			Help: "How long queries took with all attempts, by outcome: answered, or failed, with those that were not sent.",
			// Most queries take milliseconds; the end is the longest timeout.
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"outcome"}),
	}
	for _, kind := range []string{"prometheus", "consumers", "object"} {
		for _, result := range results {
			m.measurements.WithLabelValues(kind, string(result)) // There from the start, so that the first one is an increase.
		}
	}
	return m
}

// register serves the metrics until the function that it returns is called. A second operator in the same process, as tests have
// it, serves none.
func (m *metrics) register(registry prometheus.Registerer) (unregister func(), err error) {
	if registry == nil {
		return func() {}, nil
	}
	switch err := registry.Register(m); {
	case errors.As(err, &prometheus.AlreadyRegisteredError{}):
		return func() {}, nil
	case err != nil:
		return nil, fmt.Errorf("registering the metrics of gates: %w", err)
	}
	return func() { registry.Unregister(m) }, nil
}

func (m *metrics) measured(c compiled, result migration.Result) {
	kind := "object"
	switch {
	case c.Prometheus != nil:
		kind = "prometheus"
	case c.Consumers != nil:
		kind = "consumers"
	}
	m.measurements.WithLabelValues(kind, string(result)).Inc()
}

func (m *metrics) asked(took time.Duration, err error) {
	outcome := "answered"
	if err != nil {
		outcome = "failed"
	}
	m.seconds.WithLabelValues(outcome).Observe(took.Seconds())
}

// Describe sends the metrics that Collect can send.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	m.measurements.Describe(out)
	m.seconds.Describe(out)
	for _, desc := range []*prometheus.Desc{resultDesc, valueDesc, measuredDesc, openDesc} {
		out <- desc
	}
}

// Collect sends what was counted, and the newest results.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	m.measurements.Collect(out)
	m.seconds.Collect(out)
	for address, open := range m.runner.servers.Open() {
		out <- prometheus.MustNewConstMetric(openDesc, prometheus.GaugeValue, float64(open), address)
	}
	m.runner.mu.Lock()
	defer m.runner.mu.Unlock()
	for _, f := range m.runner.follows {
		for _, g := range f.gates {
			if reading := g.newest(); reading != nil {
				send(out, f.subject, *reading)
			}
		}
	}
}

func send(out chan<- prometheus.Metric, s Subject, r Reading) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{s.Namespace, s.Name, r.Gate}, labels...)...)
	}
	for _, result := range results {
		is := 0.
		if r.Result == result {
			is = 1
		}
		gauge(resultDesc, is, string(result))
	}
	for name, number := range map[string]*float64{"value": r.Value, "baseline": r.Baseline, "samples": r.Samples} {
		if number != nil {
			gauge(valueDesc, *number, name)
		}
	}
	gauge(measuredDesc, float64(r.At.Unix()))
}
