// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
	"github.com/ringwright/ringwright/internal/migrationapi"
)

// waitsFor says what a migration waits for where nothing holds; "" where something does, or there is nothing to wait for.
func (v migrationView) waitsFor() string {
	if len(v.Status.Holds) > 0 && v.phase() != v1alpha1.MigrationRollingBack {
		return ""
	}
	switch v.phase() {
	case v1alpha1.MigrationPending:
		return "It is about to begin: the operator looks at the plan and at the candidates of the HashRings first."
	case v1alpha1.MigrationQueued:
		return "It waits for the lock of its HashRings, which takes a moment."
	case v1alpha1.MigrationPreparing:
		return v.preparing()
	case v1alpha1.MigrationShifting, v1alpha1.MigrationSoaking:
		return v.shifting()
	case v1alpha1.MigrationRetiring:
		return "The candidate becomes the stable ring; when all consumers have that, the slot of the old one is emptied. There is no way back."
	case v1alpha1.MigrationRollingBack:
		return "All shares go back to 0%; it ends when all consumers have that, or at the deadline with the names of those that have not." + v.behind()
	case v1alpha1.MigrationSucceeded:
		return "It is done: all consumers are on the candidate, and the old ring is gone."
	default:
		return ""
	}
}

func (v migrationView) preparing() string {
	text := "Both rings are being published, with no key on the candidate. It waits until all consumers have them." + v.behind()
	var silent []string
	for _, g := range v.Spec.Gates {
		answered := slices.ContainsFunc(v.Status.Gates, func(s v1alpha1.GateStatus) bool { return s.Name == g.Name && s.Answered })
		if g.Mode != v1alpha1.GateObserve && !answered {
			silent = append(silent, g.Name)
		}
	}
	if len(silent) > 0 {
		text += fmt.Sprintf(" And until each gate has returned data once, which %s lacks.", strings.Join(silent, ", "))
	}
	return text
}

func (v migrationView) shifting() string {
	switch v.Status.StepPhase {
	case v1alpha1.StepDispatching:
		return "The split is being written into the routing files, which takes a moment."
	case v1alpha1.StepConverging:
		return "It waits until the consumers have the split. A mounted ConfigMap takes up to 90 seconds, and longer where kubelet is slow." + v.behind()
	case v1alpha1.StepSoaking:
		return fmt.Sprintf("It soaks: %s of clean time are left. Time counts while all enforced gates pass, all consumers have the split, and nothing holds.",
			migrationapi.Short(v.soakLeft()))
	case v1alpha1.StepAwaitingApproval:
		return "Its approval is given: it is about to go on."
	default:
		return "The step is complete: it is about to go on."
	}
}

// behind names the datacenters with consumers that lack what is published.
func (v migrationView) behind() string {
	var names []string
	for _, d := range v.Status.Datacenters {
		if d.Current < d.Total {
			names = append(names, fmt.Sprintf("%s (%d of %d)", datacenterName(d.Name), d.Current, d.Total))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" Not all have it in %s.", clip(names, maxStageNames))
}

// causeText says what a cause of a rollback means.
func causeText(cause string) string {
	switch migration.Cause(cause) {
	case migration.CauseDeleted:
		return "the RingMigration was deleted, and its onDelete is Rollback."
	case migration.CauseAction:
		return "somebody asked for it."
	case migration.CauseRejected:
		return "somebody rejected the step that waited for approval."
	case migration.CauseBackward:
		return "spec.direction is Backward."
	case migration.CauseGate:
		return "a gate failed as often as its failureThreshold allows."
	case migration.CauseReverted:
		return "the candidate is gone: the spec of the HashRing asks for the published algorithm again. Another attempt needs a candidate."
	default:
		return "this program does not know it."
	}
}
