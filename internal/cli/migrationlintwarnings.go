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

// boldFirstStep is the share, in basis points, above which a first step is warned about.
const boldFirstStep = 1000

// lintWarnings returns what is allowed and rarely meant, in an admitted spec.
func lintWarnings(spec v1alpha1.RingMigrationSpec) []string {
	return slices.Concat(warnOfGates(spec), warnOfSteps(spec), warnOfStages(spec), warnOfRetirement(spec), warnOfPolicies(spec))
}

// warnOfGates warns of gates that do not protect.
func warnOfGates(spec v1alpha1.RingMigrationSpec) []string {
	var list []string
	enforced := 0
	for i, g := range spec.Gates {
		if g.Mode == v1alpha1.GateObserve {
			continue
		}
		enforced++
		field := fmt.Sprintf("spec.gates[%d] %q", i, g.Name)
		if !judgesAny(spec, g.Name) {
			list = append(list, field+": every step names its gates, and none names this one, so that it judges the retirement only")
		}
	}
	switch {
	case enforced == 0:
		list = append(list, "spec.gates: no gate is enforced: only people and acknowledgements keep a bad candidate from all consumers")
	case spec.Rollback.Automatic == v1alpha1.AutomaticRollbackDisabled:
		list = append(list, "spec.rollback.automatic is Disabled: a gate that fails holds, and does not take back what has moved")
	}
	return list
}

// judgesAny says whether a gate judges a step.
func judgesAny(spec v1alpha1.RingMigrationSpec, gate string) bool {
	return slices.ContainsFunc(spec.Stages, func(stage v1alpha1.MigrationStage) bool {
		return slices.ContainsFunc(stage.Steps, func(step v1alpha1.MigrationStep) bool {
			return len(step.Gates) == 0 || slices.Contains(step.Gates, gate)
		})
	})
}

// warnOfSteps warns of steps that are over before anybody can have seen harm.
func warnOfSteps(spec v1alpha1.RingMigrationSpec) []string {
	var list []string
	for i, stage := range spec.Stages {
		for j, step := range stage.Steps {
			field := fmt.Sprintf("spec.stages[%d].steps[%d]", i, j)
			if points, err := migrationapi.BasisPoints(step.Traffic); i == 0 && j == 0 && err == nil && points > boldFirstStep {
				list = append(list, fmt.Sprintf("%s.traffic is %s: the first step is above %s of the keys of %s", field, step.Traffic, migrationapi.Percent(boldFirstStep), stage.Name))
			}
			judges := gateNames(spec, step)
			if len(step.Gates) > 0 && len(judges) == 0 {
				list = append(list, field+".gates: none of them is enforced, so that nothing judges the step")
			}
			for _, g := range spec.Gates {
				needed := durationOf(g.Interval, time.Minute) * time.Duration(g.FailureThreshold)
				if slices.Contains(judges, g.Name) && soakOf(step.Soak) < needed {
					list = append(list, fmt.Sprintf("%s.soak is %s: gate %s takes %s to fail %d times, so that it cannot roll back within the step",
						field, migrationapi.Short(soakOf(step.Soak)), g.Name, migrationapi.Short(needed), g.FailureThreshold))
				}
			}
		}
	}
	return list
}

// warnOfStages warns of datacenters that stay behind.
func warnOfStages(spec v1alpha1.RingMigrationSpec) []string {
	var list []string
	if n := len(spec.Stages); n > 0 && !spec.Stages[n-1].Datacenters.Remainder {
		list = append(list, "spec.stages: no stage takes the remainder: a datacenter that none names stays on the old ring, which is not retired while it has consumers")
	}
	if points, err := migrationapi.BasisPoints(spec.Limits.MaxTraffic); err == nil && points < routing.MaxBasisPoints {
		list = append(list, fmt.Sprintf("spec.limits.maxTraffic is %s: the old ring is not retired while that is so", spec.Limits.MaxTraffic))
	}
	for _, name := range spec.Limits.ExcludedDatacenters {
		list = append(list, fmt.Sprintf("spec.limits.excludedDatacenters has %s: the old ring is not retired while it has consumers", name))
	}
	return list
}

// warnOfRetirement warns of a way back that ends without anybody having looked.
func warnOfRetirement(spec v1alpha1.RingMigrationSpec) []string {
	var list []string
	last := v1alpha1.MigrationStep{}
	if n := len(spec.Stages); n > 0 {
		steps := spec.Stages[n-1].Steps
		last = steps[len(steps)-1]
	}
	if spec.Retirement.Approval != v1alpha1.ApprovalAfterSoak && last.Approval != v1alpha1.ApprovalAfterSoak {
		list = append(list, "spec.retirement.approval is None, as that of the last step: nobody is asked before the old ring goes, and there is no way back after that")
	}
	if soakOf(spec.Retirement.Soak) == 0 {
		list = append(list, "spec.retirement.soak is 0s: the old ring goes as soon as the last step is complete")
	}
	return list
}

// warnOfPolicies warns of settings that are for an incident, or weaken a guarantee.
func warnOfPolicies(spec v1alpha1.RingMigrationSpec) []string {
	var list []string
	if points, err := migrationapi.BasisPoints(spec.Acknowledgement.Quorum); err == nil && points < routing.MaxBasisPoints {
		list = append(list, fmt.Sprintf("spec.acknowledgement.quorum is %s: steps go on while some consumers have another split", spec.Acknowledgement.Quorum))
	}
	if spec.OnDelete == v1alpha1.DeletionFreeze {
		list = append(list, "spec.onDelete is Freeze: whoever deletes the RingMigration leaves consumers on two rings")
	}
	if spec.Suspend {
		list = append(list, "spec.suspend is true: it does not advance")
	}
	if spec.Direction == v1alpha1.DirectionBackward {
		list = append(list, "spec.direction is Backward: it rolls back")
	}
	return list
}
