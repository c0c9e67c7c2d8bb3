// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestHolds: each cause holds the soak, says what and since when, and ends with its cause.
func TestHolds(t *testing.T) {
	bolder := func(r *run) {
		r.spec.Stages = slices.Clone(r.spec.Stages)
		r.spec.Stages[0].Steps = []PlannedStep{{Traffic: whole}}
	}
	for name, row := range map[string]struct {
		do   func(r *run)
		want HoldType
		says string
	}{
		"suspended":            {func(r *run) { r.spec.Suspended = true }, HoldSuspended, "spec.suspend"},
		"no plan":              {func(r *run) { r.spec.Stages = nil }, HoldInvalidPlan, "0 stages"},
		"bolder plan":          {bolder, HoldPlanDrift, "traffic of step 1 is raised"},
		"weight has left":      {func(r *run) { r.w.rings[0].Drift = maxDrift + 1 }, HoldRingDrift, "1001 basis points"},
		"another candidate":    {func(r *run) { r.w.rings[0].Candidate = "other" }, HoldRingDrift, "another one"},
		"lock taken":           {func(r *run) { r.w.rings[0].Holder = "uid-2" }, HoldLocked, "uid-2"},
		"datacenter gone":      {func(r *run) { r.fleet["a"] = gone }, HoldDatacenterUnreachable, "a"},
		"datacenter forgotten": {func(r *run) { delete(r.fleet, "a") }, HoldDatacenterUnreachable, "a"},
		"limited":              {func(r *run) { r.spec.Limits.MaxTraffic = 100 }, HoldLimited, "100 basis points"},
		"gate unknown":         {func(r *run) { r.gates["errors"] = Error }, HoldGateUnknown, "errors: Error"},
		"gate fails":           {func(r *run) { r.gates["errors"] = Fail }, HoldGateFailed, "errors"},
	} {
		t.Run(name, func(t *testing.T) {
			r := soaking(t)
			spec, ring := r.spec, r.w.rings[0]
			row.do(r)
			detail := r.wantHold(t, row.want)
			if !strings.Contains(detail, row.says) {
				t.Errorf("it says %q, want %q", detail, row.says)
			}
			since, split := r.s.Holds[0].Since, r.s.Split
			if r.s.Holds[0].Type.EndedBy() == "" || r.s.Soak.Clean != (time.Time{}) {
				t.Errorf("%v, soak %v", r.s.Holds, r.s.Soak)
			}
			if row.want == HoldGateFailed {
				r.gates["errors"] = NoData // Another failure would roll back.
				r.wantHold(t, HoldGateUnknown)
			} else if r.wantHold(t, row.want); !r.s.Holds[0].Since.Equal(since) {
				t.Errorf("it holds since %s, then since %s", since, r.s.Holds[0].Since)
			}
			if !r.s.Split.Equal(split) {
				t.Errorf("the split goes from %v to %v", split, r.s.Split)
			}
			r.spec, r.w.rings[0].Drift, r.w.rings[0].Candidate, r.w.rings[0].Holder = spec, ring.Drift, ring.Candidate, ring.Holder
			r.fleet["a"], r.gates["errors"] = here, Pass
			r.wantNoHold(t)
		})
	}
}

// TestDriftLimit: just as much as may leave does not hold.
func TestDriftLimit(t *testing.T) {
	r := soaking(t)
	r.w.rings[0].Drift = maxDrift
	r.wantNoHold(t)
}

// TestNotConverged: a consumer that lags holds after the deadline, by name.
func TestNotConverged(t *testing.T) {
	r := newRun("edge")
	r.until(t, Converging, 0)
	r.fleet["a"] = stale
	for range 3 { // The first call sees it, the deadline is two ticks later.
		r.wantNoHold(t)
	}
	if detail := r.wantHold(t, HoldNotConverged); detail != "1 consumers lack it: a-7" {
		t.Errorf("it says %q", detail)
	}
	if r.s.At != Converging {
		t.Errorf("it is %s", r.s.At)
	}
	r.fleet["a"] = here
	if r.step(); r.s.At != Soaking {
		t.Errorf("it is %s with %v", r.s.At, r.s.Holds)
	}
}

// TestQuorum: a part of the consumers is enough for a step where spec says so, and never before the old ring goes.
func TestQuorum(t *testing.T) {
	r := newRun("edge")
	r.spec.Acknowledgement.Quorum = 9000
	r.fleet = map[string]reach{"a": stale, "b": stale} // 9 of 10.
	r.until(t, Converging, 2)
	r.step()
	r.step()
	r.wantHold(t, HoldNotConverged)
	r.spec.Acknowledgement.Quorum = 9001
	r = newRun("edge")
	r.spec.Acknowledgement.Quorum = 9001
	r.until(t, Converging, 0)
	r.fleet["a"] = stale
	if r.step(); r.s.At != Converging {
		t.Errorf("with 9 of 10 it is %s", r.s.At)
	}
}

// TestOldAcknowledgement: consumers that were judged against an older file, or by a deposed leader, are not counted.
func TestOldAcknowledgement(t *testing.T) {
	for name, age := range map[string]func(v *Version){
		"an older generation": func(v *Version) { v.Generation-- },
		"an older epoch":      func(v *Version) { v.Epoch--; v.Generation += 100 },
	} {
		r := newRun("edge")
		r.until(t, Converging, 0)
		r.edit = func(o *Observation) {
			for i := range o.Fleets {
				age(&o.Fleets[i].Version)
			}
		}
		if r.step(); r.s.At != Converging {
			t.Errorf("%s: it is %s", name, r.s.At)
		}
	}
}

// TestNewerFile: a file that was written for another reason since, such as another address, has to be acknowledged too.
func TestNewerFile(t *testing.T) {
	r := soaking(t)
	r.w.rings[0].Published.Version.Generation += 5
	r.wantNoHold(t)
	if r.s.Dispatches != 2 {
		t.Errorf("there are %d dispatches", r.s.Dispatches)
	}
	r.w.rings[0].Published.Split = Split{"a": 77}
	if list := r.step(); len(list) != 1 || list[0].Kind != Publish || !r.w.rings[0].Published.Split.Equal(r.s.Split) {
		t.Errorf("an edited split is answered with %+v", list)
	}
}

// TestForeignSplit: a split that a deleted migration left is not taken over and not thrown away; a rollback takes it to 0.
func TestForeignSplit(t *testing.T) {
	r := newRun("edge")
	r.w.rings[0].Published.Split, r.w.rings[0].Published.Seed = Split{"b": 4000}, 99
	r.until(t, Preparing, 0)
	r.wantHold(t, HoldForeignSplit)
	if r.w.rings[0].Published.Split["b"] != 4000 {
		t.Errorf("the split is %v", r.w.rings[0].Published.Split)
	}
	r.give(t, RollbackAction, "")
	r.until(t, RolledBack, 0)
	if !r.w.rings[0].Published.Split.zero() {
		t.Errorf("the split is %v", r.w.rings[0].Published.Split)
	}
	r.give(t, RetryAction, r.s.Token())
	r.until(t, Soaking, 0)
}

// TestFreeze leaves the split as it is.
func TestFreeze(t *testing.T) {
	r := soaking(t)
	split := r.s.Split
	r.spec.OnDelete, r.deleted = DeleteFreezes, true
	r.step()
	r.step()
	if got := r.w.rings[0]; !r.w.released || got.Holder != "" || !got.Published.Split.Equal(split) {
		t.Errorf("released %t, %+v", r.w.released, got)
	}
}

// TestReverted: the spec of the ring asks for the active one again.
func TestReverted(t *testing.T) {
	r := soaking(t)
	r.w.rings[0].Candidate = ""
	if r.step(); r.s.At != RollingBack || r.s.Back.Cause != CauseReverted {
		t.Errorf("it is %s because %+v", r.s.At, r.s.Back)
	}
}

// TestRollbackOfWhatIsNotPublishedYet: a HashRing that was told a share publishes it, whatever is published at the moment. A rollback has to
// tell it otherwise, and is not over while it has not.
func TestRollbackOfWhatIsNotPublishedYet(t *testing.T) {
	behind := func(o *Observation) { o.Rings[0].Behind = true }
	r := newRun("edge")
	r.until(t, Preparing, 0)
	for r.s.At != Dispatching {
		r.plan() // The HashRing is told the first step, and takes its time.
	}
	r.edit = func(o *Observation) {
		behind(o)
		o.Actions = []Action{{ID: "back", Type: RollbackAction, Actor: "ann"}}
	}
	for range 3 {
		list := r.plan()
		if r.s.At != RollingBack || !slices.ContainsFunc(list, func(e Effect) bool { return e.Kind == Publish && e.Split.zero() }) {
			t.Fatalf("it is %s with %v", r.s.At, list)
		}
		r.edit = behind
	}
	r.edit = nil
	if r.until(t, RolledBack, 0); !r.w.rings[0].Published.Split.zero() {
		t.Errorf("published is %v", r.w.rings[0].Published.Split)
	}
}

// TestUnpublishedStepIsNotRaisedByARollback: a staged rollback does not publish a share above what consumers have.
func TestUnpublishedStepIsNotRaisedByARollback(t *testing.T) {
	r := newRun("edge")
	r.spec.Rollback.Steps, r.spec.Rollback.Interval = []int{4000, 0}, 10*tick
	r.until(t, Preparing, 0)
	r.plan() // The operator dies before it publishes the first step.
	r.give(t, RollbackAction, "")
	if !r.s.Split.zero() || r.s.At != RollingBack {
		t.Errorf("it is %s with %v", r.s.At, r.s.Split)
	}
}
