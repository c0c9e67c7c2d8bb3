// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"strings"
	"testing"
)

// TestQueue: a second migration waits for the first, and does not take a part of the rings that it cannot use.
func TestQueue(t *testing.T) {
	r := newRun("edge", "tile")
	r.w.rings[1].Holder = "uid-2"
	r.until(t, Queued, 0)
	if detail := r.wantHold(t, HoldLocked); !strings.Contains(detail, "tile: the lock has uid-2") {
		t.Errorf("it says %q", detail)
	}
	r.w.rings[1].Holder = ""
	r.until(t, Preparing, 0)
}

// TestHeldTakesNoLock: one that is suspended in the queue leaves the ring to others.
func TestHeldTakesNoLock(t *testing.T) {
	r := newRun("edge")
	r.spec.Suspended = true
	for range 3 {
		r.wantHold(t, HoldSuspended)
	}
	r.spec.Suspended = false
	r.step()
	if r.s.At != Queued {
		t.Fatalf("it is %s", r.s.At)
	}
	r.w.rings[0].Holder, r.spec.Suspended = "", true
	for range 3 {
		if r.wantHold(t, HoldSuspended); r.w.rings[0].Holder != "" {
			t.Fatal("it takes the lock")
		}
	}
}

// TestLostLock: with the lock gone a rollback takes it again, lowers the split, and cleans up.
func TestLostLock(t *testing.T) {
	for _, lost := range []Place{Soaking, RollingBack, RolledBack} {
		r := soaking(t)
		r.spec.Backward = true
		for r.s.At != lost {
			r.step()
		}
		r.w.rings[0].Holder = ""
		for range 10 {
			r.step()
		}
		if got := r.w.rings[0]; r.s.At != RolledBack || got.Holder != "" || got.Published.Candidate != "" || !got.Published.Split.zero() {
			t.Errorf("lost at %s: it is %s and %+v", lost, r.s.At, got)
		}
	}
}

// TestLockIsTakenAgain: a lock that somebody took away holds the step, and is taken back when nobody has it.
func TestLockIsTakenAgain(t *testing.T) {
	r := soaking(t)
	r.w.rings[0].Holder, r.w.rings[0].Published.Split = "", nil
	r.wantHold(t, HoldLocked)
	r.wantNoHold(t)
	if got := r.w.rings[0]; got.Holder != self || !got.Published.Split.Equal(r.s.Split) {
		t.Errorf("it is %s and %+v", r.s.At, got)
	}
}

// TestLostLockHoldsUpNoOtherRing: a ring whose lock cannot be taken again, such as one that is made anew, does not keep others from what
// limits say.
func TestLostLockHoldsUpNoOtherRing(t *testing.T) {
	r := newRun("edge", "tile")
	r.until(t, Soaking, 0)
	r.spec.Limits.MaxTraffic = 100
	for range 2 {
		r.w.rings[0].Holder = ""
		r.step()
	}
	if got := r.w.rings[1].Published.Split["a"]; got != 100 {
		t.Errorf("the other ring has %d basis points", got)
	}
}

// TestNextMigrationComesAtOnce: another one that takes a ring as soon as the lock is free does not keep this one from its end.
func TestNextMigrationComesAtOnce(t *testing.T) {
	for _, end := range []Place{Succeeded, RolledBack} {
		r := newRun("edge", "tile")
		r.until(t, Soaking, 1)
		r.spec.Backward = end == RolledBack
		for range 60 {
			r.help()
			list := r.plan()
			for _, e := range list {
				if r.w.apply(e); e.Kind == Unlock {
					ring := r.w.ring(e.Ring)
					ring.Holder, ring.Candidate = "uid-2", "next"
					ring.Published.Candidate, ring.Published.Seed, ring.Published.Split = "next", 7, Split{"a": 100}
				}
			}
		}
		if r.s.At != end || len(r.s.Holds) > 0 || r.w.rings[0].Holder != "uid-2" || r.w.rings[1].Published.Candidate != "next" {
			t.Errorf("it is %s with %v, not %s: %+v", r.s.At, r.s.Holds, end, r.w.rings)
		}
	}
}
