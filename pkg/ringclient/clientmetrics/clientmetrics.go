// SPDX-License-Identifier: Apache-2.0

// Package clientmetrics makes metrics for Prometheus of what a ringclient.Client counts. It is apart from that package, which does
// not depend on Prometheus.
//
// The metrics begin with "ringwright_client_". Their labels are few and bounded: roles, reasons, the name of the ring, and at most
// ringclient.MaxRingStats revisions at a time. A program that has a datacenter adds that as a label of its own, by
// prometheus.WrapRegistererWith.
package clientmetrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

// NewCollector returns a collector that reads the counters of a client at every scrape. The client may have no ring yet, and may be
// closed.
func NewCollector(client *ringclient.Client) prometheus.Collector { return &collector{client} }

type collector struct{ client *ringclient.Client }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("ringwright_client_"+name, help, labels, nil)
}

var (
	loadsDesc      = describe("loads_total", "Rings and routing files that were swapped in.")
	loadErrorsDesc = describe("load_errors_total",
		"Reads of the directory that failed, by reason. It grows with every poll while the cause remains.", "reason")
	loadSecondsDesc = describe("load_duration_seconds", "How long the loads took that were swapped in.")
	selectionsDesc  = describe("selections_total",
		"Lookups that were answered, by the ring that answered. Series of rings that were replaced long ago go.", "role", "revision")
	failoversDesc   = describe("failovers_total", "Of those, the lookups in which the owner was passed over.", "role", "revision")
	errorsDesc      = describe("errors_total", "Backends that the ring gave and that were tried in vain, as far as the program said so.", "role", "revision")
	failedDesc      = describe("failed_backends", "Backends that are passed over because the program reported that they do not answer.")
	bytesHeldDesc   = describe("bytes_held", "About how many bytes the loaded rings take, mapped ones included.")
	generationDesc  = describe("generation", "Generation of the routing file that is in use.", "ring")
	epochDesc       = describe("leader_epoch", "Leader epoch of the routing file that is in use.", "ring")
	basisPointsDesc = describe("candidate_basis_points", "How many of 10,000 buckets of keys the candidate answers here.", "ring")
	effectiveDesc   = describe("effective_basis_points", "The same, after what is forced: what lookups go by.", "ring")
	forcedDesc      = describe("forced", "1 while the split is overridden in favour of that ring, else 0.", "role")
	infoDesc        = describe("ring_info", "Always 1: the rings that are in use.", "ring", "role", "revision", "digest", "version")
	backendsDesc    = describe("backends", "Backends of the rings that are in use, drained ones included.", "ring", "role")
	downDesc        = describe("down_backends", "Of those, the backends that are passed over because the routing file says so.", "ring", "role")
	ringBytesDesc   = describe("ring_bytes", "About how many bytes the rings take that are in use, mapped ones included.", "ring", "role")
	pointsDesc      = describe("points", "Points of the rings that are in use.", "ring", "role")
	loadedAtDesc    = describe("loaded_timestamp_seconds", "When what is in use was swapped in.", "ring")
	failingDesc     = describe("failing", "1 while the latest read of the directory failed, else 0.")
)

// Describe sends the metrics that Collect can send.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		loadsDesc, loadErrorsDesc, loadSecondsDesc, selectionsDesc, failoversDesc, errorsDesc, failedDesc, bytesHeldDesc, generationDesc, epochDesc,
		basisPointsDesc, effectiveDesc, forcedDesc, infoDesc, backendsDesc, downDesc, pointsDesc, ringBytesDesc, loadedAtDesc, failingDesc,
	} {
		out <- desc
	}
}

// sink sends metrics of constant values.
type sink chan<- prometheus.Metric

func (s sink) counter(desc *prometheus.Desc, value uint64, labels ...string) {
	s <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), labels...)
}

func (s sink) gauge(desc *prometheus.Desc, value float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

// Collect sends the counters, every reason included, and what the rings in use give where there are any.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	stats, to := c.client.Stats(), sink(out)
	to.counter(loadsDesc, stats.Loads)
	for _, reason := range ringclient.Reasons() {
		to.counter(loadErrorsDesc, stats.LoadErrors[reason], string(reason))
	}
	out <- prometheus.MustNewConstSummary(loadSecondsDesc, stats.Loads, stats.LoadTime.Seconds(), nil)
	collectRings(to, stats.Rings)
	to.gauge(failedDesc, float64(stats.Failed))
	to.gauge(bytesHeldDesc, float64(stats.BytesHeld))
	to.gauge(failingDesc, truth(stats.LastError != nil && stats.LastError.Current))
	if state := c.client.State(); state != nil {
		collectState(to, state)
	}
}

// collectRings sends the lookups by ring. Two rings of one revision, which there are where revisions are not known, make one series.
func collectRings(to sink, rings []ringclient.RingStats) {
	type series struct{ role, revision string }
	var order []series
	selections, failovers, errors := map[series]uint64{}, map[series]uint64{}, map[series]uint64{}
	for _, r := range rings {
		s := series{r.Role.String(), strconv.FormatInt(r.Revision, 10)}
		if _, known := selections[s]; !known {
			order = append(order, s)
		}
		selections[s] += r.Selections
		failovers[s] += r.Failovers
		errors[s] += r.Errors
	}
	for _, s := range order {
		to.counter(selectionsDesc, selections[s], s.role, s.revision)
		to.counter(failoversDesc, failovers[s], s.role, s.revision)
		to.counter(errorsDesc, errors[s], s.role, s.revision)
	}
}

func collectState(to sink, state *ringclient.State) {
	name := state.RingName()
	to.gauge(generationDesc, float64(state.Generation()), name)
	to.gauge(epochDesc, float64(state.LeaderEpoch()), name)
	to.gauge(basisPointsDesc, float64(state.BasisPoints()), name)
	to.gauge(effectiveDesc, float64(state.EffectiveBasisPoints()), name)
	to.gauge(loadedAtDesc, float64(state.LoadedAt().UnixNano())/1e9, name)
	to.gauge(forcedDesc, truth(state.Forced() == ringclient.ForceStable), ringclient.Stable.String())
	to.gauge(forcedDesc, truth(state.Forced() == ringclient.ForceCandidate), ringclient.Candidate.String())
	rings := []ringclient.Loaded{state.Stable()}
	if candidate, there := state.Candidate(); there {
		rings = append(rings, candidate)
	}
	for _, r := range rings {
		role := r.Role.String()
		to.gauge(infoDesc, 1, name, role, strconv.FormatInt(r.Revision, 10), r.Digest, r.Ring.Algorithm().Version.String())
		to.gauge(backendsDesc, float64(r.Ring.Len()), name, role)
		to.gauge(downDesc, float64(r.Down), name, role)
		to.gauge(pointsDesc, float64(r.Ring.PointCount()), name, role)
		to.gauge(ringBytesDesc, float64(r.BytesHeld()), name, role)
	}
}

// truth returns 1 or 0.
func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
