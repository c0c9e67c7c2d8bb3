// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestGuard(t *testing.T) {
	f := newFleet(10)
	f.change = func(r *Report) bool {
		if r.Endpoint == "s00" { // Its requests wait for something else than a processor.
			r.CPU, r.InFlight = 0.05, 200
		}
		return true
	}
	r := f.update()
	if !f.of("s00").Guarded || r.Guarded != 1 {
		t.Errorf("%+v", f.of("s00"))
	}
	for range 20 {
		f.update()
	}
	near(t, "weight", f.weight("s00"), 0.01, 0.001)
	// When it is well again it comes back in steps.
	f.change = nil
	f.update()
	if w := f.weight("s00"); w > 0.016 || w < 0.012 {
		t.Errorf("it comes back with the weight %v", w)
	}
	for range 20 {
		f.update()
	}
	near(t, "weight after it is well", f.weight("s00"), 1, 0.03)
}

// TestSlowServersAreNotGuarded: a server with a fifth of the speed has five times as many requests in flight for its weight.
func TestSlowServersAreNotGuarded(t *testing.T) {
	f := newFleet(10)
	f.cost["s00"] = 2
	f.cost["s01"] = 1.6
	for range 20 {
		if r := f.update(); r.Guarded != 0 {
			t.Fatalf("%+v", r)
		}
	}
	near(t, "ratio of the weights", f.weight("s00")/f.weight("s02"), 0.2, 0.01)
}

func TestErrors(t *testing.T) {
	failing := func(part float64, who func(id string) bool) *fleet {
		f := newFleet(10)
		f.change = func(r *Report) bool {
			if who(r.Endpoint) {
				r.Errors = part * r.Requests
			}
			return true
		}
		for range 20 {
			f.update()
		}
		return f
	}
	first := func(id string) bool { return id == "s00" }
	near(t, "all fail at one", failing(1, first).weight("s00"), 0.01, 0.001)
	if w := failing(0.1, first).weight("s00"); w > 0.9 || w < 0.5 {
		t.Errorf("a tenth fails at one: %v", w)
	}
	near(t, "all fail everywhere", failing(1, func(string) bool { return true }).weight("s00"), 1, 1e-6)
	// One failure of few requests is no proof.
	g := gathering{requests: 1, errors: 1}
	near(t, "one of one", float64(g.sample().Failed), 0.2, 1e-6)
}

func TestColdStart(t *testing.T) {
	f := newFleet(10)
	f.update()
	f.cost["new"] = 0.4
	r := f.update()
	if r.Cold != 1 || !math.IsInf(r.Moved, 1) {
		t.Errorf("%+v", r)
	}
	near(t, "its weight, in means of the others", f.weight("new")/f.weight("s00"), 0.1, 1e-3)
	for range 12 {
		r = f.update()
	}
	near(t, "its weight later", f.weight("new"), 1, 0.03)
	if r.Cold != 0 {
		t.Errorf("it is still cold")
	}
	// Nine of ten are exchanged at once: the one that stays gets no more than a step more.
	f = newFleet(10)
	f.update()
	for i := 1; i < 10; i++ {
		delete(f.cost, fmt.Sprintf("s%02d", i))
		f.cost[fmt.Sprintf("t%02d", i)] = 0.4
	}
	f.update()
	near(t, "who stays", f.weight("s00"), 1.5, 1e-6)
	// All are.
	f = newFleet(2)
	f.update()
	f.cost = map[string]float64{"x": 0.4, "y": 0.4}
	if r := f.update(); r.Cold != 0 || f.weight("x") != 1 {
		t.Errorf("%+v, %v", r, f.weight("x"))
	}
}

// TestUnreadyKeepTheirWeight for when they are ready again, and take no part until then.
func TestUnreadyKeepTheirWeight(t *testing.T) {
	f := newFleet(0)
	f.cost = map[string]float64{"a": 0.6, "b": 0.4, "c": 0.3}
	for range 15 {
		f.update()
	}
	was := f.weight("a")
	s, r := Update(f.config, f.state, Input{Now: f.now, Endpoints: []Endpoint{{"a", false}, {"b", true}, {"c", true}}})
	if got := s.Weights(); len(got) != 2 || r.Ready != 2 || s.Endpoints[0].Weight != was {
		t.Errorf("%v %+v", got, r)
	}
	s, _ = Update(f.config, s, Input{Now: f.now, Endpoints: []Endpoint{{"a", true}, {"b", true}, {"c", true}}})
	near(t, "a", s.Endpoints[0].Weight, was, 0.1)
}

func TestLimits(t *testing.T) {
	f := newFleet(10)
	f.config.MinWeight, f.config.MaxWeight = 0.5, 1.2
	f.cost["s00"], f.cost["s01"] = 1.6, 0.1
	var r Result
	for range 30 {
		r = f.update()
	}
	near(t, "the slow one", f.weight("s00"), 0.5, 1e-9)
	near(t, "the fast one", f.weight("s01"), 1.2, 1e-9)
	if r.Clamped != 2 || !f.of("s00").Clamped || f.of("s02").Clamped {
		t.Errorf("%d clamped", r.Clamped)
	}
}

func TestMaxTakesTheLarger(t *testing.T) {
	f := newFleet(4)
	f.config.Metric = MetricMax
	f.change = func(r *Report) bool {
		switch r.Endpoint {
		case "s00":
			r.InFlight *= 2
		case "s01":
			r.CPU *= 2
		}
		return true
	}
	for range 20 {
		f.update()
	}
	near(t, "both are twice as busy", f.weight("s00"), f.weight("s01"), 0.02)
	if f.weight("s00") > 0.75 {
		t.Errorf("%v", f.weight("s00"))
	}
}

func TestRestoreGoesOn(t *testing.T) {
	f := newFleet(0)
	f.config.Ki = 0.05
	f.cost = map[string]float64{"a": 0.6, "b": 0.4, "c": 0.3}
	for range 3 {
		f.update()
	}
	restored := Restore(f.now, f.state.Store(), nil)
	for i, e := range restored.Endpoints {
		was := f.state.Endpoints[i]
		near(t, e.ID, e.Weight, was.Weight, 0.5/UnitsPerMean)
		near(t, e.ID+" integral", float64(e.Integral), float64(was.Integral), 0.6e-6)
		near(t, e.ID+" error", float64(e.LastError), float64(was.LastError), 0.6e-6)
	}
	f.state = restored
	near(t, "what clients were told", Change(f.state.Weights(), weightsOf(restored.Published[0])), 0, 1e-9)
	for range 12 {
		f.update()
	}
	near(t, "a", f.weight("a"), 2.0/3, 0.02)
}

func weightsOf(p Publication) (list []Weight) {
	for i, id := range p.IDs {
		list = append(list, Weight{id, p.Weights[i]})
	}
	return list
}

func TestUnits(t *testing.T) {
	for weight, want := range map[float64]uint32{1: 10000, 0.12345: 1235, 0: 1, -1: 1, 1e-9: 1, 8: 80000, math.Inf(1): 1_000_000_000} {
		if got := Units(weight); got != want {
			t.Errorf("%v: %d, want %d", weight, got, want)
		}
	}
	if Units(math.NaN()) != 1 || FromUnits(0) != 0.0001 || FromUnits(12345) != 1.2345 {
		t.Error("NaN, or back")
	}
}

func TestBlend(t *testing.T) {
	from := []Weight{{"b", 1}, {"a", 1}}
	to := []Weight{{"a", 0.5}, {"b", 1.5}}
	for percent, want := range map[float64]float64{0: 1, 10: 0.95, 100: 0.5, 150: 0.5, -5: 1} {
		got := Blend(from, to, percent)
		near(t, fmt.Sprint(percent, " %"), got[0].Weight, want, 1e-12)
	}
	if got := Settled(from, []Weight{{"a", 1.009}, {"b", 0.991}}, 0.01); !slices.Equal(got, []Weight{{"a", 1}, {"b", 1}}) {
		t.Errorf("%v", got)
	}
	if got := Settled(from, []Weight{{"a", 1.011}, {"b", 0.989}}, 0.01); got[0].Weight == 1 {
		t.Errorf("%v", got)
	}
}

func TestPublicationsAreForgotten(t *testing.T) {
	f := newFleet(5)
	for range 100 {
		f.cost["s00"] = 1.2 - f.cost["s00"] // So that there is something to publish.
		f.update()
	}
	if n := len(f.state.Published); n > 8 || n < 2 {
		t.Errorf("%d publications are remembered", n)
	}
	if &f.state.Published[0].IDs[0] != &f.state.Published[1].IDs[0] {
		t.Error("the IDs are not shared")
	}
}

func TestQuantile(t *testing.T) {
	list := []float64{5, 1, 4, 2, 3, 3, 9, 0}
	sorted := slices.Sorted(slices.Values(list))
	for part, at := range map[float64]int{0: 0, 0.1: 0, 0.5: 3, 0.51: 4, 0.95: 7, 1: 7} {
		if got := quantile(slices.Clone(list), part); got != sorted[at] {
			t.Errorf("%v: %v, want %v", part, got, sorted[at])
		}
	}
	near(t, "median of an even number", median([]float64{4, 1, 3, 2}), 2.5, 0)
	near(t, "median of an odd number", median([]float64{4, 1, 3}), 3, 0)
	near(t, "expected maximum of 60", expectedMaximum(60), 2.32, 0.01)
	// 60 servers with 14,400 requests each: about 2 %, below which perfect weights do not come.
	near(t, "noise floor", 1+expectedMaximum(60)*math.Sqrt(1.0/14400), 1.0193, 0.0005)
}

func TestProfilesAreValid(t *testing.T) {
	for _, name := range ProfileNames() {
		if c, found := Profile(name); !found || c.Validate() != nil {
			t.Errorf("%s: %v, %v", name, found, c.Validate())
		}
	}
	if _, found := Profile("balanced"); found {
		t.Error("a profile that is not there was found")
	}
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*Config){
		`metric is "", it must be CPU, InFlight, Max or Custom`:               func(c *Config) { c.Metric = "" },
		"kp is NaN, it must be from 0 to 10":                                  func(c *Config) { c.Kp = math.NaN() },
		"kpFar is 10.1, it must be from 0 to 10":                              func(c *Config) { c.KpFar = 10.1 },
		"ki is -1, it must be from 0 to 10":                                   func(c *Config) { c.Ki = -1 },
		"kd is +Inf, it must be from 0 to 10":                                 func(c *Config) { c.Kd = math.Inf(1) },
		"minWeight is 1.1, it must be from 0.01 to 1":                         func(c *Config) { c.MinWeight = 1.1 },
		"maxWeight is 0.9, it must be from 1 to 1000":                         func(c *Config) { c.MaxWeight = 0.9 },
		"guardedMinWeight is 0, it must be from 0.0001 to 1":                  func(c *Config) { c.GuardedMinWeight = 0 },
		"coldStartWeight is 0.001, it must be from 0.01 to 1":                 func(c *Config) { c.ColdStartWeight = 0.001 },
		"minReporting is 1.5, it must be from 0 to 1":                         func(c *Config) { c.MinReporting = 1.5 },
		"guardRatio is 1, it must be from 1.5 to 1000":                        func(c *Config) { c.GuardRatio = 1 },
		"errorPenalty is 101, it must be from 0 to 100":                       func(c *Config) { c.ErrorPenalty = 101 },
		"interval is 500ms, it must be from 1s to 1h0m0s":                     func(c *Config) { c.Interval = 500 * time.Millisecond },
		"staleAfter is 9s, it must be from the interval, 10s, to 1h0m0s":      func(c *Config) { c.StaleAfter = 9 * time.Second },
		"maxStep is 3, it must be from 0.0001 to " + fmt.Sprint(math.Log(10)): func(c *Config) { c.MaxStep = 3 },
		"maxNoise is 0.001, it must be from 0.005 to 1":                       func(c *Config) { c.MaxNoise = 0.001 },
	} {
		c, _ := Profile(ProfileBalanced)
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if StaleAfter(5*time.Second) != 20*time.Second || StaleAfter(15*time.Second) != 45*time.Second {
		t.Error("StaleAfter")
	}
}
