// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/consumer"
	"github.com/ringwright/ringwright/internal/migration"
)

// sample is one that can be told to be another.
type sample struct{ consumer.Sample }

// from is a sample of pod a in lab01 at some second, of a process that started at second 0.
func from(second int, candidate, stable counts) sample {
	return sample{consumer.Sample{
		Pod: "a", UID: "a", Datacenter: "lab01", Started: zero, At: zero.Add(time.Duration(second) * time.Second),
		Candidate: consumer.RingCounts{Digest: "sha256:c", Selections: candidate.selections, Failovers: candidate.failovers, Errors: candidate.errors},
		Stable:    consumer.RingCounts{Digest: "sha256:s", Selections: stable.selections, Failovers: stable.failovers, Errors: stable.errors},
	}}
}

func (s sample) of(pod string) sample {
	s.Pod, s.UID = pod, types.UID(pod)
	return s
}

func (s sample) in(datacenter string) sample {
	s.Datacenter = datacenter
	return s
}

// restarted is a sample of a process that started later.
func (s sample) restarted(second int) sample {
	s.Started = zero.Add(time.Duration(second) * time.Second)
	return s
}

// ofRing is a sample of another candidate.
func (s sample) ofRing(digest string) sample {
	s.Candidate.Digest = digest
	return s
}

var edge = types.NamespacedName{Namespace: "cdn", Name: "edge"}

// TestTally adds up samples of a step that took effect at second 100.
func TestTally(t *testing.T) {
	base := counts{1000, 100, 10}
	more := counts{1500, 120, 15}
	for name, c := range map[string]struct {
		samples []sample
		want    counts
	}{
		"nothing":            {nil, counts{}},
		"one sample":         {[]sample{from(110, base, base)}, counts{}},
		"two":                {[]sample{from(110, base, base), from(120, more, base)}, counts{500, 20, 5}},
		"at the very moment": {[]sample{from(100, base, base), from(120, more, base)}, counts{500, 20, 5}},
		"from before":        {[]sample{from(90, base, base), from(120, more, base)}, counts{}},
		"the same again":     {[]sample{from(110, base, base), from(120, more, base), from(120, more, base)}, counts{500, 20, 5}},
		"an older one again": {[]sample{from(110, base, base), from(120, more, base), from(110, base, base), from(130, more, base)}, counts{500, 20, 5}},
		"another place":      {[]sample{from(110, base, base).in("fra02"), from(120, more, base).in("fra02")}, counts{}},
		"two pods":           {[]sample{from(110, base, base), from(110, base, base).of("b"), from(120, more, base), from(120, more, base).of("b")}, counts{1000, 40, 10}},
		"a restart counts in full": {[]sample{from(110, base, base), from(120, more, base), from(130, counts{7, 2, 1}, base).restarted(125)},
			counts{507, 22, 6}},
		"a restart with more": {[]sample{from(110, base, base), from(130, more, base).restarted(125)}, counts{1500, 120, 15}},
		"after a restart": {[]sample{from(110, base, base), from(130, counts{7, 2, 1}, base).restarted(125), from(140, counts{9, 2, 1}, base).restarted(125)},
			counts{9, 2, 1}},
		"counters that fell":    {[]sample{from(110, more, base), from(120, base, base), from(130, more, base)}, counts{500, 20, 5}},
		"one counter that fell": {[]sample{from(110, base, base), from(120, counts{1500, 120, 0}, base)}, counts{}},
		"another candidate":     {[]sample{from(110, base, base), from(120, more, base).ofRing("sha256:d"), from(130, counts{1501, 120, 15}, base).ofRing("sha256:d")}, counts{1, 0, 0}},
		"no candidate":          {[]sample{from(110, base, base).ofRing(""), from(120, more, base).ofRing("")}, counts{}},
	} {
		t.Run(name, func(t *testing.T) {
			var tally tally
			for _, s := range c.samples {
				tally.add(edge, []consumer.Sample{s.Sample}, []string{"ams01", "lab01"}, zero.Add(100*time.Second))
			}
			if _, got := tally.sum(zero.Add(200*time.Second), 0); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// TestTallyWindow looks back five minutes, and further for the selections that are needed.
func TestTallyWindow(t *testing.T) {
	var tally tally
	for minute := range 61 { // 10 selections a minute; errors in the last 2 minutes only.
		n := uint64(minute)
		tally.add(edge, []consumer.Sample{from(60*minute, counts{10 * n, 0, max(n, 58) - 58}, counts{n, 0, 0}).Sample}, []string{"lab01"}, zero)
	}
	now := zero.Add(time.Hour + time.Second)
	for needed, want := range map[int64]counts{0: {50, 0, 2}, 50: {50, 0, 2}, 51: {60, 0, 2}, 100: {100, 0, 2}, 10_000: {600, 0, 2}} {
		if _, got := tally.sum(now, needed); got != want {
			t.Errorf("for %d: %+v, want %+v", needed, got, want)
		}
	}
	if _, got := tally.sum(now.Add(time.Hour), 0); got.selections != 10 {
		t.Errorf("of long before: %+v", got)
	}
}

// TestTallyLimit keeps the sums of a long soak, and not all of its spans.
func TestTallyLimit(t *testing.T) {
	var tally tally
	for i := range maxSpans + 500 {
		tally.add(edge, []consumer.Sample{from(i, counts{uint64(i), 0, 0}, counts{}).Sample}, []string{"lab01"}, zero)
	}
	if _, got := tally.sum(zero.Add(time.Hour), 1<<40); len(tally.spans) != maxSpans || got.selections != maxSpans+499 {
		t.Errorf("%d spans, %+v", len(tally.spans), got)
	}
}

func TestConsumersGate(t *testing.T) {
	base, gateOf := counts{1000, 100, 10}, func(errors, failovers string, least int64) v1alpha1.MigrationGate {
		return v1alpha1.MigrationGate{Name: "agents", MinSamples: least, Consumers: &v1alpha1.ConsumersGate{MaxErrorRatio: errors, MaxFailoverRatio: failovers}}
	}
	plus := func(selections, failovers, errors uint64) counts {
		return base.plus(counts{selections, failovers, errors})
	}
	step := func(after counts) []sample {
		return []sample{from(610, base, base), from(660, after, plus(9000, 90, 9))}
	}
	selfTest := about(10)
	selfTest.SelfTest, selfTest.Effective = true, time.Time{}
	two := about(10)
	two.Rings = []string{"edge", "silent"}
	for name, c := range map[string]struct {
		subject Subject
		gate    v1alpha1.MigrationGate
		samples []sample
		want    migration.Result
		detail  string
		at      int
	}{
		"pass":              {about(10), gateOf("0.1%", "", 0), step(plus(1000, 9, 1)), migration.Pass, "errors 0.1% of 1000 selections on the candidate, at most 0.1%; 0.1% of 9000 on the stable ring", 660},
		"fail":              {about(10), gateOf("0.1%", "", 0), step(plus(1000, 9, 2)), migration.Fail, "errors 0.2% of 1000 selections", 660},
		"failovers":         {about(10), gateOf("", "1%", 0), step(plus(1000, 10, 9)), migration.Pass, "failovers 1% of 1000 selections on the candidate, at most 1%; 1% of 9000", 660},
		"too many":          {about(10), gateOf("", "1%", 0), step(plus(1000, 11, 0)), migration.Fail, "failovers 1.1%", 660},
		"one of both":       {about(10), gateOf("0%", "1%", 0), step(plus(1000, 10, 1)), migration.Fail, "errors 0.1% of 1000 selections on the candidate, at most 0%", 660},
		"few":               {about(10), gateOf("0%", "", 1001), step(plus(1000, 0, 1000)), migration.Inconclusive, "1000 selections on the candidate, at least 1001 are needed", 661},
		"enough":            {about(10), gateOf("0%", "", 1000), step(plus(1000, 0, 0)), migration.Pass, "errors 0%", 660},
		"none":              {about(10), gateOf("0%", "", 0), step(base), migration.NoData, "no selections on the candidate yet", 661},
		"no consumers":      {about(10), gateOf("0%", "", 0), nil, migration.NoData, "no consumer in the datacenters of the step has given counters lately: edge", 661},
		"old":               {about(10), gateOf("0%", "", 0), []sample{from(530, base, base), from(540, plus(1000, 0, 0), base)}, migration.NoData, "no consumer", 661},
		"one of two rings":  {two, gateOf("0%", "", 0), step(plus(1000, 0, 0)), migration.NoData, "lately: silent", 661},
		"self-test":         {selfTest, gateOf("0%", "", 0), []sample{from(600, counts{}, base).ofRing("")}, migration.Inconclusive, "self-test passed", 661},
		"self-test without": {selfTest, gateOf("0%", "", 0), nil, migration.NoData, "no consumer", 661},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(zero.Add(661 * time.Second))
			compiled, err := compileGate(c.gate)
			if err != nil {
				t.Fatal(err)
			}
			var seen []consumer.Sample
			r := NewRunner(Options{Clock: clock, Samples: func(ring types.NamespacedName) []consumer.Sample {
				if ring == edge {
					return seen
				}
				return nil
			}})
			task := &task{subject: c.subject, gate: compiled, clock: clock}
			got := r.measure(t.Context(), task)
			for _, s := range c.samples {
				seen = []consumer.Sample{s.Sample}
				got = r.measure(t.Context(), task)
			}
			if got.Result != c.want || !strings.Contains(got.Detail, c.detail) || !got.At.Equal(zero.Add(time.Duration(c.at)*time.Second)) {
				t.Errorf("%s %q at %s, want %s %q", got.Result, got.Detail, got.At, c.want, c.detail)
			}
		})
	}
}

// TestConsumersThatAreSilent counts on those that answer, and says so.
func TestConsumersThatAreSilent(t *testing.T) {
	clock := clocktesting.NewFakeClock(zero.Add(10 * time.Minute))
	compiled, err := compileGate(v1alpha1.MigrationGate{Name: "agents", Consumers: &v1alpha1.ConsumersGate{MaxErrorRatio: "1%"}})
	if err != nil {
		t.Fatal(err)
	}
	seen := []consumer.Sample{from(600, counts{}, counts{}).Sample, from(600, counts{}, counts{}).of("b").Sample}
	r := NewRunner(Options{Clock: clock, Samples: func(types.NamespacedName) []consumer.Sample { return seen }})
	task := &task{subject: about(10), gate: compiled, clock: clock}
	r.measure(t.Context(), task)
	for minute, want := range []struct {
		result migration.Result
		detail string
	}{
		{migration.Pass, "of 0 on the stable ring"}, {migration.Pass, "; 1 of 2 consumers have not answered for 2m0s"},
	} {
		now := 660 + 60*minute
		clock.SetTime(zero.Add(time.Duration(now+1) * time.Second))
		seen[0] = from(now, counts{uint64(100 * (minute + 1)), 0, 0}, counts{}).Sample
		if got := r.measure(t.Context(), task); got.Result != want.result || !strings.HasSuffix(got.Detail, want.detail) {
			t.Errorf("%d: %+v", minute, got)
		}
	}
	clock.Step(2*time.Minute + time.Second)
	if got := r.measure(t.Context(), task); got.Result != migration.NoData {
		t.Errorf("nobody answers: %+v", got)
	}
}

func TestRatios(t *testing.T) {
	for text, want := range map[string]uint64{"0%": 0, "0.1%": 1000, "0.0001%": 1, "99.9999%": 999_999, "100%": million, "100.0000%": million, "5.25%": 52_500} {
		if got, err := parseRatio(text); got != want || err != nil {
			t.Errorf("%s is %d (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "1", "100.0001%", "101%", "-1%", "+1%", "1.%", ".5%", "0.00001%", "1e1%", "1,5%", " 1%", "0001%"} {
		if got, err := parseRatio(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
	for _, c := range []struct {
		part, whole, limit uint64
		want               bool
	}{
		{1, 1000, 1000, false}, {2, 1000, 1000, true}, {0, 0, 0, false}, {1, 1, million, false}, {1, 1_000_001, 1, false}, {2, 1_999_999, 1, true},
		{1 << 63, 1 << 63, million, false}, {1<<63 + 1, 1 << 63, million, true}, {1 << 60, 1 << 63, 125_000, false}, {1<<60 + 1, 1 << 63, 125_000, true},
	} {
		if got := exceeds(c.part, c.whole, c.limit); got != c.want {
			t.Errorf("%+v is %v", c, got)
		}
	}
}
