// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migrationapi"
	"github.com/ringwright/ringwright/pkg/routing"
)

// MigrationPlanReport is what "migration plan" prints.
type MigrationPlanReport struct {
	// Migration is namespace and name of the RingMigration.
	Migration string `json:"migration"`
	// Rings are the HashRings that are migrated, as far as they can be read, in the order of their names.
	Rings []MigrationPlanRing `json:"rings"`
	// Movement is the largest of the rings': the part of the key space that has another owner on the candidate. Absent where no ring has a
	// candidate.
	Movement string `json:"movement,omitempty"`
	// Memory is what the snapshots take in each reader, mapped.
	Memory MigrationMemory `json:"memory"`
	// Steps are those of all stages, in order.
	Steps []MigrationPlanStep `json:"steps"`
	// Retirement is what comes before the old ring goes.
	Retirement MigrationPlanStep `json:"retirement"`
	// Origins is what the model of origin requests was given; absent without --rate.
	Origins *OriginModel `json:"origins,omitempty"`
	// Untaken are datacenters that have consumers now and that no stage takes, NoConsumers those that a stage names and that have none.
	Untaken     []string `json:"untaken,omitempty"`
	NoConsumers []string `json:"noConsumers,omitempty"`
	// Notes are what else matters, as sentences.
	Notes []string `json:"notes,omitempty"`
}

// MigrationPlanRing is a HashRing that is migrated.
type MigrationPlanRing struct {
	Name string `json:"name"`
	// Candidate is the digest of the ring to go to, and Movement the part of the key space that has another owner on it; absent where there is none.
	Candidate string `json:"candidate,omitempty"`
	Movement  string `json:"movement,omitempty"`
	// StableBytes and CandidateBytes are the sizes of the snapshots.
	StableBytes    int64 `json:"stableBytes"`
	CandidateBytes int64 `json:"candidateBytes"`
}

// MigrationMemory is the bytes of snapshots in one reader of all rings.
type MigrationMemory struct {
	Before int64 `json:"before"`
	During int64 `json:"during"`
	After  int64 `json:"after"`
}

// MigrationPlanStep is a step.
type MigrationPlanStep struct {
	// Stage is its name, Step counts from 1; both are absent for the retirement.
	Stage string `json:"stage,omitempty"`
	Step  int    `json:"step,omitempty"`
	// State is done, current or ahead.
	State string `json:"state"`
	// Datacenters are those of the stage. Those of a remainder are the ones that have consumers now and that no stage names.
	Datacenters []string `json:"datacenters,omitempty"`
	Remainder   bool     `json:"remainder,omitempty"`
	// Traffic is what the step asks for, AddedBasisPoints what it adds to the step before, under the limits.
	Traffic          string `json:"traffic,omitempty"`
	AddedBasisPoints int    `json:"addedBasisPoints,omitempty"`
	// Moves is the part of the keys of the datacenters that goes to another backend with this step; absent where no movement is known.
	Moves string `json:"moves,omitempty"`
	// ExtraOriginRate is how many requests per second go to the origins in addition, right after the step; absent without --rate.
	ExtraOriginRate *float64 `json:"extraOriginRate,omitempty"`
	// Soak is the clean time that it asks for, Earliest when it can be complete, from now or from the begin on; absent where it is done.
	Soak     string `json:"soak"`
	Earliest string `json:"earliest,omitempty"`
	// Gates are the enforced gates that judge it, Approval whether a person has to approve.
	Gates    []string `json:"gates,omitempty"`
	Approval bool     `json:"approval,omitempty"`
}

// OriginModel is what the model of origin requests was given.
type OriginModel struct {
	// Rate is that of datacenters that are not in Rates, in requests per second.
	Rate     float64            `json:"rate"`
	Rates    map[string]float64 `json:"rates,omitempty"`
	HitRatio float64            `json:"hitRatio"`
}

// planner makes a report.
type planner struct {
	migrationView
	load load
	// consumers counts them by datacenter.
	consumers map[string]int
	// movement is the largest of the candidates', negative where there is none.
	movement float64
	maximum  int
	report   *MigrationPlanReport
}

// planMigration says what a migration will do with rings as they are.
func planMigration(v migrationView, rings []v1alpha1.HashRing, l load) (*MigrationPlanReport, error) {
	p := &planner{migrationView: v, load: l, consumers: map[string]int{}, movement: -1}
	p.report = &MigrationPlanReport{Migration: v.Namespace + "/" + v.Name, Rings: []MigrationPlanRing{}, Steps: []MigrationPlanStep{}}
	p.maximum = routing.MaxBasisPoints
	if text := v.Spec.Limits.MaxTraffic; text != "" {
		var err error
		if p.maximum, err = migrationapi.BasisPoints(text); err != nil {
			return nil, fmt.Errorf("limits.maxTraffic: %w", err)
		}
	}
	for _, r := range rings {
		if err := p.addRing(r); err != nil {
			return nil, err
		}
	}
	if err := p.addSteps(); err != nil {
		return nil, err
	}
	p.addDatacenters()
	if p.load.given {
		p.report.Origins = &OriginModel{Rate: l.rate, Rates: l.rates, HitRatio: l.hitRatio}
		p.noteRates()
	}
	return p.report, nil
}

func (p *planner) addRing(r v1alpha1.HashRing) error {
	ring := MigrationPlanRing{Name: r.Name}
	if r.Status.Snapshot != nil {
		ring.StableBytes = r.Status.Snapshot.Bytes
	}
	if c := r.Status.Candidate; c != nil {
		ring.Candidate, ring.Movement, ring.CandidateBytes = c.Digest, c.Movement, c.Bytes
		points, err := migrationapi.BasisPoints(c.Movement)
		if err != nil {
			return fmt.Errorf("HashRing %s/%s: status.candidate.movement: %w", r.Namespace, r.Name, err)
		}
		if movement := float64(points) / routing.MaxBasisPoints; movement > p.movement {
			p.movement, p.report.Movement = movement, c.Movement
		}
		if migration := r.Status.Migration; migration != nil && migration.Name != p.Name {
			p.note("HashRing %s is being migrated by %s: this one waits for the lock", r.Name, migration.Name)
		}
	} else if p.phase() != v1alpha1.MigrationSucceeded {
		p.note("HashRing %s has no candidate: the migration waits until a change of its spec makes one", r.Name)
	}
	memory := &p.report.Memory
	memory.Before, memory.During, memory.After = memory.Before+ring.StableBytes, memory.During+ring.StableBytes+ring.CandidateBytes, memory.After+ring.CandidateBytes
	if c := r.Status.Consumers; c != nil {
		for _, d := range c.Datacenters {
			p.consumers[d.Name] += int(d.Total)
		}
	} else {
		p.note("HashRing %s says nothing about its consumers: which datacenters have some is not known", r.Name)
	}
	p.report.Rings = append(p.report.Rings, ring)
	return nil
}

func (p *planner) note(format string, args ...any) {
	p.report.Notes = append(p.report.Notes, fmt.Sprintf(format, args...))
}

// addSteps goes through the plan. The earliest times of one that is under way are from now on.
func (p *planner) addSteps() error {
	var passed time.Duration
	approvals := 0
	for i, stage := range p.stages() {
		before := 0
		members := p.datacentersOf(stage)
		for j, step := range stage.Steps {
			points, err := migrationapi.BasisPoints(step.Traffic)
			if err != nil {
				return fmt.Errorf("stage %s, step %d: traffic: %w", stage.Name, j+1, err)
			}
			added := min(points, p.maximum) - min(before, p.maximum)
			before = points
			planned := MigrationPlanStep{
				Stage: stage.Name, Step: j + 1, Datacenters: members, Remainder: stage.Datacenters.Remainder, Traffic: step.Traffic,
				AddedBasisPoints: added, Gates: gateNames(p.Spec, step), Approval: step.Approval == v1alpha1.ApprovalAfterSoak,
			}
			p.addTime(&planned, p.stateOf(p.reached(i, j)), soakOf(step.Soak), &passed)
			p.addCost(&planned)
			if planned.Approval && planned.State != stepDone {
				approvals++
			}
			p.report.Steps = append(p.report.Steps, planned)
		}
	}
	r := p.Spec.Retirement
	p.report.Retirement = MigrationPlanStep{Approval: r.Approval == v1alpha1.ApprovalAfterSoak, Gates: gateNames(p.Spec, v1alpha1.MigrationStep{})}
	state := stepAhead
	switch {
	case p.phase() == v1alpha1.MigrationSucceeded || p.phase() == v1alpha1.MigrationRetiring:
		state = stepDone
	case p.retiring() && !p.goesBack():
		state = stepCurrent
	}
	p.addTime(&p.report.Retirement, state, soakOf(r.Soak), &passed)
	from, without := "the begin", "acknowledgements"
	if p.begun() && !p.goesBack() {
		from = "now"
	}
	if approvals > 0 || p.report.Retirement.Approval {
		without = "approvals and acknowledgements"
	}
	p.note("the earliest times are from %s on, without what %s take", from, without)
	return nil
}

// The states of a step.
const (
	stepDone    = "done"
	stepCurrent = "current"
	stepAhead   = "ahead"
)

func (p *planner) stateOf(reached int) string {
	switch {
	case reached < 0 || p.goesBack():
		return stepAhead
	case reached == 0:
		return stepCurrent
	default:
		return stepDone
	}
}

// addTime adds the soak of a step, or what is left of it, to what has passed before.
func (p *planner) addTime(step *MigrationPlanStep, state string, soak time.Duration, passed *time.Duration) {
	step.State, step.Soak = state, migrationapi.Short(soak)
	switch {
	case state == stepDone:
		return
	case state == stepCurrent && p.Status.Soak != nil:
		*passed += p.soakLeft()
	default:
		*passed += soak
	}
	step.Earliest = migrationapi.Short(*passed)
}

// datacentersOf returns those of a stage, sorted.
func (p *planner) datacentersOf(stage v1alpha1.MigrationStage) []string {
	names := slices.Clone(p.members(stage))
	if stage.Datacenters.Remainder && len(names) == 0 {
		for name := range p.consumers {
			if name != "" && !p.named(name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// named says whether a stage names a datacenter.
func (p *planner) named(name string) bool {
	return slices.ContainsFunc(p.stages(), func(s v1alpha1.MigrationStage) bool { return slices.Contains(s.Datacenters.Names, name) })
}
