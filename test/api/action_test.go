// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// acting is an action of a type and what else it says.
func acting(kind, fields string) string {
	return "spec: {migrationRef: {name: edge}, type: " + kind + ", actor: {username: alice}" + fields + "}"
}

const atStep = ", step: {name: world 1/1, token: 1.1.1-2}"

var _ = DescribeTable("A RingMigrationAction is accepted with", acceptedAs("RingMigrationAction"),
	Entry("Approve", acting("Approve", atStep)),
	Entry("Reject", acting("Reject", atStep)),
	Entry("Pause", acting("Pause", "")),
	Entry("Pause of an attempt", acting("Pause", atStep)),
	Entry("Resume", acting("Resume", atStep)),
	Entry("Rollback", acting("Rollback", "")),
	Entry("Rollback of an attempt", acting("Rollback", atStep)),
	Entry("Retry", acting("Retry", atStep)),
	Entry("Skip", acting("Skip", atStep)),
	Entry("a reason of 512 characters", acting("Pause", ", reason: "+strings.Repeat("r", 512))),
	Entry("a token of 64 characters", acting("Skip", ", step: {token: "+strings.Repeat("t", 64)+"}")),
	Entry("a step with a name of 128 characters", acting("Skip", ", step: {token: t, name: "+strings.Repeat("n", 128)+"}")),
	Entry("an actor of 512 characters", "spec: {migrationRef: {name: edge}, type: Pause, actor: {username: "+strings.Repeat("u", 512)+"}}"),
	Entry("a migration of 63 characters", "spec: {migrationRef: {name: "+strings.Repeat("m", 63)+"}, type: Pause, actor: {username: alice}}"),
)

var _ = DescribeTable("A RingMigrationAction is refused with", refusedAs("RingMigrationAction"),
	Entry("Approve of no step", acting("Approve", ""), "spec.step: Required value: step must be set with type Approve"),
	Entry("Reject of no step", acting("Reject", ""), "step must be set with type Reject"),
	Entry("Resume of no step", acting("Resume", ""), "step must be set with type Resume"),
	Entry("Retry of no step", acting("Retry", ""), "step must be set with type Retry"),
	Entry("Skip of no step", acting("Skip", ""), "step must be set with type Skip"),
	Entry("a type that there is not", acting("Approved", atStep), `spec.type: Unsupported value: "Approved": supported values: "Approve", "Reject", "Pause", "Resume", "Rollback", "Retry", "Skip"`),
	Entry("no type", "spec: {migrationRef: {name: edge}, actor: {username: alice}}", "spec.type: Required value"),
	Entry("no migration", "spec: {type: Pause, actor: {username: alice}}", "spec.migrationRef: Required value"),
	Entry("a migration without a name", "spec: {type: Pause, actor: {username: alice}, migrationRef: {name: ''}}", "spec.migrationRef.name", "at least 1 chars"),
	Entry("a migration in capitals", "spec: {type: Pause, actor: {username: alice}, migrationRef: {name: Edge}}", "spec.migrationRef.name", `"Edge"`),
	Entry("a migration of 64 characters", "spec: {type: Pause, actor: {username: alice}, migrationRef: {name: "+strings.Repeat("m", 64)+"}}", "spec.migrationRef.name", "may not be more than 63"),
	Entry("no actor", "spec: {migrationRef: {name: edge}, type: Pause}", "spec.actor: Required value"),
	Entry("an actor without a name", "spec: {migrationRef: {name: edge}, type: Pause, actor: {username: ''}}", "spec.actor.username", "at least 1 chars"),
	Entry("an actor of 513 characters", "spec: {migrationRef: {name: edge}, type: Pause, actor: {username: "+strings.Repeat("u", 513)+"}}", "spec.actor.username", "may not be more than 512"),
	Entry("a reason of 513 characters", acting("Pause", ", reason: "+strings.Repeat("r", 513)), "spec.reason", "may not be more than 512"),
	Entry("a step without a token", acting("Skip", ", step: {name: world}"), "spec.step.token: Required value"),
	Entry("an empty token", acting("Skip", ", step: {token: ''}"), "spec.step.token", "at least 1 chars"),
	Entry("a token of 65 characters", acting("Skip", ", step: {token: "+strings.Repeat("t", 65)+"}"), "spec.step.token", "may not be more than 64"),
	Entry("a step with a name of 129 characters", acting("Skip", ", step: {token: t, name: "+strings.Repeat("n", 129)+"}"), "spec.step.name", "may not be more than 128"),
)

var _ = Describe("A RingMigrationAction", func() {
	It("is never changed", func(ctx SpecContext) {
		const kind = "RingMigrationAction"
		Expect(apply(ctx, ofKind(kind, "fixed", acting("Approve", atStep)))).To(Succeed())
		for _, spec := range []string{
			acting("Skip", atStep), acting("Approve", ", step: {name: world 1/1, token: 1.1.1-3}"), acting("Approve", atStep+", reason: sure"),
			strings.Replace(acting("Approve", atStep), "alice", "bob", 1), strings.Replace(acting("Approve", atStep), "edge", "other", 1),
		} {
			Expect(apply(ctx, ofKind(kind, "fixed", spec))).To(MatchError(ContainSubstring("spec cannot be changed: create another RingMigrationAction")))
		}
		labelled := ofKind(kind, "fixed", acting("Approve", atStep))
		labelled.SetLabels(map[string]string{"team": "edge"})
		Expect(apply(ctx, labelled)).To(Succeed())
		stored := &unstructured.Unstructured{}
		stored.SetGroupVersionKind(labelled.GroupVersionKind())
		Expect(api.Get(ctx, keyOf(labelled), stored)).To(Succeed())
		Expect(stored.Object["spec"]).To(Equal(labelled.Object["spec"]))
		Expect(stored.GetGeneration()).To(BeEquivalentTo(1))
	})
})
