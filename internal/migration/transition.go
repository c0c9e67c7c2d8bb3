// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"maps"
	"time"
)

// queue takes the plan. It is not edited from here on but as [State.boldness] allows.
func queue(s *State, o Observation, _ time.Time) { s.Plan, s.Stage, s.Step = o.Spec.Stages, 0, 0 }

// prepare takes the rings to go to, and publishes both of each at 0.
func prepare(s *State, o Observation, now time.Time) {
	s.Candidates = map[string]string{}
	for _, r := range o.Rings {
		s.Candidates[r.Name] = r.Candidate
	}
	s.dispatch(Split{}, now)
}

// retake takes the rings that have come in the place of those to go to before these were published: nobody has them.
func (s *State) retake(o Observation, now time.Time) {
	if s.At != Preparing {
		return
	}
	for _, r := range o.Rings {
		if r.Candidate == "" || r.Candidate == s.Candidates[r.Name] || r.Published.Candidate != "" {
			continue
		}
		s.Candidates = maps.Clone(s.Candidates)
		s.Candidates[r.Name] = r.Candidate
		s.dispatch(Split{}, now)
	}
}

// enter begins the step that the position names.
func enter(s *State, o Observation, now time.Time) {
	if !s.Retirement() && s.Step == 0 && s.Plan[s.Stage].Remainder {
		s.Remainder = s.remainder(o)
	}
	s.dispatch(target(*s, o), now)
}

// next goes to the next step, the next stage, or the soak before retirement, which is announced so.
func next(s *State, o Observation, now time.Time) {
	if s.Step++; s.Step == len(s.Plan[s.Stage].Steps) {
		s.Stage, s.Step = s.Stage+1, 0
	}
	if s.Retirement() {
		s.Announced = now
	}
	enter(s, o, now)
}

// settle is when the step took effect: what was measured before says nothing about it.
func settle(s *State, _ Observation, now time.Time) { s.Effective = now }

// lower publishes what is still allowed, and keeps the position.
func lower(s *State, o Observation, now time.Time) {
	s.dispatch(lowest(s.Split, ceilings(*s, o, now)), now)
}

// raise publishes what the step asks for, after something kept it lower.
func raise(s *State, o Observation, now time.Time) { s.dispatch(target(*s, o), now) }

// dispatch is a new split. Nothing that was known of the consumers, the soak or approvals holds for it.
func (s *State) dispatch(split Split, now time.Time) {
	s.Split, s.Dispatched, s.Dispatches = split, now, s.Dispatches+1
	s.Versions, s.Unconverged, s.Effective = nil, now, time.Time{}
	s.Soak, s.Approved, s.Skipped = Soak{}, false, false
}

// goBack begins the rollback; the first lower split goes with it. What was not published yet is not published any more. A higher
// attempt counts from here on.
func goBack(s *State, o Observation, now time.Time) {
	s.SpecAttempt = o.Spec.Attempt
	split := lowest(s.Split, backCeilings(*s, o, now))
	if s.At == Dispatching {
		split = lowest(split, o.published())
	}
	s.dispatch(split, now)
}

// latch ends a rollback.
func latch(s *State, o Observation, _ time.Time) {
	s.Unreached = s.unreached(o)
	s.Unconverged = time.Time{}
}

// retry forgets all but who the migration is: its seed, its attempts, who paused it, and what was answered.
func retry(s *State, o Observation, _ time.Time) {
	*s = State{
		At: s.At, Attempt: s.Attempt + 1, SpecAttempt: o.Spec.Attempt, Seed: s.Seed, Dispatches: s.Dispatches,
		Paused: s.Paused, History: s.History, Back: s.Back,
	}
}

// retire is the point of no return.
func retire(s *State, _ Observation, now time.Time) { s.Versions, s.Unconverged = nil, now }

// ceilings returns the shares that may not be exceeded now.
func ceilings(s State, o Observation, now time.Time) Split {
	if s.At == RollingBack {
		return o.Spec.Limits.limited(backCeilings(s, o, now))
	}
	return o.Spec.Limits.limited(s.planned())
}

// backCeilings returns the ceilings of a rollback at a time. They follow from when it began, so a restart loses nothing; the
// strategy is that of the spec as it is, so that a slow rollback can be made a fast one. What limits say is in the ceilings.
func backCeilings(s State, o Observation, now time.Time) Split {
	ceiling := 0
	if r := o.Spec.Rollback; len(r.Steps) > 0 && r.validate() == nil {
		at := max(now.Sub(s.Back.Since)/r.Interval, 0)
		ceiling = r.Steps[min(int(at), len(r.Steps)-1)]
	}
	all := Split{}
	for name := range s.Split {
		all[name] = ceiling
	}
	return o.Spec.Limits.limited(all)
}
