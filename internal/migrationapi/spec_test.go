// SPDX-License-Identifier: Apache-2.0

package migrationapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
	"github.com/ringwright/ringwright/internal/migrationapi"
)

func TestBasisPoints(t *testing.T) {
	for text, want := range map[string]int{"0%": 0, "0.01%": 1, "0.5%": 50, "5%": 500, "12.34%": 1234, "100%": 10000, "100.00%": 10000, "07%": 700} {
		if got, err := migrationapi.BasisPoints(text); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "5", "5.123%", "100.01%", "-1%", "1e2%", "five%", ".5%"} {
		if n, err := migrationapi.BasisPoints(text); err == nil {
			t.Errorf("%q is %d", text, n)
		}
	}
	for n := range 10001 {
		if got, err := migrationapi.BasisPoints(migrationapi.Percent(n)); err != nil || got != n {
			t.Fatalf("%d is written as %s and read as %d, %v", n, migrationapi.Percent(n), got, err)
		}
	}
	if got := migrationapi.Percent(50); got != "0.5%" {
		t.Errorf("50 is %s", got)
	}
}

func TestSpec(t *testing.T) {
	minute := &metav1.Duration{Duration: time.Minute}
	got, err := migrationapi.Spec(v1alpha1.RingMigrationSpec{
		Stages: []v1alpha1.MigrationStage{{
			Name: "lab", Datacenters: v1alpha1.StageDatacenters{Names: []string{"lab01"}},
			Steps: []v1alpha1.MigrationStep{{Traffic: "0.5%", Soak: minute, Gates: []string{"errors"}}, {Traffic: "100%", Approval: v1alpha1.ApprovalAfterSoak}},
		}},
		Gates:     []v1alpha1.MigrationGate{{Name: "errors"}, {Name: "seen", Mode: v1alpha1.GateObserve, Interval: minute, FailureThreshold: 1, FailureWindow: minute}},
		Suspend:   true,
		Direction: v1alpha1.DirectionBackward,
		Rollback:  v1alpha1.RollbackPolicy{Strategy: v1alpha1.RollbackStaged, Steps: []string{"50%", "0%"}},
		OnDelete:  v1alpha1.DeletionFreeze,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := migration.Spec{
		Stages: []migration.Stage{{Name: "lab", Datacenters: []string{"lab01"}, Steps: []migration.PlannedStep{
			{Traffic: 50, Soak: time.Minute, Gates: []string{"errors"}}, {Traffic: 10000, Approval: true},
		}}},
		Gates: []migration.Gate{
			{Name: "errors", Enforced: true, Interval: time.Minute, FailureThreshold: 3, FailureWindow: 10 * time.Minute},
			{Name: "seen", Interval: time.Minute, FailureThreshold: 1, FailureWindow: time.Minute},
		},
		Limits: migration.Limits{MaxTraffic: 10000}, Suspended: true, Backward: true, Attempt: 1,
		Acknowledgement: migration.Acknowledgement{Quorum: 10000, Deadline: 10 * time.Minute},
		Rollback:        migration.Rollback{Automatic: true, Steps: []int{5000, 0}, Interval: 5 * time.Minute},
		Retirement:      migration.Retirement{Soak: 24 * time.Hour}, OnDelete: migration.DeleteFreezes, Interval: 10 * time.Second,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
}

// TestSpecNamesEveryField: all that cannot be read is told at once.
func TestSpecNamesEveryField(t *testing.T) {
	_, err := migrationapi.Spec(v1alpha1.RingMigrationSpec{
		Stages:          []v1alpha1.MigrationStage{{Steps: []v1alpha1.MigrationStep{{Traffic: "half"}}}},
		Limits:          v1alpha1.MigrationLimits{MaxTraffic: "all"},
		Acknowledgement: v1alpha1.Acknowledgement{Quorum: "most"},
		Rollback:        v1alpha1.RollbackPolicy{Strategy: v1alpha1.RollbackStaged, Steps: []string{"none"}},
	})
	for _, want := range []string{`spec.stages[0].steps[0].traffic: "half"`, `spec.limits.maxTraffic: "all"`, `spec.acknowledgement.quorum: "most"`, `spec.rollback.steps[0]: "none"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 90 * time.Second: "1m30s", time.Hour: "1h", 12 * time.Minute: "12m", 25*time.Hour + time.Second: "25h0m1s", 1500 * time.Millisecond: "1s",
		10 * time.Hour: "10h", 70 * time.Minute: "1h10m",
	} {
		if got := migrationapi.Short(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}
