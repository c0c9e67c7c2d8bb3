// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TouchResult is the value of label result of a touch.
type TouchResult string

const (
	// TouchDone is a pod whose annotation was changed.
	TouchDone TouchResult = "touched"
	// TouchGone is a pod that was not there any more.
	TouchGone TouchResult = "gone"
	// TouchForbidden is a pod in a namespace in which the operator turned out not to be allowed to patch pods.
	TouchForbidden TouchResult = "forbidden"
	// TouchRefused is a pod of which the API server or an admission policy refused the change.
	TouchRefused TouchResult = "refused"
	// TouchFailed is a pod of which the API server did not answer, or not as it should.
	TouchFailed TouchResult = "failed"
)

// addTouches adds what is counted of pods that are touched.
func (m *Metrics) addTouches() {
	m.touches = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: prefix + "touches_total",
		Help: "Attempts to touch a pod for what is published, by result: touched, gone, forbidden, refused, failed.",
	}, []string{"result"})
	m.touchLatency = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    prefix + "touch_latency_seconds",
		Help:    "From a publication until a pod was touched for it, the time included that it waits because of the limit of touches a second.",
		Buckets: []float64{.1, .25, .5, 1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 300, 600},
	})
	m.touchWait = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    prefix + "touch_wait_seconds",
		Help:    "How long a touch whose turn it was waited because of the limit of touches a second.",
		Buckets: []float64{.001, .01, .025, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60},
	})
	for _, result := range []TouchResult{TouchDone, TouchGone, TouchForbidden, TouchRefused, TouchFailed} {
		m.touches.WithLabelValues(string(result))
	}
}

// TouchTried counts an attempt to touch a pod that waited for its turn.
func (m *Metrics) TouchTried(result TouchResult, waited time.Duration) {
	if m == nil {
		return
	}
	m.touches.WithLabelValues(string(result)).Inc()
	m.touchWait.Observe(max(waited, 0).Seconds())
}

// TouchedAfter counts a pod that was touched d after the publication.
func (m *Metrics) TouchedAfter(d time.Duration) {
	if m != nil {
		m.touchLatency.Observe(max(d, 0).Seconds())
	}
}
