// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A reference, and stages that are as short as they can be.
const (
	toRing     = "ringRef: {name: edge}"
	wholeStage = `[{name: world, datacenters: {remainder: true}, steps: [{traffic: "100%"}]}]`
)

// ofKind returns an object of a kind of ours with a spec in YAML.
func ofKind(kind, name, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	object := hashRing(name, spec)
	object.SetKind(kind)
	return object
}

// migrating is a spec with the shortest plan and what else it says.
func migrating(fields string) string {
	return "spec: {" + toRing + ", stages: " + wholeStage + ", " + fields + "}"
}

// staged is a spec with a plan.
func staged(stages string) string {
	return "spec: {" + toRing + ", stages: " + stages + "}"
}

// stepped is a spec with one stage of some steps.
func stepped(steps string) string {
	return staged("[{name: world, datacenters: {remainder: true}, steps: " + steps + "}]")
}

// soaking is a spec of one step with what else it says.
func soaking(fields string) string {
	return stepped(`[{traffic: "100%", ` + fields + "}]")
}

// listed is a list of n items, each of which format makes from its number.
func listed(n int, format func(i int) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = format(i)
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// sites are the names of n datacenters, as long as they may be.
func sites(first, n int) string {
	return listed(n, func(i int) string { return fmt.Sprintf("%s%04d", strings.Repeat("d", 59), first+i) })
}

// stages are n stages of one datacenter each.
func stages(n int) string {
	return listed(n, func(i int) string {
		return fmt.Sprintf(`{name: s%d, datacenters: {names: [dc%d]}, steps: [{traffic: "100%%"}]}`, i, i)
	})
}

// steps are n steps.
func steps(n int) string {
	return listed(n, func(i int) string {
		if i == n-1 {
			return `{traffic: "100%"}`
		}
		return fmt.Sprintf(`{traffic: "%d.%02d%%"}`, i/4, i%4+1)
	})
}

// acceptedAs and refusedAs are the bodies of tables whose rows are specs of a kind.
func acceptedAs(kind string) func(SpecContext, string) {
	return func(ctx SpecContext, spec string) {
		Expect(apply(ctx, ofKind(kind, "accepted", spec), client.DryRunAll)).To(Succeed())
	}
}

func refusedAs(kind string) func(SpecContext, string, ...string) {
	return func(ctx SpecContext, spec string, want ...string) {
		err := apply(ctx, ofKind(kind, "refused", spec), client.DryRunAll)
		Expect(err).To(HaveOccurred())
		for _, part := range want {
			Expect(err).To(MatchError(ContainSubstring(part)))
		}
	}
}

var _ = DescribeTable("A RingMigration is accepted with", acceptedAs("RingMigration"),
	Entry("one ring and one stage", staged(wholeStage)),
	Entry("a ring of 63 characters", "spec: {ringRef: {name: "+strings.Repeat("e", 63)+"}, stages: "+wholeStage+"}"),
	Entry("rings by labels", "spec: {ringSelector: {matchLabels: {tier: edge}}, stages: "+wholeStage+"}"),
	Entry("rings by an expression", "spec: {ringSelector: {matchExpressions: [{key: tier, operator: Exists}]}, stages: "+wholeStage+"}"),
	Entry("32 labels", "spec: {ringSelector: {matchLabels: "+manyLabels(32)+"}, stages: "+wholeStage+"}"),

	Entry("32 stages", staged(stages(32))),
	Entry("a stage with a name of 63 characters", staged(`[{name: `+strings.Repeat("s", 63)+`, datacenters: {names: [a]}, steps: [{traffic: "100%"}]}]`)),
	Entry("1,024 datacenters in one stage", staged(`[{name: a, datacenters: {names: `+sites(0, 1024)+`}, steps: [{traffic: "100%"}]}]`)),
	Entry("1,024 datacenters in two stages, and the remainder", staged(`[{name: a, datacenters: {names: `+sites(0, 1000)+`}, steps: [{traffic: "100%"}]},
    {name: b, datacenters: {names: `+sites(1000, 24)+`}, steps: [{traffic: "100%"}]}, {name: c, datacenters: {remainder: true}, steps: [{traffic: "100%"}]}]`)),
	Entry("datacenters in capitals and with dots", staged(`[{name: a, datacenters: {names: [AMS-01, fra.02_b, "9"]}, steps: [{traffic: "100%"}]}]`)),
	Entry("a datacenter in two stages, which a condition reports", staged(`[{name: a, datacenters: {names: [x]}, steps: [{traffic: "100%"}]},
    {name: b, datacenters: {names: [x]}, steps: [{traffic: "100%"}]}]`)),
	Entry("no names and the remainder", staged(`[{name: a, datacenters: {names: [], remainder: true}, steps: [{traffic: "100%"}]}]`)),
	Entry("names and no remainder", staged(`[{name: a, datacenters: {names: [x], remainder: false}, steps: [{traffic: "100%"}]}]`)),

	Entry("16 steps", stepped(steps(16))),
	Entry("the smallest step", stepped(`[{traffic: "0.01%"}, {traffic: "100%"}]`)),
	Entry("a step of 99.99%", stepped(`[{traffic: "99.99%"}, {traffic: "100.00%"}]`)),
	Entry("steps that grow as numbers, not as texts", stepped(`[{traffic: "5%"}, {traffic: "10%"}, {traffic: "100%"}]`)),
	Entry("the longest soak", soaking("soak: 8760h")),
	Entry("a soak in parts", soaking("soak: 1h1m1s1ms")),
	Entry("an approval", soaking("approval: AfterSoak")),
	Entry("gates of a step", "spec: {"+toRing+`, gates: [{name: a, consumers: {maxErrorRatio: "1%"}}, {name: b, consumers: {maxErrorRatio: "1%"}}],
    stages: [{name: s, datacenters: {remainder: true}, steps: [{traffic: "1%", gates: [b]}, {traffic: "100%", gates: [b, a]}]}]}`),
	Entry("all that there can be of stages, steps and gates", largest()),

	Entry("nothing at all moved", migrating(`limits: {maxTraffic: "0%"}`)),
	Entry("2 decimals of maxTraffic", migrating(`limits: {maxTraffic: "33.33%"}`)),
	Entry("1,024 datacenters excluded", migrating("limits: {excludedDatacenters: "+sites(0, 1024)+"}")),
	Entry("suspended", migrating("suspend: true")),
	Entry("a rollback", migrating("direction: Backward")),
	Entry("a large attempt", migrating("attempt: 9007199254740992")),
	Entry("the smallest quorum and deadline", migrating(`acknowledgement: {quorum: "0.01%", deadline: 1s}`)),
	Entry("the longest deadline", migrating("acknowledgement: {deadline: 24h}")),
	Entry("a staged rollback", migrating(`rollback: {strategy: Staged, steps: ["50%", "9.5%", "0%"], interval: 1s}`)),
	Entry("a rollback of one step", migrating(`rollback: {strategy: Staged, steps: ["0.00%"], interval: 24h}`)),
	Entry("a rollback of 16 steps", migrating("rollback: {strategy: Staged, steps: "+listed(16, func(i int) string { return fmt.Sprintf(`"%d%%"`, 15-i) })+"}")),
	Entry("steps that an immediate rollback ignores", migrating(`rollback: {steps: ["50%", "0%"]}`)),
	Entry("a rollback by hand only", migrating("rollback: {automatic: Disabled}")),
	Entry("retirement at once", migrating("retirement: {soak: 0s}")),
	Entry("the longest retirement", migrating("retirement: {soak: 8760h, approval: AfterSoak}")),
	Entry("deletion that freezes", migrating("onDelete: Freeze")),
)

// largest is a spec with everything as often as there can be of it.
func largest() string {
	gate := func(i int) string { return fmt.Sprintf("%s%02d", strings.Repeat("g", 61), i) }
	all := listed(16, gate)
	step := func(i int) string {
		traffic := fmt.Sprintf("%d.01%%", i)
		if i == 15 {
			traffic = "100.00%"
		}
		return `{traffic: "` + traffic + `", soak: 8760h, approval: AfterSoak, gates: ` + all + "}"
	}
	return "spec: {" + toRing + ", gates: " + listed(16, func(i int) string { return "{name: " + gate(i) + `, consumers: {maxErrorRatio: "1%"}}` }) +
		", stages: " + listed(32, func(i int) string {
		return fmt.Sprintf("{name: %s%02d, datacenters: {names: %s}, steps: %s}", strings.Repeat("s", 61), i, sites(32*i, 32), listed(16, step))
	}) + "}"
}

var _ = DescribeTable("A RingMigration is refused with", refusedAs("RingMigration"),
	Entry("no ring", "spec: {stages: "+wholeStage+"}", "spec: Required value: exactly one of ringRef and ringSelector must be set; got neither"),
	Entry("a ring and a selector", "spec: {"+toRing+", ringSelector: {matchLabels: {a: b}}, stages: "+wholeStage+"}",
		"exactly one of ringRef and ringSelector must be set; got both"),
	Entry("a ring without a name", "spec: {ringRef: {name: ''}, stages: "+wholeStage+"}", "spec.ringRef.name", "should be at least 1 chars long"),
	Entry("a ring of 64 characters", "spec: {ringRef: {name: "+strings.Repeat("e", 64)+"}, stages: "+wholeStage+"}", "spec.ringRef.name", "may not be more than 63"),
	Entry("a ring in capitals", "spec: {ringRef: {name: Edge}, stages: "+wholeStage+"}", `spec.ringRef.name: Invalid value: "Edge"`),
	Entry("a selector of everything", "spec: {ringSelector: {}, stages: "+wholeStage+"}",
		"spec.ringSelector: Required value: ringSelector must have matchLabels or matchExpressions; an empty one would select every HashRing of the namespace"),
	Entry("33 labels", "spec: {ringSelector: {matchLabels: "+manyLabels(33)+"}, stages: "+wholeStage+"}",
		"spec.ringSelector", "ringSelector must have at most 32 matchLabels and at most 32 matchExpressions"),
	Entry("33 expressions", "spec: {ringSelector: {matchExpressions: "+listed(33, func(i int) string { return fmt.Sprintf("{key: k%d, operator: Exists}", i) })+"}, stages: "+wholeStage+"}",
		"spec.ringSelector", "ringSelector must have at most 32 matchLabels and at most 32 matchExpressions"),

	Entry("no stages", "spec: {"+toRing+"}", "spec.stages: Required value"),
	Entry("an empty list of stages", staged("[]"), "spec.stages: Invalid value: 0: spec.stages in body should have at least 1 items"),
	Entry("33 stages", staged(stages(33)), "spec.stages: Too many: 33: must have at most 32 items"),
	Entry("a stage twice", staged(`[{name: a, datacenters: {names: [x]}, steps: [{traffic: "100%"}]}, {name: a, datacenters: {names: [y]}, steps: [{traffic: "100%"}]}]`),
		`.spec.stages: duplicate entries for key [name="a"]`),
	Entry("a stage in capitals", staged(`[{name: World, datacenters: {names: [x]}, steps: [{traffic: "100%"}]}]`), "spec.stages[0].name", `"World"`),
	Entry("a stage of 64 characters", staged(`[{name: `+strings.Repeat("s", 64)+`, datacenters: {names: [x]}, steps: [{traffic: "100%"}]}]`),
		"spec.stages[0].name", "may not be more than 63"),
	Entry("the remainder before the last stage", staged(`[{name: a, datacenters: {remainder: true}, steps: [{traffic: "100%"}]}, {name: b, datacenters: {names: [x]}, steps: [{traffic: "100%"}]}]`),
		"spec.stages: Invalid value", "only the last stage can take the remainder; stages[0] a does"),
	Entry("no datacenters", staged(`[{name: a, datacenters: {}, steps: [{traffic: "100%"}]}]`),
		"spec.stages[0].datacenters: Required value: exactly one of names and remainder must be set; got neither"),
	Entry("no names and no remainder", staged(`[{name: a, datacenters: {names: [], remainder: false}, steps: [{traffic: "100%"}]}]`), "got neither"),
	Entry("names and the remainder", staged(`[{name: a, datacenters: {names: [x], remainder: true}, steps: [{traffic: "100%"}]}]`),
		"spec.stages[0].datacenters", "exactly one of names and remainder must be set; got both"),
	Entry("1,025 datacenters in one stage", staged(`[{name: a, datacenters: {names: `+sites(0, 1025)+`}, steps: [{traffic: "100%"}]}]`),
		"spec.stages[0].datacenters.names: Too many: 1025: must have at most 1024 items"),
	Entry("1,025 datacenters in two stages", staged(`[{name: a, datacenters: {names: `+sites(0, 1024)+`}, steps: [{traffic: "100%"}]}, {name: b, datacenters: {names: [x]}, steps: [{traffic: "100%"}]}]`),
		"spec.stages", "all stages together must name at most 1024 datacenters; got 1025"),
	Entry("a datacenter twice in a stage", staged(`[{name: a, datacenters: {names: [x, x]}, steps: [{traffic: "100%"}]}]`), `.datacenters.names: duplicate entries for key [="x"]`),
	Entry("a datacenter without a name", staged(`[{name: a, datacenters: {names: [""]}, steps: [{traffic: "100%"}]}]`), "spec.stages[0].datacenters.names[0]", "at least 1 chars"),
	Entry("a datacenter of 64 characters", staged(`[{name: a, datacenters: {names: [`+strings.Repeat("d", 64)+`]}, steps: [{traffic: "100%"}]}]`),
		"spec.stages[0].datacenters.names[0]", "may not be more than 63"),
	Entry("a datacenter with a space", staged(`[{name: a, datacenters: {names: ["a b"]}, steps: [{traffic: "100%"}]}]`), "spec.stages[0].datacenters.names[0]", `"a b"`),

	Entry("no steps", stepped("[]"), "spec.stages[0].steps", "should have at least 1 items"),
	Entry("17 steps", stepped(steps(17)), "spec.stages[0].steps: Too many: 17: must have at most 16 items"),
	Entry("a step without traffic", stepped("[{soak: 1h}]"), "spec.stages[0].steps[0].traffic: Required value"),
	Entry("no traffic", stepped(`[{traffic: "0%"}, {traffic: "100%"}]`),
		"spec.stages[0].steps[0].traffic", "traffic must be a percentage from 0.01% to 100% with at most 2 decimals, such as 0.5%; got 0%"),
	Entry("3 decimals", stepped(`[{traffic: "0.001%"}, {traffic: "100%"}]`), "at most 2 decimals, such as 0.5%; got 0.001%"),
	Entry("more than all", stepped(`[{traffic: "101%"}]`), "such as 0.5%; got 101%"),
	Entry("traffic without a sign", stepped(`[{traffic: "5"}, {traffic: "100%"}]`), "such as 0.5%; got 5"),
	Entry("traffic of words", stepped(`[{traffic: "half"}]`), "spec.stages[0].steps[0].traffic", "such as 0.5%; got half"),
	Entry("a number for traffic", stepped("[{traffic: 5}]"), ".steps[0].traffic: expected string, got"),
	Entry("equal steps", stepped(`[{traffic: "5%"}, {traffic: "5.00%"}, {traffic: "100%"}]`), "spec.stages[0].steps", "the traffic of steps must grow; steps[1] has 5.00% after 5%"),
	Entry("steps that fall", stepped(`[{traffic: "10%"}, {traffic: "9%"}, {traffic: "100%"}]`), "the traffic of steps must grow; steps[1] has 9% after 10%"),
	Entry("a last step of less", stepped(`[{traffic: "5%"}, {traffic: "50%"}]`), "spec.stages[0].steps", "the last of steps must have traffic 100%; got 50%"),
	Entry("a soak of days", soaking("soak: 3d"), "spec.stages[0].steps[0].soak"),
	Entry("a negative soak", soaking("soak: -1h"), "spec.stages[0].steps[0].soak"),
	Entry("a soak above a year", soaking("soak: 8761h"), "spec.stages[0].steps[0].soak", "soak must be at most 8760h; got 31539600s"),
	Entry("an approval that there is not", soaking("approval: BeforeSoak"), `spec.stages[0].steps[0].approval: Unsupported value: "BeforeSoak"`),
	Entry("a gate of a step that there is not", "spec: {"+toRing+`, gates: [{name: a, consumers: {maxErrorRatio: "1%"}}],
    stages: [{name: s, datacenters: {remainder: true}, steps: [{traffic: "1%", gates: [a]}, {traffic: "100%", gates: [a, b]}]}]}`,
		"spec.stages: Invalid value", "stages[0].steps[1].gates must be among the names of gates; got a, b"),
	Entry("a gate of a step, and no gates", soaking("gates: [a]"), "stages[0].steps[0].gates must be among the names of gates; got a"),
	Entry("a gate of a step twice", soaking("gates: [a, a]"), `.steps[0].gates: duplicate entries for key [="a"]`),
	Entry("17 gates of a step", soaking("gates: "+listed(17, func(i int) string { return fmt.Sprintf("g%d", i) })), "spec.stages[0].steps[0].gates: Too many: 17: must have at most 16 items"),
	Entry("a gate of a step of 64 characters", soaking("gates: ["+strings.Repeat("g", 64)+"]"), "spec.stages[0].steps[0].gates[0]", "may not be more than 63"),

	Entry("3 decimals of maxTraffic", migrating(`limits: {maxTraffic: "0.001%"}`),
		"spec.limits.maxTraffic", "maxTraffic must be a percentage from 0% to 100% with at most 2 decimals, such as 50%; got 0.001%"),
	Entry("more than all of maxTraffic", migrating(`limits: {maxTraffic: "100.01%"}`), "such as 50%; got 100.01%"),
	Entry("1,025 datacenters excluded", migrating("limits: {excludedDatacenters: "+sites(0, 1025)+"}"), "spec.limits.excludedDatacenters: Too many: 1025: must have at most 1024 items"),
	Entry("an excluded datacenter twice", migrating("limits: {excludedDatacenters: [a, a]}"), `.excludedDatacenters: duplicate entries for key [="a"]`),
	Entry("an excluded datacenter of 64 characters", migrating("limits: {excludedDatacenters: ["+strings.Repeat("d", 64)+"]}"), "spec.limits.excludedDatacenters[0]", "may not be more than 63"),
	Entry("an excluded datacenter with a space", migrating(`limits: {excludedDatacenters: ["a b"]}`), "spec.limits.excludedDatacenters[0]", `"a b"`),
	Entry("an excluded datacenter without a name", migrating(`limits: {excludedDatacenters: [""]}`), "spec.limits.excludedDatacenters[0]", "at least 1 chars"),
	Entry("a direction that there is not", migrating("direction: Sideways"), `spec.direction: Unsupported value: "Sideways": supported values: "Forward", "Backward"`),
	Entry("attempt 0", migrating("attempt: 0"), "spec.attempt", "should be greater than or equal to 1"),
	Entry("no quorum", migrating(`acknowledgement: {quorum: "0%"}`), "spec.acknowledgement.quorum", "quorum must be a percentage from 0.01% to 100% with at most 2 decimals, such as 99%; got 0%"),
	Entry("a quorum above all", migrating(`acknowledgement: {quorum: "101%"}`), "such as 99%; got 101%"),
	Entry("a deadline below a second", migrating("acknowledgement: {deadline: 999ms}"), "spec.acknowledgement.deadline", "deadline must be from 1s to 24h; got 0.999s"),
	Entry("a deadline above a day", migrating("acknowledgement: {deadline: 1441m}"), "deadline must be from 1s to 24h; got 86460s"),
	Entry("a staged rollback without steps", migrating("rollback: {strategy: Staged}"), "spec.rollback.steps: Required value: steps must be set with strategy Staged"),
	Entry("a staged rollback of no steps", migrating("rollback: {strategy: Staged, steps: []}"), "spec.rollback.steps: Required value: steps must be set with strategy Staged"),
	Entry("a rollback in 17 steps", migrating("rollback: {steps: "+listed(17, func(i int) string { return fmt.Sprintf(`"%d%%"`, 16-i) })+"}"), "spec.rollback.steps: Too many: 17: must have at most 16 items"),
	Entry("a rollback that rises", migrating(`rollback: {steps: ["10%", "50%", "0%"]}`), "spec.rollback.steps", "steps must fall; steps[1] is 50% after 10%"),
	Entry("a rollback that does not end at 0", migrating(`rollback: {steps: ["50%", "10%"]}`), "spec.rollback.steps", "the last of steps must be 0%; got 10%"),
	Entry("a rollback of words", migrating(`rollback: {steps: ["some", "0%"]}`), "spec.rollback.steps", "steps must be percentages from 0% to 100% with at most 2 decimals, such as 10%; got some"),
	Entry("3 decimals of a rollback", migrating(`rollback: {steps: ["0.001%", "0%"]}`), "such as 10%; got 0.001%"),
	Entry("a rollback without intervals", migrating("rollback: {interval: 0s}"), "spec.rollback.interval", "interval must be from 1s to 24h; got 0s"),
	Entry("a rollback of days", migrating("rollback: {interval: 25h}"), "interval must be from 1s to 24h; got 90000s"),
	Entry("a strategy that there is not", migrating("rollback: {strategy: Slow}"), `spec.rollback.strategy: Unsupported value: "Slow": supported values: "Immediate", "Staged"`),
	Entry("an automatic that there is not", migrating(`rollback: {automatic: "true"}`), `spec.rollback.automatic: Unsupported value: "true": supported values: "Enabled", "Disabled"`),
	Entry("a retirement above a year", migrating("retirement: {soak: 8761h}"), "spec.retirement.soak", "soak must be at most 8760h; got 31539600s"),
	Entry("an approval of the retirement that there is not", migrating("retirement: {approval: Yes}"), "spec.retirement.approval: "),
	Entry("a deletion that there is not", migrating("onDelete: Orphan"), `spec.onDelete: Unsupported value: "Orphan": supported values: "Rollback", "Freeze"`),
	Entry("a misspelt field", migrating("suspended: true"), "field not declared in schema"),
)

var _ = It("A RingMigration has a name of 63 characters at most", func(ctx SpecContext) {
	Expect(apply(ctx, ofKind("RingMigration", strings.Repeat("m", 63), staged(wholeStage)), client.DryRunAll)).To(Succeed())
	Expect(apply(ctx, ofKind("RingMigration", strings.Repeat("m", 64), staged(wholeStage)), client.DryRunAll)).
		To(MatchError(ContainSubstring("metadata.name must have at most 63 characters; got 64")))
})

func keyOf(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }
