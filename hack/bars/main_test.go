// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReport(t *testing.T) {
	figure := func(x float64) func() (float64, error) { return func() (float64, error) { return x, nil } }
	rows := map[string]struct {
		claim claim
		line  string
		holds bool
	}{
		"below what it may be at most":   {claim{exact, "a", 3.9, atMost, figure(3.6051)}, "a\t3.605\t3.9\tok\n", true},
		"at the limit":                   {claim{exact, "a", 3, atLeast, figure(3)}, "a\t3\t3\tok\n", true},
		"none allowed and none found":    {claim{exact, "a", 0, atMost, figure(0)}, "a\t0\t0\tok\n", true},
		"none allowed, some found":       {claim{exact, "a", 0, atMost, figure(0.0001)}, "a\t0.0001\t0\tshort\n", false},
		"over the limit":                 {claim{exact, "a", 3.9, atMost, figure(3.91)}, "a\t3.91\t3.9\tshort\n", false},
		"not rounded into the limit":     {claim{exact, "a", 3.9, atMost, figure(3.900001)}, "a\t3.9\t3.9\tshort\n", false},
		"below what it must be at least": {claim{exact, "a", 3, atLeast, figure(2.999)}, "a\t2.999\t3\tshort\n", false},
		"large":                          {claim{exact, "a", 3, atLeast, figure(123456)}, "a\t123456\t3\tok\n", true},
		"not a number, at most":          {claim{exact, "a", 3, atMost, figure(math.NaN())}, "a\tNaN\t3\tshort\n", false},
		"not a number, at least":         {claim{exact, "a", 3, atLeast, figure(math.NaN())}, "a\tNaN\t3\tshort\n", false},
		"cannot be measured": {
			claim{exact, "a", 3, atMost, func() (float64, error) { return 0, errors.New("no ring") }}, "a\tnone\t3\tshort\n", false,
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			var out, problems strings.Builder
			if holds := report(&out, &problems, []claim{row.claim}, false); holds != row.holds {
				t.Errorf("holds: %v", holds)
			}
			if diff := cmp.Diff(row.line, out.String()); diff != "" {
				t.Errorf("line (-want +got):\n%s", diff)
			}
			if wantProblem := strings.Contains(row.line, "none"); wantProblem != (problems.String() == "a: no ring\n") {
				t.Errorf("problems: %q", &problems)
			}
		})
	}
}

// TestOneShortClaimFailsTheRun: and the claims behind it are measured all the same.
func TestOneShortClaimFailsTheRun(t *testing.T) {
	measured := 0
	claimOf := func(limit float64) claim {
		return claim{exact, "a", limit, atMost, func() (float64, error) { measured++; return 2, nil }}
	}
	var out, problems strings.Builder
	if report(&out, &problems, []claim{claimOf(3), claimOf(1), claimOf(3)}, false) || measured != 3 {
		t.Errorf("%d claims were measured:\n%s", measured, &out)
	}
	if !report(&out, &problems, []claim{claimOf(3), claimOf(2)}, false) {
		t.Error("claims that hold fail the run")
	}
}

// TestTolerance forgives a speed that is short, and nothing else.
func TestTolerance(t *testing.T) {
	short := func(k kind, x float64, err error) claim {
		return claim{k, "a", 1, atMost, func() (float64, error) { return x, err }}
	}
	rows := map[string]struct {
		claim claim
		line  string
		holds bool
	}{
		"a speed":                         {short(timed, 2, nil), "a\t2\t1\tslow\n", true},
		"a size":                          {short(exact, 2, nil), "a\t2\t1\tshort\n", false},
		"a speed that cannot be measured": {short(timed, 2, errors.New("no ring")), "a\tnone\t1\tshort\n", false},
		"a speed that is no number":       {short(timed, math.NaN(), nil), "a\tNaN\t1\tshort\n", false},
	}
	for name, row := range rows {
		var out, problems strings.Builder
		if holds := report(&out, &problems, []claim{row.claim}, true); holds != row.holds || out.String() != row.line {
			t.Errorf("%s: %v, %q", name, holds, &out)
		}
	}
}

// TestSpeedupTakesTheMedian runs on a clock of its own.
func TestSpeedupTakesTheMedian(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		order := ""
		sleeper := func(name string, rounds ...time.Duration) way {
			warm := func() error { <-time.After(time.Hour); return nil }
			return way{warm, func() error {
				order += name
				<-time.After(rounds[0])
				rounds = rounds[1:]
				return nil
			}}
		}
		ratio, err := speedup(3, sleeper("a", 1, 100, 2), sleeper("b", 700, 100, 6))
		if err != nil || ratio != 3 || order != "ababab" {
			t.Errorf("%v times as fast, in the order %s, %v; want 3, taking turns", ratio, order, err)
		}
	})
	broken := way{work: func() error { return errors.New("broken") }}
	if _, err := speedup(2, way{work: func() error { return nil }}, broken); err == nil {
		t.Error("a way that fails is not reported")
	}
}

// TestClaimsAreWellFormed keeps the output of one line for each claim, with names that tell them apart.
func TestClaimsAreWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range claims() {
		word := map[direction]string{atMost: ", at most", atLeast: ", at least"}[c.direction]
		if seen[c.name] || strings.ContainsAny(c.name, "\t\n") || !strings.HasSuffix(c.name, word) {
			t.Errorf("claim %q is there twice, breaks its line, or does not end in %q", c.name, word)
		}
		seen[c.name] = true
	}
}
