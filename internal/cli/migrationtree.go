// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migrationapi"
)

// barCells is how long a progress bar is.
const barCells = 20

// maxStageNames is how many datacenters of a stage are named.
const maxStageNames = 8

// palette marks what a terminal shows in colours. Its zero value marks nothing.
type palette struct{ on bool }

func (p palette) mark(code, text string) string {
	if !p.on {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p palette) good(text string) string   { return p.mark("32", text) }
func (p palette) bad(text string) string    { return p.mark("31", text) }
func (p palette) active(text string) string { return p.mark("33", text) }
func (p palette) strong(text string) string { return p.mark("1", text) }

// migrationTree prints a migration as a tree.
type migrationTree struct {
	migrationView
	palette
	now time.Time
	// command returns the command line of a verb.
	command func(verb string) string
	// all lists every datacenter.
	all bool
}

func (t migrationTree) print(out io.Writer) {
	var text strings.Builder
	t.printHead(&text)
	printf(&text, "\n")
	t.printStages(&text)
	t.printDatacenters(&text)
	t.printGates(&text)
	t.printHolds(&text)
	printf(out, "%s", t.marks().Replace(text.String()))
}

// marks colours the marks, once the columns are aligned: those count the bytes of a colour.
func (t migrationTree) marks() *strings.Replacer {
	return strings.NewReplacer("✔", t.good("✔"), "▶", t.active("▶"), "↩", t.bad("↩"), "✘", t.bad("✘"))
}

// printHead says where it is.
func (t migrationTree) printHead(out io.Writer) {
	s := t.Status
	printf(out, "%s  %s\n", t.strong(fmt.Sprintf("%s %s/%s", migrationKind, t.Namespace, t.Name)), t.phaseText())
	rows(out, func(w io.Writer) {
		for i, r := range s.Rings {
			title := ""
			if i == 0 {
				title = "rings"
			}
			printf(w, "  %s\t%s to %s\n", title, r.Name, dash(shortDigest(r.Candidate)))
		}
		if len(s.Rings) == 0 {
			printf(w, "  rings\t%s\n", dash(strings.Join(t.ringNames(), ", ")))
		}
		printf(w, "  attempt\t%d\n", max(s.Attempt, 1))
		printf(w, "  token\t%s\n", dash(s.Token))
		if last := s.LastTransition; last != nil {
			printf(w, "  since\t%s, %s ago: from %s to %s, event %s\n",
				last.At.UTC().Format(time.RFC3339), age(t.now, last.At.Time), last.From, last.To, last.Event)
		}
		printf(w, "  rollback\t%s\n", t.rollbackText())
		if p := s.Paused; p != nil {
			printf(w, "  paused\tby %s, %s ago\n", printable([]byte(p.By)), age(t.now, p.At.Time))
		}
		if t.DeletionTimestamp != nil {
			printf(w, "  deleted\t%s ago, with onDelete %s\n", age(t.now, t.DeletionTimestamp.Time), t.Spec.OnDelete)
		}
	})
	if !t.observed() {
		printf(out, "  the operator has not looked at generation %d of the spec yet: what follows is about the one before\n", t.Generation)
	}
}

func (t migrationTree) phaseText() string {
	switch t.phase() {
	case v1alpha1.MigrationSucceeded:
		return t.good(t.place())
	case v1alpha1.MigrationRollingBack, v1alpha1.MigrationRolledBack:
		return t.bad(t.place())
	}
	return t.active(t.place())
}

func (t migrationTree) rollbackText() string {
	back := t.Status.Rollback
	switch {
	case t.wayBack():
		return "available: " + t.command("rollback")
	case t.goesBack() && back != nil:
		text := fmt.Sprintf("%s ago because of %s", age(t.now, back.Since.Time), back.Cause)
		if back.Detail != "" {
			text += " (" + back.Detail + ")"
		}
		if len(back.Unreached) > 0 {
			text += "; it has not arrived in " + clip(back.Unreached, maxStageNames)
		}
		return text
	default:
		return "not available"
	}
}

// printStages prints the plan with what is done of it.
func (t migrationTree) printStages(out io.Writer) {
	rows(out, func(w io.Writer) {
		for i, stage := range t.stages() {
			last := len(stage.Steps) - 1
			reached := t.reached(i, 0)
			if done := t.reached(i, last); reached > 0 && done <= 0 {
				reached = 0
			}
			printf(w, "%s %s\t%s\n", t.markOf(reached), stage.Name, t.membersText(stage))
			for j, step := range stage.Steps {
				reached := t.reached(i, j)
				printf(w, "  %s %d/%d\t%s\t%s\n", t.markOf(reached), j+1, last+1, step.Traffic, t.stepText(reached, soakOf(step.Soak), step.Approval))
			}
		}
		r := t.Spec.Retirement
		reached := -1
		switch {
		case t.phase() == v1alpha1.MigrationSucceeded:
			reached = 1
		case t.retiring() || t.phase() == v1alpha1.MigrationRetiring:
			reached = 0
		}
		text := t.stepText(reached, soakOf(r.Soak), r.Approval)
		if t.phase() == v1alpha1.MigrationRetiring {
			text = "the old ring is taken away: there is no way back"
		}
		printf(w, "%s retirement\t\t%s\n", t.markOf(reached), text)
	})
}

// markOf marks what is done, what it is at, and what is to come; and what was taken back.
func (t migrationTree) markOf(reached int) string {
	switch {
	case reached < 0:
		return "·"
	case t.goesBack():
		return "↩"
	case reached > 0:
		return "✔"
	default:
		return "▶"
	}
}

// stepText says what a step waits for, or how far it is.
func (t migrationTree) stepText(reached int, soak time.Duration, approval v1alpha1.Approval) string {
	if account := t.Status.Soak; reached == 0 && account != nil && !t.goesBack() {
		text := bar(account.Credited.Duration, account.Required.Duration) +
			fmt.Sprintf(" %s/%s", migrationapi.Short(account.Credited.Duration), migrationapi.Short(account.Required.Duration))
		if t.Status.StepPhase != "" {
			text += " " + t.active(string(t.Status.StepPhase))
		}
		return text
	}
	text := "soak " + migrationapi.Short(soak)
	if approval == v1alpha1.ApprovalAfterSoak {
		text += ", then approval"
	}
	return text
}

// bar shows how much of a whole there is. It is full only when all of it is.
func bar(part, whole time.Duration) string {
	cells := barCells
	if part < whole {
		cells = int(float64(barCells) * float64(max(part, 0)) / float64(whole))
	}
	return strings.Repeat("█", cells) + strings.Repeat("░", barCells-cells)
}

func (t migrationTree) membersText(stage v1alpha1.MigrationStage) string {
	names := t.members(stage)
	if stage.Datacenters.Remainder && len(names) == 0 {
		return "all others"
	}
	return clip(names, maxStageNames)
}
