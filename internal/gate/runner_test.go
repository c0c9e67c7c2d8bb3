// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/consumer"
	"github.com/ringwright/ringwright/internal/migration"
	"github.com/ringwright/ringwright/internal/promclient"
)

// fakeServer answers the queries of a runner in a bubble of synctest, in which there is no network.
type fakeServer struct {
	mu sync.Mutex
	// value is what it answers; "" where it is down. takes is how long that takes.
	value string
	takes time.Duration
	// queries are those that it got, asking and most how many at once.
	queries      []string
	asking, most int
}

func (f *fakeServer) set(value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.value = value
}

func (f *fakeServer) got() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	got := f.queries
	f.queries = nil
	return got
}

func (f *fakeServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.ParseForm(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.queries = append(f.queries, r.Form.Get("query"))
	f.asking++
	f.most = max(f.most, f.asking)
	value, takes := f.value, f.takes
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.asking--
		f.mu.Unlock()
	}()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if value == "" {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(oneSample(value, time.Now()))), Request: r}, nil
}

// notices counts for whom Changed was called.
type notices struct {
	mu    sync.Mutex
	calls map[types.NamespacedName]int
}

func (c *notices) changed(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[name]++
}

func (c *notices) take(name types.NamespacedName) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.calls[name]
	c.calls[name] = 0
	return n
}

// started returns a runner that measures with a server, and whom it told.
func started(t *testing.T, server *fakeServer, o Options) (*Runner, *notices) {
	t.Helper()
	changes := &notices{calls: map[types.NamespacedName]int{}}
	o.Clock, o.Changed = clock.RealClock{}, changes.changed
	r := NewRunner(o)
	r.servers.Transport = func(string) *http.Transport {
		transport := &http.Transport{}
		transport.RegisterProtocol("http", server)
		return transport
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return r, changes
}

var migrationName = types.NamespacedName{Namespace: "cdn", Name: "v1-to-v2"}

// running is a step that took effect some time ago.
func running(ago time.Duration) Subject {
	s := about(0)
	s.Effective = time.Now().Add(-ago)
	return s
}

func resultsOf(list []migration.Measurement) string {
	var words []string
	for _, m := range list {
		words = append(words, m.Gate+" "+string(m.Result))
	}
	return strings.Join(words, ", ")
}

func TestRunner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{value: "0.01"}
		r, changes := started(t, server, Options{})
		s, g := running(time.Hour), []v1alpha1.MigrationGate{asked("http://prometheus", "q")}
		if got := r.Follow(s, g); got != nil {
			t.Errorf("before it was measured: %+v", got)
		}
		<-time.After(time.Second)
		got := r.Follow(s, g)
		if resultsOf(got) != "errors Pass" || time.Since(got[0].At) > 2*time.Second || got[0].At.Nanosecond() != 0 || changes.take(migrationName) != 1 {
			t.Fatalf("%+v", got)
		}
		for range 10 { // It stays younger than twice its interval.
			<-time.After(time.Minute)
			again := r.Follow(s, g)
			if again[0].At.Equal(got[0].At) || time.Since(again[0].At) > time.Minute || changes.take(migrationName) < 1 {
				t.Fatalf("a minute later: %+v", again)
			}
			got = again
		}
		if n := len(server.got()); n < 11 || n > 13 {
			t.Errorf("%d queries in ten minutes", n)
		}
		server.set("0.1")
		<-time.After(time.Minute)
		if got := r.Follow(s, g); resultsOf(got) != "errors Fail" {
			t.Errorf("%+v", got)
		}
		r.Forget(s.UID)
		changes.take(migrationName)
		server.got()
		<-time.After(time.Hour)
		if n := len(server.got()); n > 0 || changes.take(migrationName) > 0 || r.Readings(s.UID) != nil {
			t.Errorf("%d queries after it was forgotten", n)
		}
	})
}

// TestRunnerForgetsWhatIsGone: a migration whose finalizer somebody took away says no farewell. It is not asked about for ever, be there
// none of its name any more, or another one.
func TestRunnerForgetsWhatIsGone(t *testing.T) {
	for _, again := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			server := &fakeServer{value: "0.01"}
			r, _ := started(t, server, Options{})
			s := running(time.Hour)
			r.Follow(s, []v1alpha1.MigrationGate{asked("http://prometheus", "q")})
			<-time.After(time.Minute)
			server.got()
			if again {
				other := s
				other.UID = "another"
				r.Follow(other, nil)
			} else {
				r.Gone(types.NamespacedName{Namespace: s.Namespace, Name: "other"})
				r.Gone(types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
			}
			<-time.After(time.Hour)
			if n := len(server.got()); n > 0 || r.Readings(s.UID) != nil {
				t.Errorf("%d queries after it was gone", n)
			}
		})
	}
}

// TestRunnerForgetsSteps has no result of a step before, even where that is on its way, and no two measurements at once.
func TestRunnerForgetsSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{value: "0.01", takes: 5 * time.Second}
		r, _ := started(t, server, Options{})
		s, g := running(time.Hour), []v1alpha1.MigrationGate{asked("http://prometheus", "q$ring $datacenters")}
		g[0].Prometheus.BaselineQuery = "0"
		r.Follow(s, g)
		<-time.After(3 * time.Second) // It is on its way.
		next := s
		next.Token, next.Datacenters, next.Effective = "1.1.2-2", []string{"fra02", "lab01"}, time.Now().Add(-time.Hour)
		server.got()
		if got := r.Follow(next, g); got != nil {
			t.Errorf("%+v", got)
		}
		<-time.After(9 * time.Second)
		if got := r.Follow(next, g); got != nil {
			t.Errorf("after the time of the one before: %+v", got)
		}
		<-time.After(2 * time.Second)
		if got := r.Follow(next, g); resultsOf(got) != "errors Pass" {
			t.Errorf("%+v", got)
		}
		if diff := cmp.Diff([]string{"qcandidate fra02|lab01", "0"}, server.got()); diff != "" || server.most != 1 {
			t.Errorf("%d at once\n%s", server.most, diff)
		}
		rounded := next
		rounded.Effective = next.Effective.Truncate(time.Second)
		if got := r.Follow(rounded, g); got == nil {
			t.Error("it begins anew with the time that the status has")
		}
		for name, change := range map[string]func(*Subject){
			"token":      func(s *Subject) { s.Token = "1.1.2-3" },
			"effective":  func(s *Subject) { s.Effective = s.Effective.Add(time.Second) },
			"not":        func(s *Subject) { s.Effective = time.Time{} },
			"self-test":  func(s *Subject) { s.SelfTest = true },
			"rings":      func(s *Subject) { s.Rings = []string{"other"} },
			"datacenter": func(s *Subject) { s.Datacenters = []string{"lab01"} },
		} {
			r.Follow(next, g)
			<-time.After(20 * time.Second)
			if r.Follow(next, g) == nil {
				t.Fatal("no result")
			}
			other := next
			change(&other)
			if got := r.Follow(other, g); got != nil {
				t.Errorf("%s: %+v", name, got)
			}
		}
		edited := []v1alpha1.MigrationGate{*g[0].DeepCopy()}
		r.Follow(next, g)
		<-time.After(20 * time.Second)
		edited[0].FailWhen = "value > 0.001"
		if got := r.Follow(next, edited); got != nil {
			t.Errorf("of the gate before its edit: %+v", got)
		}
		<-time.After(20 * time.Second)
		if got := r.Follow(next, edited); resultsOf(got) != "errors Fail" {
			t.Errorf("%+v", got)
		}
	})
}

// TestRunnerOrder returns the results in the order of the gates, and none of those that are gone.
func TestRunnerOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{value: "0.01"}
		r, _ := started(t, server, Options{})
		s := running(time.Hour)
		var g []v1alpha1.MigrationGate
		for _, name := range []string{"b", "a", "invalid", "c"} {
			gate := asked("http://prometheus", "q")
			gate.Name = name
			g = append(g, gate)
		}
		g[2].FailWhen = "valu > 1"
		r.Follow(s, g)
		<-time.After(time.Second)
		got := r.Follow(s, g)
		if resultsOf(got) != "b Pass, a Pass, invalid Error, c Pass" || !strings.Contains(got[2].Detail, `gates[invalid].failWhen: Invalid value: "valu > 1": at character 1`) {
			t.Errorf("%+v", got)
		}
		if got := r.Follow(s, g[1:2]); resultsOf(got) != "a Pass" || len(r.Readings(s.UID)) != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// TestRunnerLimit measures no more at a time than it may.
func TestRunnerLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{value: "0.01", takes: 5 * time.Second}
		r, _ := started(t, server, Options{})
		for i := range 3 * MaxMeasuring {
			s := running(time.Hour)
			s.UID, s.Name = types.UID(fmt.Sprint(i)), fmt.Sprint("move-", i)
			r.Follow(s, []v1alpha1.MigrationGate{asked("http://prometheus", "q")})
		}
		<-time.After(20 * time.Second)
		if server.most != MaxMeasuring || len(server.got()) != 3*MaxMeasuring {
			t.Errorf("%d at once, want %d", server.most, MaxMeasuring)
		}
	})
}

// TestRunnerOutage has half an hour without a server say Error, and Pass soon after.
func TestRunnerOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{value: "0.01"}
		r, _ := started(t, server, Options{})
		s, g := running(time.Hour), []v1alpha1.MigrationGate{asked("http://prometheus", "q")}
		r.Follow(s, g)
		<-time.After(time.Minute)
		server.set("")
		<-time.After(time.Minute)
		server.got()
		down := time.Now()
		for range 30 {
			if got := r.Follow(s, g); resultsOf(got) != "errors Error" || time.Since(got[0].At) > time.Minute {
				t.Fatalf("%+v", got)
			}
			<-time.After(time.Minute)
		}
		if got := r.Readings(s.UID); got[0].Since.After(down) || !strings.Contains(got[0].Detail, "connection refused") {
			t.Errorf("%+v", got)
		}
		if n := len(server.got()); n > 60 {
			t.Errorf("%d queries in half an hour", n)
		}
		server.set("0.01")
		<-time.After(time.Minute + promclient.OpenFor)
		if got := r.Follow(s, g); resultsOf(got) != "errors Pass" {
			t.Errorf("%+v", got)
		}
	})
}

// TestRunnerNewStep has a step judged as soon as it is in effect for long enough.
func TestRunnerNewStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &fakeServer{value: "0.01"}
		r, _ := started(t, server, Options{})
		s, g := running(0), []v1alpha1.MigrationGate{asked("http://prometheus", "q[$window]")}
		g[0].Interval = &metav1.Duration{Duration: 10 * time.Minute}
		r.Follow(s, g)
		<-time.After(time.Second)
		if got := r.Follow(s, g); resultsOf(got) != "errors NoData" || !strings.Contains(got[0].Detail, "window too short") {
			t.Errorf("%+v", got)
		}
		<-time.After(shortestWindow + time.Second)
		got := r.Follow(s, g)
		if resultsOf(got) != "errors Pass" || got[0].At.Before(s.Effective.Add(shortestWindow)) {
			t.Errorf("%+v", got)
		}
		if diff := cmp.Diff([]string{"q[60s]"}, server.got(), cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
		s.Token, s.Effective = "1.1.2-2", time.Time{} // Dispatched, and not in effect: from now on.
		r.Follow(s, g)
		<-time.After(shortestWindow + 2*time.Second)
		if got := r.Follow(s, g); resultsOf(got) != "errors Pass" {
			t.Errorf("%+v", got)
		}
		if got := server.got(); len(got) != 1 || got[0] != "q[60s]" {
			t.Errorf("%q", got)
		}
	})
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prom.NewRegistry()
		server := &fakeServer{value: "0.5"}
		r, _ := started(t, server, Options{Registry: registry})
		g := asked("http://prometheus", "q")
		r.Follow(running(time.Hour), []v1alpha1.MigrationGate{g})
		<-time.After(time.Second)
		want := `
# HELP ringwright_gate_provider_open Circuit breakers of the Prometheus at an address that are not closed: with it, gates say Error without asking.
# TYPE ringwright_gate_provider_open gauge
ringwright_gate_provider_open{address="http://prometheus"} 0
# HELP ringwright_migration_gate_result 1 for what a gate of a RingMigration said last, 0 for the other results.
# TYPE ringwright_migration_gate_result gauge
ringwright_migration_gate_result{gate="errors",name="v1-to-v2",namespace="cdn",result="Error"} 0
ringwright_migration_gate_result{gate="errors",name="v1-to-v2",namespace="cdn",result="Fail"} 1
ringwright_migration_gate_result{gate="errors",name="v1-to-v2",namespace="cdn",result="Inconclusive"} 0
ringwright_migration_gate_result{gate="errors",name="v1-to-v2",namespace="cdn",result="NoData"} 0
ringwright_migration_gate_result{gate="errors",name="v1-to-v2",namespace="cdn",result="Pass"} 0
# HELP ringwright_migration_gate_value The number behind it: value, baseline or samples. There is none of a number that is not known.
# TYPE ringwright_migration_gate_value gauge
ringwright_migration_gate_value{gate="errors",name="v1-to-v2",namespace="cdn",number="value"} 0.5
`
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
			"ringwright_gate_provider_open", "ringwright_migration_gate_result", "ringwright_migration_gate_value"); err != nil {
			t.Error(err)
		}
		if got := testutil.ToFloat64(r.metrics.measurements.WithLabelValues("prometheus", "Fail")); got != 1 {
			t.Errorf("%v measurements", got)
		}
		if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
		server.set("")
		<-time.After(10 * time.Minute)
		if got := r.servers.Open()["http://prometheus"]; got != 1 {
			t.Errorf("%d open", got)
		}
	})
}

// TestRunnerConsumers has counters that come at times of their own: the result is never as old as two intervals where they come
// not much more rarely, and where they come all the time there are no more results than of other gates.
func TestRunnerConsumers(t *testing.T) {
	for every, results := range map[time.Duration][2]int{80 * time.Second: {20, 24}, time.Second: {28, 41}} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			r, _ := started(t, &fakeServer{}, Options{Samples: func(types.NamespacedName) []consumer.Sample {
				n := time.Since(began) / every
				s := from(0, counts{selections: uint64(n)}, counts{})
				s.At = began.Add(n*every + 7*time.Millisecond)
				if s.At.After(time.Now()) {
					return nil
				}
				return []consumer.Sample{s.Sample}
			}})
			s := running(0)
			g := []v1alpha1.MigrationGate{{Name: "agents", Consumers: &v1alpha1.ConsumersGate{MaxErrorRatio: "0%"}}}
			seen := map[time.Time]bool{}
			for second := range 33 * 60 {
				<-time.After(time.Second)
				got := r.Follow(s, g)
				if second < 180 {
					continue
				}
				if resultsOf(got) != "agents Pass" || time.Since(got[0].At) >= 2*time.Minute {
					t.Fatalf("after %ds: %+v", second, got)
				}
				seen[got[0].At] = true
			}
			if n := len(seen); n < results[0] || n > results[1] {
				t.Errorf("%d results in half an hour of counters that come every %s", n, every)
			}
		})
	}
}
