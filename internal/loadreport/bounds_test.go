// SPDX-License-Identifier: Apache-2.0

package loadreport

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestMemoryIsBounded has a million names of everything that a reporter can name.
func TestMemoryIsBounded(t *testing.T) {
	if raceDetector {
		t.Skip("it takes minutes")
	}
	const million, room = 1_000_000, 1 << 20
	for name, test := range map[string]struct {
		change func(*Report, string)
		want   map[Reason]int
	}{
		"endpoints": {func(r *Report, name string) { r.Endpoint = name }, map[Reason]int{UnknownEndpoint: million}},
		"policies":  {func(r *Report, name string) { r.Policy = name }, map[Reason]int{UnknownPolicy: million}},
		"sources":   {func(r *Report, name string) { r.Source = v1alpha1.LoadSourceType(name) }, map[Reason]int{UnknownSource: million}},
		"reporters": {func(r *Report, name string) { r.Reporter = name }, map[Reason]int{TooManyReporters: million - 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewPedanticRegistry()
			s := NewStore(Limits{}, NewMetrics(registry))
			s.SetPolicy(checkout())
			before := heap()
			refused := map[Reason]int{}
			long := strings.Repeat("x", 100)
			for i := range million {
				r := said(push, "a", "", 0, 1)
				test.change(&r, long+strconv.Itoa(i))
				for reason, n := range s.Add(at(0), r) {
					refused[reason] += n
				}
			}
			if d := cmp.Diff(test.want, refused); d != "" {
				t.Error(d)
			}
			if grown := heap() - before; grown > room {
				t.Errorf("the heap grew by %d bytes", grown)
			}
			if n, err := testutil.GatherAndCount(registry); err != nil || n > 2 {
				t.Errorf("%d series of metrics, %v", n, err)
			}
			runtime.KeepAlive(s)
		})
	}
}

// TestRoomForReporters has one limit after the other.
func TestRoomForReporters(t *testing.T) {
	for name, test := range map[string]struct {
		limits Limits
		room   int
	}{
		"an endpoint": {Limits{Reporters: 3}, 6},
		"a policy":    {Limits{PolicySeries: 4}, 4},
		"the store":   {Limits{Series: 5}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(test.limits)
			kept := 0
			fill := func(now time.Duration) {
				kept = 0
				for i := range 20 {
					for _, e := range []string{"a", "b"} {
						if s.Add(at(now), said(lrs, e, fmt.Sprint("client-", now, i), now, 1)) == nil {
							kept++
						}
					}
				}
			}
			fill(0)
			if kept != test.room || s.Series() != test.room {
				t.Fatalf("%d reporters, %d series", kept, s.Series())
			}
			// Those that are stale give room for others.
			if fill(20 * sec); kept != test.room || s.Series() != test.room {
				t.Fatalf("later %d reporters, %d series", kept, s.Series())
			}
		})
	}
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	s := NewStore(Limits{}, NewMetrics(registry))
	s.SetPolicy(checkout())
	s.Add(at(0), said(push, "a", "", 0, 1), said(push, "a", "", 0, 1), said(push, "b", "", 0, -1), said(lrs, "b", "", 0, 1), said("mine", "b", "", 0, 1))
	want := `# HELP ringwright_load_reports_accepted_total Load reports that were kept by the owner of their policy, by source.
# TYPE ringwright_load_reports_accepted_total counter
ringwright_load_reports_accepted_total{source="LRS"} 1
ringwright_load_reports_accepted_total{source="Push"} 1
# HELP ringwright_load_reports_refused_total Load reports that were refused or dropped, by source and reason.
# TYPE ringwright_load_reports_refused_total counter
ringwright_load_reports_refused_total{reason="Negative",source="Push"} 1
ringwright_load_reports_refused_total{reason="Replayed",source="Push"} 1
ringwright_load_reports_refused_total{reason="UnknownSource",source="other"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Fatal(err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
}

// BenchmarkAdd has 1,000 endpoints with a report each.
func BenchmarkAdd(b *testing.B) {
	s, reports := NewStore(Limits{}, NewMetrics(prometheus.NewRegistry())), make([]Report, 1000)
	spec := checkout()
	spec.Endpoints = nil
	for i := range reports {
		id := fmt.Sprintf("5f3c0e1a-%04d", i)
		spec.Endpoints = append(spec.Endpoints, Endpoint{ID: id})
		reports[i] = said(push, id, "", 0, 0.5).counted(1, 2, 0)
	}
	s.SetPolicy(spec)
	now := t0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(5 * time.Second)
		for i := range reports {
			reports[i].End = now
		}
		if refused := s.Add(now, reports...); refused != nil {
			b.Fatal(refused)
		}
		if now.Unix()%10 == 0 {
			s.Collect(spec.Policy, now, now.Add(-10*time.Second))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(reports)), "ns/report")
}
