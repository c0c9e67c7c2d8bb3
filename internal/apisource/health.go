// SPDX-License-Identifier: Apache-2.0

package apisource

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// settleTime is for how long it is no news that ConfigMaps are of different moments: they are written one by one.
	settleTime = 10 * time.Second
	// unreachable is the reason of an error that no API server gave.
	unreachable = "Unreachable"
)

// health is that of one watch.
type health struct {
	// failure is of the latest request, nil where that was answered; since is when the first of a row failed.
	failure error
	since   time.Time
	// event is when anything came, a bookmark included; zero for never.
	event time.Time
}

// counters count from the start of the process.
type counters struct {
	writes      uint64
	watchErrors map[string]uint64
}

// noteResult takes the result of a request for a ConfigMap.
func (s *Source) noteResult(ctx context.Context, configMap string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	h := s.healthOf(configMap)
	if err == nil {
		if h.failure != nil {
			s.config.Logger.Info("watching again", "configMap", s.namespace+"/"+configMap)
		}
		h.failure = nil
		return
	}
	s.counters.watchErrors[reason(err)]++
	if h.failure == nil {
		h.since = time.Now()
	}
	if h.failure == nil || h.failure.Error() != err.Error() {
		s.config.Logger.Warn("watch failed", "configMap", s.namespace+"/"+configMap, "error", err)
	}
	h.failure = err
}

func (s *Source) noteEvent(ctx context.Context, configMap string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	s.healthOf(configMap).event = time.Now()
}

// healthOf returns the health of a watch. The caller holds the lock.
func (s *Source) healthOf(configMap string) *health {
	if s.health[configMap] == nil {
		s.health[configMap] = &health{}
	}
	return s.health[configMap]
}

// reason returns what the API server calls the error.
func reason(err error) string {
	return cmp.Or(string(apierrors.ReasonForError(err)), unreachable)
}

// Warnings says what is wrong with the source, in the same order each time; nothing where all is well. It is for the status of
// the agent, which answers all the same with what the directory holds.
func (s *Source) Warnings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, configMap := range slices.Sorted(maps.Keys(s.health)) {
		h := s.health[configMap]
		if h.failure == nil {
			continue
		}
		text := fmt.Sprintf("--source=api: ConfigMap %s/%s cannot be watched since %s: %v", s.namespace, configMap, stamp(h.since), h.failure)
		if apierrors.IsForbidden(h.failure) {
			text += "; the Role of config/samples/agent_api_source.yaml allows it"
		}
		list = append(list, text)
	}
	if o := s.obstacle; o != nil && (!o.passing || time.Since(o.since) > settleTime) {
		list = append(list, fmt.Sprintf("--source=api: nothing was written since %s: %s", stamp(o.since), o.text))
	}
	return list
}

// NotApplied returns "": where the directory is behind, so is what the agent has loaded, by which everybody can tell.
func (s *Source) NotApplied() string { return "" }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

var (
	writesDesc = prometheus.NewDesc("ringwright_agent_source_writes_total",
		"Sets of files that were written into the directory, with --source=api.", nil, nil)
	watchErrorsDesc = prometheus.NewDesc("ringwright_agent_source_watch_errors_total",
		"Requests for ConfigMaps that failed and watches that broke off with an error, by reason, with --source=api.", []string{"reason"}, nil)
	eventAgeDesc = prometheus.NewDesc("ringwright_agent_source_last_event_age_seconds",
		"How long ago anything came of the watch that was silent for longest, with --source=api. The API server sends something about every minute.", nil, nil)
)

// Describe sends the metrics that Collect can send.
func (s *Source) Describe(out chan<- *prometheus.Desc) {
	out <- writesDesc
	out <- watchErrorsDesc
	out <- eventAgeDesc
}

// Collect sends the counters, and the age of the last event once every watch had one.
func (s *Source) Collect(out chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out <- prometheus.MustNewConstMetric(writesDesc, prometheus.CounterValue, float64(s.counters.writes))
	for reason, count := range s.counters.watchErrors {
		out <- prometheus.MustNewConstMetric(watchErrorsDesc, prometheus.CounterValue, float64(count), reason)
	}
	var oldest time.Time
	for _, h := range s.health {
		if h.event.IsZero() {
			return
		}
		if oldest.IsZero() || h.event.Before(oldest) {
			oldest = h.event
		}
	}
	if !oldest.IsZero() {
		out <- prometheus.MustNewConstMetric(eventAgeDesc, prometheus.GaugeValue, time.Since(oldest).Seconds())
	}
}
