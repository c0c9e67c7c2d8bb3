// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// threeStages is the plan of the tests: a stage that is done, one that is at its second step, and one that has not begun.
const threeStages = `[{name: lab, datacenters: {names: [lab01, lab02]}, steps: [{traffic: "1%", soak: 15m, gates: [errors]}, {traffic: "100%", approval: AfterSoak}]},
  {name: europe, datacenters: {names: [ams01]}, steps: [{traffic: "5%", soak: 1h}, {traffic: "50%", soak: 1h, approval: AfterSoak, gates: [errors, agents]}, {traffic: "100%", soak: 1h}]},
  {name: world, datacenters: {remainder: true}, steps: [{traffic: "10%"}, {traffic: "100%"}]}]`

// running is a spec with that plan, edited: pairs of what is there and what takes its place.
func running(edit ...string) string {
	return "spec: {" + toRing + `, gates: [{name: errors, consumers: {maxErrorRatio: "1%"}}, {name: agents, consumers: {maxFailoverRatio: "1%"}}], stages: ` +
		strings.NewReplacer(edit...).Replace(threeStages) + "}"
}

// begin stores a status of that plan in a phase, at a step of a stage.
func begin(ctx context.Context, name string, phase v1alpha1.MigrationPhase, stage, step int32) {
	GinkgoHelper()
	migration := getMigration(ctx, name)
	migration.Status = v1alpha1.RingMigrationStatus{
		Phase: phase, Plan: migration.Spec.Stages, Position: &v1alpha1.MigrationPosition{Stage: stage, Step: step},
	}
	Expect(api.Status().Update(ctx, migration)).To(Succeed())
}

// edit applies a spec to the migration as a dry run.
func edit(ctx context.Context, name, spec string) error {
	return api.Apply(ctx, client.ApplyConfigurationFromUnstructured(ofKind("RingMigration", name, spec)), manager, client.DryRunAll)
}

var _ = Describe("An edit of a RingMigration that runs", Ordered, ContinueOnFailure, func() {
	const name = "running"

	BeforeAll(func(ctx SpecContext) {
		Expect(apply(ctx, ofKind("RingMigration", name, running()))).To(Succeed())
		begin(ctx, name, v1alpha1.MigrationShifting, 1, 1)
	})

	DescribeTable("is accepted where it is no bolder in what has begun", func(ctx SpecContext, change ...string) {
		Expect(edit(ctx, name, running(change...))).To(Succeed())
	},
		Entry("nothing changes"),
		Entry("less traffic", `"50%"`, `"49.99%"`),
		Entry("the same traffic in other words", `"50%"`, `"50.00%"`),
		Entry("a longer soak", "50%\", soak: 1h", "50%\", soak: 61m"),
		Entry("the same soak in other words", "50%\", soak: 1h", "50%\", soak: 60m"),
		Entry("an approval is added", `{traffic: "5%", soak: 1h}`, `{traffic: "5%", soak: 1h, approval: AfterSoak}`),
		Entry("a gate is added", "gates: [errors]", "gates: [agents, errors]"),
		Entry("all gates", ", gates: [errors, agents]", ""),
		Entry("gates in another order", "[errors, agents]", "[agents, errors]"),
		Entry("datacenters in another order", "[lab01, lab02]", "[lab02, lab01]"),
		Entry("a step of the present stage is added before its end", `{traffic: "100%", soak: 1h}`, `{traffic: "75%"}, {traffic: "100%"}`),
		Entry("a step that has not begun", `"100%", soak: 1h`, `"100%", soak: 0s`),
		Entry("a stage that has not begun is bolder", `{traffic: "10%"}, `, ""),
		Entry("a stage that has not begun is gone", `,
  {name: world, datacenters: {remainder: true}, steps: [{traffic: "10%"}, {traffic: "100%"}]}`, ""),
		Entry("a stage is put before one that has not begun", `{name: world`, `{name: asia, datacenters: {names: [sin01]}, steps: [{traffic: "100%"}]}, {name: world`),
	)

	DescribeTable("is refused where it is bolder", func(ctx SpecContext, want string, change ...string) {
		err := edit(ctx, name, running(change...))
		Expect(err).To(MatchError(ContainSubstring("spec.stages: Forbidden: ")))
		Expect(err).To(MatchError(ContainSubstring(want)))
	},
		Entry("more traffic", "stages[1].steps[1] has begun with traffic 50%, soak 3600s, approval AfterSoak and gates errors agents: "+
			"traffic can only fall, soak only grow, approval and gates only be added; got 50.01%, 3600s, AfterSoak and errors agents", `"50%"`, `"50.01%"`),
		Entry("more traffic in a stage that is done", "stages[0].steps[0] has begun with traffic 1%, soak 900s, approval None and gates errors", `"1%"`, `"2%"`),
		Entry("a shorter soak", "got 50%, 3599s, AfterSoak and errors agents", `"50%", soak: 1h`, `"50%", soak: 3599s`),
		Entry("no soak", "got 5%, 0s, None and all", `{traffic: "5%", soak: 1h}`, `{traffic: "5%"}`),
		Entry("no approval", "got 50%, 3600s, None and errors agents", `1h, approval: AfterSoak`, `1h`),
		Entry("no approval in a stage that is done", "stages[0].steps[1] has begun", `"100%", approval: AfterSoak`, `"100%"`),
		Entry("a gate less", "got 50%, 3600s, AfterSoak and agents", "[errors, agents]", "[agents]"),
		Entry("another gate", "stages[0].steps[0] has begun", "gates: [errors]", "gates: [agents]"),
		Entry("one gate instead of all", "got 5%, 3600s, None and errors", `{traffic: "5%", soak: 1h}`, `{traffic: "5%", soak: 1h, gates: [errors]}`),
		Entry("another name", "stages[0] has begun: its name lab, its datacenters and the first 2 of its steps cannot be changed or removed", "name: lab", "name: labs"),
		Entry("another name of the present stage", "stages[1] has begun: its name europe, its datacenters and the first 2 of its steps", "name: europe", "name: eu"),
		Entry("a datacenter more", "stages[1] has begun: its name europe", "[ams01]", "[ams01, fra01]"),
		Entry("a datacenter less", "stages[0] has begun: its name lab", "[lab01, lab02]", "[lab01]"),
		Entry("another datacenter", "stages[1] has begun: its name europe", "[ams01]", "[fra01]"),
		Entry("a step of a stage that is done is gone", "stages[0] has begun: its name lab, its datacenters and the first 2 of its steps", `{traffic: "1%", soak: 15m, gates: [errors]}, `, ""),
		Entry("a step in between", "stages[1].steps[1] has begun", `{traffic: "50%", soak: 1h,`, `{traffic: "20%", soak: 1h}, {traffic: "50%", soak: 1h,`),
		Entry("a stage before one that has begun", "stages[0] has begun: its name lab", `[{name: lab`, `[{name: asia, datacenters: {names: [sin01]}, steps: [{traffic: "100%"}]}, {name: lab`),
		Entry("the remainder instead of names", "stages[1] has begun: its name europe", "{names: [ams01]}", "{remainder: true}", `,
  {name: world, datacenters: {remainder: true}, steps: [{traffic: "10%"}, {traffic: "100%"}]}`, ""),
	)

	It("is refused where it changes the order of stages, and nothing else", func(ctx SpecContext) {
		migration := getMigration(ctx, name)
		migration.Spec.Stages[0], migration.Spec.Stages[1] = migration.Spec.Stages[1], migration.Spec.Stages[0]
		Expect(api.Update(ctx, migration, client.DryRunAll)).To(MatchError(ContainSubstring("stages[0] has begun: its name lab")))
	})

	It("is accepted where a plan runs that differs from spec, if it leaves the stages alone or takes up that plan", func(ctx SpecContext) {
		const name = "drifted"
		Expect(apply(ctx, ofKind("RingMigration", name, running(`"5%"`, `"20%"`)))).To(Succeed())
		begin(ctx, name, v1alpha1.MigrationShifting, 1, 1)
		migration := getMigration(ctx, name)
		migration.Status.Plan[1].Steps[0].Traffic = "5%"
		Expect(api.Status().Update(ctx, migration)).To(Succeed())

		Expect(edit(ctx, name, running(`"5%"`, `"20%"`))).To(Succeed())
		Expect(edit(ctx, name, strings.Replace(running(`"5%"`, `"20%"`), "spec: {", "spec: {suspend: true, direction: Backward, ", 1))).To(Succeed())
		Expect(edit(ctx, name, running())).To(Succeed())
		Expect(edit(ctx, name, running(`"5%"`, `"10%"`))).To(MatchError(ContainSubstring("stages[1].steps[0] has begun with traffic 5%")))
	})

	It("is refused during the last soak where it adds a stage, and in no other phase", func(ctx SpecContext) {
		const name, added = "last-soak", `, {name: more, datacenters: {names: [sin01]}, steps: [{traffic: "100%"}]}]`
		named := strings.TrimSuffix(strings.Replace(threeStages, "{remainder: true}", "{names: [nyc01]}", 1), "]")
		spec := func(end string) string { return strings.Replace(running(), threeStages, named+end, 1) }
		Expect(apply(ctx, ofKind("RingMigration", name, spec("]")))).To(Succeed())
		begin(ctx, name, v1alpha1.MigrationSoaking, 3, 0)
		Expect(edit(ctx, name, spec("]"))).To(Succeed())
		Expect(edit(ctx, name, spec(added))).To(MatchError(ContainSubstring("spec.stages: Forbidden: all 3 stages are done; no stage can be added, got 4")))
		Expect(edit(ctx, name, strings.Replace(spec("]"), `{traffic: "10%"}, `, "", 1))).To(MatchError(ContainSubstring("stages[2] has begun: its name world")))
		for _, phase := range []v1alpha1.MigrationPhase{
			v1alpha1.MigrationPending, v1alpha1.MigrationQueued, v1alpha1.MigrationPreparing, v1alpha1.MigrationRollingBack,
			v1alpha1.MigrationRolledBack, v1alpha1.MigrationRetiring, v1alpha1.MigrationSucceeded,
		} {
			begin(ctx, name, phase, 1, 1)
			Expect(edit(ctx, name, strings.Replace(spec(added), `"50%"`, `"60%"`, 1))).To(Succeed(), string(phase))
		}
	})

	It("does not stand in the way of the operator, who writes status", func(ctx SpecContext) {
		for _, position := range [][2]int32{{0, 0}, {1, 2}, {2, 1}, {3, 0}} {
			begin(ctx, name, v1alpha1.MigrationShifting, position[0], position[1])
			begin(ctx, name, v1alpha1.MigrationSoaking, position[0], position[1])
		}
		begin(ctx, name, v1alpha1.MigrationShifting, 1, 1)
	})

	It("fits into the budget of the rules with the largest plan", func(ctx SpecContext) {
		const name = "largest"
		Expect(apply(ctx, ofKind("RingMigration", name, largest()))).To(Succeed())
		begin(ctx, name, v1alpha1.MigrationShifting, 31, 15)
		Expect(edit(ctx, name, strings.Replace(largest(), "31.01%", "31.00%", 1))).To(Succeed())
		Expect(edit(ctx, name, strings.ReplaceAll(largest(), "soak: 8760h", "soak: 8759h"))).To(MatchError(ContainSubstring("stages[0].steps[0] has begun with")))
	})
})

var _ = Describe("A RingMigration's", func() {
	change := func(ctx context.Context, before, after string) error {
		GinkgoHelper()
		object := ofKind("RingMigration", "changed", "spec: {"+before+", stages: "+wholeStage+"}")
		Expect(apply(ctx, object)).To(Succeed())
		defer func() { Expect(api.Delete(ctx, object)).To(Succeed()) }()
		stored := &unstructured.Unstructured{}
		stored.SetGroupVersionKind(object.GroupVersionKind())
		Expect(api.Get(ctx, keyOf(object), stored)).To(Succeed())
		stored.Object["spec"] = ofKind("RingMigration", "changed", "spec: {"+after+", stages: "+wholeStage+"}").Object["spec"]
		return api.Update(ctx, stored)
	}

	It("ringRef cannot be changed", func(ctx SpecContext) {
		Expect(change(ctx, toRing, "ringRef: {name: other}")).
			To(MatchError(ContainSubstring("spec.ringRef: Forbidden: ringRef cannot be changed; it is edge, got other: make another RingMigration")))
		Expect(change(ctx, toRing, "ringSelector: {matchLabels: {a: b}}")).To(MatchError(ContainSubstring("ringRef cannot be changed; it is edge, got absent")))
		Expect(change(ctx, toRing, toRing)).To(Succeed())
	})

	It("ringSelector cannot be changed", func(ctx SpecContext) {
		const selector = "ringSelector: {matchLabels: {a: b}}"
		Expect(change(ctx, selector, "ringSelector: {matchLabels: {a: c}}")).
			To(MatchError(ContainSubstring("spec.ringSelector: Forbidden: ringSelector cannot be changed: make another RingMigration")))
		Expect(change(ctx, selector, toRing)).To(MatchError(ContainSubstring("ringRef cannot be changed; it is absent, got edge")))
		Expect(change(ctx, selector, selector)).To(Succeed())
	})

	It("attempt can grow and cannot fall, not by being left out either", func(ctx SpecContext) {
		Expect(change(ctx, toRing, toRing+", attempt: 2")).To(Succeed())
		Expect(change(ctx, toRing+", attempt: 3", toRing+", attempt: 2")).To(MatchError(ContainSubstring("attempt cannot fall; it is 3, got 2")))
		Expect(change(ctx, toRing+", attempt: 3", toRing)).To(MatchError(ContainSubstring("attempt cannot fall; it is 3, got 1")))
	})
})
