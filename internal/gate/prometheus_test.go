// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

const (
	errorRatio = `sum(rate(failed_total{datacenter=~"$datacenters",role="$ring"}[$window]))
		/ sum(rate(requests_total{datacenter=~"$datacenters",role="$ring"}[$window]))`
	requests = `sum(increase(requests_total{datacenter=~"$datacenters",role="$ring"}[$window]))`
)

// asked is a gate that asks an address.
func asked(address, query string) v1alpha1.MigrationGate {
	return v1alpha1.MigrationGate{
		Name: "errors", FailWhen: "value > 0.05", PassWhen: "value <= 0.02",
		Prometheus: &v1alpha1.PrometheusGate{Address: address, Query: query},
	}
}

// about is a step of lab01 that took effect at some minute.
func about(minute int) Subject {
	return Subject{
		UID: "uid", Namespace: "cdn", Name: "v1-to-v2", Token: "1.1.1-1", Rings: []string{"edge"}, Datacenters: []string{"lab01"},
		Effective: zero.Add(time.Duration(minute) * time.Minute),
	}
}

// measureAt measures a gate once.
func measureAt(t *testing.T, o Options, s Subject, g v1alpha1.MigrationGate, now time.Time) Reading {
	t.Helper()
	if o.Clock == nil {
		o.Clock = clocktesting.NewFakeClock(now)
	}
	o.Loopback = true
	r := NewRunner(o)
	defer r.servers.Close()
	compiled, err := compileGate(g)
	if err != nil {
		t.Fatal(err)
	}
	return r.measure(t.Context(), &task{subject: s, gate: compiled, begun: now, clock: o.Clock})
}

func TestRealPrometheus(t *testing.T) {
	address := promServer(t)
	with := func(change func(g *v1alpha1.MigrationGate)) v1alpha1.MigrationGate {
		g := asked(address, errorRatio)
		change(&g)
		return g
	}
	query := func(q string) v1alpha1.MigrationGate { return asked(address, q) }
	compared := with(func(g *v1alpha1.MigrationGate) {
		g.FailWhen, g.PassWhen = "value > 0.02 && value > 2 * baseline", "value <= 1.2 * baseline || value <= 0.02"
		g.Prometheus.SamplesQuery, g.MinSamples = requests, 1000
	})
	quiet := about(5)
	quiet.Datacenters = []string{"quiet02"}
	unknown := about(5)
	unknown.Datacenters = []string{"lab.1"}
	fresh := about(29)
	fresh.Effective = zero.Add(29*time.Minute + 30*time.Second)
	for name, c := range map[string]struct {
		subject Subject
		gate    v1alpha1.MigrationGate
		minute  float64
		want    migration.Result
		detail  string
	}{
		"pass":            {about(5), compared, 20, migration.Pass, "value 0.01, baseline 0.002, samples 30000: passWhen holds: value <= 1.2"},
		"fail":            {about(5), compared, 40, migration.Fail, "value 0.1, baseline 0.002, samples 30000: failWhen holds: value > 0.02"},
		"neither":         {about(5), with(func(g *v1alpha1.MigrationGate) { g.PassWhen = "value < 0.001" }), 20, migration.Inconclusive, "value 0.01, baseline 0.002: neither"},
		"only passWhen":   {about(5), with(func(g *v1alpha1.MigrationGate) { g.FailWhen = "" }), 40, migration.Inconclusive, "passWhen does not hold"},
		"only failWhen":   {about(5), with(func(g *v1alpha1.MigrationGate) { g.PassWhen = "" }), 20, migration.Pass, "failWhen does not hold"},
		"both":            {about(5), with(func(g *v1alpha1.MigrationGate) { g.PassWhen = "true" }), 40, migration.Fail, "failWhen holds"},
		"few samples":     {about(5), with(func(g *v1alpha1.MigrationGate) { g.Prometheus.SamplesQuery, g.MinSamples = requests, 30001 }), 40, migration.Inconclusive, "samples 30000: at least 30001"},
		"samples missing": {about(5), with(func(g *v1alpha1.MigrationGate) { g.Prometheus.SamplesQuery, g.MinSamples = "absent_metric", 1 }), 20, migration.NoData, "samplesQuery: no series"},
		"no series":       {about(5), query(`absent_metric`), 20, migration.NoData, "query: no series"},
		"unknown place":   {unknown, query(errorRatio), 20, migration.NoData, "query: no series"},
		"not a number":    {quiet, query(errorRatio), 20, migration.NoData, "query: NaN, which is no number"},
		"infinite":        {about(5), query(`vector(1) / vector(0)`), 20, migration.NoData, "query: +Inf"},
		"minus infinite":  {about(5), query(`-1 / 0`), 20, migration.NoData, "query: -Inf"},
		"scalar":          {about(5), query(`scalar(vector(0.01))`), 20, migration.Pass, "value 0.01:"},
		"several series":  {about(5), query(`requests_total`), 20, migration.Error, "query: 4 series, and a gate needs one: aggregate"},
		"a range":         {about(5), query(`requests_total[$window]`), 20, migration.Error, "query: a matrix"},
		"a string":        {about(5), query(`"text"`), 20, migration.Error, "query: it does not answer as a Prometheus does: unexpected value type"},
		"no PromQL":       {about(5), query(`sum(`), 20, migration.Error, "query: bad_data: "},
		"baseline missing": {about(5), with(func(g *v1alpha1.MigrationGate) {
			g.FailWhen, g.Prometheus.BaselineQuery = "value > 2 * baseline", "absent_metric"
		}), 20, migration.NoData, "value 0.01: failWhen depends on what is not known; baselineQuery: no series"},
		"baseline missing for passWhen": {about(5), with(func(g *v1alpha1.MigrationGate) {
			g.PassWhen, g.Prometheus.BaselineQuery = "value < baseline", "absent_metric"
		}), 20, migration.NoData, "value 0.01: passWhen depends on what is not known; baselineQuery: no series"},
		"baseline not needed": {about(5), with(func(g *v1alpha1.MigrationGate) {
			g.FailWhen, g.PassWhen = "value > 0.02 && value > 2 * baseline", "value <= 0.02 || value <= baseline"
			g.Prometheus.BaselineQuery = "absent_metric"
		}), 20, migration.Pass, "value 0.01: passWhen holds"},
		"baseline of several": {about(5), with(func(g *v1alpha1.MigrationGate) { g.Prometheus.BaselineQuery = "requests_total" }), 20, migration.Error, "baselineQuery: 4 series"},
		"a gauge":             {about(5), query(`gone_gauge / 700`), 19, migration.Pass, "value 0.01"},
		"a gauge that ended":  {about(5), query(`gone_gauge / 700`), 25, migration.NoData, "no series"},
		// The sample is 81 seconds old, and from before the step took effect.
		"a gauge of the step before": {about(20), query(`last_over_time(gone_gauge[$window]) / 700`), 21.1, migration.NoData, "no series"},
		// The candidate fails since minute 30. A step that took effect in minute 35 is judged by what came after, one of minute 25 by
		// the last five minutes; in minute 31 those are 1 % for four of them.
		"window":               {about(25), query(errorRatio), 31.5, migration.Inconclusive, "value 0.037"},
		"window of a new step": {fresh, query(errorRatio), 31.5, migration.Fail, "value 0.07"},
		"window too short":     {about(20), query(errorRatio), 20.9, migration.NoData, "window too short: the step is in effect for 54s, and is measured after 1m0s"},
		"window long enough":   {about(20), query(errorRatio), 21, migration.Pass, "value 0.01"},
		"in the future":        {about(30), query(errorRatio), 21, migration.NoData, "window too short"},
	} {
		t.Run(name, func(t *testing.T) {
			now := zero.Add(time.Duration(c.minute * float64(time.Minute)))
			got := measureAt(t, Options{}, c.subject, c.gate, now)
			if got.Result != c.want || !strings.Contains(got.Detail, c.detail) {
				t.Errorf("%s %q, want %s %q", got.Result, got.Detail, c.want, c.detail)
			}
			if !got.At.Equal(now) || got.Gate != "errors" {
				t.Errorf("of gate %s at %s, want %s", got.Gate, got.At, now)
			}
		})
	}
}

// TestNumbers looks at the numbers of a reading, for status and metrics.
func TestNumbers(t *testing.T) {
	g := asked(promServer(t), errorRatio)
	g.Prometheus.SamplesQuery = requests
	got := measureAt(t, Options{}, about(5), g, zero.Add(20*time.Minute))
	want := Reading{Value: number(.01), Baseline: number(.002), Samples: number(30000)}
	if diff := cmp.Diff(want, Reading{Value: got.Value, Baseline: got.Baseline, Samples: got.Samples}, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Error(diff)
	}
	got = measureAt(t, Options{}, about(5), asked(g.Prometheus.Address, "vector(3)"), zero.Add(20*time.Minute))
	if got.Value == nil || *got.Value != 3 || got.Baseline != nil || got.Samples != nil {
		t.Errorf("%+v", got)
	}
}

// TestLateData asks as of now, of data that is long past.
func TestLateData(t *testing.T) {
	got := measureAt(t, Options{Clock: clock.RealClock{}}, Subject{Datacenters: []string{"lab01"}, Effective: zero}, asked(promServer(t), errorRatio), time.Now())
	if got.Result != migration.NoData || time.Since(got.At) > time.Minute {
		t.Errorf("%+v", got)
	}
}

func TestSelfTest(t *testing.T) {
	address := promServer(t)
	s := Subject{Namespace: "cdn", Name: "v1-to-v2", Rings: []string{"edge"}, Datacenters: []string{"lab01", "quiet02"}, SelfTest: true}
	quiet := s
	quiet.Datacenters = []string{"quiet02"}
	with := func(query, baseline, samples string) v1alpha1.MigrationGate {
		g := asked(address, query)
		g.Prometheus.BaselineQuery, g.Prometheus.SamplesQuery = baseline, samples
		return g
	}
	for name, c := range map[string]struct {
		subject Subject
		gate    v1alpha1.MigrationGate
		want    migration.Result
		detail  string
	}{
		"value of the stable ring":   {s, with(errorRatio, "", ""), migration.Inconclusive, "self-test passed: on the stable ring value 0.002, baseline 0.002"},
		"value that would fail":      {s, with("vector(1)", "", ""), migration.Inconclusive, "self-test passed: on the stable ring value 1"},
		"no errors yet, but samples": {s, with("absent_metric", "", requests), migration.Inconclusive, "self-test passed: on the stable ring samples 270000; query: no series"},
		"no traffic, but a baseline": {quiet, with(errorRatio, "vector(0)", ""), migration.Inconclusive, "self-test passed: on the stable ring baseline 0; query: NaN"},
		"no traffic":                 {quiet, with(errorRatio, "", ""), migration.NoData, "self-test: query: NaN"},
		"no data":                    {s, with("absent_metric", "", ""), migration.NoData, "self-test: query: no series"},
		"no data in either":          {s, with("absent_metric", "absent_baseline", "absent_samples"), migration.NoData, "self-test: query: no series"},
		"several series":             {s, with("requests_total", "", ""), migration.Error, "self-test: query: 4 series"},
		"several samples":            {s, with(errorRatio, "", "requests_total"), migration.Error, "self-test: samplesQuery: 4 series"},
		"a wrong baseline":           {s, with(errorRatio, "sum(", ""), migration.Error, "self-test: baselineQuery: bad_data"},
	} {
		t.Run(name, func(t *testing.T) {
			got := measureAt(t, Options{}, c.subject, c.gate, zero.Add(20*time.Minute))
			if got.Result != c.want || !strings.Contains(got.Detail, c.detail) {
				t.Errorf("%s %q, want %s %q", got.Result, got.Detail, c.want, c.detail)
			}
		})
	}
}

// TestVariables shows a server all of them, as part of the error of a query that is none.
func TestVariables(t *testing.T) {
	g := asked(promServer(t), `label_replace(vector(0), "$namespace/$migration", "$datacenters $rings $ring $window", "", "")`)
	s := about(5)
	s.Datacenters, s.Rings = []string{"ams01", "lab.1"}, []string{"edge", "edge-2"}
	c, err := compileGate(g)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.expanded(c.Prometheus.Query, ringCandidate, 90*time.Second)
	if want := `label_replace(vector(0), "cdn/v1-to-v2", "ams01|lab[.]1 edge|edge-2 candidate 90s", "", "")`; got != want || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if reading := measureAt(t, Options{}, s, g, zero.Add(20*time.Minute)); reading.Result != migration.Error || !strings.Contains(reading.Detail, "cdn/v1-to-v2") {
		t.Errorf("%+v", reading)
	}
}

// TestWindowOfGate has the window that the gate asks for.
func TestWindowOfGate(t *testing.T) {
	g := asked(promServer(t), `sum(increase(requests_total{role="candidate"}[$window])) / 1e6`)
	for _, c := range []struct {
		window, interval time.Duration
		want             float64
	}{{5 * time.Minute, time.Minute, .03}, {10 * time.Minute, time.Minute, .06}, {time.Minute, 5 * time.Second, .006}} {
		g.Prometheus.Window, g.Interval = &metav1.Duration{Duration: c.window}, &metav1.Duration{Duration: c.interval}
		if got := measureAt(t, Options{}, about(5), g, zero.Add(20*time.Minute)); got.Value == nil || math.Abs(*got.Value-c.want) > 1e-9 {
			t.Errorf("in %s: %+v", c.window, got)
		}
	}
}
