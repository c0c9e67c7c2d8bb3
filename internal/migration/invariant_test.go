// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"reflect"
	"slices"
)

// ghost is what the invariants remember. It is found out from observations alone, without the rules of the machine.
type ghost struct {
	// acked are the datacenters whose consumers all had the split that is asked for, when it was published.
	acked [2]bool
	// clean is how many calls of this dispatch have seen all well, with the split acknowledged.
	clean int
	// approved and skipped say that a person let the step go.
	approved, skipped bool
}

func (g ghost) after(e edge) ghost {
	if e.after.Dispatches != e.old.Dispatches {
		return ghost{}
	}
	if e.old.At == Complete && e.after.At == Retiring {
		return ghost{}
	}
	r := e.o.Rings[0].Published
	asked := r.Split.Equal(e.old.Split) && r.Candidate == "edge-new" && r.Seed == e.old.Seed
	for i := range g.acked {
		g.acked[i] = asked && (e.in.fleet[i] == here || g.acked[i])
	}
	if asked && e.well() && e.old.At == Soaking {
		g.clean = min(g.clean+1, int(e.old.current(e.o.Spec).Soak/tick)) // More makes no difference.
	}
	if len(e.o.Actions) == 1 && e.o.Actions[0].Token == e.old.Token() && e.old.At != Pending {
		g.approved = g.approved || e.o.Actions[0].Type == Approve && e.old.At == AwaitingApproval
		g.skipped = g.skipped || e.o.Actions[0].Type == SkipAction && (e.old.At == Soaking || e.old.At == AwaitingApproval || e.old.At == Complete)
	}
	return g
}

// well says whether an observation lets a soak go on, but for pauses.
func (e edge) well() bool {
	involved := e.in.fleet[0] == here && (e.in.fleet[1] == here || !slices.Contains(e.old.begun(), "b") && !e.old.Retirement())
	held := e.o.Spec.Suspended || e.o.Deleted || e.o.Spec.Backward || e.o.Rings[0].Drift > maxDrift || len(e.o.Spec.Stages) == 0
	return involved && !held && e.in.result == Pass
}

// check returns the invariant that a call breaks; nil where none.
func (e edge) check(m machine) error {
	for _, check := range []func(edge, machine) error{
		edge.oneRow, edge.forward, edge.monotone, edge.clock, edge.rollback, edge.tokens, edge.retirement, edge.latched, edge.repeatable, edge.explained,
	} {
		if err := check(e, m); err != nil {
			return err
		}
	}
	return nil
}

// oneRow: at most one transition a call, and only from one step to the next.
func (e edge) oneRow(machine) error {
	if e.old.At != "" && e.after.At != e.old.At {
		last := e.after.Last
		if row := table[last.From][last.Event]; last.From != e.old.At || last.To != e.after.At || row.pass || row.to != last.To {
			return fmt.Errorf("from %s to %s is no row of the table", e.old.At, e.after.At)
		}
	}
	old := e.old
	if e.after.Stage == old.Stage && e.after.Step == old.Step || e.after.At == Pending {
		return nil
	}
	if old.Step++; old.Step == len(old.Plan[old.Stage].Steps) {
		old.Stage, old.Step = old.Stage+1, 0
	}
	if old.At != Complete || e.after.Stage != old.Stage || e.after.Step != old.Step {
		return fmt.Errorf("from step %d.%d to %d.%d at %s", e.old.Stage, e.old.Step, e.after.Stage, e.after.Step, e.old.At)
	}
	return nil
}

// forward: no share rises before those who have one, or all before the first, acknowledged; nor without soak and approval.
func (e edge) forward(machine) error {
	if !raised(e.old.Split, e.after.Split) {
		return nil
	}
	for i, name := range []string{"a", "b"} {
		acked := e.ghost.acked[i] || e.ghost.after(edge{old: e.old, after: e.old, o: e.o, in: e.in}).acked[i]
		if (e.old.Split[name] > 0 || e.old.At == Preparing) && !acked && !e.after.sameStep(e.old) {
			return fmt.Errorf("forward without acknowledgement of %s", name)
		}
	}
	if len(e.after.Holds) > 0 && e.held() {
		return fmt.Errorf("forward while held")
	}
	if e.after.sameStep(e.old) || e.old.At == Preparing {
		return nil
	}
	step := e.old.current(e.o.Spec)
	if !e.ghost.skipped && !e.skips() && e.ghost.clean*int(tick) < int(step.Soak) {
		return fmt.Errorf("forward after %d clean observations, with a soak of %s", e.ghost.clean, step.Soak)
	}
	if step.Approval && !e.ghost.approved && !e.ghost.skipped && !e.skips() {
		return fmt.Errorf("forward without approval")
	}
	return nil
}

// sameStep is a new dispatch of a step, as after limits.
func (s State) sameStep(old State) bool {
	return stepPlace(old.At) && s.Stage == old.Stage && s.Step == old.Step
}

func (e edge) skips() bool { return e.in.env == "Skip" }

// held says whether the observation has something that holds, or the state is paused.
func (e edge) held() bool {
	return e.after.Paused != nil || e.o.Spec.Suspended || e.o.Deleted || e.o.Rings[0].Drift > maxDrift || len(e.o.Spec.Stages) == 0
}

// monotone: a share falls by going back and by limits only, the seed stays.
func (e edge) monotone(machine) error {
	if e.old.At != "" && e.after.Seed != e.old.Seed {
		return fmt.Errorf("the seed changes")
	}
	back := e.after.At == RollingBack || e.after.At == Pending
	limited := e.o.Spec.Limits.MaxTraffic < whole || len(e.o.Spec.Limits.Excluded) > 0
	if raised(e.after.Split, e.old.Split) && !back && !limited {
		return fmt.Errorf("a share falls from %v to %v", e.old.Split, e.after.Split)
	}
	if back && raised(e.old.Split, e.after.Split) {
		return fmt.Errorf("a share rises while it goes back")
	}
	return nil
}

// clock: a soak is credited by clean observations only, and with no more than two intervals.
func (e edge) clock(machine) error {
	credited := e.after.Soak.Credited - e.old.Soak.Credited
	if e.after.Dispatches != e.old.Dispatches || credited <= 0 {
		return nil
	}
	switch {
	case credited > 2*e.o.Spec.Interval:
		return fmt.Errorf("%s are credited at once", credited)
	case e.held():
		return fmt.Errorf("time is credited while held")
	case !e.well() && !e.after.Skipped:
		return fmt.Errorf("time is credited with gate %s and consumers %v", e.in.result, e.in.fleet)
	}
	return nil
}

// rollback: from before Retiring it goes back at once, whatever holds, and the first lower split goes out with it.
func (e edge) rollback(machine) error {
	asked := e.o.Spec.Backward || e.o.Deleted && e.o.Spec.OnDelete != DeleteFreezes || e.in.env == "Rollback" || e.in.env == "stuck"
	if !asked || e.old.At == "" {
		return nil
	}
	if !e.old.RollbackAvailable() {
		if e.after.At == RollingBack && e.old.At != RollingBack {
			return fmt.Errorf("back from %s", e.old.At)
		}
		return nil
	}
	if e.after.At != RollingBack {
		return fmt.Errorf("no rollback from %s", e.old.At)
	}
	if len(e.o.Spec.Rollback.Steps) == 0 && !e.after.Split.zero() {
		return fmt.Errorf("the rollback leaves %v", e.after.Split)
	}
	r := e.o.Rings[0]
	out := slices.ContainsFunc(e.effects, func(f Effect) bool { return f.Kind == Publish && f.Split.Equal(e.after.Split) || f.Kind == Lock })
	if raised(e.after.Split, r.Published.Split) && !out {
		return fmt.Errorf("the rollback publishes nothing")
	}
	return nil
}

// tokens: an action with the token of something before does what no action does.
func (e edge) tokens(m machine) error {
	if len(e.o.Actions) != 1 || e.in.env[:min(4, len(e.in.env))] != "late" {
		return nil
	}
	o := e.o
	o.Actions = nil
	without, _ := m.step(e.old, o, e.now)
	with := e.after
	with.History = without.History
	if !reflect.DeepEqual(with, without) {
		return fmt.Errorf("%s with a stale token does something", e.in.env)
	}
	return nil
}

// retirement: the old ring goes when all consumers have had the whole for the announced soak, and not before.
func (e edge) retirement(machine) error {
	for _, f := range e.effects {
		if (f.Kind == Promote || f.Kind == Empty) && e.after.At != Retiring {
			return fmt.Errorf("%s at %s", f.Kind, e.after.At)
		}
		if f.Kind == Empty && (e.o.Rings[0].Published.Stable != "edge-new" || e.in.fleet != [2]reach{here, here}) {
			return fmt.Errorf("the old ring is emptied while %v", e.in.fleet)
		}
	}
	if e.after.At != Retiring || e.old.At == Retiring {
		return nil
	}
	retirement := e.o.Spec.Retirement
	switch {
	case e.old.Announced.IsZero() || !e.old.Announced.Before(e.now):
		return fmt.Errorf("early retirement: it was not announced")
	case e.old.Split["a"] != whole || e.old.Split["b"] != whole:
		return fmt.Errorf("early retirement: the split is %v", e.old.Split)
	case e.in.fleet != [2]reach{here, here}:
		return fmt.Errorf("early retirement: the consumers are %v", e.in.fleet)
	case e.ghost.clean*int(tick) < int(retirement.Soak) && !e.ghost.skipped && !e.skips():
		return fmt.Errorf("early retirement: %d clean observations", e.ghost.clean)
	case retirement.Approval && !e.ghost.approved && !e.ghost.skipped && !e.skips():
		return fmt.Errorf("early retirement: without approval")
	case e.held():
		return fmt.Errorf("early retirement: while held")
	}
	return nil
}

// latched: after a rollback only a new attempt goes on, and not backwards.
func (e edge) latched(machine) error {
	if e.old.At == RolledBack && e.after.At != RolledBack {
		if (e.in.env != "Retry" && e.in.env != "attempt") || e.after.Attempt != e.old.Attempt+1 || e.o.Spec.Backward {
			return fmt.Errorf("forward again without a new attempt")
		}
	}
	if e.after.Attempt != e.old.Attempt && e.old.At != "" && (e.old.At != RolledBack || e.after.At != Pending) {
		return fmt.Errorf("a new attempt at %s", e.old.At)
	}
	if e.old.At == RollingBack && e.after.At != RollingBack && e.after.At != RolledBack {
		return fmt.Errorf("from going back to %s", e.after.At)
	}
	return nil
}

// repeatable: without its effects carried out, the same is asked for again, unless the next transition asks for something else.
func (e edge) repeatable(m machine) error {
	if e.in.result != Pass || e.in.fleet[1] != here {
		return nil // It is enough, and this takes time.
	}
	again, effects := m.step(e.after, e.o, e.now)
	if again.At == e.after.At && again.Dispatches == e.after.Dispatches && len(again.Holds) == len(e.after.Holds) && !reflect.DeepEqual(effects, e.effects) {
		return fmt.Errorf("after a crash the effects are %v, not %v", effects, e.effects)
	}
	return nil
}

// explained: what does not go on says why, and every hold says since when and who can end it.
func (e edge) explained(machine) error {
	for _, h := range e.after.Holds {
		if h.Since.IsZero() || h.Type.EndedBy() == "" || h.Detail == "" {
			return fmt.Errorf("hold %+v is not explained", h)
		}
	}
	return nil
}
