// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
	"github.com/ringwright/ringwright/internal/migrationapi"
)

// maxNote is how long the text of an event is, in bytes.
const maxNote = 1024

// announce records and counts what is different in a state that has been stored.
func (r *RingMigrationReconciler) announce(m *v1alpha1.RingMigration, before, after migration.State, status v1alpha1.RingMigrationStatus) {
	if after.Last != before.Last {
		r.Metrics.Transition(m, string(after.Last.From), string(after.Last.To))
		r.announceTransition(m, after, status)
	}
	for _, h := range status.Holds {
		if slices.ContainsFunc(before.Holds, func(old migration.Hold) bool { return string(old.Type) == string(h.Type) }) {
			continue
		}
		r.event(m, corev1.EventTypeWarning, string(h.Type), "Hold", "%s; it is ended by %s%s", h.Detail, h.EndedBy, suffix(h.Command))
	}
	if len(before.Holds) > 0 && len(after.Holds) == 0 && after.RollbackAvailable() {
		r.event(m, corev1.EventTypeNormal, string(v1alpha1.ReasonNotHeld), "Hold", "nothing keeps it from going forward any more")
	}
	for _, a := range after.History {
		if slices.ContainsFunc(before.History, func(old migration.Answered) bool { return old.ID == a.ID }) {
			continue
		}
		r.Metrics.Action(m, string(a.Type), string(a.Refusal))
		if a.Refusal == "" {
			r.event(m, corev1.EventTypeNormal, "Action"+string(a.Type), "Answer", "%s asked for it%s", a.Actor, because(a.Reason))
		} else {
			r.event(m, corev1.EventTypeWarning, "ActionRejected", "Answer", "%s of %s was rejected: %s, %s", a.Type, a.Actor, a.Refusal, refusals[a.Refusal])
		}
	}
}

// announceTransition says where a migration is now, and what comes next.
func (r *RingMigrationReconciler) announceTransition(m *v1alpha1.RingMigration, s migration.State, status v1alpha1.RingMigrationStatus) {
	kind, text := corev1.EventTypeNormal, ""
	switch s.At {
	case migration.Queued:
		text = "the plan is taken; it asks for the lock of its HashRings"
	case migration.Preparing:
		text = "both rings are published, no key on the candidate yet"
	case migration.Dispatching:
		text = fmt.Sprintf("split %d: %s", s.Dispatches, describeSplit(s))
		if s.Retirement() {
			text = fmt.Sprintf("all steps are done: the old ring is retired after a soak of %s; until then there is a way back%s",
				migrationapi.Short(status.Soak.Required.Duration), suffix(command(m, "rollback")))
		}
	case migration.Soaking:
		text = fmt.Sprintf("the consumers have split %d; it soaks for %s", s.Dispatches, migrationapi.Short(status.Soak.Required.Duration))
	case migration.Retiring:
		text = "the candidate becomes the stable ring; there is no way back from here"
	case migration.Succeeded:
		text = "the candidate is the stable ring, and the old one is gone"
	case migration.RollingBack:
		kind, text = corev1.EventTypeWarning, fmt.Sprintf("%s %s: all keys go back to the stable ring", s.Back.Cause, s.Back.Detail)
		if s.Last.From != migration.RollingBack {
			r.Metrics.RolledBack(m, string(s.Back.Cause))
		}
	case migration.RolledBack:
		kind, text = corev1.EventTypeWarning, fmt.Sprintf("all keys are on the stable ring; a higher spec.attempt tries again%s", suffix(command(m, "retry")))
		if len(s.Unreached) > 0 {
			text += "; not known to have arrived in " + strings.Join(s.Unreached, ", ")
		}
	default: // The next one follows at once, or is a hold.
		return
	}
	r.event(m, kind, string(s.At), "Migrate", "%s", text)
}

// describeSplit sums up a split.
func describeSplit(s migration.State) string {
	counts := map[int]int{}
	for _, share := range s.Split {
		counts[share]++
	}
	var shares []int
	for share := range counts {
		shares = append(shares, share)
	}
	slices.Sort(shares)
	slices.Reverse(shares)
	var parts []string
	for _, share := range shares {
		parts = append(parts, fmt.Sprintf("%s in %d datacenters", migrationapi.Percent(share), counts[share]))
	}
	if len(parts) == 0 {
		return "no key on the candidate"
	}
	return strings.Join(parts, ", ")
}

func command(m *v1alpha1.RingMigration, verb string) string {
	return fmt.Sprintf("kubectl hashring migration %s %s -n %s", verb, m.Name, m.Namespace)
}

func suffix(command string) string {
	if command == "" {
		return ""
	}
	return " (" + command + ")"
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func (r *RingMigrationReconciler) event(m *v1alpha1.RingMigration, kind, reason, action, format string, args ...any) {
	note := fmt.Sprintf(format, args...)
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote], "")
	}
	r.Recorder.Eventf(m, nil, kind, reason, action, "%s", note)
}
