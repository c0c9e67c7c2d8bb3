// SPDX-License-Identifier: Apache-2.0

package migrationapi

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// DefaultInterval is how often a migration is looked at.
const DefaultInterval = 10 * time.Second

// What spec means where it does not say; the schema has the same defaults.
const (
	defaultRetirementSoak   = 24 * time.Hour
	defaultDeadline         = 10 * time.Minute
	defaultRollbackInterval = 5 * time.Minute
	defaultGateInterval     = time.Minute
	defaultFailureWindow    = 10 * time.Minute
	defaultFailureThreshold = 3
	wholeText               = "100%"
)

// reader reads a spec and collects what is wrong with it.
type reader struct{ errs []error }

// Spec returns what package migration knows of a spec, with DefaultInterval. The error names every field whose value cannot be read; the
// fields are then 0.
func Spec(s v1alpha1.RingMigrationSpec) (migration.Spec, error) {
	r := &reader{}
	spec := migration.Spec{
		Stages:    r.stages("spec.stages", s.Stages),
		Gates:     gates(s.Gates),
		Suspended: s.Suspend,
		Backward:  s.Direction == v1alpha1.DirectionBackward,
		Attempt:   max(s.Attempt, 1),
		Limits: migration.Limits{
			MaxTraffic: r.share("spec.limits.maxTraffic", cmp.Or(s.Limits.MaxTraffic, wholeText)), Excluded: s.Limits.ExcludedDatacenters,
		},
		Acknowledgement: migration.Acknowledgement{
			Quorum:   r.share("spec.acknowledgement.quorum", cmp.Or(s.Acknowledgement.Quorum, wholeText)),
			Deadline: duration(s.Acknowledgement.Deadline, defaultDeadline),
		},
		Rollback: r.rollback(s.Rollback),
		Retirement: migration.Retirement{
			Soak: duration(s.Retirement.Soak, defaultRetirementSoak), Approval: s.Retirement.Approval == v1alpha1.ApprovalAfterSoak,
		},
		OnDelete: migration.DeleteRollsBack,
		Interval: DefaultInterval,
	}
	if s.OnDelete == v1alpha1.DeletionFreeze {
		spec.OnDelete = migration.DeleteFreezes
	}
	return spec, errors.Join(r.errs...)
}

// share reads a percentage.
func (r *reader) share(field, text string) int {
	n, err := BasisPoints(text)
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("%s: %w", field, err))
	}
	return n
}

func (r *reader) stages(field string, list []v1alpha1.MigrationStage) []migration.Stage {
	var stages []migration.Stage
	for i, s := range list {
		// Both are sets: their order says nothing, and a plan must not differ by it.
		stage := migration.Stage{Name: s.Name, Remainder: s.Datacenters.Remainder, Datacenters: sorted(s.Datacenters.Names)}
		for j, step := range s.Steps {
			stage.Steps = append(stage.Steps, migration.PlannedStep{
				Traffic: r.share(fmt.Sprintf("%s[%d].steps[%d].traffic", field, i, j), step.Traffic),
				Soak:    duration(step.Soak, 0), Gates: sorted(step.Gates), Approval: step.Approval == v1alpha1.ApprovalAfterSoak,
			})
		}
		stages = append(stages, stage)
	}
	return stages
}

func (r *reader) rollback(p v1alpha1.RollbackPolicy) migration.Rollback {
	rollback := migration.Rollback{Automatic: p.Automatic != v1alpha1.AutomaticRollbackDisabled}
	if p.Strategy != v1alpha1.RollbackStaged {
		return rollback
	}
	rollback.Interval = duration(p.Interval, defaultRollbackInterval)
	for i, step := range p.Steps {
		rollback.Steps = append(rollback.Steps, r.share(fmt.Sprintf("spec.rollback.steps[%d]", i), step))
	}
	return rollback
}

func gates(list []v1alpha1.MigrationGate) []migration.Gate {
	var gates []migration.Gate
	for _, g := range list {
		gates = append(gates, migration.Gate{
			Name: g.Name, Enforced: g.Mode != v1alpha1.GateObserve, Interval: duration(g.Interval, defaultGateInterval),
			FailureThreshold: cmp.Or(int(g.FailureThreshold), defaultFailureThreshold), FailureWindow: duration(g.FailureWindow, defaultFailureWindow),
		})
	}
	return gates
}

func sorted(set []string) []string { return slices.Sorted(slices.Values(set)) }

func duration(d *metav1.Duration, byDefault time.Duration) time.Duration {
	if d == nil {
		return byDefault
	}
	return d.Duration
}
