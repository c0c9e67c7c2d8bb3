// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ringwright/ringwright/internal/migration"
	"github.com/ringwright/ringwright/internal/promclient"
)

// The values of $ring.
const (
	ringStable    = "stable"
	ringCandidate = "candidate"
)

// expanded returns a query about a ring with its variables replaced.
func (s Subject) expanded(query, ring string, window time.Duration) (string, error) {
	return expand(query, func(name string) (string, error) {
		switch name {
		case varDatacenters:
			return alternation(s.Datacenters)
		case varRings:
			return alternation(s.Rings)
		case varRing:
			return ring, nil
		case varNamespace:
			return s.Namespace, nil
		case varMigration:
			return s.Name, nil
		case varWindow:
			return fmt.Sprintf("%ds", int64(window/time.Second)), nil
		}
		return "", unknownVariable(name)
	})
}

// measurePrometheus asks for value, baseline and samples, all as of one moment.
func (r *Runner) measurePrometheus(ctx context.Context, t *task) Reading {
	at := r.options.Clock.Now().Truncate(time.Second)
	since := t.since()
	window := t.gate.reach(since, at)
	if window < t.gate.patience().Truncate(time.Second) {
		return t.reading(at, migration.NoData, fmt.Sprintf("window too short: the step is in effect for %s, and is measured after %s", window, t.gate.patience()))
	}
	var c promclient.Credentials
	if auth := t.gate.Prometheus.Auth; auth != nil {
		var err error
		key := types.NamespacedName{Namespace: t.subject.Namespace, Name: auth.SecretName}
		if c, err = promclient.ReadCredentials(ctx, r.options.Secrets, key, "operator"); err != nil {
			return t.reading(at, migration.Error, err.Error())
		}
	}
	series := &series{task: t, server: r.servers.Get(t.gate.Prometheus.Address, c, at), credentials: c, metrics: r.metrics, window: window, at: at, since: since}
	reading := series.measure(ctx)
	reading.Detail = text(c.Redact(reading.Detail))
	return reading
}

// series is the queries of one measurement.
type series struct {
	*task
	server      *promclient.Server
	credentials promclient.Credentials
	metrics     *metrics
	window      time.Duration
	at, since   time.Time
	warnings    []string
}

func (s *series) measure(ctx context.Context) Reading {
	g, ring := s.gate, ringCandidate
	if s.subject.SelfTest {
		ring = ringStable
	}
	var baseline, samples answer
	value := s.query(ctx, g.Prometheus.Query, ring)
	if g.baseline != "" && (g.baseline != g.Prometheus.Query || !s.subject.SelfTest) && value.result != migration.Error {
		baseline = s.query(ctx, g.baseline, ringStable)
	} else if g.baseline != "" {
		baseline = value // The same query.
	}
	if g.Prometheus.SamplesQuery != "" && value.result != migration.Error {
		samples = s.query(ctx, g.Prometheus.SamplesQuery, ring)
	}
	var result migration.Result
	var detail string
	if s.subject.SelfTest {
		result, detail = g.selfTest(value, baseline, samples)
	} else {
		result, detail = g.judge(value, baseline, samples)
	}
	for _, w := range slices.Compact(s.warnings) {
		detail += "; warning: " + w
	}
	reading := s.reading(s.at, result, detail)
	if value.result == "" {
		reading.At = value.at.Truncate(time.Second)
	}
	n := g.numbers(value, baseline, samples)
	reading.Value, reading.Baseline, reading.Samples = n.value, n.baseline, n.samples
	return reading
}

// query asks one.
func (s *series) query(ctx context.Context, query, ring string) answer {
	expanded, err := s.subject.expanded(query, ring, s.window)
	if err != nil {
		return answer{result: migration.Error, why: err.Error()}
	}
	began := s.clock.Now()
	r, err := s.server.Ask(ctx, s.credentials, promclient.Question{
		Query: expanded, At: s.at, Lookback: min(s.window, maxLookback), Timeout: s.gate.timeout,
	})
	s.metrics.asked(s.clock.Now().Sub(began), err)
	if err != nil {
		return answer{result: migration.Error, why: err.Error()}
	}
	s.warnings = append(s.warnings, r.Warnings...)
	oldest := s.at.Add(-2 * s.gate.interval)
	if s.since.After(oldest) {
		oldest = s.since.Truncate(time.Second)
	}
	return one(r.Value, s.at, oldest)
}

// selfTest says whether queries can be answered, before there is a candidate to judge. No series is an answer where another query
// of the gate has one: what counts errors can be without any.
func (c compiled) selfTest(value, baseline, samples answer) (migration.Result, string) {
	for _, a := range []struct {
		name string
		answer
	}{{"query", value}, {"baselineQuery", baseline}, {"samplesQuery", samples}} {
		if a.result == migration.Error {
			return migration.Error, "self-test: " + a.name + ": " + a.why
		}
	}
	n := c.numbers(value, baseline, samples)
	switch {
	case n.value != nil:
		return migration.Inconclusive, "self-test passed: on the stable ring " + c.shown(n)
	case n.baseline != nil || n.samples != nil:
		return migration.Inconclusive, strings.TrimSpace("self-test passed: on the stable ring "+c.shown(n)) + "; query: " + value.why
	default:
		return migration.NoData, "self-test: query: " + value.why
	}
}
