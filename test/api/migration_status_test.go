// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// statusSize is how much of a status the tests fill in.
type statusSize struct {
	stages, steps, datacenters, rings, gates, failures, holds, actions int
	// text is how long texts are, of their limit, in percent.
	text int
}

var (
	// largestStatus is a status that is full to its bounds.
	largestStatus = statusSize{stages: 32, steps: 16, datacenters: 1024, rings: 16, gates: 16, failures: 100, holds: 32, actions: 50, text: 100}
	// promisedStatus is the one that is promised to be small: that of 3 rings in 330 datacenters, after 50 actions.
	promisedStatus = statusSize{stages: 32, steps: 16, datacenters: 330, rings: 3, gates: 16, failures: 100, holds: 15, actions: 50, text: 30}
)

const promisedBytes = 256 << 10

var statusTime = metav1.NewMicroTime(time.Unix(1_800_000_000, 123456000))

// words is a text of a part of a limit.
func (z statusSize) words(limit int) string { return strings.Repeat("w", limit*z.text/100) }

func items[T any](n int, make func(i int) T) []T {
	list := []T{}
	for i := range n {
		list = append(list, make(i))
	}
	return list
}

func site(i int) string { return fmt.Sprintf("datacenter-%04d", i) }

// migrationStatus returns a status of a size, with every field set.
func migrationStatus(z statusSize) v1alpha1.RingMigrationStatus {
	share := func(i int) v1alpha1.DatacenterShare {
		return v1alpha1.DatacenterShare{Datacenter: site(i), BasisPoints: 10000}
	}
	gate := func(i int) string { return fmt.Sprintf("gate-%d", i) }
	return v1alpha1.RingMigrationStatus{
		ObservedGeneration: 7, Phase: v1alpha1.MigrationShifting, StepPhase: v1alpha1.StepAwaitingApproval,
		Summary: &v1alpha1.MigrationSummary{Stage: z.words(128), Step: z.words(128), Traffic: z.words(16), Soak: z.words(64), Hold: z.words(64)},
		Token:   z.words(64), Attempt: 2, ObservedAttempt: 2, Position: &v1alpha1.MigrationPosition{Stage: 1, StageName: "stage-1", Step: 3},
		Plan: migrationPlan(z), Remainder: items(z.datacenters, site), Seed: 1<<32 - 1, Split: items(z.datacenters, share),
		Rings: items(z.rings, func(i int) v1alpha1.MigrationRing {
			return v1alpha1.MigrationRing{Name: fmt.Sprintf("ring-%d", i), Candidate: "sha256:" + strings.Repeat("a", 64), Generation: 41, LeaderEpoch: 3}
		}),
		Dispatch: &v1alpha1.MigrationDispatch{
			Number: 9, At: &statusTime, Published: true, UnconvergedSince: &statusTime, EffectiveAt: &statusTime, Approved: true, Skipped: true,
		},
		Soak: &v1alpha1.SoakAccount{Required: *duration(time.Hour), Credited: *duration(1500 * time.Millisecond), CleanAt: &statusTime},
		Gates: items(z.gates, func(i int) v1alpha1.GateStatus {
			return v1alpha1.GateStatus{
				Name: gate(i), Result: v1alpha1.GateFail, Detail: z.words(512), At: &statusTime, Answered: true,
				Failures: items(z.failures, func(int) metav1.MicroTime { return statusTime }), Value: "0.00123", Baseline: "0.001", Samples: "1200000",
			}
		}),
		Datacenters: items(z.datacenters, func(i int) v1alpha1.MigrationDatacenter {
			return v1alpha1.MigrationDatacenter{Name: site(i), BasisPoints: 10000, Total: 120, Reachable: 119, Current: 118}
		}),
		Holds: items(z.holds, func(i int) v1alpha1.MigrationHold {
			return v1alpha1.MigrationHold{
				Type: v1alpha1.HoldType(fmt.Sprintf("Hold%d", i)), Since: statusTime, Detail: z.words(1024), EndedBy: z.words(256), Command: z.words(512),
			}
		}),
		Paused: &v1alpha1.MigrationPause{By: z.words(512), At: statusTime}, RetirementAnnouncedAt: &statusTime,
		Rollback: &v1alpha1.MigrationRollback{Cause: z.words(64), Detail: z.words(1024), Since: statusTime, Unreached: items(z.datacenters, site)},
		History: items(z.actions, func(i int) v1alpha1.ActionRecord {
			return v1alpha1.ActionRecord{
				UID: fmt.Sprintf("11111111-2222-3333-4444-%012d", i), Name: z.words(253), Type: v1alpha1.ActionApprove, Token: z.words(64),
				Actor: z.words(512), Reason: z.words(512), At: statusTime, Refusal: "StaleStep",
			}
		}),
		LastTransition: &v1alpha1.MigrationTransition{From: "Soaking", To: "AwaitingApproval", Event: "Done", At: statusTime},
		Conditions: items(10, func(i int) metav1.Condition {
			return metav1.Condition{
				Type: fmt.Sprintf("Condition%d", i), Status: metav1.ConditionTrue, Reason: "Reason", Message: z.words(1024), ObservedGeneration: 7,
				LastTransitionTime: metav1.NewTime(statusTime.Truncate(time.Second)),
			}
		}),
	}
}

// migrationPlan is a plan of a size, each datacenter in one stage.
func migrationPlan(z statusSize) []v1alpha1.MigrationStage {
	gates := items(z.gates, func(i int) string { return fmt.Sprintf("gate-%d", i) })
	return items(z.stages, func(i int) v1alpha1.MigrationStage {
		var names []string
		for d := i; d < z.datacenters; d += z.stages {
			names = append(names, site(d))
		}
		return v1alpha1.MigrationStage{
			Name: fmt.Sprintf("stage-%d", i), Datacenters: v1alpha1.StageDatacenters{Names: names},
			Steps: items(z.steps, func(j int) v1alpha1.MigrationStep {
				step := v1alpha1.MigrationStep{Traffic: fmt.Sprintf("%d.01%%", j), Soak: duration(time.Hour), Approval: v1alpha1.ApprovalAfterSoak}
				if j == z.steps-1 {
					step.Traffic = "100%"
				}
				if j == 0 { // The others have all gates, as most do.
					step.Gates = gates
				}
				return step
			}),
		}
	})
}

var _ = Describe("The status of a RingMigration", func() {
	DescribeTable("comes back as it was written, without an empty field", func(ctx SpecContext, size statusSize, limit int) {
		name := fmt.Sprintf("status-%d", size.datacenters)
		Expect(apply(ctx, ofKind("RingMigration", name, staged(wholeStage)))).To(Succeed())
		want := migrationStatus(size)
		wantEveryField(want)

		object := &unstructured.Unstructured{Object: map[string]any{}}
		document, err := json.Marshal(map[string]any{"status": want})
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Unmarshal(document, &object.Object)).To(Succeed())
		object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RingMigration"))
		object.SetNamespace(namespace)
		object.SetName(name)
		for range 2 { // The second one changes nothing.
			before := getMigration(ctx, name)
			Expect(api.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner(v1alpha1.FieldManagerMigration))).To(Succeed())
			after := getMigration(ctx, name)
			Expect(cmp.Diff(want, after.Status)).To(BeEmpty())
			if before.Status.Phase != "" {
				Expect(after.ResourceVersion).To(Equal(before.ResourceVersion))
			}
		}

		stored := &unstructured.Unstructured{}
		stored.SetGroupVersionKind(object.GroupVersionKind())
		Expect(api.Get(ctx, keyOf(object), stored)).To(Succeed())
		wantNoNull("status", stored.Object["status"])
		compact, err := json.Marshal(stored.Object["status"])
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("bytes of status", len(compact))
		Expect(len(compact)).To(BeNumerically("<", limit))
	},
		Entry("with everything as long and as often as it may be", largestStatus, 900<<10),
		Entry("with 330 datacenters, 3 rings and 50 actions, in 256 KiB", promisedStatus, promisedBytes),
	)

	It("survives an edit of spec and a status that says less", func(ctx SpecContext) {
		Expect(apply(ctx, ofKind("RingMigration", "less", staged(wholeStage)))).To(Succeed())
		migration := getMigration(ctx, "less")
		want := v1alpha1.RingMigrationStatus{ObservedGeneration: 1, Phase: v1alpha1.MigrationPending}
		migration.Status = want
		Expect(api.Status().Update(ctx, migration)).To(Succeed())
		Expect(apply(ctx, ofKind("RingMigration", "less", migrating("suspend: true")))).To(Succeed())
		Expect(cmp.Diff(want, getMigration(ctx, "less").Status)).To(BeEmpty())
	})
})

// wantEveryField fails where a field is empty: the test would not notice that it is lost.
func wantEveryField(status v1alpha1.RingMigrationStatus) {
	GinkgoHelper()
	value := reflect.ValueOf(status)
	for i := range value.NumField() {
		Expect(value.Field(i).IsZero()).To(BeFalse(), value.Type().Field(i).Name)
	}
}

// wantNoNull fails where something is null: server-side apply and clients in other languages take that for a value.
func wantNoNull(path string, value any) {
	GinkgoHelper()
	switch value := value.(type) {
	case nil:
		Fail(path + " is null")
	case []any:
		for i, item := range value {
			wantNoNull(fmt.Sprintf("%s[%d]", path, i), item)
		}
	case map[string]any:
		for key, item := range value {
			wantNoNull(path+"."+key, item)
		}
	}
}
