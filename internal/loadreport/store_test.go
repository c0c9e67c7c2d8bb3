// SPDX-License-Identifier: Apache-2.0

package loadreport

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

const (
	lrs        = v1alpha1.SourceLRS
	push       = v1alpha1.SourcePush
	metricsAPI = v1alpha1.SourceMetrics
)

var equal = cmp.Options{cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-9)}

// checkout is a policy with two endpoints.
func checkout() PolicySpec {
	return PolicySpec{
		Policy: "shop/checkout", Metric: v1alpha1.MetricCPU,
		Sources: []Source{
			{lrs, 5 * time.Second, 20 * time.Second}, {push, 5 * time.Second, 20 * time.Second}, {metricsAPI, 15 * time.Second, 45 * time.Second},
		},
		Endpoints: []Endpoint{{"b", "pod-b", "10.0.0.2", 80}, {"a", "pod-a", "10.0.0.1", 80}, {"c", "pod-c", "fd00::3", 80}},
	}
}

func newStore(limits Limits) *Store {
	s := NewStore(limits, nil)
	s.SetPolicy(checkout())
	return s
}

// said returns a report of nothing but CPU.
func said(source v1alpha1.LoadSourceType, endpoint, reporter string, end time.Duration, cpu float64) Report {
	return Report{
		Policy: "shop/checkout", Endpoint: endpoint, Source: source, Reporter: reporter, End: t0.Add(end), Window: 5 * time.Second,
		CPU: cpu, InFlight: nan, Custom: nan, Requests: nan, Errors: nan,
	}
}

// counted adds what clients count.
func (r Report) counted(inFlight, requests, errors float64) Report {
	r.InFlight, r.Requests, r.Errors = inFlight, requests, errors
	return r
}

func at(d time.Duration) time.Time { return t0.Add(d) }

const sec = time.Second

func (s *Store) mustAdd(t *testing.T, now time.Time, reports ...Report) {
	t.Helper()
	if refused := s.Add(now, reports...); refused != nil {
		t.Fatalf("refused: %v", refused)
	}
}

func TestCollectMeansOverTheWindow(t *testing.T) {
	s := newStore(Limits{})
	for i, cpu := range []float64{9, 0.4, 0.6} { // The first one ended before.
		end := time.Duration(5*i) * sec
		s.mustAdd(t, at(end), said(push, "a", "", end, cpu).counted(float64(i), 100, float64(i)))
	}
	got := s.Collect("shop/checkout", at(10*sec), at(0))
	want := []Reading{{Endpoint: "a", Source: push, Start: at(0), End: at(10 * sec), CPU: 0.5, InFlight: 1.5, Custom: nan,
		Requests: 200, Errors: 3, Rate: 20, Reporters: 1}}
	if d := cmp.Diff(want, got, equal); d != "" {
		t.Fatal(d)
	}
	// Nothing new: the newest again, and its End says so.
	got = s.Collect("shop/checkout", at(20*sec), at(10*sec))
	if len(got) != 1 || !got[0].End.Equal(at(10*sec)) || got[0].CPU != 0.6 || got[0].Requests != 100 {
		t.Fatalf("%+v", got)
	}
	if got = s.Collect("shop/checkout", at(30*sec), at(20*sec)); got != nil { // 20 s old is stale.
		t.Fatalf("%+v", got)
	}
	if n := s.Series(); n != 0 {
		t.Fatalf("%d series left", n)
	}
}

func TestReportersAddUp(t *testing.T) {
	s := newStore(Limits{})
	s.mustAdd(t, at(5*sec),
		said(lrs, "a", "client-1", 4*sec, 0.2).counted(10, 300, 3),
		said(lrs, "10.0.0.1:80", "client-2", 5*sec, 0.6).counted(2, 100, 0),
		said(lrs, "a", "idle", 5*sec, 0.9).counted(0, 0, 0), // Of no request: it says nothing of the CPU.
		said(lrs, "[fd00:0::3]:80", "client-1", 5*sec, 0.1).counted(1, 5, 0),
	)
	got := s.Collect("shop/checkout", at(5*sec), at(0))
	want := []Reading{
		{Endpoint: "a", Source: lrs, Start: at(-1 * sec), End: at(5 * sec), CPU: 0.3, InFlight: 12, Custom: nan, Requests: 400, Errors: 3, Rate: 80, Reporters: 3},
		{Endpoint: "c", Source: lrs, Start: at(0), End: at(5 * sec), CPU: 0.1, InFlight: 1, Custom: nan, Requests: 5, Errors: 0, Rate: 1, Reporters: 1},
	}
	if d := cmp.Diff(want, got, equal); d != "" {
		t.Fatal(d)
	}
	// One of them reports again: the other has its requests in flight still, but none that are new.
	s.mustAdd(t, at(10*sec), said(lrs, "a", "client-1", 9*sec, 0.2).counted(20, 300, 0))
	got = s.Collect("shop/checkout", at(10*sec), at(5*sec))
	if got[0].InFlight != 22 || got[0].Requests != 300 || got[0].Rate != 60 {
		t.Fatalf("%+v", got[0])
	}
}

func TestPrecedence(t *testing.T) {
	s := newStore(Limits{})
	figures := func() (v1alpha1.LoadSourceType, float64, float64) {
		got := s.Collect("shop/checkout", at(30*sec), at(0))
		if len(got) != 1 {
			t.Fatalf("%d readings", len(got))
		}
		return got[0].Source, got[0].CPU, got[0].InFlight
	}
	s.mustAdd(t, at(0), said(metricsAPI, "a", "", 0, 0.7))
	if source, cpu, inFlight := figures(); source != metricsAPI || cpu != 0.7 || !math.IsNaN(inFlight) {
		t.Fatal(source, cpu, inFlight)
	}
	// Clients know requests, and not the CPU, which the policy is about.
	s.mustAdd(t, at(25*sec), said(lrs, "a", "client", 25*sec, nan).counted(4, 10, 0))
	if source, cpu, inFlight := figures(); source != metricsAPI || cpu != 0.7 || inFlight != 4 {
		t.Fatal(source, cpu, inFlight)
	}
	s.mustAdd(t, at(26*sec), said(push, "a", "", 26*sec, 0.5).counted(9, nan, nan))
	if source, cpu, inFlight := figures(); source != push || cpu != 0.5 || inFlight != 9 {
		t.Fatal(source, cpu, inFlight)
	}
	s.mustAdd(t, at(27*sec), said(lrs, "a", "client", 27*sec, 0.3).counted(4, 10, 0))
	if source, cpu, inFlight := figures(); source != lrs || cpu != 0.3 || inFlight != 4 {
		t.Fatal(source, cpu, inFlight)
	}
	want := map[v1alpha1.LoadSourceType]int{lrs: 1, push: 1, metricsAPI: 1}
	if d := cmp.Diff(want, s.Fresh("shop/checkout", at(30*sec))); d != "" {
		t.Fatal(d)
	}
	want = map[v1alpha1.LoadSourceType]int{lrs: 0, push: 0, metricsAPI: 0}
	if d := cmp.Diff(want, s.Fresh("shop/checkout", at(60*sec))); d != "" {
		t.Fatal(d)
	}
}

func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		report Report
		want   Reason
	}{
		"policy":             {func() Report { r := good(); r.Policy = "shop/other"; return r }(), UnknownPolicy},
		"endpoint":           {said(push, "d", "", 10*sec, 1), UnknownEndpoint},
		"port":               {said(push, "10.0.0.1:81", "", 10*sec, 1), UnknownEndpoint},
		"source":             {said(v1alpha1.SourceORCA, "a", "", 10*sec, 1), UnknownSource},
		"no source":          {said("x", "a", "", 10*sec, 1), UnknownSource},
		"same end":           {said(push, "a", "", 5*sec, 1), Replayed},
		"earlier":            {said(push, "a", "", 4*sec, 1), Replayed},
		"too often":          {said(push, "a", "", 5*sec+249*time.Millisecond, 1), TooOften},
		"often":              {said(push, "a", "", 5*sec+250*time.Millisecond, 1), ""},
		"other reporter":     {said(push, "a", "other", 5*sec, 1), ""},
		"stale":              {said(push, "b", "", -10*sec, 1), Stale},
		"fresh":              {said(push, "b", "", -10*sec+1, 1), ""},
		"checked as a whole": {said(push, "b", "", 10*sec, math.Inf(1)), NotFinite},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(Limits{})
			s.mustAdd(t, at(10*sec), said(push, "a", "", 5*sec, 0.5))
			want := map[Reason]int{test.want: 1}
			if test.want == "" {
				want = nil
			}
			if d := cmp.Diff(want, s.Add(at(10*sec), test.report)); d != "" {
				t.Fatal(d)
			}
		})
	}
}

func TestSetPolicyForgetsWhatIsGone(t *testing.T) {
	s := newStore(Limits{})
	s.mustAdd(t, at(0), said(push, "a", "", 0, 0.1), said(push, "b", "", 0, 0.2), said(lrs, "b", "x", 0, 0.3))
	s.SetSourceError("shop/checkout", push, at(0), "no")
	s.SetSourceError("shop/checkout", metricsAPI, at(0), "no API")
	s.SetSourceError("shop/checkout", v1alpha1.SourceORCA, at(0), "not a source")
	spec := checkout()
	spec.Endpoints = []Endpoint{{"b", "pod-b", "10.0.0.9", 80}, {"a2", "pod-a", "10.0.0.1", 80}}
	spec.Sources = []Source{spec.Sources[2], spec.Sources[1]}
	s.SetPolicy(spec)
	got := s.Collect("shop/checkout", at(1*sec), at(-1*sec))
	if len(got) != 1 || got[0].Endpoint != "b" || got[0].Source != push || got[0].CPU != 0.2 {
		t.Fatalf("%+v", got)
	}
	if n := s.Series(); n != 1 {
		t.Fatalf("%d series", n)
	}
	want := map[v1alpha1.LoadSourceType]SourceError{push: {at(0), "no"}, metricsAPI: {at(0), "no API"}}
	if d := cmp.Diff(want, s.SourceErrors("shop/checkout")); d != "" {
		t.Fatal(d)
	}
	s.SetSourceError("shop/checkout", push, at(1*sec), "")
	if e := s.SourceErrors("shop/checkout"); len(e) != 1 {
		t.Fatal(e)
	}
	s.DeletePolicy("shop/checkout")
	s.DeletePolicy("shop/never")
	if s.Series() != 0 || s.Collect("shop/checkout", at(0), at(0)) != nil || s.Fresh("shop/checkout", at(0)) != nil || s.SourceErrors("shop/checkout") != nil {
		t.Fatal("something is left")
	}
}

// TestJoined has reports of 1 s and an update in a minute: their figures are those of the reports, in few records.
func TestJoined(t *testing.T) {
	s := newStore(Limits{})
	for minute := range 3 {
		start := time.Duration(minute) * time.Minute
		for i := 1; i <= 60; i++ {
			end := start + time.Duration(i)*sec
			r := said(push, "a", "", end, float64(i)).counted(float64(2*i), float64(i), 1)
			r.Window = sec
			s.mustAdd(t, at(end), r)
		}
		if n := len(s.policies["shop/checkout"].byID["a"].slots[1].list[0].records); n > maxRecords {
			t.Fatalf("%d records", n)
		}
		got := s.Collect("shop/checkout", at(start+time.Minute), at(start))
		if minute == 0 { // It was not known that an update takes a minute.
			continue
		}
		want := []Reading{{Endpoint: "a", Source: push, Start: at(start), End: at(start + time.Minute), CPU: 30.5, InFlight: 61, Custom: nan,
			Requests: 1830, Errors: 60, Rate: 30.5, Reporters: 1}}
		if d := cmp.Diff(want, got, equal); d != "" {
			t.Fatal(d)
		}
	}
}

// TestManyReporters has so many that they are looked up by an index, of which half become stale.
func TestManyReporters(t *testing.T) {
	s := newStore(Limits{})
	reports := func(step int, end time.Duration) (list []Report) {
		for i := 0; i < 100; i += step {
			list = append(list, said(lrs, "a", fmt.Sprint("client-", i), end, nan).counted(1, 10, 0))
		}
		return list
	}
	s.mustAdd(t, at(0), reports(1, 0)...)
	if d := cmp.Diff(map[Reason]int{Replayed: 100}, s.Add(at(0), reports(1, 0)...)); d != "" {
		t.Fatal(d)
	}
	s.mustAdd(t, at(15*sec), reports(2, 15*sec)...)
	if got := s.Collect("shop/checkout", at(25*sec), at(5*sec)); got[0].Reporters != 50 || got[0].InFlight != 50 || got[0].Requests != 500 || s.Series() != 50 {
		t.Fatalf("%+v, %d series", got, s.Series())
	}
	if d := cmp.Diff(map[Reason]int{Replayed: 50}, s.Add(at(25*sec), reports(2, 15*sec)...)); d != "" {
		t.Fatal(d)
	}
	s.mustAdd(t, at(30*sec), reports(1, 30*sec)...)
	if got := s.Collect("shop/checkout", at(30*sec), at(25*sec)); got[0].Reporters != 100 || s.Series() != 100 {
		t.Fatalf("%+v, %d series", got, s.Series())
	}
}
