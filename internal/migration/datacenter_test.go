// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"slices"
	"strings"
	"testing"
)

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
	if r.wantHold(t, HoldNoConsumers); r.s.At != Preparing {
		t.Errorf("it is %s", r.s.At)
	}
}

// TestRingWithoutConsumers: of several rings each has to have somebody known who reads it.
func TestRingWithoutConsumers(t *testing.T) {
	r := newRun("edge", "tile")
	for range 8 {
		r.edit = func(o *Observation) {
			o.Fleets = slices.DeleteFunc(o.Fleets, func(f Fleet) bool { return f.Ring == "tile" })
		}
		r.step()
	}
	if r.s.At != Preparing || len(r.s.Holds) != 1 || r.s.Holds[0].Type != HoldNoConsumers || !strings.Contains(r.s.Holds[0].Detail, "tile") {
		t.Errorf("it is %s with %v", r.s.At, r.s.Holds)
	}
}

// TestNamelessWhilePreparing: that the old ring could not be retired in the end is said before anything moves.
func TestNamelessWhilePreparing(t *testing.T) {
	r := newRun("edge")
	r.fleet[""] = here
	r.until(t, Preparing, 0)
	r.step()
	if r.wantHold(t, HoldUnknownDatacenter); r.s.At != Preparing {
		t.Errorf("it is %s", r.s.At)
	}
	delete(r.fleet, "")
	r.until(t, Soaking, 0)
}

// TestUnasked: who has not been asked is neither unreachable nor gone, and a rollback does not wait for anybody to be asked.
func TestUnasked(t *testing.T) {
	unasked := func(r *run) {
		r.edit = func(o *Observation) { o.Unasked, o.Fleets = true, nil }
	}
	r := newRun("edge")
	r.until(t, Soaking, 1)
	credited := r.s.Soak.Credited
	unasked(r)
	r.step()
	if len(r.s.Holds) != 1 || r.s.Holds[0].Type != HoldNoConsumers || r.s.Soak.Credited != credited || r.s.At != Soaking {
		t.Fatalf("it is %s with %v of soak and %v", r.s.At, r.s.Soak.Credited, r.s.Holds)
	}
	r.spec.Backward = true
	unasked(r)
	if r.step(); r.s.At != RollingBack || !r.w.rings[0].Published.Split.zero() {
		t.Errorf("it is %s, published is %v", r.s.At, r.w.rings[0].Published.Split)
	}
}

// TestCandidateReplacedBeforePublished: as long as nobody has the ring to go to, another one takes its place; after that it is a hold.
func TestCandidateReplacedBeforePublished(t *testing.T) {
	r := newRun("edge", "side")
	r.until(t, Preparing, 0)
	r.s.Candidates = map[string]string{"edge": "edge-new", "side": "side-new"}
	for i := range r.w.rings { // Nothing was published yet.
		r.w.rings[i].Published.Candidate = ""
	}
	before := r.s
	r.w.rings[0].Candidate = "edge-newer"
	r.step()
	if got := r.w.ring("edge").Published.Candidate; got != "edge-newer" || r.s.Dispatches == before.Dispatches || before.Candidates["edge"] != "edge-new" {
		t.Fatalf("it publishes %s as split %d after %d, and the state before has %v", got, r.s.Dispatches, before.Dispatches, before.Candidates)
	}
	r.w.rings[0].Candidate = "edge-newest"
	r.wantHold(t, HoldRingDrift)
	if got := r.w.ring("edge").Published.Candidate; got != "edge-newer" {
		t.Errorf("it publishes %s", got)
	}
}

// TestRollbackWithoutRings: where the rings are gone, as in a namespace that is being deleted, nobody is waited for.
func TestRollbackWithoutRings(t *testing.T) {
	r := newRun("edge")
	r.until(t, Soaking, 1)
	r.fleet, r.deleted = map[string]reach{"a": gone, "b": gone}, true
	for range 2 {
		r.edit = func(o *Observation) { o.Rings = nil }
		r.step()
	}
	if r.s.At != RolledBack {
		t.Fatalf("it is %s", r.s.At)
	}
	r.edit = func(o *Observation) { o.Rings = nil }
	if r.step(); !r.w.released {
		t.Error("it is not let go")
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
