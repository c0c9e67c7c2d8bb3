// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migrationapi"
)

const migrationExplainLong = `Say why a migration stands where it stands: everything that holds it, since when,
who can end it and with which command; or, when nothing holds, what it waits for and
how long that takes at the least. After a rollback: what caused it, where it has not
arrived, and how to go forward again.

It takes permission to get RingMigrations.`

const migrationExplainExample = `  # Why does it not go on?
  kubectl hashring migration explain v1-to-v3 -n cdn

  # The types of its holds
  kubectl hashring migration explain v1-to-v3 -n cdn -o json | jq -r '.holds[].type'`

// ExplainReport is what "migration explain" prints.
type ExplainReport struct {
	// Migration is namespace and name of the RingMigration.
	Migration string `json:"migration"`
	// Phase, StepPhase, Step and Attempt are where it is; Step is such as "europe 1/3", and absent outside of the steps.
	Phase     string `json:"phase"`
	StepPhase string `json:"stepPhase,omitempty"`
	Step      string `json:"step,omitempty"`
	Attempt   int64  `json:"attempt"`
	// Outdated says that the operator has not looked at the present spec yet.
	Outdated bool `json:"outdated,omitempty"`
	// Holds are all that keep it from going forward.
	Holds []HoldReport `json:"holds"`
	// WaitsFor is what it waits for besides, as a sentence.
	WaitsFor string `json:"waitsFor,omitempty"`
	// StepLeft is the soak that the present step lacks, PlanLeft that of all steps and the retirement: it takes that long at the least.
	// Absent outside of a plan that goes forward.
	StepLeft string `json:"stepLeft,omitempty"`
	PlanLeft string `json:"planLeft,omitempty"`
	// Rollback is the rollback that is under way, or the last one.
	Rollback *RollbackReport `json:"rollback,omitempty"`
	// Next are the commands that suggest themselves.
	Next []string `json:"next,omitempty"`
}

// RollbackReport is a rollback.
type RollbackReport struct {
	Cause  string `json:"cause"`
	Detail string `json:"detail,omitempty"`
	// Since is when it began, in the form of RFC 3339 and UTC, For how long that is ago.
	Since string `json:"since"`
	For   string `json:"for"`
	// Unreached are the datacenters whose consumers have not all said that they know.
	Unreached []string `json:"unreached,omitempty"`
}

type migrationExplainOptions struct {
	streams genericiooptions.IOStreams
	output  *formatFlag
	config  *genericclioptions.ConfigFlags
}

func newMigrationExplainCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &migrationExplainOptions{streams: streams}
	cmd := &cobra.Command{
		Use:     "explain NAME",
		Short:   "Say why a migration stands where it stands",
		Long:    migrationExplainLong,
		Example: migrationExplainExample,
		Args:    oneMigration,
	}
	o.output = addFormat(cmd, "o", formatTable, formatJSON, formatYAML)
	o.config, _ = addConfigFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		live, err := newLiveMigration(o.config, args[0])
		if err != nil {
			return err
		}
		return o.run(cmd.Context(), live)
	}
	return cmd
}

func (o *migrationExplainOptions) run(ctx context.Context, live liveMigration) error {
	object, err := live.get(ctx)
	if err != nil {
		return err
	}
	report := explain(migrationView{object}, live)
	return o.output.print(o.streams.Out, report, report.print)
}

func explain(v migrationView, live liveMigration) *ExplainReport {
	now := live.now()
	report := &ExplainReport{
		Migration: live.namespace + "/" + live.name, Phase: string(v.phase()), StepPhase: string(v.Status.StepPhase),
		Attempt: max(v.Status.Attempt, 1), Outdated: !v.observed(), Holds: explainHolds(v, now, live.command), WaitsFor: v.waitsFor(),
	}
	if report.StepPhase != "" {
		report.Step = v.step()
	}
	if back := v.Status.Rollback; back != nil {
		report.Rollback = &RollbackReport{
			Cause: back.Cause, Detail: back.Detail, Since: back.Since.UTC().Format(time.RFC3339), For: age(now, back.Since.Time), Unreached: back.Unreached,
		}
	}
	switch {
	case v.phase() == v1alpha1.MigrationRolledBack:
		report.Next = v.waysForward(live)
	case v.wayBack():
		report.StepLeft, report.PlanLeft = migrationapi.Short(v.soakLeft()), migrationapi.Short(v.planLeft())
		report.Next = []string{live.command("rollback")}
	}
	return report
}

// planLeft is the soak that all steps and the retirement lack.
func (v migrationView) planLeft() time.Duration {
	left := v.soakLeft()
	for i, stage := range v.stages() {
		for j, step := range stage.Steps {
			if v.reached(i, j) < 0 {
				left += soakOf(step.Soak)
			}
		}
	}
	if !v.retiring() {
		left += soakOf(v.Spec.Retirement.Soak)
	}
	return left
}

// waysForward are how a migration that was rolled back goes forward again.
func (v migrationView) waysForward(live liveMigration) []string {
	object := fmt.Sprintf("kubectl patch ringmigration %s -n %s --type merge -p", v.Name, v.Namespace)
	attempt := fmt.Sprintf(`"attempt":%d`, max(v.Status.ObservedAttempt, v.Spec.Attempt)+1)
	if v.Spec.Direction == v1alpha1.DirectionBackward {
		return []string{fmt.Sprintf(`%s '{"spec":{"direction":"Forward",%s}}'`, object, attempt)}
	}
	return []string{live.command("retry"), fmt.Sprintf(`%s '{"spec":{%s}}'`, object, attempt)}
}

func (r *ExplainReport) print(out io.Writer) {
	place := r.Phase
	if r.StepPhase != "" {
		place += ", " + r.StepPhase
	}
	if r.Step != "" {
		place += " at " + r.Step
	}
	printf(out, "%s %s is %s (attempt %d).\n", migrationKind, r.Migration, place, r.Attempt)
	if r.Outdated {
		printf(out, "The operator has not looked at its present spec yet.\n")
	}
	r.printHolds(out)
	if r.WaitsFor != "" {
		printf(out, "\n%s\n", r.WaitsFor)
	}
	if r.PlanLeft != "" {
		printf(out, "\nIt takes at least %s of clean time to the end of the retirement, and %s to that of the step.\n", r.PlanLeft, r.StepLeft)
	}
	if back := r.Rollback; back != nil {
		r.printRollback(out)
	}
	switch {
	case len(r.Next) > 0 && r.Phase == string(v1alpha1.MigrationRolledBack):
		printf(out, "\nWhen the cause is gone, any of these begins another attempt:\n")
	case len(r.Next) > 0:
		printf(out, "\nThe way back is open:\n")
	}
	for _, command := range r.Next {
		printf(out, "  $ %s\n", command)
	}
}

func (r *ExplainReport) printHolds(out io.Writer) {
	switch n := len(r.Holds); {
	case n == 0:
	case r.Phase == string(v1alpha1.MigrationRollingBack):
		printf(out, "\n%s while it goes back:\n", plural(n, "hold", "holds"))
	default:
		printf(out, "\n%s it from going forward.\n", plural(n, "hold keeps", "holds keep"))
	}
	for _, h := range r.Holds {
		printf(out, "\n%s, since %s (%s)\n", h.Type, h.Since, h.For)
		if h.Detail != "" {
			printf(out, "  %s\n", h.Detail)
		}
		printf(out, "  ended by %s\n", h.EndedBy)
		for _, command := range h.Commands {
			printf(out, "  $ %s\n", command)
		}
	}
}

func (r *ExplainReport) printRollback(out io.Writer) {
	back := r.Rollback
	printf(out, "\nThe last rollback began at %s (%s ago). Its cause is %s: %s\n", back.Since, back.For, back.Cause, causeText(back.Cause))
	if back.Detail != "" {
		printf(out, "  %s\n", back.Detail)
	}
	if len(back.Unreached) > 0 {
		printf(out, "It has not arrived everywhere: not all consumers have said that they know in %s.\n", clip(back.Unreached, maxStageNames))
	}
}
