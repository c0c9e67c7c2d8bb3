// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringwright/ringwright/internal/movement"
)

// TestCacheStatus counts answers by what backends say, for the ring that decided.
func TestCacheStatus(t *testing.T) {
	cache := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if said := r.Header.Get("Say"); said != "" {
			w.Header().Set("X-Cache-Status", said)
		}
		w.WriteHeader(http.StatusNotFound)
	})
	c := config()
	c.CacheStatusHeader = "x-cache-status"
	f := &fleet{t: t, dir: t.TempDir()}
	f.publishBoth(ringOf(t, "a"), ringOf(t, "b"), map[string]string{"a": cache, "b": cache})
	f.serve(c)
	for i, said := range []string{"HIT", "HIT", "MISS", "anything, a client made it up", ""} {
		f.get(f.key("a"), "Say", said)
		if i < 1 {
			f.get(f.key("b"), "Say", said)
		}
	}
	for _, row := range []struct {
		status, role string
		want         float64
	}{
		{"HIT", "stable", 2}, {"MISS", "stable", 1}, {"OTHER", "stable", 2}, {"BYPASS", "stable", 0}, {"HIT", "candidate", 1}, {"MISS", "candidate", 0},
	} {
		if got := f.value("cache_responses_total", "status", row.status, "role", row.role); got != row.want {
			t.Errorf("%s by the %s ring: %v, want %v", row.status, row.role, got, row.want)
		}
	}
	if got, want := f.value("cache_responses_total"), f.value("requests_total", "class", "4xx"); got != want {
		t.Errorf("%v answers are counted, of %v", got, want)
	}
}

// TestSeries: what both rings are compared by is there from the start, and a number of series that does not grow.
func TestSeries(t *testing.T) {
	c := config()
	c.CacheStatusHeader = "X-Cache-Status"
	f := newFleet(t, c, map[string]string{"a": backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Cache-Status", r.URL.Path)
	}), "b": refusing(t)}, "a", "b")
	series := func() map[string]int {
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(f.proxy)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int{}
		for _, family := range families {
			counts[strings.TrimPrefix(family.GetName(), "ringwright_proxy_")] = len(family.GetMetric())
		}
		return counts
	}
	before := series()
	for name, want := range map[string]int{"requests_total": 21, "backend_errors_total": 22, "failovers_total": 16, "cache_responses_total": 12, "first_byte_seconds": 3} {
		if before[name] != want {
			t.Errorf("%s has %d series, want %d", name, before[name], want)
		}
	}
	for i := range 50 {
		f.get(fmt.Sprintf("/%d", i))
	}
	after := series()
	for name, n := range before {
		if after[name] > n {
			t.Errorf("%s has %d series more", name, after[name]-n)
		}
	}
}

// TestMovement: the table is told of each request.
func TestMovement(t *testing.T) {
	c := config()
	c.Movement = movement.New()
	f := newFleet(t, c, map[string]string{"a": backend(t, named("a"))}, "a")
	for i := range 200 {
		f.get(fmt.Sprintf("/%d", i%100))
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c.Movement)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	checks := 0.0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			checks += m.GetCounter().GetValue()
		}
	}
	if checks == 0 || checks > 25 {
		t.Errorf("%v of 100 keys that were asked for again are watched", checks)
	}
}
