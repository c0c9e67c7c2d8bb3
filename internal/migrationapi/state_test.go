// SPDX-License-Identifier: Apache-2.0

package migrationapi_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
	"github.com/ringwright/ringwright/internal/migrationapi"
)

// TestStateSurvivesItsStatus: what is written down and read again by another process is the same state.
func TestStateSurvivesItsStatus(t *testing.T) {
	c := chooser{rand.New(rand.NewPCG(1, 2))}
	seen := migrationapi.Seen{Observation: migration.Observation{Spec: spec()}}
	for i := range 5000 {
		want := c.state()
		status := migrationapi.Status(&v1alpha1.RingMigration{}, want, seen, metav1.NewTime(epoch))
		text, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), ":null") { // An API server drops it, and the next comparison finds a difference for ever.
			t.Fatalf("state %d has a null: %s", i, text)
		}
		var read v1alpha1.RingMigrationStatus
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		got, err := migrationapi.State(read)
		if err != nil {
			t.Fatalf("state %d: %v", i, err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("state %d (-want +got):\n%s", i, diff)
		}
		if got.Token() != want.Token() || got.Phase() != want.Phase() {
			t.Fatalf("state %d is %s %s, want %s %s", i, got.Phase(), got.Token(), want.Phase(), want.Token())
		}
	}
}

func TestStateOfNothing(t *testing.T) {
	if s, err := migrationapi.State(v1alpha1.RingMigrationStatus{ObservedGeneration: -1}); err != nil || s.At != "" {
		t.Errorf("it is %q, %v", s.At, err)
	}
}

// TestStateRefusesForeignStatus: a status that somebody else wrote must not bring the operator down.
func TestStateRefusesForeignStatus(t *testing.T) {
	plan := []v1alpha1.MigrationStage{{Name: "lab", Steps: []v1alpha1.MigrationStep{{Traffic: "100%"}}}}
	for name, row := range map[string]struct {
		status v1alpha1.RingMigrationStatus
		want   string
	}{
		"a step too far":   {v1alpha1.RingMigrationStatus{Plan: plan, Position: &v1alpha1.MigrationPosition{Step: 1}}, "step 1 of stage 0"},
		"a stage too far":  {v1alpha1.RingMigrationStatus{Plan: plan, Position: &v1alpha1.MigrationPosition{Stage: 2}}, "stage 2"},
		"below 0":          {v1alpha1.RingMigrationStatus{Plan: plan, Position: &v1alpha1.MigrationPosition{Stage: -1}}, "stage -1"},
		"no such share":    {v1alpha1.RingMigrationStatus{Plan: []v1alpha1.MigrationStage{{Steps: []v1alpha1.MigrationStep{{Traffic: "lots"}}}}}, `status.plan[0].steps[0].traffic: "lots"`},
		"retirement, step": {v1alpha1.RingMigrationStatus{Plan: plan, Position: &v1alpha1.MigrationPosition{Stage: 1, Step: 1}}, "step 1 of stage 1"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := migrationapi.State(row.status); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("the error is %v, want %q", err, row.want)
			}
		})
	}
}

// TestStatusKeepsConditionTimes: a condition that says the same has the time of when it began.
func TestStatusKeepsConditionTimes(t *testing.T) {
	m := &v1alpha1.RingMigration{}
	s := migration.State{At: migration.Queued, Holds: []migration.Hold{{Type: migration.HoldLocked, Since: epoch, Detail: "RingMigration other"}}}
	seen := migrationapi.Seen{Observation: migration.Observation{Spec: spec()}}
	m.Status = migrationapi.Status(m, s, seen, metav1.NewTime(epoch))
	later := migrationapi.Status(m, s, seen, metav1.NewTime(epoch.Add(time.Hour)))
	if diff := cmp.Diff(m.Status, later); diff != "" {
		t.Errorf("it changes by itself (-before +after):\n%s", diff)
	}
	kinds := ""
	for _, c := range later.Conditions {
		kinds += c.Type + "=" + string(c.Status) + "/" + c.Reason + " "
	}
	const want = "Accepted=False/InvalidPlan Prepared=False/NotPrepared Progressing=False/Held Converged=Unknown/NotPrepared GatesPassing=Unknown/GatesNotJudging " +
		"Held=True/Locked RollbackAvailable=True/Queued Succeeded=False/InProgress Reconciling=True/Held "
	if kinds != want {
		t.Errorf("conditions are\n%s, want\n%s", kinds, want)
	}
}

// TestKstatus: what is in progress, what has failed, and what is neither.
func TestKstatus(t *testing.T) {
	hold := func(types ...migration.HoldType) []migration.Hold {
		var list []migration.Hold
		for _, t := range types {
			list = append(list, migration.Hold{Type: t, Since: epoch, Detail: "because"})
		}
		return list
	}
	for name, row := range map[string]struct {
		state                migration.State
		reconciling, stalled bool
	}{
		"queued":                       {migration.State{At: migration.Queued}, true, false},
		"held":                         {migration.State{At: migration.Preparing, Holds: hold(migration.HoldPaused)}, true, false},
		"nothing to go to":             {migration.State{At: migration.Pending, Holds: hold(migration.HoldNoCandidate)}, false, false},
		"nothing to go to, and paused": {migration.State{At: migration.Pending, Holds: hold(migration.HoldPaused, migration.HoldNoCandidate)}, true, false},
		"a plan that is none":          {migration.State{At: migration.Pending, Holds: hold(migration.HoldInvalidPlan)}, false, true},
		"rolling back":                 {migration.State{At: migration.RollingBack}, true, false},
		"rolled back":                  {migration.State{At: migration.RolledBack}, false, true},
		"succeeded":                    {migration.State{At: migration.Succeeded}, false, false},
		"retiring":                     {migration.State{At: migration.Retiring}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			seen := migrationapi.Seen{Observation: migration.Observation{Spec: spec()}}
			s := migrationapi.Status(&v1alpha1.RingMigration{}, row.state, seen, metav1.NewTime(epoch))
			reconciling := meta.IsStatusConditionTrue(s.Conditions, string(v1alpha1.ConditionReconciling))
			stalled := meta.IsStatusConditionTrue(s.Conditions, string(v1alpha1.ConditionStalled))
			if reconciling != row.reconciling || stalled != row.stalled {
				t.Errorf("reconciling %t and stalled %t, want %t and %t", reconciling, stalled, row.reconciling, row.stalled)
			}
		})
	}
}
