// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"hash/fnv"
	"time"
)

// Step returns the state after old and what is to be done for it, given what was seen and when that was. It makes at most one
// transition of the table. The state that it returns has to be stored before any of its effects is carried out; old is not
// changed.
func Step(old State, o Observation, now time.Time) (State, []Effect) {
	return standard.step(old, o, now)
}

// machine has the rules that the guarantees stand on. Tests replace them one by one to see that the loss of each is noticed.
type machine struct {
	// acknowledged says whether the consumers of some datacenters have the split.
	acknowledged func(s State, o Observation, datacenters []string, quorum int) bool
	// passes says whether a gate says that all is well with the present step.
	passes func(s State, g Gate, now time.Time) bool
	// fresh says whether the token of an action is the present one.
	fresh func(s State, a Action) bool
	// needed says who still needs the old ring.
	needed func(s State, o Observation) []Hold
	// credit is what an observation adds to the soak.
	credit func(s State, o Observation, now time.Time) time.Duration
	// soaked says whether a step has been watched for long enough.
	soaked func(s State, spec Spec) bool
	// order is the one in which events are looked for.
	order []Event
	table map[Place]map[Event]row
}

var standard = machine{
	acknowledged: acknowledged, passes: passes, fresh: fresh, needed: needed, credit: credit, soaked: soaked, order: events, table: table,
}

func (m machine) step(old State, o Observation, now time.Time) (State, []Effect) {
	s := old.clone()
	s.begin(o)
	asked, answers := m.answer(&s, o, now)
	m.record(&s, o, now)
	cause := s.cause(o, asked)
	s.Holds = m.holds(s, o, now)
	m.account(&s, o, now)
	if m.transit(&s, o, now, wish{asked: asked, cause: cause}) {
		s.Holds = m.holds(s, o, now) // They are told as they are where it is now.
	}
	return s, effects(s, o, answers)
}

// begin is what the first call does.
func (s *State) begin(o Observation) {
	if s.At != "" {
		return
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(o.Self)) // It never fails.
	s.At, s.Seed, s.Attempt, s.SpecAttempt = Pending, h.Sum32(), 1, o.Spec.Attempt
}

// wish is what persons and causes ask for in this call.
type wish struct {
	asked asked
	cause *Return
}

// transit finds the event and takes its row. It says whether that changed anything.
func (m machine) transit(s *State, o Observation, now time.Time, w wish) bool {
	for _, event := range m.order {
		row := m.table[s.At][event]
		if row.pass || !m.occurs(event, *s, o, now, w) {
			continue
		}
		from := s.At
		if w.cause != nil && row.to == RollingBack && from != RollingBack {
			s.Back = &Return{w.cause.Cause, w.cause.Detail, now}
		}
		if row.do != nil {
			row.do(s, o, now)
		}
		if s.At = row.to; s.At != from || row.do != nil {
			s.Last = Transition{from, s.At, event, now}
			return true
		}
		return false
	}
	return false
}

// occurs says whether there is cause for an event.
func (m machine) occurs(e Event, s State, o Observation, now time.Time, w wish) bool {
	switch e {
	case EventDeleted:
		return o.Deleted && (o.Spec.OnDelete != DeleteFreezes || s.At == Succeeded || s.At == RolledBack)
	case EventRollback:
		return w.cause != nil
	case EventFrozen:
		return o.Deleted
	case EventLowered:
		return raised(ceilings(s, o, now), s.Split)
	case EventRetried:
		return !o.Spec.Backward && (w.asked.retry || o.Spec.Attempt > s.SpecAttempt)
	case EventHeld:
		return len(s.Holds) > 0
	case EventRaised:
		return raised(s.Split, target(s, o))
	case EventRetires:
		return s.Retirement() && m.complete(s, o)
	case EventDone:
		return m.done(s, o, now)
	default:
		return true
	}
}

// done says whether a place has nothing more to wait for.
func (m machine) done(s State, o Observation, now time.Time) bool {
	switch s.At {
	case Pending:
		return true // What it would wait for is a hold.
	case Queued:
		return s.locked(o)
	case Preparing:
		return m.complete(s, o)
	case Dispatching:
		return len(s.Versions) == len(o.Rings)
	case Converging, AwaitingApproval:
		return m.complete(s, o)
	case Soaking:
		return m.complete(s, o) && (m.soaked(s, o.Spec) || s.Skipped)
	case Complete:
		return !s.Retirement() && m.complete(s, o)
	case Retiring:
		return s.retired(o)
	case RollingBack:
		// Where the rings are gone nobody can be told anything.
		return s.Split.zero() && s.withdrawn(o) && (len(o.Rings) == 0 || len(s.unreached(o)) == 0 || now.Sub(s.Dispatched) > o.Spec.Acknowledgement.Deadline)
	default:
		return false
	}
}

// locked says whether all rings are held for this migration.
func (s State) locked(o Observation) bool {
	for _, r := range o.Rings {
		if r.Holder != o.Self {
			return false
		}
	}
	return len(o.Rings) > 0
}
