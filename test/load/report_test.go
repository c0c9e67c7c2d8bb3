// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestReport: what is short fails, but for what depends on the machine, where that is forgiven.
func TestReport(t *testing.T) {
	results := []result{
		{exact, "writes", 0, 0},
		{timed, "p50", 0.12345, unlimited},
		{timed, "p99", 2, 2},
	}
	for name, row := range map[string]struct {
		more          []result
		tolerant, all bool
		last          string
	}{
		"all hold":                  {nil, false, true, "p99\t2\t2\tok"},
		"an exact one is short":     {[]result{{exact, "w", 1, 0}}, true, false, "w\t1\t0\tshort"},
		"a timed one is short":      {[]result{{timed, "s", 2.001, 2}}, false, false, "s\t2\t2\tshort"},
		"a timed one is forgiven":   {[]result{{timed, "s", 61.25, 60}}, true, true, "s\t61.2\t60\tslow"},
		"nothing was measured":      {[]result{{timed, "s", math.NaN(), 2}}, true, false, "s\tNaN\t2\tshort"},
		"it is short, then one not": {[]result{{exact, "w", 1, 0}, {exact, "v", 0, 0}}, false, false, "v\t0\t0\tok"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if all := report(&out, append(slices.Clone(results), row.more...), row.tolerant); all != row.all {
				t.Errorf("all hold: %v", all)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			want := []string{"writes\t0\t0\tok", "p50\t0.123\t-\tok", "p99\t2\t2\tok"}
			if diff := cmp.Diff(want, lines[:3]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if last := lines[len(lines)-1]; last != row.last {
				t.Errorf("the last line is %q, want %q", last, row.last)
			}
		})
	}
}

// TestPercentile: the nearest rank, of values in any order.
func TestPercentile(t *testing.T) {
	var values []time.Duration
	for n := range 200 {
		values = append(values, time.Duration(200-n)*time.Second)
	}
	for p, want := range map[int]float64{50: 100, 90: 180, 99: 198, 100: 200, 1: 2} {
		if got := percentile(values, p); got != want {
			t.Errorf("p%d is %g, want %g", p, got, want)
		}
	}
	if got := percentile(values[:1], 1); got != values[0].Seconds() {
		t.Errorf("p1 of one value is %g", got)
	}
	if got := percentile(nil, 99); !math.IsNaN(got) {
		t.Errorf("p99 of nothing is %g", got)
	}
}

// TestParse: what is out of bounds is refused by name, value and limit.
func TestParse(t *testing.T) {
	for args, want := range map[string]string{
		"":               "",
		"-rings=0":       "-rings: 0 is not within 1 to 10000",
		"-backends=1001": "-backends: 1001 is not within 2 to 1000",
		"-seconds=0":     "-seconds: 0 is not within 1 to 3600",
		"-rate=1001":     "-rate: 1001 is not within 1 to 1000",
		"-consumers=-1":  "-consumers: -1 is not within 0 to 10000",
		"-source=pods":   `-source: "pods" is not static or slices`,
		"-timed=no":      `-timed: "no" is not fail or report`,
		"more":           `unexpected argument "more"`,
	} {
		got := ""
		if _, err := parse(strings.Fields(args)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
}
