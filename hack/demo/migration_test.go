// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestBounds: nothing and everything are exact, and a tenth of 4,000 lies within five standard deviations of 18.97.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		n         int
		p         float64
		low, high int
	}{{4000, 0, 0, 0}, {4000, 1, 4000, 4000}, {4000, 0.1, 306, 494}, {10, 0.01, 0, 1}} {
		if low, high := bounds(c.n, c.p); low != c.low || high != c.high {
			t.Errorf("bounds(%d, %v) = %d, %d, want %d, %d", c.n, c.p, low, high, c.low, c.high)
		}
	}
}

// TestWrong: a step that is as announced has nothing wrong with it, and each thing that is not is told.
func TestWrong(t *testing.T) {
	fine := seenStep{
		candidate: 400, candidateLow: 306, candidateHigh: 494, moved: 270, movedLow: 191, movedHigh: 349,
		cold: 33, coldLow: 6, coldHigh: 61, fetched: 33, complete: true,
	}
	for name, c := range map[string]struct {
		change func(*seenStep)
		fine   bool
	}{
		"as announced":                   {func(*seenStep) {}, true},
		"few keys":                       {func(s *seenStep) { s.candidate = 305 }, false},
		"many keys":                      {func(s *seenStep) { s.candidate = 495 }, false},
		"few moves":                      {func(s *seenStep) { s.moved = 190 }, false},
		"many moves":                     {func(s *seenStep) { s.moved = 350 }, false},
		"another ring":                   {func(s *seenStep) { s.strays = 1 }, false},
		"a fetch too many":               {func(s *seenStep) { s.fetched = 34 }, false},
		"a fetch for a failover":         {func(s *seenStep) { s.fetched, s.failovers = 34, 1 }, true},
		"a fetch too few":                {func(s *seenStep) { s.fetched = 32 }, false},
		"not all asked for yet":          {func(s *seenStep) { s.fetched, s.complete = 32, false }, true},
		"a failure":                      {func(s *seenStep) { s.faults = 1 }, false},
		"a failure without origin":       {func(s *seenStep) { s.faults, s.away, s.fetched = 1, true, 0 }, true},
		"too few are cold":               {func(s *seenStep) { s.cold, s.fetched = 5, 5 }, false},
		"warm since the first attempt":   {func(s *seenStep) { s.cold, s.fetched, s.warm = 0, 0, true }, true},
		"fetched though the cache is it": {func(s *seenStep) { s.cold, s.fetched, s.warm = 0, 1, true }, false},
	} {
		s := fine
		c.change(&s)
		if wrong := s.wrong("lab01"); (len(wrong) == 0) != c.fine {
			t.Errorf("%s: wrong is %q", name, wrong)
		}
	}
}

// TestCompareSets: a key that leaves the candidate is told, and one that is new in the second attempt.
func TestCompareSets(t *testing.T) {
	sets := func(keys ...string) keySets {
		set := map[string]bool{}
		for _, key := range keys {
			set[key] = true
		}
		return keySets{candidate: map[string]map[string]bool{"lab01": set}}
	}
	for name, c := range map[string]struct {
		first, present, now keySets
		wrong               int
	}{
		"grows":          {sets("a", "b"), sets("a"), sets("a", "b"), 0},
		"leaves":         {sets("b", "c"), sets("a"), sets("b", "c"), 1},
		"another":        {sets("a", "b"), sets("a"), sets("a", "c"), 1},
		"one is missing": {sets("a", "b"), sets(), sets("a"), 1},
	} {
		m := &migrationDemo{sets: map[string]keySets{"10%": c.first}, present: c.present}
		if wrong := m.compareSets(&shownStep{name: "10%", sets: c.now}, "lab01"); len(wrong) != c.wrong {
			t.Errorf("%s: wrong is %q", name, wrong)
		}
	}
}

// TestCache: a cache fetches a key once for each datacenter, and without its origin has what it had.
func TestCache(t *testing.T) {
	c := &cache{name: "cache-1", origin: newOrigin(), memory: map[fetch]bool{}}
	ask := func(datacenter, key string) string {
		request := httptest.NewRequest(http.MethodGet, key, nil)
		request.Header.Set(datacenterHeader, datacenter)
		answer := httptest.NewRecorder()
		c.ServeHTTP(answer, request)
		return answer.Header().Get(statusHeader) + " " + http.StatusText(answer.Code)
	}
	for _, step := range []struct{ datacenter, key, want string }{
		{"lab01", "/a", "MISS OK"}, {"lab01", "/a", "HIT OK"}, {"ams01", "/a", "MISS OK"}, {"", "", ""},
		{"ams01", "/a", "HIT OK"}, {"ams01", "/b", "MISS Service Unavailable"}, {"lab01", "/b", "MISS OK"},
	} {
		if step.key == "" {
			c.origin.reach("ams01", false)
			continue
		}
		if got := ask(step.datacenter, step.key); got != step.want {
			t.Errorf("%s of %s: %s, want %s", step.key, step.datacenter, got, step.want)
		}
	}
	if fetched, refused := c.origin.counts(); fetched != 3 || refused != 1 {
		t.Errorf("the origin had %d requests and refused %d, want 3 and 1", fetched, refused)
	}
}

// TestDecided reads the header as the agent's documentation has it.
func TestDecided(t *testing.T) {
	var a answered
	if err := a.decided(`backend="cache-3", role=candidate, revision=7, failover=?1, attempts=2`); err != nil {
		t.Fatal(err)
	}
	if !a.candidate || !a.failover || a.backend != "cache-3" {
		t.Errorf("read %+v", a)
	}
	if err := new(answered).decided(""); err == nil {
		t.Error("an answer without a decision is none")
	}
}
