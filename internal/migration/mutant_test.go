// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// withRow is the table with another row.
func withRow(p Place, e Event, r row) map[Place]map[Event]row {
	other := maps.Clone(table)
	other[p] = maps.Clone(table[p])
	other[p][e] = r
	return other
}

// TestSeededBugs: a machine that lacks one of the rules breaks an invariant in a small model.
func TestSeededBugs(t *testing.T) {
	for name, bug := range map[string]struct {
		seed func(m *machine)
		want string // What the invariant says.
	}{
		"no acknowledgement needed": {func(m *machine) {
			m.acknowledged = func(State, Observation, []string, int) bool { return true }
		}, "without acknowledgement"},
		"a quorum of none": {func(m *machine) {
			m.acknowledged = func(s State, o Observation, dcs []string, _ int) bool { return acknowledged(s, o, dcs, 0) }
		}, ""},
		"an old file will do": {func(m *machine) {
			m.acknowledged = func(s State, o Observation, dcs []string, quorum int) bool {
				if len(s.Versions) == 0 {
					s.Versions = map[string]Version{"edge": {}}
				}
				o.Rings = nil
				return acknowledged(s, o, dcs, quorum)
			}
		}, ""},
		"unknown counts as pass": {func(m *machine) {
			m.passes = func(s State, g Gate, _ time.Time) bool { return s.Gates[g.Name].Result != Fail }
		}, "with gate"},
		"all results pass": {func(m *machine) {
			m.passes = func(State, Gate, time.Time) bool { return true }
		}, "with gate"},
		"a stale token is accepted": {func(m *machine) {
			m.fresh = func(State, Action) bool { return true }
		}, "stale token"},
		"early retirement: nobody is asked": {func(m *machine) {
			m.needed = func(State, Observation) []Hold { return nil }
		}, "early retirement"},
		"early retirement: after the first step": {func(m *machine) {
			m.table = withRow(Complete, EventDone, doing(retire, Retiring))
		}, ""},
		"early retirement: without its soak": {func(m *machine) {
			m.soaked = func(s State, spec Spec) bool { return s.Retirement() || soaked(s, spec) }
		}, "early retirement"},
		"no soak": {func(m *machine) {
			m.soaked = func(State, Spec) bool { return true }
		}, "clean observations"},
		"the soak is a timestamp": {func(m *machine) {
			m.credit = func(s State, _ Observation, now time.Time) time.Duration { return now.Sub(s.Effective) }
		}, "at once"},
		"unwatched time counts": {func(m *machine) {
			m.credit = func(s State, _ Observation, now time.Time) time.Duration {
				if s.Soak.Clean.IsZero() {
					return 0
				}
				return now.Sub(s.Soak.Clean)
			}
		}, "at once"},
		"holds come before rollback": {func(m *machine) {
			m.order = slices.Concat([]Event{EventHeld}, events)
		}, "no rollback"},
		"holds are ignored": {func(m *machine) {
			m.order = slices.DeleteFunc(slices.Clone(events), func(e Event) bool { return e == EventHeld })
		}, ""},
		"no rollback while it awaits approval": {func(m *machine) {
			m.table = withRow(AwaitingApproval, EventRollback, pass)
		}, "no rollback"},
		"rollback after the point of no return": {func(m *machine) {
			m.table = withRow(Retiring, EventDeleted, doing(func(s *State, o Observation, now time.Time) { s.Back = &Return{}; goBack(s, o, now) }, RollingBack))
		}, ""},
		"no latch": {func(m *machine) {
			m.table = withRow(RolledBack, EventNothing, doing(retry, Pending))
		}, "no row"},
		"no latch on retry": {func(m *machine) {
			m.table = withRow(RolledBack, EventNothing, doing(retry, RolledBack))
		}, "new attempt"},
		"a step is skipped": {func(m *machine) {
			m.table = withRow(Complete, EventDone, doing(func(s *State, o Observation, now time.Time) {
				if next(s, o, now); s.Stage == 0 {
					s.Stage, s.Step = 1, 0
				}
			}, Dispatching))
		}, ""},
		"a rollback stays where it is": {func(m *machine) {
			m.table = withRow(Soaking, EventRollback, to(RollingBack))
		}, "the rollback leaves"},
		"another seed with every attempt": {func(m *machine) {
			m.table = withRow(RolledBack, EventRetried, doing(func(s *State, o Observation, now time.Time) { retry(s, o, now); s.Seed++ }, Pending))
		}, "the seed changes"},
		"limits make the step begin anew": {func(m *machine) {
			m.table = withRow(Soaking, EventLowered, doing(func(s *State, o Observation, now time.Time) { s.Step = 0; lower(s, o, now) }, Dispatching))
		}, "from step"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := standard
			bug.seed(&m)
			got := caught(m, "approval")
			if got == "" {
				got = caught(m, "staged")
			}
			if got == "" || !strings.Contains(got, bug.want) {
				t.Errorf("the bug is caught with %q, want %q", got, bug.want)
			}
		})
	}
}

// caught explores until an invariant is broken and says which.
func caught(m machine, model string) string {
	e := newExplorer(m, model, models()[model])
	err := e.walk()
	if err == nil {
		err = e.explore()
	}
	if err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return line
	}
	return ""
}
