// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// look is how often the migration is looked at.
const look = 100 * time.Millisecond

// shownStep is a step that is in effect.
type shownStep struct {
	name, token string
	attempt     int64
	// shares are in basis points by datacenter.
	shares map[string]int
	sets   keySets
	// effective is since when all agents have the split, and gates are what they said last.
	effective metav1.MicroTime
	gates     []v1alpha1.GateStatus
	// judges are the names of those that judge it; all where there is none.
	judges []string
	// from and to are moments at which all agents had the split, and no other was decided upon.
	from, to mark
}

// followUntil shows each step of the migration until that is in a phase.
func (m *migrationDemo) followUntil(ctx context.Context, phase v1alpha1.MigrationPhase) error {
	ctx, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	var current *shownStep
	shown := ""
	for ; ; pause(ctx, look) {
		seen := m.mark() // Before the status: what that says was still so then.
		object, err := m.get(ctx)
		if err != nil {
			return err
		}
		switch status := object.Status; {
		case current != nil && status.Token == current.token && status.Phase == v1alpha1.MigrationShifting:
			current.to, current.gates = seen, status.Gates
		case current != nil:
			if err := m.closeStep(current); err != nil {
				return err
			}
			current = nil
		case status.Phase == phase:
			return m.traffic.broken()
		case status.Phase == v1alpha1.MigrationRolledBack && status.Rollback != nil && status.Attempt > 1:
			return fmt.Errorf("it went back: %s: %s", status.Rollback.Cause, status.Rollback.Detail)
		case status.Phase == v1alpha1.MigrationSucceeded:
			return fmt.Errorf("the migration is %s, not %s", status.Phase, phase)
		case status.Phase == v1alpha1.MigrationSoaking && inEffect(status):
			if err := m.seeLast(ctx, status); err != nil {
				return err
			}
		case status.Phase == v1alpha1.MigrationShifting && inEffect(status) && status.Token != shown:
			shown = status.Token
			if current, err = m.openStep(ctx, object); err != nil {
				return err
			}
		}
		if err := m.traffic.broken(); err != nil {
			return err
		}
	}
}

// seeLast looks at the soak before the old ring is retired.
func (m *migrationDemo) seeLast(ctx context.Context, status v1alpha1.RingMigrationStatus) (err error) {
	if m.last == nil {
		m.last = &shownStep{effective: *status.Dispatch.EffectiveAt}
		m.memory[1], err = m.measureMemory(ctx)
	}
	m.last.gates = status.Gates
	return err
}

// inEffect says whether all agents have the split of the present step.
func inEffect(s v1alpha1.RingMigrationStatus) bool {
	return s.Dispatch != nil && s.Dispatch.EffectiveAt != nil && s.StepPhase != v1alpha1.StepDispatching && s.StepPhase != v1alpha1.StepConverging
}

// openStep looks at the agents as soon as a step is in effect.
func (m *migrationDemo) openStep(ctx context.Context, object *v1alpha1.RingMigration) (*shownStep, error) {
	status := object.Status
	s := &shownStep{token: status.Token, attempt: status.Attempt, shares: map[string]int{}, effective: *status.Dispatch.EffectiveAt, from: m.mark()}
	s.to = s.from
	if at := status.Position; int(at.Stage) < len(status.Plan) {
		s.judges = status.Plan[at.Stage].Steps[at.Step].Gates
	}
	for _, share := range status.Split {
		s.shares[share.Datacenter] = int(share.BasisPoints)
	}
	s.name = fmt.Sprintf("stage %s, step %s", status.Summary.Stage, status.Summary.Traffic)
	say(fmt.Sprintf("Attempt %d, %s: all agents had it %.1f s after it was decided", status.Attempt, s.name,
		status.Dispatch.EffectiveAt.Sub(status.Dispatch.At.Time).Seconds()))
	var err error
	if s.sets, err = m.sample(ctx); err != nil {
		return nil, err
	}
	if err := m.checkAgents(ctx, s.shares); err != nil {
		return nil, err
	}
	after, err := m.get(ctx)
	if err != nil {
		return nil, err
	}
	if after.Status.Token != s.token {
		return nil, fmt.Errorf("%s was over before all agents were asked", s.name)
	}
	if first := status.Position; status.Attempt == 1 && first.Stage == 0 && s.shares[firstDatacenter] == wholeShare {
		m.origin.reach(brokenDatacenter, false)
		fmt.Printf("  (From now on the origin is out of reach of %s. Nobody notices: the caches there have all that is asked for)\n", brokenDatacenter)
	}
	return s, nil
}

// checkAgents wants every agent to have both rings and the shares; without shares, the old ring alone.
func (m *migrationDemo) checkAgents(ctx context.Context, shares map[string]int) error {
	if len(shares) == 0 {
		return m.checkRings(ctx, m.before, "", shares)
	}
	return m.checkRings(ctx, m.before, m.candidate, shares)
}

// checkRings wants every agent to have exactly these rings and shares, and nothing to complain about.
func (m *migrationDemo) checkRings(ctx context.Context, stable, candidate string, shares map[string]int) error {
	for _, a := range m.agents {
		said, err := a.ask(ctx)
		if err != nil {
			return err
		}
		has := ""
		if said.Routing != nil && said.Candidate != nil {
			has = said.Candidate.Digest
		}
		switch {
		case said.Routing == nil:
			return fmt.Errorf("%s has no ring", a.name)
		case said.Stable.Digest != stable || has != candidate:
			return fmt.Errorf("%s has the rings %q and %q, not %q and %q", a.name, said.Stable.Digest, has, stable, candidate)
		case said.BasisPoints != shares[a.datacenter]:
			return fmt.Errorf("%s sends %d of 10000 to the candidate, not %d", a.name, said.BasisPoints, shares[a.datacenter])
		case said.LastError != nil && said.LastError.Current:
			return fmt.Errorf("%s cannot load: %s", a.name, said.LastError.Message)
		}
	}
	return nil
}
