// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/ringclient/clientmetrics"
)

// newRegistry returns a registry with the metrics of a client, the process and the Go runtime, and the histogram of how
// long requests took, which the handlers fill.
func newRegistry(client *ringclient.Client) (*prometheus.Registry, *prometheus.HistogramVec) {
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ringwright_agent_http_request_duration_seconds",
		Help: "How long requests took, by path, method and status code.",
		// A lookup takes microseconds; the upper end is where a caller on the same host would be worried.
		Buckets: []float64{.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .1, 1},
	}, []string{"path", "method", "code"})
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		durations,
		clientmetrics.NewCollector(client),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return registry, durations
}
