// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/ringcache"
	"github.com/ringwright/ringwright/internal/telemetry"
)

// lister lists what it holds.
type lister struct {
	client.Reader
	rings []v1alpha1.HashRing
	err   error
}

func (l *lister) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.HashRingList).Items = l.rings
	return l.err
}

// fullRing has everything in its status that a status can have.
func fullRing(name string) v1alpha1.HashRing {
	return v1alpha1.HashRing{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cdn", Name: name},
		Status: v1alpha1.HashRingStatus{
			Active:    &v1alpha1.ActiveRing{Revision: 12, PublishedAt: metav1.NewMicroTime(time.UnixMicro(1_700_000_000_500_000))},
			Candidate: &v1alpha1.CandidateRing{Movement: "7.31%", Reason: v1alpha1.ReasonAlgorithmChanged},
			Pending:   &v1alpha1.PendingChange{Movement: "0.05%"},
			Hold:      &v1alpha1.Hold{Reason: v1alpha1.ReasonSuddenLoss, Count: 6},
			Backends:  &v1alpha1.BackendCounts{Total: 12, Placed: 10, Drained: 2, Down: 6, Joining: 1, Leaving: 5},
			Snapshot:  &v1alpha1.SnapshotSize{Points: 1600, Bytes: 5840, BudgetUsed: "91%"},
			Balance:   &v1alpha1.Balance{MaxOverAverage: "1.360", CoefficientOfVariation: "7.90%"},
			Routing:   &v1alpha1.Routing{Generation: 41},
			Consumers: &v1alpha1.ConsumerStatus{
				Total: 120, Current: 117, Stale: 3, Unreachable: 1, Mismatched: 1, Overridden: 1,
				Datacenters: []v1alpha1.DatacenterConsumers{{Total: 20, Current: 20}, {Name: "lab01", Total: 100, Current: 97}},
			},
			Warnings: []v1alpha1.Warning{{}, {}},
			Conditions: []metav1.Condition{
				{Type: "Ready", Status: metav1.ConditionFalse, Reason: "SuddenLoss"},
				{Type: "BackendsResolved", Status: metav1.ConditionTrue, Reason: "Resolved"},
			},
		},
	}
}

func newMetrics(l *lister) *telemetry.Metrics {
	return telemetry.New(l, ringcache.New(1000), prometheus.NewRegistry())
}

// TestStatus: what the status says is what is served, each figure in its base unit.
func TestStatus(t *testing.T) {
	m := newMetrics(&lister{rings: []v1alpha1.HashRing{fullRing("edge")}})
	for name, want := range map[string]string{
		"ready":                       `{name="edge",namespace="cdn",reason="SuddenLoss"} 0`,
		"backends_resolved":           `{name="edge",namespace="cdn",reason="Resolved"} 1`,
		"held":                        `{name="edge",namespace="cdn",reason="SuddenLoss"} 1`,
		"held_backends":               `{name="edge",namespace="cdn"} 6`,
		"candidate_waiting":           `{name="edge",namespace="cdn",reason="AlgorithmChanged"} 1`,
		"candidate_movement_ratio":    `{name="edge",namespace="cdn"} 0.0731`,
		"pending_movement_ratio":      `{name="edge",namespace="cdn"} 0.0005`,
		"points":                      `{name="edge",namespace="cdn"} 1600`,
		"snapshot_bytes":              `{name="edge",namespace="cdn"} 5840`,
		"snapshot_budget_used_ratio":  `{name="edge",namespace="cdn"} 0.91`,
		"max_over_average_ratio":      `{name="edge",namespace="cdn"} 1.36`,
		"share_variation_ratio":       `{name="edge",namespace="cdn"} 0.079`,
		"warnings":                    `{name="edge",namespace="cdn"} 2`,
		"revision":                    `{name="edge",namespace="cdn"} 12`,
		"routing_generation":          `{name="edge",namespace="cdn"} 41`,
		"published_timestamp_seconds": `{name="edge",namespace="cdn"} 1.7000000005e+09`,
	} {
		if got := series(t, m, name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	want := []string{
		`{name="edge",namespace="cdn",state="down"} 6`, `{name="edge",namespace="cdn",state="drained"} 2`,
		`{name="edge",namespace="cdn",state="joining"} 1`, `{name="edge",namespace="cdn",state="leaving"} 5`,
		`{name="edge",namespace="cdn",state="placed"} 10`,
	}
	if got := series(t, m, "backends"); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("backends: %q", got)
	}
	want = []string{
		`{name="edge",namespace="cdn",state="current"} 117`, `{name="edge",namespace="cdn",state="mismatched"} 1`,
		`{name="edge",namespace="cdn",state="overridden"} 1`, `{name="edge",namespace="cdn",state="stale"} 3`,
		`{name="edge",namespace="cdn",state="unreachable"} 1`,
	}
	if got := series(t, m, "consumers"); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("consumers: %q", got)
	}
	want = []string{
		`{datacenter="",name="edge",namespace="cdn",state="current"} 20`, `{datacenter="",name="edge",namespace="cdn",state="stale"} 0`,
		`{datacenter="lab01",name="edge",namespace="cdn",state="current"} 97`, `{datacenter="lab01",name="edge",namespace="cdn",state="stale"} 3`,
	}
	if got := series(t, m, "datacenter_consumers"); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("datacenter_consumers: %q", got)
	}
	problems, err := testutil.CollectAndLint(m)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}

// series returns what is served under a name, without that name, sorted.
func series(t *testing.T, m *telemetry.Metrics, name string) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	name = "ringwright_hashring_" + name
	text, err := testutil.CollectAndFormat(m, expfmt.TypeTextPlain, name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := registry.Gather(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), name); ok {
			lines = append(lines, rest)
		}
	}
	return lines
}

// TestEmptyStatus: a HashRing that nobody has looked at is there, as not ready, with nothing that is not known.
func TestEmptyStatus(t *testing.T) {
	m := newMetrics(&lister{rings: []v1alpha1.HashRing{{ObjectMeta: metav1.ObjectMeta{Namespace: "cdn", Name: "new"}}}})
	if got := series(t, m, "ready"); len(got) != 1 || got[0] != `{name="new",namespace="cdn",reason=""} 0` {
		t.Errorf("ready: %q", got)
	}
	for _, name := range []string{"held", "candidate_waiting", "points", "backends", "revision", "backends_resolved"} {
		if got := series(t, m, name); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestSeriesPerRing holds the package to the number that its documentation gives.
func TestSeriesPerRing(t *testing.T) {
	l := &lister{}
	m := newMetrics(l)
	base := testutil.CollectAndCount(m)
	for n := range 3 {
		l.rings = append(l.rings, fullRing(fmt.Sprint("edge-", n)))
		if got := testutil.CollectAndCount(m) - base; got != (27+2*2)*(n+1) {
			t.Errorf("%d rings have %d series", n+1, got)
		}
	}
}

// TestDatacenters: of a ring with many, those with the most consumers have series, and all others one. Names that come later are among
// those: pods can give another one each time.
func TestDatacenters(t *testing.T) {
	ring := fullRing("edge")
	l := &lister{rings: []v1alpha1.HashRing{ring}}
	m := newMetrics(l)
	set := func(prefix string, n int32) {
		ring.Status.Consumers.Datacenters = nil
		for i := range n {
			dc := v1alpha1.DatacenterConsumers{Name: fmt.Sprintf("%s%02d", prefix, i), Total: i + 2, Current: 1}
			ring.Status.Consumers.Datacenters = append(ring.Status.Consumers.Datacenters, dc)
		}
	}
	set("dc", 100)
	got := series(t, m, "datacenter_consumers")
	if len(got) != 2*65 || !strings.HasPrefix(got[0], `{datacenter="dc36"`) {
		t.Errorf("%d series: %q", len(got), got)
	}
	if ring.Status.Consumers.Datacenters[0].Name != "dc00" {
		t.Error("it changed the status")
	}
	set("new", 3)
	want := []string{`{datacenter="other",name="edge",namespace="cdn",state="current"} 3`, `{datacenter="other",name="edge",namespace="cdn",state="stale"} 6`}
	if got := series(t, m, "datacenter_consumers"); !slices.Equal(got, want) {
		t.Errorf("of names that came later: %q", got)
	}
	set("other", 0)
	ring.Status.Consumers.Datacenters = []v1alpha1.DatacenterConsumers{{Name: "dc99", Total: 1}, {Name: "new", Total: 1}, {Name: "other", Total: 1}}
	if got := series(t, m, "datacenter_consumers"); len(got) != 4 || !strings.HasSuffix(got[3], `state="stale"} 2`) {
		t.Errorf("of one that is called so: %q", got)
	}
	l.rings = nil
	series(t, m, "datacenter_consumers")
	l.rings = []v1alpha1.HashRing{ring}
	if got := series(t, m, "datacenter_consumers"); len(got) != 6 {
		t.Errorf("of another HashRing: %q", got)
	}
}

// TestConsumersCounted: polls by their result, and latencies by whom they are of.
func TestConsumersCounted(t *testing.T) {
	m := newMetrics(&lister{})
	m.ConsumerAsked(31250*time.Microsecond, "")
	m.ConsumerAsked(2*time.Second, "timeout")
	m.ConsumerAsked(0, "refused")
	m.Applied(telemetry.AppliedOne, 37*time.Second)
	m.Applied(telemetry.AppliedOne, -time.Second)
	m.Applied(telemetry.AppliedAll, 90*time.Second)
	want := []string{`{result="answered"} 1`, `{result="refused"} 1`, `{result="timeout"} 1`}
	if got := series(t, m, "consumer_polls_total"); !slices.Equal(got, want) {
		t.Errorf("consumer_polls_total: %q", got)
	}
	if got := series(t, m, "consumer_poll_seconds"); !slices.Contains(got, "_sum 2.03125") || !slices.Contains(got, "_count 3") {
		t.Errorf("consumer_poll_seconds: %q", got)
	}
	latency := series(t, m, "applied_latency_seconds")
	for _, line := range []string{
		`_sum{consumers="one"} 37`, `_count{consumers="one"} 2`, `_bucket{consumers="one",le="30"} 1`, `_bucket{consumers="one",le="45"} 2`,
		`_sum{consumers="all"} 90`, `_count{consumers="all"} 1`,
	} {
		if !slices.Contains(latency, line) {
			t.Errorf("applied_latency_seconds has no %s: %q", line, latency)
		}
	}
}

// TestFailingList: what was counted is served even when the HashRings cannot be listed.
func TestFailingList(t *testing.T) {
	m := newMetrics(&lister{rings: []v1alpha1.HashRing{fullRing("edge")}, err: errors.New("no cache")})
	if got := series(t, m, "publications_total"); len(got) != 2 {
		t.Errorf("publications_total: %q", got)
	}
	if got := series(t, m, "ready"); len(got) > 0 {
		t.Errorf("ready: %q", got)
	}
}

var (
	edge  = types.NamespacedName{Namespace: "cdn", Name: "edge"}
	began = time.Unix(1_700_000_000, 0)
)

// TestLatency: it runs from when something could have been published for the first time.
func TestLatency(t *testing.T) {
	second := func(n float64) time.Time { return began.Add(time.Duration(n * float64(time.Second))) }
	for name, row := range map[string]struct {
		tell func(*telemetry.Metrics)
		want string // Sum and count.
	}{
		"at once": {func(m *telemetry.Metrics) { m.Published(edge, nil, second(0), second(3)) }, "3 1"},
		"after minInterval": {func(m *telemetry.Metrics) {
			m.Waits(edge, second(5))
			m.Waits(edge, second(6))
			m.Published(edge, nil, second(5.1), second(7))
		}, "2 1"},
		"after failures": {func(m *telemetry.Metrics) {
			m.Failed(edge, second(0))
			m.Failed(edge, second(1))
			m.Published(edge, nil, second(5), second(8))
		}, "8 1"},
		"twice": {func(m *telemetry.Metrics) {
			m.Published(edge, nil, second(0), second(1))
			m.Published(edge, nil, second(10), second(12))
		}, "3 2"},
		"taken back in between": {func(m *telemetry.Metrics) {
			m.Waits(edge, second(5))
			m.Settled(edge)
			m.Published(edge, nil, second(20), second(21))
		}, "1 1"},
		"by a clock that went back": {func(m *telemetry.Metrics) { m.Published(edge, nil, second(3), second(1)) }, "0 1"},
		"others do not count":       {func(m *telemetry.Metrics) { m.Failed(types.NamespacedName{Name: "x"}, second(0)) }, "0 0"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMetrics(&lister{})
			row.tell(m)
			var sum, count string
			for _, line := range series(t, m, "publish_latency_seconds") {
				if rest, ok := strings.CutPrefix(line, "_sum "); ok {
					sum = rest
				}
				if rest, ok := strings.CutPrefix(line, "_count "); ok {
					count = rest
				}
			}
			if got := sum + " " + count; got != row.want {
				t.Errorf("sum and count are %q, want %q", got, row.want)
			}
		})
	}
}

// TestCounts: each call counts what it says, and rings that are gone leave nothing.
func TestCounts(t *testing.T) {
	l := &lister{rings: []v1alpha1.HashRing{fullRing("edge")}}
	m := newMetrics(l)
	m.Published(edge, ptr.To[uint64](1<<30), began, began)
	m.Published(edge, ptr.To[uint64](1<<31), began, began)
	m.Failed(edge, began)
	m.Restored(3)
	check := func(name string, want ...string) {
		t.Helper()
		if got := series(t, m, name); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	check("publications_total", `{result="failed"} 1`, `{result="published"} 2`)
	check("restores_total", " 3")
	if got := series(t, m, "movement_ratio"); !slices.Contains(got, "_sum 0.75") || !slices.Contains(got, "_count 2") {
		t.Errorf("movement_ratio: %q", got)
	}
	check("moved_ratio_total", `{name="edge",namespace="cdn"} 0.75`)
	l.rings = nil
	check("moved_ratio_total")
	l.rings = []v1alpha1.HashRing{fullRing("edge")}
	check("moved_ratio_total", `{name="edge",namespace="cdn"} 0`)
}

// TestNil: without metrics nothing is counted.
func TestNil(*testing.T) {
	var m *telemetry.Metrics
	m.Waits(edge, began)
	m.Published(edge, nil, began, began)
	m.Failed(edge, began)
	m.Settled(edge)
	m.Restored(1)
	m.ConsumerAsked(1, "")
	m.Applied(telemetry.AppliedAll, 1)
}

// TestStart: they are served while Start runs, by one at a time.
func TestStart(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := telemetry.New(&lister{}, ringcache.New(1000), registry)
	served := func() bool {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		return len(families) > 0
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Start(ctx) }()
	for !served() {
		runtime.Gosched()
		if t.Context().Err() != nil {
			t.Fatal("not served")
		}
	}
	other := telemetry.New(&lister{}, ringcache.New(1000), registry)
	if err := other.Start(t.Context()); err != nil { // It returns at once.
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if served() {
		t.Error("served after the end")
	}
}

// BenchmarkCollect is a scrape of 1,000 HashRings.
func BenchmarkCollect(b *testing.B) {
	l := &lister{}
	for n := range 1000 {
		l.rings = append(l.rings, fullRing(fmt.Sprint("edge-", n)))
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(telemetry.New(l, ringcache.New(1000), registry))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := registry.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
