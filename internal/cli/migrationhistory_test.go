// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

func actionNamed(name, created string, kind v1alpha1.ActionType) *v1alpha1.RingMigrationAction {
	return &v1alpha1.RingMigrationAction{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cdn", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(micro(created).Time)},
		Spec: v1alpha1.RingMigrationActionSpec{
			MigrationRef: v1alpha1.RingMigrationReference{Name: "v1-to-v3"}, Type: kind, Step: &v1alpha1.ActionStep{Token: "1.2.1-7"},
			Actor: v1alpha1.ActionActor{Username: "ann"}, Reason: "later",
		},
	}
}

func event(name, at, reason string, uid types.UID) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "cdn", Name: name},
		InvolvedObject: corev1.ObjectReference{Kind: migrationKind, Name: "v1-to-v3", UID: uid},
		Reason:         reason, Message: "ams01, fra02: 5%\nto 50%", EventTime: micro(at), ReportingController: "ringwright",
	}
}

// withHistory has two actions that were answered.
func withHistory(m *v1alpha1.RingMigration) {
	m.Status.History = []v1alpha1.ActionRecord{
		{UID: "uid-a", Type: "Approve", Token: "1.1.2-6", Actor: "ann@example.com", Reason: "looks good", At: micro("10:30:00")},
		{UID: "uid-b", Type: "Approve", Token: "1.1.2-6", Actor: "bob\x1b[31m", At: micro("10:30:05"), Refusal: "StaleStep"},
	}
}

func TestMigrationHistory(t *testing.T) {
	other, old := actionNamed("o", "11:00:00", "Pause"), actionNamed("old", "07:00:00", "Pause")
	other.Spec.MigrationRef.Name = "other"
	refused := actionNamed("r", "11:57:00", "Retry")
	refused.Status = v1alpha1.RingMigrationActionStatus{Phase: "Rejected", Reason: "NotRolledBack"}
	objects := []client.Object{
		soaking(t, withHistory), actionNamed("a", "10:29:59", "Approve"), actionNamed("c", "11:58:00", "Pause"), other, old, refused,
		event("e1", "11:22:01", "StepSoaking", "5d3c"), event("e2", "11:23:00", "Elsewhere", "another"),
	}
	live := storeOf(t, interceptor.Funcs{}, objects...)
	for name, as := range map[string]format{"table": formatTable, "json": formatJSON} {
		report, err := live.history(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := (&formatFlag{value: as}).print(&out, report, report.print); err != nil {
			t.Fatal(err)
		}
		assertGolden(t, "migration-history-"+name, out.String())
	}
}

// TestMigrationHistoryWithoutPermissions shows what can be read.
func TestMigrationHistoryWithoutPermissions(t *testing.T) {
	live := storeOf(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("forbidden")
	}}, soaking(t, func(m *v1alpha1.RingMigration) { m.Status.LastTransition = nil }))
	report, err := live.history(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	report.print(&out)
	want := "Nothing has happened with RingMigration cdn/v1-to-v3 yet.\nnote: actions that have no answer yet are not shown: forbidden\nnote: events are not shown: forbidden\n"
	if out.String() != want {
		t.Errorf("got %q", out.String())
	}
}
