// SPDX-License-Identifier: Apache-2.0

package loadreport

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// Metrics count reports. Its methods may be called concurrently, and on nil, which counts nothing.
type Metrics struct {
	accepted *prometheus.CounterVec
	refused  *prometheus.CounterVec
}

// otherSource stands for sources that are none: reporters could name a million.
const otherSource = "other"

// NewMetrics returns metrics that registry serves.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		accepted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ringwright_load_reports_accepted_total", Help: "Load reports that were kept by the owner of their policy, by source.",
		}, []string{"source"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ringwright_load_reports_refused_total", Help: "Load reports that were refused or dropped, by source and reason.",
		}, []string{"source", "reason"}),
	}
	registry.MustRegister(m.accepted, m.refused)
	return m
}

// Refused counts n reports of a source that were refused.
func (m *Metrics) Refused(source v1alpha1.LoadSourceType, reason Reason, n int) {
	if m != nil && n > 0 {
		m.refused.WithLabelValues(string(known(source)), string(reason)).Add(float64(n))
	}
}

// Accepted counts n reports of a source that were kept.
func (m *Metrics) Accepted(source v1alpha1.LoadSourceType, n int) {
	if m != nil && n > 0 {
		m.accepted.WithLabelValues(string(known(source))).Add(float64(n))
	}
}

// known returns a source, or otherSource.
func known(source v1alpha1.LoadSourceType) v1alpha1.LoadSourceType {
	switch source {
	case v1alpha1.SourceLRS, v1alpha1.SourcePush, v1alpha1.SourceORCA, v1alpha1.SourcePrometheus, v1alpha1.SourceMetrics:
		return source
	}
	return otherSource
}
