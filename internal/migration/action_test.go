// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"testing"
)

// give steps with an action and returns what became of it.
func (r *run) give(t *testing.T, kind ActionType, token string) Refusal {
	t.Helper()
	id := fmt.Sprint(kind, r.w.now)
	r.act(Action{ID: id, Type: kind, Token: token, Actor: "ann"})
	r.step()
	refusal, told := r.w.told[id]
	if !told {
		t.Fatalf("%s has no answer", kind)
	}
	return refusal
}

// waiting returns a run that waits for approval.
func waiting(t *testing.T) *run {
	t.Helper()
	r := newRun("edge")
	r.until(t, AwaitingApproval, 0)
	for r.s.Step == 0 || r.s.At != AwaitingApproval {
		r.step()
	}
	r.wantHold(t, HoldAwaitingApproval)
	return r
}

func TestApproval(t *testing.T) {
	r := waiting(t)
	token := r.s.Token()
	r.wantHold(t, HoldAwaitingApproval)
	if refusal := r.give(t, Approve, token); refusal != "" || r.s.At != Complete {
		t.Fatalf("it is %q and %s", refusal, r.s.At)
	}
	if refusal := r.give(t, Approve, token); refusal != StaleStep && refusal != NotAwaiting {
		t.Errorf("a second click is %q", refusal)
	}
	for r.s.At != AwaitingApproval {
		r.step()
	}
	if refusal := r.give(t, Approve, token); refusal != StaleStep {
		t.Errorf("a late click is %q", refusal)
	}
}

// TestApprovalWhileHeld keeps the approval until nothing holds any more.
func TestApprovalWhileHeld(t *testing.T) {
	r := waiting(t)
	r.gates["errors"] = NoData
	if refusal := r.give(t, Approve, r.s.Token()); refusal != "" || r.s.At != AwaitingApproval {
		t.Fatalf("it is %q and %s", refusal, r.s.At)
	}
	r.gates["errors"] = Pass
	if r.step(); r.s.At != Complete {
		t.Errorf("it is %s with %v", r.s.At, r.s.Holds)
	}
}

func TestReject(t *testing.T) {
	r := waiting(t)
	if refusal := r.give(t, Reject, r.s.Token()); refusal != "" || r.s.At != RollingBack || r.s.Back.Cause != CauseRejected {
		t.Errorf("it is %q and %s because %+v", refusal, r.s.At, r.s.Back)
	}
}

// TestRefusals: what does not fit is refused, with the reason, and changes nothing.
func TestRefusals(t *testing.T) {
	token := func(r *run) string { return r.s.Token() }
	back := func(r *run) { r.spec.Backward = true; r.step(); r.step() }
	for name, row := range map[string]struct {
		do    func(r *run)
		kind  ActionType
		token func(r *run) string
		want  Refusal
	}{
		"nothing to approve":          {nil, Approve, token, NotAwaiting},
		"nothing to reject":           {nil, Reject, token, NotAwaiting},
		"not paused":                  {nil, ResumeAction, token, NotPaused},
		"not rolled back":             {nil, RetryAction, token, NotRolledBack},
		"still backward":              {back, RetryAction, token, DirectionBackward},
		"nothing to skip":             {back, SkipAction, token, NothingToSkip},
		"back already":                {back, RollbackAction, token, TooLate},
		"rollback of another attempt": {nil, RollbackAction, func(*run) string { return "2.1.1-1" }, StaleStep},
		"pause of another attempt":    {nil, PauseAction, func(*run) string { return "2.1.1-1" }, StaleStep},
		"no token":                    {nil, SkipAction, func(*run) string { return "" }, StaleStep},
		"no type":                     {nil, "Dance", token, UnknownType},
		"rollback without token":      {nil, RollbackAction, func(*run) string { return "" }, ""},
		"rollback of an earlier step": {nil, RollbackAction, func(*run) string { return "1.1.1-1" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := soaking(t)
			if row.do != nil {
				row.do(r)
			}
			before := r.s.At
			if got := r.give(t, row.kind, row.token(r)); got != row.want {
				t.Errorf("it is %q, want %q", got, row.want)
			}
			if row.want != "" && r.s.At != before {
				t.Errorf("it goes from %s to %s", before, r.s.At)
			}
		})
	}
}

// TestCautiousSideWins: neither Resume nor spec ends what the other has asked for.
func TestCautiousSideWins(t *testing.T) {
	r := soaking(t)
	r.spec.Suspended = true
	if refusal := r.give(t, PauseAction, ""); refusal != "" {
		t.Fatal(refusal)
	}
	r.spec.Suspended = false
	r.wantHold(t, HoldPaused)
	r.spec.Suspended = true
	if refusal := r.give(t, ResumeAction, r.s.Token()); refusal != "" {
		t.Fatal(refusal)
	}
	r.wantHold(t, HoldSuspended)
	r.act(Action{ID: "1", Type: RollbackAction}, Action{ID: "2", Type: SkipAction, Token: r.s.Token()})
	if r.step(); r.s.At != RollingBack {
		t.Errorf("it is %s", r.s.At)
	}
}

// TestRetryKeepsSeedAndPause: another attempt moves the same keys.
func TestRetryKeepsSeedAndPause(t *testing.T) {
	r := soaking(t)
	seed, token := r.s.Seed, r.s.Token()
	r.give(t, RollbackAction, token)
	r.until(t, RolledBack, 0)
	r.give(t, PauseAction, "")
	r.act(Action{ID: "one", Type: RetryAction, Token: r.s.Token()}, Action{ID: "two", Type: RetryAction, Token: r.s.Token()})
	if r.step(); r.s.At != Pending || r.s.Attempt != 2 || r.w.told["one"] != "" || r.w.told["two"] == "" {
		t.Fatalf("it is %s in attempt %d: %v", r.s.At, r.s.Attempt, r.w.told)
	}
	r.wantHold(t, HoldPaused)
	r.until(t, Soaking, 0)
	if r.s.Seed != seed || r.w.rings[0].Published.Seed != seed || seed == 0 {
		t.Errorf("the seed is %d, it was %d", r.s.Seed, seed)
	}
	if refusal := r.give(t, SkipAction, token); refusal != StaleStep {
		t.Errorf("a token of the attempt before is %q", refusal)
	}
}

// TestAttemptLatches: an attempt that was there before the rollback does not go forward again.
func TestAttemptLatches(t *testing.T) {
	r := soaking(t)
	r.spec.Attempt = 5
	r.step()
	r.give(t, RollbackAction, "")
	r.until(t, RolledBack, 0)
	r.step()
	if r.step(); r.s.At != RolledBack {
		t.Fatalf("it is %s", r.s.At)
	}
	r.spec.Attempt = 6
	r.until(t, Soaking, 0)
}

// TestAnswerIsKept: an action whose answer got lost is answered alike and not done again.
func TestAnswerIsKept(t *testing.T) {
	r := soaking(t)
	pause := Action{ID: "p", Type: PauseAction, Actor: "ann"}
	resume := Action{ID: "r", Type: ResumeAction, Token: r.s.Token(), Actor: "bob"}
	r.act(pause, resume)
	r.step()
	r.act(pause, resume)
	r.step()
	if r.s.Paused != nil || r.w.told["p"] != "" || r.w.told["r"] != "" || len(r.s.History) != 2 {
		t.Errorf("paused %v, told %v, history %v", r.s.Paused, r.w.told, r.s.History)
	}
}

// TestHistoryIsBounded keeps the last ones.
func TestHistoryIsBounded(t *testing.T) {
	r := soaking(t)
	for i := range maxHistory + 5 {
		r.act(Action{ID: fmt.Sprint(i), Type: Approve})
		r.step()
	}
	if n := len(r.s.History); n != maxHistory || r.s.History[0].ID != "5" {
		t.Errorf("%d entries from %s on", n, r.s.History[0].ID)
	}
}

// TestSkip leaves soak, gates and approval out, and no acknowledgement.
func TestSkip(t *testing.T) {
	r := soaking(t)
	r.fleet["a"], r.gates["errors"] = stale, NoData
	if refusal := r.give(t, SkipAction, r.s.Token()); refusal != "" || r.s.At != Soaking {
		t.Fatalf("it is %q and %s", refusal, r.s.At)
	}
	r.fleet["a"] = here
	if r.step(); r.s.At != AwaitingApproval {
		t.Errorf("it is %s with %v", r.s.At, r.s.Holds)
	}
}
