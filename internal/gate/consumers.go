// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ringwright/ringwright/internal/consumer"
	"github.com/ringwright/ringwright/internal/migration"
)

const (
	// consumersWindow is how far the counters of consumers are looked back on, where that has enough selections; to find as many as
	// minSamples asks for they are looked back on further, to when the step took effect at most.
	consumersWindow = 5 * time.Minute
	// pollInterval is about how often a consumer is asked at the least.
	pollInterval = time.Minute
	// maxSpans is how many spans of time are kept apart.
	maxSpans = 2048
)

// counts are what consumers counted on one ring.
type counts struct{ selections, failovers, errors uint64 }

func (c counts) plus(o counts) counts {
	return counts{c.selections + o.selections, c.failovers + o.failovers, c.errors + o.errors}
}

// span is what was counted in a time that ended at at.
type span struct {
	at                time.Time
	stable, candidate counts
}

// podKey tells counters apart: those of a pod, for a ring.
type podKey struct {
	ring types.NamespacedName
	uid  types.UID
}

// tally adds up what the consumers of a step counted since it took effect. Of each it knows the newest sample, and of the time
// before that only sums.
type tally struct {
	last  map[podKey]consumer.Sample
	spans []span
	// newest is the time of the newest sample.
	newest time.Time
}

// add takes newer samples, of consumers of the datacenters, and not from before since. The first one of a consumer is what it had
// counted before, whenever that was. One of a process that has started anew counts in full: all of it is newer than the one before.
func (t *tally) add(ring types.NamespacedName, samples []consumer.Sample, datacenters []string, since time.Time) {
	if t.last == nil {
		t.last = map[podKey]consumer.Sample{}
	}
	var s span
	for _, sample := range samples {
		if sample.At.Before(since) || !slices.Contains(datacenters, sample.Datacenter) {
			continue
		}
		key := podKey{ring, sample.UID}
		last, known := t.last[key]
		if known && !sample.At.After(last.At) {
			continue
		}
		t.last[key] = sample
		if sample.At.After(t.newest) {
			t.newest = sample.At
		}
		if known {
			restarted := !sample.Started.Equal(last.Started)
			s.stable = s.stable.plus(increase(last.Stable, sample.Stable, restarted))
			s.candidate = s.candidate.plus(increase(last.Candidate, sample.Candidate, restarted))
		}
	}
	if s.stable != (counts{}) || s.candidate != (counts{}) {
		s.at = t.newest
		t.spans = append(t.spans, s)
	}
	if len(t.spans) > maxSpans {
		first := t.spans[0]
		t.spans = t.spans[1:]
		t.spans[0].stable, t.spans[0].candidate = t.spans[0].stable.plus(first.stable), t.spans[0].candidate.plus(first.candidate)
	}
}

// increase is what was counted between two samples; nothing where it cannot be known, because the counters are of another ring or
// fell.
func increase(before, after consumer.RingCounts, restarted bool) counts {
	switch {
	case after.Digest == "":
		return counts{}
	case restarted:
		return counts{after.Selections, after.Failovers, after.Errors}
	case after.Digest != before.Digest, after.Selections < before.Selections, after.Failovers < before.Failovers, after.Errors < before.Errors:
		return counts{}
	}
	return counts{after.Selections - before.Selections, after.Failovers - before.Failovers, after.Errors - before.Errors}
}

// sum returns what was counted lately: within consumersWindow, or further back until there are as many selections as are needed.
func (t *tally) sum(now time.Time, needed int64) (stable, candidate counts) {
	for _, s := range slices.Backward(t.spans) {
		if now.Sub(s.at) > consumersWindow && candidate.selections >= uint64(needed) && candidate.selections > 0 {
			break
		}
		stable, candidate = stable.plus(s.stable), candidate.plus(s.candidate)
	}
	return stable, candidate
}

// fresh returns how many consumers of a ring have a sample that is not older than an age, and how many have one.
func (t *tally) fresh(ring types.NamespacedName, now time.Time, age time.Duration) (fresh, known int) {
	for key, s := range t.last {
		if key.ring != ring {
			continue
		}
		known++
		if now.Sub(s.At) <= age {
			fresh++
		}
	}
	return fresh, known
}

// staleAfter is the age from which on a sample says nothing; that of consumers that are asked as rarely as it gets is less.
func (c compiled) staleAfter() time.Duration { return 2 * max(c.interval, pollInterval) }

// measureConsumers adds the newest counters to those before, and judges.
func (r *Runner) measureConsumers(t *task) Reading {
	now := r.options.Clock.Now()
	var silent []string
	fresh, known := 0, 0
	for _, name := range t.subject.Rings {
		ring := types.NamespacedName{Namespace: t.subject.Namespace, Name: name}
		t.tally.add(ring, r.options.Samples(ring), t.subject.Datacenters, t.since())
		f, k := t.tally.fresh(ring, now, t.gate.staleAfter())
		if f == 0 {
			silent = append(silent, name)
		}
		fresh, known = fresh+f, known+k
	}
	result, detail, candidate := t.judgeConsumers(now, silent)
	if fresh < known {
		detail += fmt.Sprintf("; %d of %d consumers have not answered for %s", known-fresh, known, t.gate.staleAfter())
	}
	at := now
	if result == migration.Pass || result == migration.Fail { // It is as old as the data.
		at = minTime(t.tally.newest, now)
	}
	reading := t.reading(at.Truncate(time.Second), result, detail)
	if candidate.selections > 0 {
		selections := float64(candidate.selections)
		value := float64(candidate.errors) / selections
		if t.gate.maxErrors == nil {
			value = float64(candidate.failovers) / selections
		}
		reading.Value, reading.Samples = &value, &selections
	}
	return reading
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// judgeConsumers says what the counters mean.
func (t *task) judgeConsumers(now time.Time, silent []string) (migration.Result, string, counts) {
	stable, candidate := t.tally.sum(now, t.gate.MinSamples)
	switch {
	case len(t.subject.Rings) == 0 || len(silent) > 0:
		return migration.NoData, "no consumer in the datacenters of the step has given counters lately: " + strings.Join(silent, ", "), candidate
	case t.subject.SelfTest:
		return migration.Inconclusive, "self-test passed: consumers give counters", candidate
	case int64(min(candidate.selections, 1<<62)) < t.gate.MinSamples:
		return migration.Inconclusive, fmt.Sprintf("%d selections on the candidate, at least %d are needed", candidate.selections, t.gate.MinSamples), candidate
	case candidate.selections == 0:
		return migration.NoData, "no selections on the candidate yet", candidate
	}
	result := migration.Pass
	var parts []string
	for _, limit := range []struct {
		name      string
		part, ref uint64
		most      *uint64
		text      string
	}{
		{"errors", candidate.errors, stable.errors, t.gate.maxErrors, t.gate.Consumers.MaxErrorRatio},
		{"failovers", candidate.failovers, stable.failovers, t.gate.maxFailovers, t.gate.Consumers.MaxFailoverRatio},
	} {
		if limit.most == nil {
			continue
		}
		if exceeds(limit.part, candidate.selections, *limit.most) {
			result = migration.Fail
		}
		parts = append(parts, fmt.Sprintf("%s %s of %d selections on the candidate, at most %s; %s of %d on the stable ring",
			limit.name, percentage(limit.part, candidate.selections), candidate.selections, limit.text, percentage(limit.ref, stable.selections), stable.selections))
	}
	return result, strings.Join(parts, "; "), candidate
}

// percentage is a ratio for people.
func percentage(part, whole uint64) string {
	if whole == 0 {
		return "0%"
	}
	return fmt.Sprintf("%.4g%%", 100*float64(part)/float64(whole))
}
