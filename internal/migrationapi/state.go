// SPDX-License-Identifier: Apache-2.0

package migrationapi

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// State returns the state that a status keeps; the zero state where there is none yet. An error says that somebody else wrote the status.
func State(s v1alpha1.RingMigrationStatus) (migration.State, error) {
	r := &reader{}
	state := migration.State{
		At: placeOf(s), Attempt: s.Attempt, SpecAttempt: s.ObservedAttempt, Plan: r.stages("status.plan", s.Plan), Remainder: s.Remainder,
		Seed: uint32(s.Seed), Announced: timeOf(s.RetirementAnnouncedAt),
	}
	if len(r.errs) > 0 {
		return migration.State{}, fmt.Errorf("reading the status: %w", r.errs[0])
	}
	if p := s.Position; p != nil {
		state.Stage, state.Step = int(p.Stage), int(p.Step)
	}
	if err := checkPosition(state); err != nil {
		return migration.State{}, err
	}
	readRings(&state, s)
	readDispatch(&state, s)
	readGates(&state, s.Gates)
	readPeople(&state, s)
	for _, h := range s.Holds {
		state.Holds = append(state.Holds, migration.Hold{Type: migration.HoldType(h.Type), Since: h.Since.Time, Detail: h.Detail})
	}
	if t := s.LastTransition; t != nil {
		state.Last = migration.Transition{From: migration.Place(t.From), To: migration.Place(t.To), Event: migration.Event(t.Event), At: t.At.Time}
	}
	return state, nil
}

func placeOf(s v1alpha1.RingMigrationStatus) migration.Place {
	if s.StepPhase != "" {
		return migration.Place(s.StepPhase)
	}
	return migration.Place(s.Phase)
}

// checkPosition refuses a step that the plan does not have.
func checkPosition(s migration.State) error {
	switch {
	case s.Stage < 0 || s.Step < 0 || s.Stage > len(s.Plan):
	case s.Stage == len(s.Plan) && s.Step == 0, s.Stage < len(s.Plan) && s.Step < len(s.Plan[s.Stage].Steps):
		return nil
	}
	return fmt.Errorf("reading the status: position is step %d of stage %d, which status.plan does not have", s.Step, s.Stage)
}

func readRings(state *migration.State, s v1alpha1.RingMigrationStatus) {
	published := s.Dispatch != nil && s.Dispatch.Published
	for _, r := range s.Rings {
		if state.Candidates == nil {
			state.Candidates = map[string]string{}
		}
		state.Candidates[r.Name] = r.Candidate
		if !published {
			continue
		}
		if state.Versions == nil {
			state.Versions = map[string]migration.Version{}
		}
		state.Versions[r.Name] = migration.Version{Epoch: r.LeaderEpoch, Generation: r.Generation}
	}
}

func readDispatch(state *migration.State, s v1alpha1.RingMigrationStatus) {
	for _, share := range s.Split {
		if state.Split == nil {
			state.Split = migration.Split{}
		}
		state.Split[share.Datacenter] = int(share.BasisPoints)
	}
	if d := s.Dispatch; d != nil {
		state.Dispatches, state.Dispatched, state.Approved, state.Skipped = d.Number, timeOf(d.At), d.Approved, d.Skipped
		state.Unconverged, state.Effective = timeOf(d.UnconvergedSince), timeOf(d.EffectiveAt)
	}
	if s.Soak != nil {
		state.Soak = migration.Soak{Credited: s.Soak.Credited.Duration, Clean: timeOf(s.Soak.CleanAt)}
	}
}

func readGates(state *migration.State, list []v1alpha1.GateStatus) {
	for _, g := range list {
		record := migration.GateRecord{Answered: g.Answered, Measurement: migration.Measurement{
			At: timeOf(g.At), Result: migration.Result(g.Result), Detail: g.Detail,
		}}
		if record.Result != "" {
			record.Gate = g.Name
		}
		for _, at := range g.Failures {
			record.Failures = append(record.Failures, at.Time)
		}
		if state.Gates == nil {
			state.Gates = map[string]migration.GateRecord{}
		}
		state.Gates[g.Name] = record
	}
}

// readPeople reads who asked for what.
func readPeople(state *migration.State, s v1alpha1.RingMigrationStatus) {
	if s.Paused != nil {
		state.Paused = &migration.Pause{Actor: s.Paused.By, At: s.Paused.At.Time}
	}
	if b := s.Rollback; b != nil {
		state.Back = &migration.Return{Cause: migration.Cause(b.Cause), Detail: b.Detail, Since: b.Since.Time}
		state.Unreached = b.Unreached
	}
	for _, a := range s.History {
		state.History = append(state.History, migration.Answered{
			Action: migration.Action{ID: a.UID, Name: a.Name, Type: migration.ActionType(a.Type), Token: a.Token, Actor: a.Actor, Reason: a.Reason},
			At:     a.At.Time, Refusal: migration.Refusal(a.Refusal),
		})
	}
}

func timeOf(t *metav1.MicroTime) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

func microTime(t time.Time) metav1.MicroTime {
	return metav1.NewMicroTime(t.Truncate(time.Microsecond))
}

// optionalTime is nil for the zero time.
func optionalTime(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	at := microTime(t)
	return &at
}
