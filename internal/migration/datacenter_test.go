// SPDX-License-Identifier: Apache-2.0

package migration

import "testing"

// TestDatacenters: what is unreachable keeps its last split, what comes too late stays on the stable ring.
func TestDatacenters(t *testing.T) {
	r := newRun("edge")
	r.until(t, Soaking, 1)
	r.fleet["late"], r.fleet[""] = here, here
	r.until(t, Dispatching, 2)
	if r.s.Split["late"] != 0 || r.s.Split[""] != 0 {
		t.Errorf("the split is %v", r.s.Split)
	}
	if detail := r.wantHold(t, HoldUnknownDatacenter); detail != `""; "late"` {
		t.Errorf("it says %q", detail)
	}
	delete(r.fleet, "")
	delete(r.fleet, "late")
	r.until(t, Succeeded, 2)
}

// TestSkipTakesLatecomers: a person can take along who came too late, with a dispatch and a soak of their own.
func TestSkipTakesLatecomers(t *testing.T) {
	named := Stage{Name: "rest", Datacenters: []string{"b"}, Steps: []PlannedStep{{Traffic: whole}}}
	for _, last := range []Stage{testSpec().Stages[1], named} {
		r := newRun("edge")
		r.spec.Stages[1] = last
		r.until(t, Soaking, 2)
		r.fleet["late"] = here
		r.wantHold(t, HoldUnknownDatacenter)
		if refusal := r.give(t, SkipAction, r.s.Token()); refusal != "" {
			t.Fatal(refusal)
		}
		if r.s.At != Dispatching || r.s.Split["late"] != whole || r.s.Split["b"] != whole || r.s.Skipped {
			t.Errorf("it is %s with %v", r.s.At, r.s.Split)
		}
		r.until(t, Succeeded, 2)
	}
}

// TestSkipTakesNoNameless: there is no share for consumers that have no datacenter.
func TestSkipTakesNoNameless(t *testing.T) {
	r := newRun("edge")
	r.until(t, Soaking, 2)
	r.fleet[""] = here
	r.wantHold(t, HoldUnknownDatacenter)
	r.give(t, SkipAction, r.s.Token())
	r.wantHold(t, HoldUnknownDatacenter)
	if _, found := r.s.Split[""]; found || r.s.At == Retiring {
		t.Errorf("it is %s with %v", r.s.At, r.s.Split)
	}
}

// TestNoConsumers: nobody is not everybody.
func TestNoConsumers(t *testing.T) {
	r := newRun("edge")
	r.spec.Stages = []Stage{{Name: "all", Remainder: true, Steps: []PlannedStep{{Traffic: whole}}}}
	r.fleet = nil
	r.until(t, Preparing, 0)
	for range 4 {
		r.step()
	}
	if r.wantHold(t, HoldNotConverged); r.s.At != Preparing {
		t.Errorf("it is %s", r.s.At)
	}
}

// TestUnreachableKeepsItsSplit: its stage begins without it, holds, and raises it when it is back.
func TestUnreachableKeepsItsSplit(t *testing.T) {
	r := newRun("edge")
	r.spec.Stages[1] = Stage{Name: "rest", Datacenters: []string{"b"}, Steps: []PlannedStep{{Traffic: whole}}}
	r.until(t, Soaking, 0)
	r.fleet["b"] = gone
	r.until(t, Dispatching, 1)
	r.wantHold(t, HoldDatacenterUnreachable)
	if r.s.Split["b"] != 0 {
		t.Errorf("the split is %v", r.s.Split)
	}
	r.fleet["b"] = here
	r.until(t, Soaking, 1)
	if r.s.Split["b"] != whole {
		t.Errorf("the split is %v", r.s.Split)
	}
}

// TestExcluded: the others go on without it, and the old ring stays while it has consumers.
func TestExcluded(t *testing.T) {
	r := newRun("edge")
	r.until(t, Soaking, 1)
	r.spec.Limits.Excluded = []string{"a"}
	r.step()
	if r.s.Split["a"] != 0 || r.s.Split["b"] != whole {
		t.Fatalf("the split is %v", r.s.Split)
	}
	r.fleet["a"] = gone
	r.until(t, Dispatching, 2)
	r.wantHold(t, HoldLimited)
	delete(r.fleet, "a")
	r.until(t, Succeeded, 2)
}
