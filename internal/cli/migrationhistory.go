// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

const migrationHistoryLong = `List who did what with a migration, when and why: the last 50 actions with their
answers, those that have no answer yet, the last transition, and the events, which a
cluster keeps for an hour as a rule. The oldest comes first.

It takes permission to get RingMigrations; without that to list RingMigrationActions
and Events, those are left out with a note.`

const migrationHistoryExample = `  # Who did what?
  kubectl hashring migration history v1-to-v3 -n cdn

  # The actions that were refused
  kubectl hashring migration history v1-to-v3 -n cdn -o json | jq '.entries[] | select(.result == "Rejected")'`

// MigrationHistory is what "migration history" prints.
type MigrationHistory struct {
	// Migration is namespace and name of the RingMigration.
	Migration string                  `json:"migration"`
	Entries   []MigrationHistoryEntry `json:"entries"`
	// Notes are what else matters, as sentences.
	Notes []string `json:"notes,omitempty"`
}

// MigrationHistoryEntry is something that happened.
type MigrationHistoryEntry struct {
	// At is when, in the form of RFC 3339 and UTC.
	At string `json:"at"`
	// Kind is action, transition or event.
	Kind string `json:"kind"`
	// Who is the user of an action, or the component of an event.
	Who string `json:"who,omitempty"`
	// What is the type of an action, the reason of an event, or a transition as from and to.
	What string `json:"what"`
	// Token is that of an action.
	Token string `json:"token,omitempty"`
	// Result is Accepted, Rejected or Unanswered for an action.
	Result string `json:"result,omitempty"`
	// Why is the reason that was given, that of a rejection, or the message of an event.
	Why string `json:"why,omitempty"`
	at  time.Time
}

type migrationHistoryOptions struct {
	streams genericiooptions.IOStreams
	output  *formatFlag
	config  *genericclioptions.ConfigFlags
}

func newMigrationHistoryCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &migrationHistoryOptions{streams: streams}
	cmd := &cobra.Command{
		Use:     "history NAME",
		Short:   "List who did what with a migration, when and why",
		Long:    migrationHistoryLong,
		Example: migrationHistoryExample,
		Args:    oneMigration,
	}
	o.output = addFormat(cmd, "o", formatTable, formatJSON, formatYAML)
	o.config, _ = addConfigFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		live, err := newLiveMigration(o.config, args[0])
		if err != nil {
			return err
		}
		report, err := live.history(cmd.Context())
		if err != nil {
			return err
		}
		return o.output.print(o.streams.Out, report, report.print)
	}
	return cmd
}

func (l liveMigration) history(ctx context.Context) (*MigrationHistory, error) {
	object, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	report := &MigrationHistory{Migration: l.namespace + "/" + l.name, Entries: []MigrationHistoryEntry{}}
	for _, a := range object.Status.History {
		entry := MigrationHistoryEntry{Kind: "action", Who: a.Actor, What: string(a.Type), Token: a.Token, Result: string(v1alpha1.ActionAccepted), Why: a.Reason, at: a.At.Time}
		if a.Refusal != "" {
			entry.Result = string(v1alpha1.ActionRejected)
			entry.Why = joinWhy(a.Reason, fmt.Sprintf("%s: %s", a.Refusal, refusalText(string(a.Refusal))))
		}
		report.add(entry)
	}
	if t := object.Status.LastTransition; t != nil {
		report.add(MigrationHistoryEntry{Kind: "transition", What: t.From + " to " + t.To, Why: t.Event, at: t.At.Time})
	}
	l.addUnanswered(ctx, object, report)
	l.addEvents(ctx, object.UID, report)
	slices.SortStableFunc(report.Entries, func(a, b MigrationHistoryEntry) int { return a.at.Compare(b.at) })
	return report, nil
}

func joinWhy(reason, refusal string) string {
	if reason == "" {
		return refusal
	}
	return reason + " (" + refusal + ")"
}

// addUnanswered adds the actions that the status knows nothing of.
func (l liveMigration) addUnanswered(ctx context.Context, object *v1alpha1.RingMigration, report *MigrationHistory) {
	list := &v1alpha1.RingMigrationActionList{}
	if err := l.client.List(ctx, list, client.InNamespace(l.namespace)); err != nil {
		report.Notes = append(report.Notes, fmt.Sprintf("actions that have no answer yet are not shown: %v", err))
		return
	}
	for _, a := range list.Items {
		known := slices.ContainsFunc(object.Status.History, func(r v1alpha1.ActionRecord) bool { return r.UID == string(a.UID) })
		if a.Spec.MigrationRef.Name != l.name || known || a.CreationTimestamp.Time.Before(object.CreationTimestamp.Time) {
			continue
		}
		entry := MigrationHistoryEntry{
			Kind: "action", Who: a.Spec.Actor.Username, What: string(a.Spec.Type), Result: cmp.Or(string(a.Status.Phase), "Unanswered"), Why: a.Spec.Reason, at: a.CreationTimestamp.Time,
		}
		if a.Status.Reason != "" {
			entry.Why = joinWhy(a.Spec.Reason, fmt.Sprintf("%s: %s", a.Status.Reason, refusalText(string(a.Status.Reason))))
		}
		if a.Spec.Step != nil {
			entry.Token = a.Spec.Step.Token
		}
		report.add(entry)
	}
}

// addEvents adds the events of the migration.
func (l liveMigration) addEvents(ctx context.Context, uid types.UID, report *MigrationHistory) {
	list := &corev1.EventList{}
	selector := fields.Set{"involvedObject.kind": migrationKind, "involvedObject.name": l.name}.AsSelector()
	if err := l.client.List(ctx, list, client.InNamespace(l.namespace), client.MatchingFieldsSelector{Selector: selector}); err != nil {
		report.Notes = append(report.Notes, fmt.Sprintf("events are not shown: %v", err))
		return
	}
	for _, e := range list.Items {
		if e.InvolvedObject.UID != uid {
			continue
		}
		at := e.EventTime.Time
		if e.Series != nil {
			at = e.Series.LastObservedTime.Time
		}
		for _, t := range []time.Time{e.LastTimestamp.Time, e.CreationTimestamp.Time} {
			if at.IsZero() {
				at = t
			}
		}
		report.add(MigrationHistoryEntry{Kind: "event", Who: cmp.Or(e.ReportingController, e.Source.Component), What: e.Reason, Why: e.Message, at: at})
	}
}

func (h *MigrationHistory) add(entry MigrationHistoryEntry) {
	entry.At = entry.at.UTC().Format(time.RFC3339)
	h.Entries = append(h.Entries, entry)
}

func (h *MigrationHistory) print(out io.Writer) {
	if len(h.Entries) == 0 {
		printf(out, "Nothing has happened with %s %s yet.\n", migrationKind, h.Migration)
	} else {
		rows(out, func(w io.Writer) {
			printf(w, "TIME\tKIND\tWHO\tWHAT\tTOKEN\tRESULT\tWHY\n")
			for _, e := range h.Entries {
				printf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.At, e.Kind, shown(e.Who), e.What, dash(e.Token), dash(e.Result), shown(e.Why))
			}
		})
	}
	for _, note := range h.Notes {
		printf(out, "note: %s\n", note)
	}
}

// shown is text of a user as it can stand in a table.
func shown(text string) string {
	if text == "" {
		return "-"
	}
	return printable([]byte(text))
}
