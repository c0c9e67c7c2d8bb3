// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

var _ = DescribeTable("The status of a RingMigration is refused with", func(ctx SpecContext, set func(*v1alpha1.RingMigrationStatus), want string) {
	Expect(apply(ctx, ofKind("RingMigration", "bounds", staged(wholeStage)))).To(Succeed())
	migration := getMigration(ctx, "bounds")
	migration.Status = migrationStatus(statusSize{stages: 1, steps: 1, datacenters: 1, rings: 1, gates: 1, failures: 1, holds: 1, actions: 1, text: 1})
	Expect(api.Status().Update(ctx, migration)).To(Succeed())
	set(&migration.Status)
	Expect(api.Status().Update(ctx, migration)).To(MatchError(ContainSubstring("status." + want)))
},
	Entry("a phase that there is not", func(s *v1alpha1.RingMigrationStatus) { s.Phase = "Waiting" }, `phase: Unsupported value: "Waiting"`),
	Entry("a stepPhase that there is not", func(s *v1alpha1.RingMigrationStatus) { s.StepPhase = "Waiting" }, `stepPhase: Unsupported value: "Waiting"`),
	Entry("a long token", func(s *v1alpha1.RingMigrationStatus) { s.Token = strings.Repeat("t", 65) }, "token: Too long: may not be more than 64"),
	Entry("33 stages", func(s *v1alpha1.RingMigrationStatus) {
		s.Plan = migrationPlan(statusSize{stages: 33, steps: 1, datacenters: 33})
	}, "plan: Too many: 33: must have at most 32 items"),
	Entry("1,025 of the remainder", func(s *v1alpha1.RingMigrationStatus) { s.Remainder = items(1025, site) }, "remainder: Too many: 1025: must have at most 1024 items"),
	Entry("17 rings", func(s *v1alpha1.RingMigrationStatus) { s.Rings = make([]v1alpha1.MigrationRing, 17) }, "rings: Too many: 17: must have at most 16 items"),
	Entry("1,025 shares", func(s *v1alpha1.RingMigrationStatus) { s.Split = make([]v1alpha1.DatacenterShare, 1025) }, "split: Too many: 1025: must have at most 1024 items"),
	Entry("a share above all", func(s *v1alpha1.RingMigrationStatus) { s.Split[0].BasisPoints = 10001 }, "split[0].basisPoints: Invalid value: 10001"),
	Entry("17 gates", func(s *v1alpha1.RingMigrationStatus) { s.Gates = make([]v1alpha1.GateStatus, 17) }, "gates: Too many: 17: must have at most 16 items"),
	Entry("a result that there is not", func(s *v1alpha1.RingMigrationStatus) { s.Gates[0].Result = "Unknown" }, `gates[0].result: Unsupported value: "Unknown"`),
	Entry("101 failures", func(s *v1alpha1.RingMigrationStatus) {
		s.Gates[0].Failures = items(101, func(int) metav1.MicroTime { return statusTime })
	}, "gates[0].failures: Too many: 101: must have at most 100 items"),
	Entry("513 characters of a gate", func(s *v1alpha1.RingMigrationStatus) { s.Gates[0].Detail = strings.Repeat("d", 513) }, "gates[0].detail: Too long: may not be more than 512"),
	Entry("1,025 datacenters", func(s *v1alpha1.RingMigrationStatus) { s.Datacenters = make([]v1alpha1.MigrationDatacenter, 1025) }, "datacenters: Too many: 1025: must have at most 1024 items"),
	Entry("33 holds", func(s *v1alpha1.RingMigrationStatus) { s.Holds = make([]v1alpha1.MigrationHold, 33) }, "holds: Too many: 33: must have at most 32 items"),
	Entry("1,025 characters of a hold", func(s *v1alpha1.RingMigrationStatus) { s.Holds[0].Detail = strings.Repeat("d", 1025) }, "holds[0].detail: Too long: may not be more than 1024"),
	Entry("1,025 characters of a rollback", func(s *v1alpha1.RingMigrationStatus) { s.Rollback.Detail = strings.Repeat("d", 1025) }, "rollback.detail: Too long: may not be more than 1024"),
	Entry("1,025 datacenters that were not reached", func(s *v1alpha1.RingMigrationStatus) { s.Rollback.Unreached = items(1025, site) }, "rollback.unreached: Too many: 1025: must have at most 1024 items"),
	Entry("51 actions", func(s *v1alpha1.RingMigrationStatus) { s.History = make([]v1alpha1.ActionRecord, 51) }, "history: Too many: 51: must have at most 50 items"),
	Entry("an actor of 513 characters", func(s *v1alpha1.RingMigrationStatus) { s.History[0].Actor = strings.Repeat("a", 513) }, "history[0].actor: Too long: may not be more than 512"),
	Entry("17 conditions", func(s *v1alpha1.RingMigrationStatus) { s.Conditions = make([]metav1.Condition, 17) }, "conditions: Too many: 17: must have at most 16 items"),
)

var _ = DescribeTable("The status of a RingMigrationAction is refused with", func(ctx SpecContext, set func(*v1alpha1.RingMigrationActionStatus), want string) {
	object := ofKind("RingMigrationAction", "bounds", acting("Pause", ""))
	Expect(apply(ctx, object)).To(Succeed())
	action := &v1alpha1.RingMigrationAction{}
	Expect(api.Get(ctx, keyOf(object), action)).To(Succeed())
	full := v1alpha1.RingMigrationActionStatus{
		Phase: v1alpha1.ActionRejected, Reason: v1alpha1.ConditionReason(strings.Repeat("R", 64)), Message: strings.Repeat("m", 1024), DecidedAt: &statusTime,
		MigrationUID: types.UID(strings.Repeat("u", 64)),
	}
	action.Status = full
	Expect(api.Status().Update(ctx, action)).To(Succeed())
	Expect(action.Status.DecidedAt.Time).To(BeTemporally("==", statusTime.Time))
	set(&action.Status)
	Expect(api.Status().Update(ctx, action)).To(MatchError(ContainSubstring("status." + want)))
},
	Entry("a phase that there is not", func(s *v1alpha1.RingMigrationActionStatus) { s.Phase = "Done" }, `phase: Unsupported value: "Done": supported values: "Accepted", "Rejected"`),
	Entry("a reason of 65 characters", func(s *v1alpha1.RingMigrationActionStatus) { s.Reason += "R" }, "reason: Too long: may not be more than 64"),
	Entry("a message of 1,025 characters", func(s *v1alpha1.RingMigrationActionStatus) { s.Message += "m" }, "message: Too long: may not be more than 1024"),
	Entry("a UID of 65 characters", func(s *v1alpha1.RingMigrationActionStatus) { s.MigrationUID += "u" }, "migrationUID: Too long: may not be more than 64"),
)
