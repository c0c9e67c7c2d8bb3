// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// HoldReport is something that keeps a migration from going forward.
type HoldReport struct {
	// Type is that of the hold, such as NotConverged.
	Type string `json:"type"`
	// Since is when it began, in the form of RFC 3339 and UTC, For how long that is ago.
	Since string `json:"since"`
	For   string `json:"for"`
	// Detail says more; absent where there is no more to say.
	Detail string `json:"detail,omitempty"`
	// EndedBy says who can end it, and how.
	EndedBy string `json:"endedBy"`
	// ByPerson says that it does not end by itself.
	ByPerson bool `json:"byPerson"`
	// Commands are those that end it, or show what it is about.
	Commands []string `json:"commands,omitempty"`
}

// needsPerson are the holds that do not end by themselves.
var needsPerson = []migration.HoldType{
	migration.HoldInvalidPlan, migration.HoldPlanDrift, migration.HoldSuspended, migration.HoldPaused, migration.HoldNoCandidate,
	migration.HoldForeignSplit, migration.HoldLimited, migration.HoldAwaitingApproval,
}

func holdsForPerson(t v1alpha1.HoldType) bool {
	return slices.Contains(needsPerson, migration.HoldType(t))
}

// explainHolds returns the holds with the commands that answer them.
func explainHolds(v migrationView, now time.Time, command func(verb string) string) []HoldReport {
	reports := []HoldReport{}
	for _, h := range v.Status.Holds {
		report := HoldReport{
			Type: string(h.Type), Since: h.Since.UTC().Format(time.RFC3339), For: age(now, h.Since.Time), Detail: h.Detail,
			EndedBy:  cmp.Or(h.EndedBy, migration.HoldType(h.Type).EndedBy(), "its cause, when that is gone"),
			ByPerson: holdsForPerson(h.Type),
		}
		report.Commands = holdCommands(v, h, command)
		known := slices.ContainsFunc(report.Commands, func(c string) bool { return strings.HasPrefix(c, h.Command) })
		if h.Command != "" && !known {
			report.Commands = append(report.Commands, h.Command)
		}
		reports = append(reports, report)
	}
	return reports
}

// holdCommands are the commands for a hold.
func holdCommands(v migrationView, h v1alpha1.MigrationHold, command func(verb string) string) []string {
	object := fmt.Sprintf("ringmigration %s -n %s", v.Name, v.Namespace)
	switch migration.HoldType(h.Type) {
	case migration.HoldInvalidPlan, migration.HoldPlanDrift, migration.HoldLimited:
		return []string{"kubectl edit " + object}
	case migration.HoldSuspended:
		return []string{fmt.Sprintf(`kubectl patch %s --type merge -p '{"spec":{"suspend":false}}'`, object)}
	case migration.HoldPaused:
		return []string{command("resume")}
	case migration.HoldAwaitingApproval:
		token := " --token " + v.Status.Token
		return []string{command("approve") + token, command("reject") + token}
	case migration.HoldForeignSplit:
		return []string{command("rollback"), command("retry")}
	case migration.HoldRingDrift, migration.HoldGateFailed:
		return []string{command("rollback")}
	case migration.HoldUnknownDatacenter:
		return []string{command("skip")}
	case migration.HoldGateUnknown:
		if at := v.Status.StepPhase; at == v1alpha1.StepSoaking || at == v1alpha1.StepAwaitingApproval || at == v1alpha1.StepComplete {
			return []string{command("skip")}
		}
	case migration.HoldNotConverged, migration.HoldDatacenterUnreachable:
		var commands []string
		for _, name := range v.ringNames() {
			commands = append(commands, fmt.Sprintf("kubectl get hashring %s -n %s -o jsonpath='{.status.consumers.stalePods}'", name, v.Namespace))
		}
		return commands
	}
	return nil
}
