// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Place is where a migration is.
type Place string

// The places. From Dispatching to Complete they are those of one step; after the last step they are gone through once more
// for the soak before retirement.
const (
	Pending          Place = "Pending"
	Queued           Place = "Queued"
	Preparing        Place = "Preparing"
	Dispatching      Place = "Dispatching"
	Converging       Place = "Converging"
	Soaking          Place = "Soaking"
	AwaitingApproval Place = "AwaitingApproval"
	Complete         Place = "Complete"
	Retiring         Place = "Retiring"
	Succeeded        Place = "Succeeded"
	RollingBack      Place = "RollingBack"
	RolledBack       Place = "RolledBack"
)

// State is all that a migration remembers. Its zero value is one that has not begun. It shares no memory with those before.
type State struct {
	At Place
	// Attempt counts the attempts from 1 on. SpecAttempt is the number in the spec that none of them came after.
	Attempt, SpecAttempt int64
	// Stage and Step are the position in Plan; Stage is len(Plan) for the soak before retirement.
	Stage, Step int
	// Plan is the plan that is followed. An edit that is bolder in what has begun does not reach it.
	Plan []Stage
	// Remainder are the datacenters of the remainder stage, from when it begins, and those that were taken along at the end.
	Remainder []string
	// Seed is that of the split. It never changes, so that after a rollback the same keys move again.
	Seed uint32
	// Candidates are the digests that the rings go to.
	Candidates map[string]string
	// Split is what is to be published, and Dispatches how many there have been.
	Split      Split
	Dispatches int64
	Dispatched time.Time
	// Versions are those of the routing files in which Split was first seen, by ring.
	Versions map[string]Version
	// Unconverged is since when consumers lack the split; zero while they have it. Effective is when they first had it.
	Unconverged, Effective time.Time
	Soak                   Soak
	Gates                  map[string]GateRecord
	// Approved and Skipped are of this dispatch.
	Approved, Skipped bool
	// Paused is who paused it; nil where nobody has.
	Paused *Pause
	// Announced is when the retirement was announced.
	Announced time.Time
	// Back is the rollback under way, or the last one.
	Back *Return
	// Unreached are the datacenters that a rollback has not reached.
	Unreached []string
	Holds     []Hold
	// History are the answers to the last actions.
	History []Answered
	// Last is the last transition, for events: it is stored before anybody is told.
	Last Transition
}

// Soak is an account of clean time. Clean is the last observation if that was clean, and zero otherwise: only the time
// between two clean ones is credited.
type Soak struct {
	Credited time.Duration
	Clean    time.Time
}

// GateRecord is what is remembered of a gate in this attempt.
type GateRecord struct {
	Measurement
	// Answered says that it has returned data.
	Answered bool
	// Failures are when it failed, within its window, the last ones.
	Failures []time.Time
}

// Pause is who stopped it.
type Pause struct {
	Actor string
	At    time.Time
}

// Return is why and since when a migration goes back.
type Return struct {
	Cause  Cause
	Detail string
	Since  time.Time
}

// Cause is why a migration goes back.
type Cause string

// The causes.
const (
	CauseDeleted  Cause = "Deleted"
	CauseAction   Cause = "Action"
	CauseRejected Cause = "Rejected"
	CauseBackward Cause = "Backward"
	CauseGate     Cause = "GateFailed"
	// CauseReverted means that the candidate is gone: the spec of the ring asks for the active one again.
	CauseReverted Cause = "Reverted"
)

// Transition is one row of the table that was taken.
type Transition struct {
	From, To Place
	Event    Event
	At       time.Time
}

// Retirement says whether all steps are done: what follows is the soak before the old ring goes.
func (s State) Retirement() bool { return len(s.Plan) > 0 && s.Stage >= len(s.Plan) }

// Phase returns the state as the design calls it: Shifting for the steps, Soaking for the soak before retirement.
func (s State) Phase() string {
	switch {
	case !stepPlace(s.At):
		return string(s.At)
	case s.Retirement():
		return "Soaking"
	default:
		return "Shifting"
	}
}

// Moving returns the datacenters that the present step is about, sorted: those of its stage, and all of them before the first step and
// after the last one.
func (s State) Moving(o Observation) []string {
	switch {
	case !stepPlace(s.At):
		return slices.DeleteFunc(o.datacenters(), func(name string) bool { return name == "" })
	case s.Retirement():
		return s.begun()
	}
	return slices.Sorted(slices.Values(s.members(s.Stage)))
}

// Token names this dispatch in actions. It changes with every attempt, step and dispatch, so that a command can only reach
// what its giver saw.
func (s State) Token() string {
	return fmt.Sprintf("%d.%d.%d-%d", s.Attempt, s.Stage+1, s.Step+1, s.Dispatches)
}

// RollbackAvailable says whether there is a way back.
func (s State) RollbackAvailable() bool {
	switch s.At {
	case Retiring, Succeeded, RollingBack, RolledBack:
		return false
	default:
		return true
	}
}

func stepPlace(p Place) bool {
	switch p {
	case Dispatching, Converging, Soaking, AwaitingApproval, Complete:
		return true
	default:
		return false
	}
}

// InStep says whether it is within a step, or within the soak before the old ring is retired.
func (s State) InStep() bool { return stepPlace(s.At) }

// Passing counts the enforced gates that judge the present step, and those of them that say that all is well with it.
func (s State) Passing(spec Spec, now time.Time) (passing, judging int) {
	for _, g := range s.gates(spec) {
		if judging++; passes(s, g, now) {
			passing++
		}
	}
	return passing, judging
}

// Current returns what the present step asks for, where it is within one.
func (s State) Current(spec Spec) PlannedStep { return s.current(spec) }

// current returns what the present step asks for.
func (s State) current(spec Spec) PlannedStep {
	if s.Retirement() {
		return PlannedStep{Traffic: whole, Soak: spec.Retirement.Soak, Approval: spec.Retirement.Approval}
	}
	return s.Plan[s.Stage].Steps[s.Step]
}

// clone copies what Step changes in place; what it replaces as a whole can be shared.
func (s State) clone() State {
	s.Split = maps.Clone(s.Split)
	s.Versions = maps.Clone(s.Versions)
	s.Gates = maps.Clone(s.Gates)
	s.History = slices.Clone(s.History)
	return s
}
