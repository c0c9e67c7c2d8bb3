// SPDX-License-Identifier: Apache-2.0

package migrationapi

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
	"github.com/ringwright/ringwright/pkg/routing"
)

// The schema's bounds of messages, in characters; text is cut to as many bytes.
const (
	maxGateDetail   = 512
	maxHoldDetail   = 1024
	maxActionReason = 512
)

// Figures are the numbers behind a gate's last result, as text; "" where there are none.
type Figures struct{ Value, Baseline, Samples string }

// Seen is what a status says beside the state.
type Seen struct {
	Observation migration.Observation
	// Figures are by the name of the gate.
	Figures map[string]Figures
}

// Status returns the status of a migration in a state. Conditions are those of the present status, changed where they differ, so that
// they keep their times.
func Status(m *v1alpha1.RingMigration, s migration.State, seen Seen, now metav1.Time) v1alpha1.RingMigrationStatus {
	status := v1alpha1.RingMigrationStatus{
		ObservedGeneration: m.Generation, Token: s.Token(), Attempt: s.Attempt, ObservedAttempt: s.SpecAttempt, Plan: writeStages(s.Plan),
		Remainder: s.Remainder, Rings: writeRings(s), Seed: int64(s.Seed), Split: Shares(s.Split), Dispatch: writeDispatch(s),
		Gates: writeGates(s, seen), Datacenters: datacenters(seen.Observation), RetirementAnnouncedAt: optionalTime(s.Announced),
		Rollback: writeRollback(s), History: writeHistory(s.History), Conditions: slices.Clone(m.Status.Conditions),
	}
	status.Phase, status.StepPhase = phaseOf(s)
	if len(s.Plan) > 0 {
		status.Position = &v1alpha1.MigrationPosition{Stage: int32(s.Stage), Step: int32(s.Step)}
		if !s.Retirement() {
			status.Position.StageName = s.Plan[s.Stage].Name
		}
	}
	if status.StepPhase != "" {
		status.Soak = &v1alpha1.SoakAccount{
			Required: metav1.Duration{Duration: s.Current(seen.Observation.Spec).Soak}, Credited: metav1.Duration{Duration: s.Soak.Credited},
			CleanAt: optionalTime(s.Soak.Clean),
		}
	}
	if s.Paused != nil {
		status.Paused = &v1alpha1.MigrationPause{By: s.Paused.Actor, At: microTime(s.Paused.At)}
	}
	for _, h := range s.Holds {
		status.Holds = append(status.Holds, v1alpha1.MigrationHold{
			Type: v1alpha1.HoldType(h.Type), Since: microTime(h.Since), Detail: cut(h.Detail, maxHoldDetail), EndedBy: h.Type.EndedBy(),
			Command: command(h.Type, s, m),
		})
	}
	if s.Last.To != "" {
		status.LastTransition = &v1alpha1.MigrationTransition{
			From: string(s.Last.From), To: string(s.Last.To), Event: string(s.Last.Event), At: microTime(s.Last.At),
		}
	}
	status.Summary = summary(s, seen.Observation.Spec)
	setConditions(&status, m.Generation, s, seen.Observation, now)
	return status
}

func phaseOf(s migration.State) (v1alpha1.MigrationPhase, v1alpha1.StepPhase) {
	if s.InStep() {
		return v1alpha1.MigrationPhase(s.Phase()), v1alpha1.StepPhase(s.At)
	}
	return v1alpha1.MigrationPhase(s.At), ""
}

// Shares returns a split in the order of the names; nil for none.
func Shares(split migration.Split) []v1alpha1.DatacenterShare {
	var shares []v1alpha1.DatacenterShare
	for _, name := range slices.Sorted(maps.Keys(split)) {
		shares = append(shares, v1alpha1.DatacenterShare{Datacenter: name, BasisPoints: int32(split[name])})
	}
	return shares
}

func writeStages(stages []migration.Stage) []v1alpha1.MigrationStage {
	var list []v1alpha1.MigrationStage
	for _, s := range stages {
		stage := v1alpha1.MigrationStage{
			Name: s.Name, Datacenters: v1alpha1.StageDatacenters{Names: s.Datacenters, Remainder: s.Remainder},
		}
		for _, step := range s.Steps {
			written := v1alpha1.MigrationStep{
				Traffic: Percent(step.Traffic), Soak: &metav1.Duration{Duration: step.Soak}, Gates: step.Gates, Approval: v1alpha1.ApprovalNone,
			}
			if step.Approval {
				written.Approval = v1alpha1.ApprovalAfterSoak
			}
			stage.Steps = append(stage.Steps, written)
		}
		list = append(list, stage)
	}
	return list
}

func writeRings(s migration.State) []v1alpha1.MigrationRing {
	var rings []v1alpha1.MigrationRing
	for _, name := range slices.Sorted(maps.Keys(s.Candidates)) {
		v := s.Versions[name]
		rings = append(rings, v1alpha1.MigrationRing{Name: name, Candidate: s.Candidates[name], Generation: v.Generation, LeaderEpoch: v.Epoch})
	}
	return rings
}

func writeDispatch(s migration.State) *v1alpha1.MigrationDispatch {
	if s.Dispatches == 0 {
		return nil
	}
	return &v1alpha1.MigrationDispatch{
		Number: s.Dispatches, At: optionalTime(s.Dispatched), Published: len(s.Versions) > 0, UnconvergedSince: optionalTime(s.Unconverged),
		EffectiveAt: optionalTime(s.Effective), Approved: s.Approved, Skipped: s.Skipped,
	}
}

// writeGates writes those of spec; one that spec has no more is forgotten.
func writeGates(s migration.State, seen Seen) []v1alpha1.GateStatus {
	var list []v1alpha1.GateStatus
	for _, g := range seen.Observation.Spec.Gates {
		r, figures := s.Gates[g.Name], seen.Figures[g.Name]
		written := v1alpha1.GateStatus{
			Name: g.Name, Result: v1alpha1.GateResult(r.Result), Detail: cut(r.Detail, maxGateDetail), At: optionalTime(r.At), Answered: r.Answered,
			Value: figures.Value, Baseline: figures.Baseline, Samples: figures.Samples,
		}
		for _, at := range r.Failures {
			written.Failures = append(written.Failures, microTime(at))
		}
		list = append(list, written)
	}
	return list
}

func writeRollback(s migration.State) *v1alpha1.MigrationRollback {
	if s.Back == nil {
		return nil
	}
	return &v1alpha1.MigrationRollback{
		Cause: string(s.Back.Cause), Detail: cut(s.Back.Detail, maxHoldDetail), Since: microTime(s.Back.Since), Unreached: s.Unreached,
	}
}

func writeHistory(history []migration.Answered) []v1alpha1.ActionRecord {
	var list []v1alpha1.ActionRecord
	for _, a := range history {
		list = append(list, v1alpha1.ActionRecord{
			UID: a.ID, Name: a.Name, Type: v1alpha1.ActionType(a.Type), Token: a.Token, Actor: a.Actor, Reason: cut(a.Reason, maxActionReason),
			At: microTime(a.At), Refusal: v1alpha1.ConditionReason(a.Refusal),
		})
	}
	return list
}

// datacenters sums up what the consumers of all rings say. The share is the lowest that is published for any ring.
func datacenters(o migration.Observation) []v1alpha1.MigrationDatacenter {
	byName := map[string]v1alpha1.MigrationDatacenter{}
	for _, f := range o.Fleets {
		d := byName[f.Datacenter]
		d.Name = f.Datacenter
		d.Total, d.Reachable, d.Current = d.Total+int32(f.Total), d.Reachable+int32(f.Reachable), d.Current+int32(f.Current)
		byName[f.Datacenter] = d
	}
	var list []v1alpha1.MigrationDatacenter
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		d := byName[name]
		d.BasisPoints = published(o, name)
		list = append(list, d)
	}
	return list[:min(len(list), routing.MaxDatacenters)]
}

func published(o migration.Observation, datacenter string) int32 {
	if len(o.Rings) == 0 {
		return 0
	}
	lowest := routing.MaxBasisPoints
	for _, r := range o.Rings {
		lowest = min(lowest, r.Published.Split[datacenter])
	}
	return int32(lowest)
}

// cut shortens text to a limit of bytes, not within a character.
func cut(text string, limit int) string {
	const dots = "…"
	if len(text) <= limit {
		return text
	}
	end := limit - len(dots)
	for end > 0 && text[end]&0xc0 == 0x80 {
		end--
	}
	return text[:end] + dots
}
