// SPDX-License-Identifier: Apache-2.0

package migrationapi

import (
	"fmt"
	"strings"
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// summary says in words where a migration is.
func summary(s migration.State, spec migration.Spec) *v1alpha1.MigrationSummary {
	text := &v1alpha1.MigrationSummary{}
	if len(s.Holds) > 0 {
		text.Hold = string(s.Holds[0].Type)
		if more := len(s.Holds) - 1; more > 0 {
			text.Hold += fmt.Sprintf(" +%d", more)
		}
	}
	if s.InStep() {
		step := s.Current(spec)
		text.Traffic, text.Soak = Percent(step.Traffic), Short(s.Soak.Credited)+"/"+Short(step.Soak)
		if s.Retirement() {
			text.Stage, text.Step = "retirement", string(s.At)
		} else {
			stage := s.Plan[s.Stage]
			text.Stage = fmt.Sprintf("%s (%d/%d)", stage.Name, s.Stage+1, len(s.Plan))
			text.Step = fmt.Sprintf("%d/%d %s", s.Step+1, len(stage.Steps), s.At)
		}
	}
	if *text == (v1alpha1.MigrationSummary{}) {
		return nil
	}
	return text
}

// Short writes a duration for people, to the second and without zeroes: "1h", "12m", "1m30s".
func Short(d time.Duration) string {
	text := d.Truncate(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// commands are the verbs of kubectl hashring migration that end a hold.
var commands = map[migration.HoldType]string{
	migration.HoldPlanDrift:         "rollback",
	migration.HoldPaused:            "resume",
	migration.HoldForeignSplit:      "rollback",
	migration.HoldRingDrift:         "rollback",
	migration.HoldUnknownDatacenter: "skip",
	migration.HoldGateUnknown:       "skip",
	migration.HoldGateFailed:        "rollback",
	migration.HoldAwaitingApproval:  "approve",
}

// command is that of a hold where the migration is: there is nothing to skip before the first step.
func command(hold migration.HoldType, s migration.State, m *v1alpha1.RingMigration) string {
	if commands[hold] == "skip" && !s.InStep() {
		return ""
	}
	return Command(hold, m.Namespace, m.Name)
}

// Command returns the command that ends a hold; "" where none does.
func Command(hold migration.HoldType, namespace, name string) string {
	verb := commands[hold]
	if verb == "" {
		return ""
	}
	return fmt.Sprintf("kubectl hashring migration %s %s -n %s", verb, name, namespace)
}
