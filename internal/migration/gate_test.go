// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"testing"
	"time"
)

// soaking returns a run in the soak of the first step.
func soaking(t *testing.T) *run {
	t.Helper()
	r := newRun("edge")
	r.spec.Stages[0].Steps[0].Soak = 100 * tick
	r.until(t, Soaking, 0)
	r.wantNoHold(t)
	return r
}

// TestSoakCredit: the account by what is observed.
func TestSoakCredit(t *testing.T) {
	for name, row := range map[string]struct {
		do   func(r *run)
		want time.Duration // Of three calls, the last of them with all well again.
	}{
		"all well":                         {func(*run) {}, 3 * tick},
		"NoData":                           {func(r *run) { r.gates["errors"] = NoData }, 0},
		"Error":                            {func(r *run) { r.gates["errors"] = Error }, 0},
		"Inconclusive":                     {func(r *run) { r.gates["errors"] = Inconclusive }, 0},
		"not measured any more":            {func(r *run) { delete(r.gates, "errors") }, 3 * tick}, // The last result is good for twice its interval.
		"not measured for longer":          {func(r *run) { delete(r.gates, "errors"); r.spec.Gates[0].Interval = tick / 2 }, tick},
		"a consumer lags":                  {func(r *run) { r.fleet["a"] = stale }, 0},
		"a consumer of another stage lags": {func(r *run) { r.fleet["b"] = stale }, 3 * tick},
		"suspended":                        {func(r *run) { r.spec.Suspended = true }, 0},
		"the clock goes back":              {func(r *run) { r.w.now = r.w.now.Add(-10 * tick) }, 2 * tick},
		"nobody watched":                   {func(r *run) { r.w.now = r.w.now.Add(30 * tick) }, 4 * tick},
	} {
		t.Run(name, func(t *testing.T) {
			r := soaking(t)
			before, well := r.s.Soak.Credited, newRun("edge")
			row.do(r)
			r.step()
			r.step()
			r.spec.Suspended, r.fleet, r.gates = false, well.fleet, well.gates
			r.step()
			if got := r.s.Soak.Credited - before; got != row.want || r.s.At != Soaking {
				t.Errorf("%s are credited at %s, want %s", got, r.s.At, row.want)
			}
		})
	}
}

// TestGateThreshold: as many failures as the threshold within the window roll back, and nothing else does.
func TestGateThreshold(t *testing.T) {
	for name, row := range map[string]struct {
		results []Result
		want    Place
		do      func(r *run)
	}{
		"one failure":                 {results: []Result{Fail, Pass}, want: Soaking},
		"two in a row":                {results: []Result{Fail, Fail}, want: RollingBack},
		"two within the window":       {results: []Result{Fail, Pass, NoData, Fail}, want: RollingBack},
		"two, one of them too old":    {results: []Result{Fail, Pass, Pass, Pass, Fail}, want: Soaking},
		"nothing known for long":      {results: []Result{NoData, Error, Inconclusive, NoData, Error, Inconclusive}, want: Soaking},
		"a gate that is only shown":   {results: []Result{Fail, Fail, Fail}, want: Soaking, do: func(r *run) { r.spec.Gates[0].Enforced = false }},
		"a rollback that is disabled": {results: []Result{Fail, Fail, Fail}, want: Soaking, do: func(r *run) { r.spec.Rollback.Automatic = false }},
		"suspended":                   {results: []Result{Fail, Fail}, want: RollingBack, do: func(r *run) { r.spec.Suspended = true }},
	} {
		t.Run(name, func(t *testing.T) {
			r := soaking(t)
			if row.do != nil {
				row.do(r)
			}
			for _, result := range row.results {
				r.gates["errors"] = result
				r.step()
			}
			if r.s.At != row.want {
				t.Errorf("it is %s with %v, want %s", r.s.At, r.s.Holds, row.want)
			}
			if row.want == RollingBack && r.s.Back.Cause != CauseGate {
				t.Errorf("the cause is %+v", r.s.Back)
			}
		})
	}
}

// TestMeasurementCountsOnce: the same failure again is none more.
func TestMeasurementCountsOnce(t *testing.T) {
	r := soaking(t)
	once := Measurement{Gate: "errors", At: r.w.now.Add(tick), Result: Fail}
	for range 3 {
		r.edit = func(o *Observation) { o.Measurements = []Measurement{once} }
		r.step()
	}
	if r.s.At != Soaking || len(r.s.Gates["errors"].Failures) != 1 {
		t.Errorf("it is %s with %+v", r.s.At, r.s.Gates)
	}
}

// TestOldMeasurementIsNoPass: what was measured before the step took effect says nothing about it.
func TestOldMeasurementIsNoPass(t *testing.T) {
	r := newRun("edge")
	r.until(t, Converging, 0)
	delete(r.gates, "errors")
	r.until(t, Soaking, 0)
	if detail := r.wantHold(t, HoldGateUnknown); detail != "errors: Pass " {
		t.Errorf("the hold says %q", detail)
	}
	if r.s.Soak.Credited != 0 {
		t.Errorf("%s are credited", r.s.Soak.Credited)
	}
}

// TestSelfTest: no key moves before every enforced gate has returned data, and while one fails.
func TestSelfTest(t *testing.T) {
	for result, want := range map[Result]HoldType{
		NoData: HoldGateUnknown, Error: HoldGateUnknown, Fail: HoldGateFailed, Inconclusive: "", Pass: "", "": HoldGateUnknown,
	} {
		t.Run("result "+string(result), func(t *testing.T) {
			r := newRun("edge")
			r.gates = map[string]Result{"errors": result}
			if result == "" {
				r.gates = nil
			}
			r.until(t, Preparing, 0)
			r.step()
			if want == "" {
				if r.s.At != Dispatching {
					t.Errorf("it is %s with %v", r.s.At, r.s.Holds)
				}
				return
			}
			r.wantHold(t, want)
			r.wantHold(t, want)
			if r.s.At != Preparing || !r.s.Split.zero() {
				t.Errorf("it is %s with %v", r.s.At, r.s.Split)
			}
			r.gates = map[string]Result{"errors": Pass}
			if r.step(); r.s.At != Dispatching {
				t.Errorf("with data it is %s with %v", r.s.At, r.s.Holds)
			}
		})
	}
}

// TestSelfTestRollsNothingBack: failures before any key moved do not count afterwards.
func TestSelfTestRollsNothingBack(t *testing.T) {
	r := newRun("edge")
	r.gates["errors"] = Fail
	r.until(t, Preparing, 0)
	r.step()
	r.step()
	r.gates["errors"] = Pass
	r.until(t, Soaking, 0)
}

// TestGatesOfAStep: a step is judged by the gates that it names, or all.
func TestGatesOfAStep(t *testing.T) {
	r := newRun("edge")
	other := r.spec.Gates[0]
	other.Name = "latency"
	r.spec.Gates = append(r.spec.Gates, other)
	r.spec.Stages[0].Steps[0].Gates, r.spec.Stages[0].Steps[0].Soak = []string{"errors"}, 5*tick
	r.gates["latency"] = Pass
	r.until(t, Soaking, 0)
	r.gates["latency"] = Fail
	for range 3 {
		r.wantNoHold(t)
	}
	r.gates["latency"] = Pass
	r.until(t, Soaking, 1)
	r = soaking(t)
	r.spec.Gates = append(r.spec.Gates, other)
	r.wantHold(t, HoldGateUnknown)
}
