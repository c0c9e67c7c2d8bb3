// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"fmt"
	"math"
	"testing"
	"time"
)

var epoch = time.Unix(1_800_000_000, 0).UTC()

// fleet is some servers whose load is proportional to their weight, for tests of single rules.
type fleet struct {
	config Config
	state  State
	now    time.Time
	// cost is the load for a weight of 1, by ID.
	cost map[string]float64
	// change changes a report before it is used; false drops it.
	change func(*Report) bool
}

func newFleet(n int) *fleet {
	c, _ := Profile(ProfileBalanced)
	f := &fleet{config: c, now: epoch, cost: map[string]float64{}}
	for i := range n {
		f.cost[fmt.Sprintf("s%02d", i)] = 0.4
	}
	return f
}

// update lets ten seconds pass, after which every server reports.
func (f *fleet) update() Result {
	start := f.now
	f.now = f.now.Add(10 * time.Second)
	in := Input{Now: f.now}
	told := map[string]float64{}
	for _, w := range f.state.Weights() {
		told[w.ID] = w.Weight
	}
	for id, cost := range f.cost {
		weight := told[id]
		if len(told) == 0 {
			weight = 1
		}
		in.Endpoints = append(in.Endpoints, Endpoint{id, true})
		r := Report{
			Endpoint: id, Start: start, End: f.now, CPU: cost * weight, InFlight: 25 * cost * weight, Custom: math.NaN(),
			Requests: 6000 * weight, Errors: 0,
		}
		if f.change == nil || f.change(&r) {
			in.Reports = append(in.Reports, r)
		}
	}
	var r Result
	f.state, r = Update(f.config, f.state, in)
	f.state = f.state.Publish(f.now, f.state.Weights())
	return r
}

func (f *fleet) weight(id string) float64 { return f.of(id).Weight }

func (f *fleet) of(id string) EndpointState {
	for _, e := range f.state.Endpoints {
		if e.ID == id {
			return e
		}
	}
	return EndpointState{}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestConverges(t *testing.T) {
	f := newFleet(0)
	f.cost = map[string]float64{"a": 0.6, "b": 0.4, "c": 0.3}
	var r Result
	for range 15 {
		r = f.update()
	}
	// The weights are in proportion to what the servers can do: 1/0.6 : 1/0.4 : 1/0.3.
	near(t, "a", f.weight("a"), 2.0/3, 0.01)
	near(t, "b", f.weight("b"), 1, 0.01)
	near(t, "c", f.weight("c"), 4.0/3, 0.01)
	near(t, "max/avg", r.MaxOverAverage, 1, 0.01)
	near(t, "mean", r.Mean, 0.4, 0.01)
	if r.Ready != 3 || r.Reporting != 3 || r.Skipped != SkipNone {
		t.Errorf("%+v", r)
	}
}

func TestStepIsLimited(t *testing.T) {
	f := newFleet(10)
	f.cost["s00"] = 1.6
	f.update()
	// The others get what the mean allows, so what counts is how far they are apart.
	others := 0.6 * math.Log((1.6+9*0.4)/10/0.4)
	near(t, "how far apart", math.Log(f.weight("s00")/f.weight("s01")), -math.Log(1.5)-others, 0.005)
}

// TestSilentKeepTheirPart: the sum of the others stays, so that it does not matter who reports.
func TestSilentKeepTheirPart(t *testing.T) {
	f := newFleet(10)
	f.change = func(r *Report) bool { return r.Endpoint >= "s04" }
	f.cost["s04"] = 0.8
	for range 8 {
		r := f.update()
		if r.Reporting != 6 || r.Silent != 4 || r.Skipped != SkipNone {
			t.Fatalf("%+v", r)
		}
	}
	near(t, "a silent one", f.weight("s00"), 1, 1e-9)
	if f.weight("s04") > 0.7 {
		t.Errorf("the busy one has %v", f.weight("s04"))
	}
}

func TestSkips(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Report) bool
		want   SkipReason
	}{
		"half report":                  {func(r *Report) bool { return r.Endpoint < "s05" }, SkipNone},
		"fewer than half report":       {func(r *Report) bool { return r.Endpoint < "s04" }, SkipFewReports},
		"one reports":                  {func(r *Report) bool { return r.Endpoint < "s01" }, SkipFewReports},
		"a mean load of 2 %":           {func(r *Report) bool { r.CPU = 0.0201; return true }, SkipNone},
		"a mean load below 2 %":        {func(r *Report) bool { r.CPU = 0.0199; return true }, SkipLowTraffic},
		"reports just fresh":           {func(r *Report) bool { r.End = r.End.Add(-19 * time.Second); return true }, SkipNone},
		"reports just stale":           {func(r *Report) bool { r.End = r.End.Add(-20 * time.Second); return true }, SkipFewReports},
		"reports of the future":        {func(r *Report) bool { r.End = r.End.Add(1001 * time.Millisecond); return true }, SkipFewReports},
		"reports of a fast clock":      {func(r *Report) bool { r.End = r.End.Add(time.Second); return true }, SkipNone},
		"reports of nobody":            {func(r *Report) bool { r.Endpoint = "x" + r.Endpoint; return true }, SkipFewReports},
		"reports without this metric":  {func(r *Report) bool { r.CPU = math.NaN(); return true }, SkipFewReports},
		"reports with negative figure": {func(r *Report) bool { r.CPU = -0.1; return true }, SkipFewReports},
	} {
		f := newFleet(10)
		f.change = c.change
		if r := f.update(); r.Skipped != c.want {
			t.Errorf("%s: %q, want %q", name, r.Skipped, c.want)
		}
	}
	f := newFleet(10)
	f.update()
	before := f.state.Weights()
	next, r := Update(f.config, f.state, Input{Now: f.now, Endpoints: []Endpoint{{"s00", true}, {"s01", true}}})
	if r.Skipped != SkipNothingNew || len(next.Endpoints) != 2 || len(before) != 10 {
		t.Errorf("%+v", r)
	}
}

// TestReplayedReportsCountOnce: neither in the same input, nor in a later one.
func TestReplayedReportsCountOnce(t *testing.T) {
	f := newFleet(2)
	f.cost["s00"] = 0.8
	f.update()
	in := Input{Now: f.now.Add(5 * time.Second), Endpoints: []Endpoint{{"s00", true}, {"s01", true}}}
	for _, id := range []string{"s00", "s00", "s01"} {
		in.Reports = append(in.Reports, Report{Endpoint: id, Start: f.now.Add(-10 * time.Second), End: f.now, CPU: 0.9, InFlight: math.NaN(), Requests: 10})
	}
	next, r := Update(f.config, f.state, in)
	if r.Skipped != SkipNothingNew || Change(next.Weights(), f.state.Weights()) > 1e-9 {
		t.Errorf("%+v", r)
	}
	for i := range in.Reports {
		in.Reports[i].End = in.Now
	}
	next, _ = Update(f.config, f.state, in)
	near(t, "requests", float64(next.Endpoints[0].Last.Requests), 10, 0)
}

// TestPredictor: load is compared with the weights that caused it, not with those of now.
func TestPredictor(t *testing.T) {
	f := newFleet(4)
	at := func(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }
	weights := func(w float64) []Weight { return []Weight{{"s00", w}, {"s01", 2 - w}} }
	s := State{}.Publish(at(0), weights(1)).Publish(at(10), weights(0.5)).Publish(at(20), weights(0.5))
	s.Endpoints = []EndpointState{{ID: "s00", Weight: 0.5, Ready: true}, {ID: "s01", Weight: 1.5, Ready: true}}
	told := newToldWeights(s.Published, s.Endpoints)
	for _, c := range []struct {
		start, end int
		want       float64
	}{{0, 10, 1}, {-50, 10, 1}, {10, 20, 0.5}, {5, 15, 0.75}, {0, 30, (1 + 0.5 + 0.5) / 3}, {25, 30, 0.5}, {15, 15, 0.5}, {30, 20, 0.5}} {
		near(t, fmt.Sprint(c.start, " to ", c.end), told.mean(0, InstantOf(at(c.start)), InstantOf(at(c.end))), c.want, 1e-9)
	}
	// What was seen with the weights 1 and 1 is put right by those of now, so that they stay.
	in := Input{Now: at(21), Endpoints: []Endpoint{{"s00", true}, {"s01", true}}}
	for i, cpu := range []float64{0.6, 0.2} {
		in.Reports = append(in.Reports, Report{Endpoint: s.Endpoints[i].ID, Start: at(5), End: at(10), CPU: cpu, InFlight: math.NaN()})
	}
	next, r := Update(f.config, s, in)
	near(t, "weight", next.Endpoints[0].Weight, 0.5, 1e-6)
	near(t, "max/avg", r.MaxOverAverage, 0.6/0.4, 1e-6)
	near(t, "predicted max/avg", r.PredictedMaxOverAverage, 1, 1e-6)
}
