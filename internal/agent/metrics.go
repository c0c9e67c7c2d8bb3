// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/ringwright/ringwright/pkg/ringclient"
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
		&clientCollector{client},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return registry, durations
}

// clientCollector turns the counters of a client into metrics at every scrape.
type clientCollector struct{ client *ringclient.Client }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("ringwright_client_"+name, help, labels, nil)
}

var (
	loadsDesc      = describe("loads_total", "Rings and routing files that were swapped in.")
	loadErrorsDesc = describe("load_errors_total",
		"Reads of the directory that failed, by reason. It grows with every poll while the cause remains.", "reason")
	loadSecondsDesc = describe("load_duration_seconds", "How long the loads took that were swapped in.")
	selectionsDesc  = describe("selections_total", "Lookups that were answered.")
	bytesHeldDesc   = describe("bytes_held", "About how many bytes the current ring keeps in memory.")
	generationDesc  = describe("generation", "Generation of the routing file that is in use.", "ring")
	infoDesc        = describe("ring_info", "Always 1: the ring that is in use.", "ring", "digest", "version")
	backendsDesc    = describe("backends", "Backends of the ring that is in use, drained ones included.", "ring")
	pointsDesc      = describe("points", "Points of the ring that is in use.", "ring")
	loadedAtDesc    = describe("loaded_timestamp_seconds", "When the ring that is in use was swapped in.", "ring")
	failingDesc     = describe("failing", "1 while the latest read of the directory failed, else 0.")
)

// Describe sends the metrics that Collect can send.
func (c *clientCollector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		loadsDesc, loadErrorsDesc, loadSecondsDesc, selectionsDesc, bytesHeldDesc, generationDesc, infoDesc, backendsDesc,
		pointsDesc, loadedAtDesc, failingDesc,
	} {
		out <- desc
	}
}

// Collect sends the counters, every reason included, and what the ring in use gives where there is one.
func (c *clientCollector) Collect(out chan<- prometheus.Metric) {
	stats := c.client.Stats()
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, kind, value, labels...)
	}
	send(loadsDesc, prometheus.CounterValue, float64(stats.Loads))
	for _, reason := range ringclient.Reasons() {
		send(loadErrorsDesc, prometheus.CounterValue, float64(stats.LoadErrors[reason]), string(reason))
	}
	out <- prometheus.MustNewConstSummary(loadSecondsDesc, stats.Loads, stats.LoadTime.Seconds(), nil)
	send(selectionsDesc, prometheus.CounterValue, float64(stats.Selections))
	send(bytesHeldDesc, prometheus.GaugeValue, float64(stats.BytesHeld))
	failing := 0.0
	if stats.LastError != nil && stats.LastError.Current {
		failing = 1
	}
	send(failingDesc, prometheus.GaugeValue, failing)
	state := c.client.State()
	if state == nil {
		return
	}
	name := state.RingName()
	send(generationDesc, prometheus.GaugeValue, float64(state.Generation()), name)
	send(infoDesc, prometheus.GaugeValue, 1, name, state.Digest(), state.Version().String())
	send(backendsDesc, prometheus.GaugeValue, float64(state.Ring().Len()), name)
	send(pointsDesc, prometheus.GaugeValue, float64(state.Ring().PointCount()), name)
	send(loadedAtDesc, prometheus.GaugeValue, float64(state.LoadedAt().UnixNano())/1e9, name)
}
