// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// migrationView is a RingMigration as people ask about it.
type migrationView struct {
	*v1alpha1.RingMigration
}

// stages returns the plan that is followed; before it has begun, that of spec.
func (v migrationView) stages() []v1alpha1.MigrationStage {
	if len(v.Status.Plan) > 0 {
		return v.Status.Plan
	}
	return v.Spec.Stages
}

// observed says whether the status is about the present spec.
func (v migrationView) observed() bool { return v.Status.ObservedGeneration == v.Generation }

// phase returns the phase; one that nobody has looked at is Pending.
func (v migrationView) phase() v1alpha1.MigrationPhase {
	if v.Status.Phase == "" {
		return v1alpha1.MigrationPending
	}
	return v.Status.Phase
}

// place says where it is, such as "Shifting, Converging".
func (v migrationView) place() string {
	if v.Status.StepPhase == "" {
		return string(v.phase())
	}
	return fmt.Sprintf("%s, %s", v.phase(), v.Status.StepPhase)
}

// begun says whether there was a first step. Before it there is a plan and a position at its begin.
func (v migrationView) begun() bool {
	switch v.phase() {
	case v1alpha1.MigrationPending, v1alpha1.MigrationQueued, v1alpha1.MigrationPreparing:
		return false
	}
	return v.Status.Position != nil
}

// retiring says whether all steps of the plan are done.
func (v migrationView) retiring() bool {
	p := v.Status.Position
	return v.begun() && int(p.Stage) >= len(v.stages())
}

// step names the step that it is at, such as "europe 1/3"; "" outside of the steps.
func (v migrationView) step() string {
	p, stages := v.Status.Position, v.stages()
	switch {
	case !v.begun():
		return ""
	case int(p.Stage) >= len(stages):
		return "retirement"
	}
	return fmt.Sprintf("%s %d/%d", stages[p.Stage].Name, p.Step+1, len(stages[p.Stage].Steps))
}

// reached compares the position with a step, counted from 0: 1 where that is behind it, 0 where it is there.
func (v migrationView) reached(stage, step int) int {
	p := v.Status.Position
	switch {
	case v.phase() == v1alpha1.MigrationSucceeded || v.phase() == v1alpha1.MigrationRetiring:
		return 1
	case !v.begun():
		return -1
	case int(p.Stage) != stage:
		return compare(int(p.Stage), stage)
	}
	return compare(int(p.Step), step)
}

func compare(a, b int) int { return min(max(a-b, -1), 1) }

// goesBack says whether it goes, or has gone, back.
func (v migrationView) goesBack() bool {
	return v.phase() == v1alpha1.MigrationRollingBack || v.phase() == v1alpha1.MigrationRolledBack
}

// wayBack says whether a rollback is possible, as the operator says, or where that does not, as the phase does.
func (v migrationView) wayBack() bool {
	if c := meta.FindStatusCondition(v.Status.Conditions, string(v1alpha1.ConditionRollbackAvailable)); c != nil {
		return c.Status == metav1.ConditionTrue
	}
	return !v.goesBack() && v.phase() != v1alpha1.MigrationRetiring && v.phase() != v1alpha1.MigrationSucceeded
}

// members names the datacenters of a stage.
func (v migrationView) members(stage v1alpha1.MigrationStage) []string {
	if stage.Datacenters.Remainder {
		return v.Status.Remainder
	}
	return stage.Datacenters.Names
}

// ringNames returns the HashRings that are migrated, as far as the object says.
func (v migrationView) ringNames() []string {
	var names []string
	for _, r := range v.Status.Rings {
		names = append(names, r.Name)
	}
	if len(names) == 0 && v.Spec.RingRef != nil {
		names = []string{v.Spec.RingRef.Name}
	}
	return names
}

// soakOf returns a soak of spec; absent it is 0.
func soakOf(d *metav1.Duration) time.Duration {
	return durationOf(d, 0)
}

// durationOf returns a duration of spec, or what it is by default.
func durationOf(d *metav1.Duration, absent time.Duration) time.Duration {
	if d == nil {
		return absent
	}
	return d.Duration
}

// soakLeft is what the present step still has to be credited.
func (v migrationView) soakLeft() time.Duration {
	if soak := v.Status.Soak; soak != nil {
		return max(soak.Required.Duration-soak.Credited.Duration, 0)
	}
	return 0
}

// age says how long ago something was.
func age(now, at time.Time) string { return duration.HumanDuration(max(now.Sub(at), 0)) }

// clip joins the first names of a list and says how many more there are.
func clip(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d others", strings.Join(names[:most-1], ", "), len(names)-most+1)
}

// datacenterName is how a datacenter is shown; consumers that were told none have none.
func datacenterName(name string) string {
	if name == "" {
		return "(none)"
	}
	return name
}

// gateNames returns the enforced gates that judge a step, in the order of spec.
func gateNames(spec v1alpha1.RingMigrationSpec, step v1alpha1.MigrationStep) []string {
	var names []string
	for _, g := range spec.Gates {
		if g.Mode != v1alpha1.GateObserve && (len(step.Gates) == 0 || slices.Contains(step.Gates, g.Name)) {
			names = append(names, g.Name)
		}
	}
	return names
}
