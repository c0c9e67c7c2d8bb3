// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// validateGate says what is wrong with a gate beyond its schema.
var validateGate = func(v1alpha1.MigrationGate) error { return nil }

// validateMigration says what is wrong with a plan beyond its schema, as the operator finds it.
func validateMigration(spec v1alpha1.RingMigrationSpec) error {
	converted, err := migrationSpec(spec)
	if err != nil {
		return err
	}
	return converted.Validate()
}

// migrationSpec converts an admitted spec.
func migrationSpec(spec v1alpha1.RingMigrationSpec) (migration.Spec, error) {
	s := migration.Spec{
		Limits:          migration.Limits{Excluded: spec.Limits.ExcludedDatacenters},
		Acknowledgement: migration.Acknowledgement{Deadline: spec.Acknowledgement.Deadline.Duration},
		Rollback:        migration.Rollback{Interval: spec.Rollback.Interval.Duration},
		Retirement:      migration.Retirement{Soak: soakOf(spec.Retirement.Soak)},
		Interval:        time.Second,
	}
	var err error
	if s.Limits.MaxTraffic, err = basisPointsOf(spec.Limits.MaxTraffic); err != nil {
		return s, err
	}
	if s.Acknowledgement.Quorum, err = basisPointsOf(spec.Acknowledgement.Quorum); err != nil {
		return s, err
	}
	for _, g := range spec.Gates {
		s.Gates = append(s.Gates, migration.Gate{
			Name: g.Name, Enforced: g.Mode != v1alpha1.GateObserve, Interval: durationOf(g.Interval, time.Minute),
			FailureThreshold: int(g.FailureThreshold), FailureWindow: durationOf(g.FailureWindow, 10*time.Minute),
		})
	}
	for _, stage := range spec.Stages {
		converted := migration.Stage{Name: stage.Name, Datacenters: stage.Datacenters.Names, Remainder: stage.Datacenters.Remainder}
		for _, step := range stage.Steps {
			points, err := basisPointsOf(step.Traffic)
			if err != nil {
				return s, err
			}
			converted.Steps = append(converted.Steps, migration.PlannedStep{Traffic: points, Soak: soakOf(step.Soak), Gates: step.Gates})
		}
		s.Stages = append(s.Stages, converted)
	}
	return s, nil
}

func durationOf(d *metav1.Duration, absent time.Duration) time.Duration {
	if d == nil {
		return absent
	}
	return d.Duration
}
