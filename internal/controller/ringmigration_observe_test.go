// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// TestCandidateOf: only a spec that asks for the published ring takes a migration back, not one that nobody has looked at or that cannot be
// followed.
func TestCandidateOf(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason v1alpha1.ConditionReason) []metav1.Condition {
		return []metav1.Condition{{Type: string(v1alpha1.ConditionReady), Status: status, Reason: string(reason)}}
	}
	for name, row := range map[string]struct {
		status v1alpha1.HashRingStatus
		want   string
	}{
		"a candidate":       {v1alpha1.HashRingStatus{ObservedGeneration: 2, Candidate: &v1alpha1.CandidateRing{Digest: "new"}}, "new"},
		"taken back":        {v1alpha1.HashRingStatus{ObservedGeneration: 2, Conditions: ready(metav1.ConditionTrue, v1alpha1.ReasonRingPublished)}, ""},
		"taken back, held":  {v1alpha1.HashRingStatus{ObservedGeneration: 2, Conditions: ready(metav1.ConditionFalse, v1alpha1.ReasonSuddenLoss)}, ""},
		"not looked at yet": {v1alpha1.HashRingStatus{ObservedGeneration: 1}, "before"},
		"a name is taken":   {v1alpha1.HashRingStatus{ObservedGeneration: 2, Conditions: ready(metav1.ConditionFalse, v1alpha1.ReasonNameConflict)}, "before"},
		"kept nowhere":      {v1alpha1.HashRingStatus{ObservedGeneration: 2, Conditions: ready(metav1.ConditionFalse, v1alpha1.ReasonRevisionNotFound)}, "before"},
	} {
		t.Run(name, func(t *testing.T) {
			ring := &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{Name: "edge", Generation: 2}, Status: row.status}
			if got := candidateOf(ring, migration.State{Candidates: map[string]string{"edge": "before"}}); got != row.want {
				t.Errorf("the candidate is %q, want %q", got, row.want)
			}
		})
	}
}

// TestRollbackFirst: of all that wait, rollbacks are decided on before the rest, which stays in the order of its creation.
func TestRollbackFirst(t *testing.T) {
	var list []v1alpha1.RingMigrationAction
	for i, kind := range []v1alpha1.ActionType{v1alpha1.ActionPause, v1alpha1.ActionResume, v1alpha1.ActionRollback, v1alpha1.ActionPause} {
		a := v1alpha1.RingMigrationAction{Spec: v1alpha1.RingMigrationActionSpec{Type: kind}}
		a.CreationTimestamp = metav1.NewTime(time.Unix(int64(i), 0))
		list = append(list, a)
	}
	slices.SortStableFunc(list, rollbackFirst)
	var got []v1alpha1.ActionType
	for _, a := range list {
		got = append(got, a.Spec.Type)
	}
	want := []v1alpha1.ActionType{v1alpha1.ActionRollback, v1alpha1.ActionPause, v1alpha1.ActionResume, v1alpha1.ActionPause}
	if !slices.Equal(got, want) {
		t.Errorf("they are decided on as %v, want %v", got, want)
	}
}

func TestDatacenterCount(t *testing.T) {
	fleets := []migration.Fleet{{Ring: "edge", Datacenter: "lab"}, {Ring: "side", Datacenter: "lab"}, {Ring: "side", Datacenter: "ams"}}
	if got := datacenterCount(fleets); got != 2 {
		t.Errorf("there are %d", got)
	}
}
