// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// recorder keeps what is recorded.
type recorder struct {
	events.EventRecorder
	list []string
}

func (r *recorder) Eventf(_, _ runtime.Object, eventType, reason, action, note string, args ...any) {
	r.list = append(r.list, fmt.Sprintf("%s %s %s: %s", eventType, action, reason, fmt.Sprintf(note, args...)))
}

// TestAnnounceTransitions: one event for each thing that begins or ends, and none for a count in a message.
func TestAnnounceTransitions(t *testing.T) {
	condition := func(kind v1alpha1.ConditionType, status metav1.ConditionStatus, reason v1alpha1.ConditionReason, message string) metav1.Condition {
		return metav1.Condition{Type: string(kind), Status: status, Reason: string(reason), Message: message}
	}
	published := condition(v1alpha1.ConditionPublished, "True", v1alpha1.ReasonRingPublished, "revision 1")
	free := condition(v1alpha1.ConditionHeld, "False", v1alpha1.ReasonNotHeld, "nothing")
	loss := condition(v1alpha1.ConditionHeld, "True", v1alpha1.ReasonSuddenLoss, "6 of 10")
	applied := func(reason v1alpha1.ConditionReason, message string) metav1.Condition {
		return condition(v1alpha1.ConditionApplied, "False", reason, message)
	}
	refreshed := func(reason v1alpha1.ConditionReason, message string) metav1.Condition {
		return condition(v1alpha1.ConditionRefreshed, "False", reason, message)
	}
	for name, row := range map[string]struct {
		before, after []metav1.Condition
		movement      string
		want          []string
	}{
		"the first ring":      {nil, []metav1.Condition{published, free}, "", []string{"Normal Publish RingPublished: revision 1"}},
		"nothing new":         {[]metav1.Condition{published, free}, []metav1.Condition{published, free}, "", nil},
		"another ring":        {[]metav1.Condition{published}, []metav1.Condition{condition(v1alpha1.ConditionPublished, "True", v1alpha1.ReasonRingPublished, "revision 2")}, "7.31%", []string{"Normal Publish RingPublished: revision 2; 7.31% of the key space has another owner than before"}},
		"refused":             {[]metav1.Condition{published}, []metav1.Condition{condition(v1alpha1.ConditionPublished, "False", v1alpha1.ReasonInvalidSpec, "no")}, "", []string{"Warning Publish InvalidSpec: no"}},
		"waits":               {[]metav1.Condition{published}, []metav1.Condition{condition(v1alpha1.ConditionPublished, "False", v1alpha1.ReasonCoalescing, "soon")}, "", []string{"Normal Publish Coalescing: soon"}},
		"held":                {[]metav1.Condition{free}, []metav1.Condition{loss}, "", []string{"Warning Hold SuddenLoss: 6 of 10"}},
		"held from the start": {nil, []metav1.Condition{loss}, "", []string{"Warning Hold SuddenLoss: 6 of 10"}},
		"held for more":       {[]metav1.Condition{loss}, []metav1.Condition{condition(v1alpha1.ConditionHeld, "True", v1alpha1.ReasonSuddenLoss, "7 of 10")}, "", nil},
		"let go":              {[]metav1.Condition{loss}, []metav1.Condition{free}, "", []string{"Normal Hold NotHeld: nothing"}},
		"pinned":              {[]metav1.Condition{free}, []metav1.Condition{condition(v1alpha1.ConditionHeld, "True", v1alpha1.ReasonPinned, "1")}, "", []string{"Normal Hold Pinned: 1"}},
		"a candidate":         {nil, []metav1.Condition{condition(v1alpha1.ConditionMigrationRequired, "True", v1alpha1.ReasonAlgorithmChanged, "V3")}, "", []string{"Normal Propose AlgorithmChanged: V3"}},
		"over the budget":     {nil, []metav1.Condition{condition(v1alpha1.ConditionMigrationRequired, "True", v1alpha1.ReasonMovementBudget, "12%")}, "", []string{"Warning Propose MovementBudget: 12%"}},
		"a mismatch":          {[]metav1.Condition{applied("WaitingForConsumers", "0 of 2")}, []metav1.Condition{applied("DigestMismatch", "1 of 2")}, "", []string{"Warning Acknowledge DigestMismatch: 1 of 2"}},
		"a mismatch at once":  {nil, []metav1.Condition{applied("DigestMismatch", "1 of 2")}, "", []string{"Warning Acknowledge DigestMismatch: 1 of 2"}},
		"another mismatch":    {[]metav1.Condition{applied("DigestMismatch", "1 of 2")}, []metav1.Condition{applied("DigestMismatch", "2 of 2")}, "", nil},
		"late consumers":      {nil, []metav1.Condition{applied("WaitingForConsumers", "1 of 2")}, "", nil},
		"untouched pods":      {nil, []metav1.Condition{refreshed("TouchForbidden", "no right")}, "", []string{"Warning Touch TouchForbidden: no right"}},
		"a stubborn pod":      {[]metav1.Condition{refreshed("TouchingPods", "1 of 2")}, []metav1.Condition{refreshed("PodsRefused", "1 of 2")}, "", []string{"Warning Touch PodsRefused: 1 of 2"}},
		"more stubborn pods":  {[]metav1.Condition{refreshed("PodsRefused", "1 of 2")}, []metav1.Condition{refreshed("PodsRefused", "2 of 2")}, "", nil},
		"pods to be touched":  {[]metav1.Condition{refreshed("PodsRefused", "1 of 2")}, []metav1.Condition{refreshed("TouchingPods", "1 of 2")}, "", nil},
		"a source is gone":    {nil, []metav1.Condition{condition(v1alpha1.ConditionBackendsResolved, "False", v1alpha1.ReasonServiceNotFound, "cache")}, "", []string{"Warning Resolve ServiceNotFound: cache"}},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &recorder{}
			r := HashRingReconciler{Recorder: seen}
			status := v1alpha1.HashRingStatus{Conditions: row.after, Active: &v1alpha1.ActiveRing{Movement: row.movement}}
			r.announceTransitions(&v1alpha1.HashRing{Status: v1alpha1.HashRingStatus{Conditions: row.before}}, status)
			if diff := cmp.Diff(row.want, seen.list); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
