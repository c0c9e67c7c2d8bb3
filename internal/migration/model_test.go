// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// input is what the environment does in one call.
type input struct {
	fleet   [2]reach
	result  Result
	env     string // The name of one of envs.
	effects int    // How many effects are carried out before the crash; all if negative.
}

func (i input) String() string {
	return fmt.Sprintf("a %s, b %s, gate %s, %s, %d effects", i.fleet[0], i.fleet[1], i.result, i.env, i.effects)
}

// envs are what else can happen in a call.
var envs = map[string]func(s State, o *Observation){
	"nothing":   func(State, *Observation) {},
	"suspended": func(_ State, o *Observation) { o.Spec.Suspended = true },
	"limited":   func(_ State, o *Observation) { o.Spec.Limits.MaxTraffic = 2000 },
	"excluded":  func(_ State, o *Observation) { o.Spec.Limits.Excluded = []string{"a"} },
	"backward":  func(_ State, o *Observation) { o.Spec.Backward = true },
	"attempt":   func(s State, o *Observation) { o.Spec.Attempt = s.SpecAttempt + 1 },
	"deleted":   func(_ State, o *Observation) { o.Deleted = true },
	"frozen":    func(_ State, o *Observation) { o.Deleted, o.Spec.OnDelete = true, DeleteFreezes },
	"drift":     func(_ State, o *Observation) { o.Rings[0].Drift = maxDrift + 1 },
	"reverted":  func(_ State, o *Observation) { o.Rings[0].Candidate = "" },
	"bolder": func(s State, o *Observation) {
		if stepPlace(s.At) { // Before that it is no edit of what has begun.
			o.Spec.Stages = []Stage{{Name: "all", Remainder: true, Steps: []PlannedStep{{Traffic: whole}}}}
		}
	},
	"invalid":      func(_ State, o *Observation) { o.Spec.Stages = nil },
	"unwatched":    func(State, *Observation) {}, // The call comes late, see edge.
	"Approve":      press(Approve, State.Token),
	"Reject":       press(Reject, State.Token),
	"Pause":        press(PauseAction, State.Token),
	"Resume":       press(ResumeAction, State.Token),
	"Rollback":     press(RollbackAction, State.Token),
	"Retry":        press(RetryAction, State.Token),
	"Skip":         press(SkipAction, State.Token),
	"late Approve": press(Approve, lateToken),
	"late Reject":  press(Reject, lateToken),
	"late Resume":  press(ResumeAction, lateToken),
	"late Retry":   press(RetryAction, lateToken),
	"late Skip":    press(SkipAction, lateToken),
	"stuck": func(s State, o *Observation) { // Rollback passes all that there is.
		press(RollbackAction, State.Token)(s, o)
		o.Actions = append(o.Actions, Action{ID: "pause", Type: PauseAction, Actor: "bob"}, Action{ID: "resume", Type: ResumeAction, Token: s.Token()})
		o.Spec.Suspended, o.Spec.Stages, o.Rings[0].Drift = true, nil, whole
	},
}

func press(t ActionType, token func(State) string) func(State, *Observation) {
	return func(s State, o *Observation) {
		o.Actions = []Action{{ID: string(t), Type: t, Token: token(s), Actor: "ann"}}
	}
}

// lateToken is one that was right before.
func lateToken(s State) string {
	s.Dispatches--
	return s.Token()
}

// inputs are all that are tried: every result with every state of the consumers, and everything else with some of them.
var inputs = func() []input {
	var all []input
	reaches, results := []reach{here, stale, gone}, []Result{Pass, Fail, NoData, Error, Inconclusive}
	for _, a := range reaches {
		for _, b := range reaches {
			for _, r := range results {
				if a != b && (r == Error || r == Inconclusive) {
					continue // To the state they are NoData, but for the self-test.
				}
				all = append(all, input{[2]reach{a, b}, r, "nothing", -1})
			}
		}
	}
	for _, env := range slices.Sorted(maps.Keys(envs)) {
		all = append(all, input{[2]reach{here, here}, Pass, env, -1})
		if !strings.HasPrefix(env, "late") {
			all = append(all, input{[2]reach{stale, gone}, NoData, env, -1})
		}
	}
	for _, env := range []string{"nothing", "limited", "Rollback", "deleted", "Skip"} { // A crash before the first effect, and before the second.
		all = append(all, input{[2]reach{here, here}, Pass, env, 0}, input{[2]reach{here, here}, Pass, env, 1})
	}
	return all
}()

// key is equal for nodes that behave alike: times are ages, versions are what they say of the present one.
func key(n node) string {
	s, w := n.s, n.w
	age := func(t time.Time) int {
		if t.IsZero() {
			return -1
		}
		return min(int(w.now.Sub(t)/tick), 1)
	}
	r := w.rings[0]
	outside := fmt.Sprint(s.At, s.Paused != nil, r.Holder, r.Published.Split, r.Published.Candidate, r.Published.Stable, r.Emptied, r.Candidate)
	seen := fmt.Sprint(s.Split, s.Versions["edge"] == r.Published.Version, len(s.Versions), age(s.Unconverged))
	switch s.At { // What a place does not look at, and the next one forgets, is left out.
	case Pending, Queued, Succeeded, RolledBack:
		return outside
	case Retiring:
		return outside + seen
	case RollingBack:
		return fmt.Sprint(outside, seen, age(s.Back.Since), age(s.Dispatched))
	}
	if s.At == Soaking {
		seen += fmt.Sprint(min(s.Soak.Credited/tick, 2), age(s.Soak.Clean))
	}
	return fmt.Sprint(outside, seen, s.Stage, s.Step, len(s.Plan), s.Remainder, s.Gates["errors"].Answered, s.Approved, s.Skipped, n.ghost)
}

// other is what is left out of a model, so that it stays small: of two kinds of limits each model has one.
var other = map[string]string{"approval": "excluded", "staged": "limited"}

// models are the small ones that are explored as a whole.
func models() map[string]Spec {
	approval := testSpec()
	approval.Stages[0].Steps[0].Soak, approval.Stages[1].Steps[0].Soak = tick, tick
	staged := testSpec()
	staged.Stages = []Stage{{Name: "all", Remainder: true, Steps: []PlannedStep{{Traffic: 5000, Soak: tick}, {Traffic: whole, Soak: 2 * tick}}}}
	staged.Rollback = Rollback{Steps: []int{2500, 0}, Interval: 2 * tick}
	staged.Retirement = Retirement{Soak: tick, Approval: true}
	for _, spec := range []*Spec{&approval, &staged} { // Ages above a tick are all alike, see key. What was measured is forgotten with the next
		// call, and one failure is enough.
		spec.Gates[0].FailureThreshold = 1
		spec.Gates[0].FailureWindow, spec.Acknowledgement.Deadline, spec.Rollback.Interval = tick, tick, tick
	}
	return map[string]Spec{"approval": approval, "staged": staged}
}
