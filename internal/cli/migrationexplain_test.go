// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

func explainText(t *testing.T, m *v1alpha1.RingMigration, as format) string {
	t.Helper()
	streams, out, _ := ioOf("")
	o := &migrationExplainOptions{streams: streams, output: &formatFlag{value: as}}
	if err := o.run(t.Context(), storeOf(t, interceptor.Funcs{}, m)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestMigrationExplain(t *testing.T) {
	phase := func(p v1alpha1.MigrationPhase, s v1alpha1.StepPhase) *v1alpha1.RingMigration {
		return soaking(t, func(m *v1alpha1.RingMigration) { m.Status.Phase, m.Status.StepPhase = p, s })
	}
	for name, m := range map[string]*v1alpha1.RingMigration{
		"soaking":    soaking(t),
		"converging": phase(v1alpha1.MigrationShifting, v1alpha1.StepConverging),
		"awaiting":   soaking(t, awaiting),
		"rolledback": soaking(t, rolledBack),
		"backward": soaking(t, rolledBack, func(m *v1alpha1.RingMigration) {
			m.Spec.Direction, m.Status.Rollback.Cause, m.Status.Rollback.Unreached = v1alpha1.DirectionBackward, "Backward", nil
		}),
		"succeeded": soaking(t, succeeded),
		"preparing": soaking(t, func(m *v1alpha1.RingMigration) {
			m.Status.Phase, m.Status.StepPhase, m.Status.Position, m.Status.Soak = v1alpha1.MigrationPreparing, "", nil, nil
			m.Status.Gates[1].Answered, m.Generation = false, 4
		}),
		"rollingback": soaking(t, rolledBack, held(hold("DatacenterUnreachable", "11:50:00", "fra02")), func(m *v1alpha1.RingMigration) {
			m.Status.Phase = v1alpha1.MigrationRollingBack
		}),
	} {
		t.Run(name, func(t *testing.T) { assertGolden(t, "migration-explain-"+name, explainText(t, m, formatTable)) })
	}
	assertGolden(t, "migration-explain-json", explainText(t, soaking(t, awaiting), formatJSON))
}

// everyHold are the types that the operator knows.
var everyHold = []migration.HoldType{
	migration.HoldInvalidPlan, migration.HoldPlanDrift, migration.HoldSuspended, migration.HoldPaused, migration.HoldNoCandidate, migration.HoldLocked,
	migration.HoldForeignSplit, migration.HoldRingDrift, migration.HoldNoConsumers, migration.HoldDatacenterUnreachable, migration.HoldUnknownDatacenter,
	migration.HoldLimited, migration.HoldNotConverged, migration.HoldGateUnknown, migration.HoldGateFailed, migration.HoldAwaitingApproval,
}

// TestMigrationExplainsEveryHold with who ends it and the commands.
func TestMigrationExplainsEveryHold(t *testing.T) {
	m := soaking(t)
	for _, kind := range everyHold {
		held(hold(v1alpha1.HoldType(kind), "11:00:00", "what it is about"))(m)
	}
	assertGolden(t, "migration-explain-holds", explainText(t, m, formatYAML))
	m.Status.StepPhase = v1alpha1.StepConverging
	for _, h := range explainHolds(migrationView{m}, noon, func(verb string) string { return verb }) {
		if h.Type == "GateUnknown" && len(h.Commands) > 0 {
			t.Errorf("before the soak nothing can be skipped: %q", h.Commands)
		}
		if h.EndedBy == "" || h.EndedBy == "its cause, when that is gone" {
			t.Errorf("%s is ended by nobody who is known", h.Type)
		}
	}
}

// TestMigrationExplainsWhatItWaitsFor at every place without a hold.
func TestMigrationExplainsWhatItWaitsFor(t *testing.T) {
	for _, phase := range migrationPhases {
		m := soaking(t)
		m.Status.Phase, m.Status.StepPhase = phase, ""
		if text := (migrationView{m}).waitsFor(); text == "" && phase != v1alpha1.MigrationRolledBack {
			t.Errorf("%s waits for nothing", phase)
		}
	}
	for _, step := range []v1alpha1.StepPhase{v1alpha1.StepDispatching, v1alpha1.StepAwaitingApproval, v1alpha1.StepComplete} {
		m := soaking(t)
		m.Status.StepPhase = step
		wantContains(t, (migrationView{m}).waitsFor(), map[v1alpha1.StepPhase]string{
			v1alpha1.StepDispatching: "being written", v1alpha1.StepAwaitingApproval: "approval is given", v1alpha1.StepComplete: "is complete",
		}[step])
	}
}

func TestMigrationCausesAreExplained(t *testing.T) {
	for _, cause := range []migration.Cause{
		migration.CauseDeleted, migration.CauseAction, migration.CauseRejected, migration.CauseBackward, migration.CauseGate, migration.CauseReverted,
	} {
		if causeText(string(cause)) == causeText("Tuesday") {
			t.Errorf("%s is not explained", cause)
		}
	}
}

// TestPlanLeft: what is done does not count, what is credited neither.
func TestPlanLeft(t *testing.T) {
	const rest = (1+1+1+6+24)*3600 + 21*60 + 40
	if got := (migrationView{soaking(t)}).planLeft(); got != secondsOf(rest) {
		t.Errorf("got %s, want %s", got, secondsOf(rest))
	}
	m := soaking(t, succeeded)
	m.Status.Phase, m.Status.StepPhase = v1alpha1.MigrationSoaking, v1alpha1.StepSoaking
	m.Status.Soak = &v1alpha1.SoakAccount{Required: metav1.Duration{Duration: secondsOf(3600)}, Credited: metav1.Duration{Duration: secondsOf(600)}}
	if got := (migrationView{m}).planLeft(); got != secondsOf(3000) {
		t.Errorf("in the retirement %s are left, want 50m", got)
	}
}
