// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The targets of WeightPolicies.
const (
	toService  = "targetRef: {name: checkout}"
	toHashRing = "targetRef: {kind: HashRing, name: edge}"
)

// weighing is a spec for a Service with some fields besides.
func weighing(fields string) string { return "spec: {" + toService + ", " + fields + "}" }

func sourced(source string) string { return weighing("load: {sources: [" + source + "]}") }

func prometheus(fields string) string {
	return sourced("{type: Prometheus, prometheus: {address: 'http://p:9090', query: q, " + fields + "}}")
}

func static(endpoints string) string {
	return weighing("strategy: {type: Static, staticWeights: {endpoints: [" + endpoints + "]}}")
}

func custom(gains string) string {
	return weighing("strategy: {profile: Custom, pid: {" + gains + "}}")
}

func limited(limits string) string { return weighing("limits: {" + limits + "}") }

func rolling(fields string) string { return weighing("rollout: {" + fields + "}") }

func local(rule string) string { return weighing("locality: [{from: a, " + rule + "}]") }

// numberedList joins n items, each made of its number.
func numberedList(n int, format string) string {
	return strings.Join(items(n, func(i int) string { return fmt.Sprintf(format, i) }), ", ")
}

var _ = DescribeTable("A WeightPolicy is accepted with", acceptedAs("WeightPolicy"),
	Entry("a target alone", "spec: {"+toService+"}"),
	Entry("a HashRing", "spec: {"+toHashRing+"}"),
	Entry("a target of 63 characters", "spec: {targetRef: {name: "+strings.Repeat("n", 63)+"}}"),
	Entry("port 1", "spec: {targetRef: {name: a, port: 1}}"),
	Entry("port 65,535", "spec: {targetRef: {name: a, port: 65535}}"),
	Entry("a port of a name of 63 characters", "spec: {targetRef: {name: a, port: "+strings.Repeat("p", 63)+"}}"),

	Entry("metric InFlight", weighing("load: {metric: InFlight}")),
	Entry("metric Max", weighing("load: {metric: Max}")),
	Entry("a metric of its own", weighing("load: {metric: Custom, customMetric: "+strings.Repeat("m", 128)+"}")),
	Entry("the smallest error penalty", weighing(`load: {errorPenalty: "0"}`)),
	Entry("the largest error penalty", weighing(`load: {errorPenalty: "10.0000"}`)),
	Entry("all sources", sourced("{type: LRS}, {type: Push}, {type: ORCA, orca: {port: 65535}}, {type: Prometheus, prometheus: {address: 'https://p', query: q}}, {type: Metrics}")),
	Entry("the shortest times of a source", sourced("{type: LRS, interval: 1s, staleAfter: 2s}")),
	Entry("the longest times of a source", sourced("{type: LRS, interval: 10m, staleAfter: 1h}")),
	Entry("a stale time as long as the interval", sourced("{type: LRS, interval: 30s, staleAfter: 30s}")),
	Entry("the longest query", sourced("{type: Prometheus, prometheus: {address: 'http://p', query: "+strings.Repeat("q", 4096)+"}}")),
	Entry("the longest address", sourced("{type: Prometheus, prometheus: {query: q, address: 'http://p/"+strings.Repeat("a", 503)+"'}}")),
	Entry("a label of 128 characters", prometheus("endpointLabel: "+strings.Repeat("l", 128))),
	Entry("the longest window", prometheus("window: 1h")),

	Entry("strategy Equal", weighing("strategy: {type: Equal}")),
	Entry("strategy Static", static(`{name: a, weight: "0.01"}, {name: b, weight: "100.0000"}`)),
	Entry("1,000 static weights", static(numberedList(1000, `{name: pod-%d, weight: "1"}`))),
	Entry("a static weight of a name of 253 characters", static(`{name: `+strings.Repeat("n", 253)+`, weight: "1"}`)),
	Entry("profile Cautious", weighing("strategy: {profile: Cautious}")),
	Entry("profile Fast", weighing("strategy: {type: PID, profile: Fast}")),
	Entry("profile Ring for a HashRing", "spec: {"+toHashRing+", strategy: {profile: Ring}}"),
	Entry("profile Custom for a HashRing", "spec: {"+toHashRing+", strategy: {profile: Custom, pid: {}}}"),
	Entry("gains at their limits", custom(`kp: "10.000000", ki: "0", kd: "0.000001", interval: 1s`)),
	Entry("the longest interval", custom(`interval: 10m`)),

	Entry("limits at their limits", limited(`minWeight: "0.01", coldStartWeight: "0.01", maxWeight: "100.0000", maxStep: "1%", minReporting: "10%"`)),
	Entry("the other limits", limited(`minWeight: "1", coldStartWeight: "1.0000", maxWeight: "1", maxStep: "100.00%", minReporting: "100%"`)),

	Entry("shadow", rolling("percent: 0")),
	Entry("steps up to the end", rolling("percent: 50, steps: [{percent: 0, duration: 1s}, {percent: 50, duration: 8760h}]")),
	Entry("16 steps", rolling("steps: ["+numberedList(16, "{percent: %d, duration: 1m}")+"]")),
	Entry("a beginning with static weights", rolling(`from: {type: Static, staticWeights: {endpoints: [{name: a, weight: "2"}]}}`)),
	Entry("an abort at its limits", rolling(`abort: {maxOverAverage: "1.01", errorRatio: "0.01%", for: 0s}`)),
	Entry("an abort at its other limits", rolling(`abort: {maxOverAverage: "100.000", errorRatio: "100.00%", for: 24h}`)),

	Entry("64 zones of clients", weighing("locality: ["+numberedList(64, "{from: zone-%d, to: {a: 1}}")+"]")),
	Entry("64 zones of servers", local("to: {"+numberedList(64, "zone-%d: 10000")+"}")),
	Entry("16 zones that take over", local("to: {a: 1}, failover: ["+numberedList(16, "zone-%d")+"]")),
	Entry("zones of 63 characters", local("to: {"+strings.Repeat("z", 63)+": 1}, failover: ["+strings.Repeat("f", 63)+"]")),

	Entry("a mode", weighing("publish: {eds: {mode: LocalityPerEndpoint}}")),
	Entry("a ConfigMap of a name of 253 characters", weighing("publish: {configMap: {name: "+strings.Repeat("c", 253)+"}}")),
	Entry("no tombstone", weighing("deletion: {tombstone: 0s}")),
	Entry("the longest tombstone", weighing("deletion: {tombstone: 720h}")),
	Entry("suspend", weighing("suspend: true")),
)

var _ = DescribeTable("A WeightPolicy is refused with", refusedAs("WeightPolicy"),
	Entry("no target", "spec: {}", "spec.targetRef: Required value"),
	Entry("a target without a name", "spec: {targetRef: {}}", "spec.targetRef.name: Required value"),
	Entry("a target with an empty name", "spec: {targetRef: {name: ''}}", "spec.targetRef.name", "at least 1 chars"),
	Entry("a target of 64 characters", "spec: {targetRef: {name: "+strings.Repeat("n", 64)+"}}", "spec.targetRef.name", "may not be more than 63"),
	Entry("a target in capitals", "spec: {targetRef: {name: Checkout}}", "spec.targetRef.name", `"Checkout"`),
	Entry("a kind that there is not", "spec: {targetRef: {kind: Pod, name: a}}", `spec.targetRef.kind: Unsupported value: "Pod"`),
	Entry("port 0", "spec: {targetRef: {name: a, port: 0}}", "spec.targetRef.port", "port must be a number from 1 to 65535 or the name of a port"),
	Entry("port 65,536", "spec: {targetRef: {name: a, port: 65536}}", "port must be a number from 1 to 65535"),
	Entry("a port of 64 characters", "spec: {targetRef: {name: a, port: "+strings.Repeat("p", 64)+"}}", "port must be a number from 1 to 65535"),
	Entry("a port of a HashRing", "spec: {targetRef: {kind: HashRing, name: a, port: 80}}", "spec.targetRef.port: Forbidden", "port is for kind Service"),

	Entry("a metric that there is not", weighing("load: {metric: Memory}"), `spec.load.metric: Unsupported value: "Memory"`),
	Entry("a metric of its own without a name", weighing("load: {metric: Custom}"), "spec.load.customMetric: Required value: customMetric must be set with metric Custom"),
	Entry("an empty metric", weighing("load: {metric: Custom, customMetric: ''}"), "spec.load.customMetric", "at least 1 chars"),
	Entry("a metric of 129 characters", weighing("load: {metric: Custom, customMetric: "+strings.Repeat("m", 129)+"}"), "may not be more than 128"),
	Entry("an error penalty above 10", weighing(`load: {errorPenalty: "10.01"}`), "errorPenalty must be a number from 0 to 10 with at most 4 decimals, such as 2; got 10.01"),
	Entry("an error penalty of 5 decimals", weighing(`load: {errorPenalty: "1.00001"}`), "got 1.00001"),
	Entry("an error penalty below 0", weighing(`load: {errorPenalty: "-1"}`), "got -1"),
	Entry("no source", weighing("load: {sources: []}"), "spec.load.sources", "should have at least 1 items"),
	Entry("a source twice", sourced("{type: LRS}, {type: LRS}"), "spec.load.sources: duplicate entries for key [type=\"LRS\"]"),
	Entry("a source that there is not", sourced("{type: SNMP}"), `spec.load.sources[0].type: Unsupported value: "SNMP"`),
	Entry("an interval below 1s", sourced("{type: LRS, interval: 999ms}"), "interval must be from 1s to 10m; got"),
	Entry("an interval above 10m", sourced("{type: LRS, interval: 601s}"), "interval must be from 1s to 10m; got"),
	Entry("a negative interval", sourced("{type: LRS, interval: -1s}"), "spec.load.sources[0].interval"),
	Entry("a stale time below 2s", sourced("{type: LRS, staleAfter: 1s}"), "staleAfter must be from 2s to 1h; got"),
	Entry("a stale time above 1h", sourced("{type: LRS, staleAfter: 3601s}"), "staleAfter must be from 2s to 1h; got"),
	Entry("a stale time below the interval", sourced("{type: LRS, interval: 30s, staleAfter: 20s}"), "spec.load.sources[0].staleAfter", "staleAfter must be at least interval"),
	Entry("Prometheus without a query", sourced("{type: Prometheus}"), "spec.load.sources[0].prometheus", "prometheus must be set with type Prometheus, and with no other; type is Prometheus"),
	Entry("a query of another type", sourced("{type: Push, prometheus: {address: 'http://p', query: q}}"), "with no other; type is Push"),
	Entry("a port of ORCA with another type", sourced("{type: Push, orca: {port: 80}}"), "spec.load.sources[0].orca: Forbidden", "orca is for type ORCA; type is Push"),
	Entry("a port of ORCA above 65,535", sourced("{type: ORCA, orca: {port: 65536}}"), "spec.load.sources[0].orca.port", "less than or equal to 65535"),
	Entry("an address that is no URL", sourced("{type: Prometheus, prometheus: {address: p, query: q}}"), "address must be a URL of http or https with a host; got p"),
	Entry("an address of another scheme", sourced("{type: Prometheus, prometheus: {address: 'ftp://p', query: q}}"), "got ftp://p"),
	Entry("an address of 513 characters", sourced("{type: Prometheus, prometheus: {query: q, address: 'http://p/"+strings.Repeat("a", 504)+"'}}"), "may not be more than 512"),
	Entry("an empty query", sourced("{type: Prometheus, prometheus: {address: 'http://p', query: ''}}"), "prometheus.query", "at least 1 chars"),
	Entry("a query of 4,097 characters", sourced("{type: Prometheus, prometheus: {address: 'http://p', query: "+strings.Repeat("q", 4097)+"}}"), "may not be more than 4096"),
	Entry("a label of 129 characters", prometheus("endpointLabel: "+strings.Repeat("l", 129)), "may not be more than 128"),
	Entry("a label with a dash", prometheus("endpointLabel: a-b"), "endpointLabel", "should match"),
	Entry("a window above 1h", prometheus("window: 61m"), "window must be at most 1h; got"),

	Entry("a strategy that there is not", weighing("strategy: {type: Random}"), `spec.strategy.type: Unsupported value: "Random"`),
	Entry("a profile of another strategy", weighing("strategy: {type: Equal, profile: Fast}"), "spec.strategy.profile: Forbidden", "profile is for type PID; type is Equal"),
	Entry("profile Ring of a Service", weighing("strategy: {profile: Ring}"), "profile Ring is for a target of kind HashRing; targetRef.kind is Service"),
	Entry("profile Fast of a HashRing", "spec: {"+toHashRing+", strategy: {profile: Fast}}", "profile must be Ring or Custom for a target of kind HashRing", "got Fast"),
	Entry("profile Custom without gains", weighing("strategy: {profile: Custom}"), "spec.strategy.pid", "pid must be set with profile Custom, and with no other"),
	Entry("gains of another profile", weighing("strategy: {profile: Fast, pid: {}}"), "pid must be set with profile Custom, and with no other"),
	Entry("Static without weights", weighing("strategy: {type: Static}"), "staticWeights must be set with type Static, and with no other"),
	Entry("static weights of another strategy", weighing(`strategy: {type: PID, staticWeights: {endpoints: [{name: a, weight: "1"}]}}`), "staticWeights must be set with type Static, and with no other"),
	Entry("no static weight", static(""), "endpoints", "should have at least 1 items"),
	Entry("1,001 static weights", static(numberedList(1001, `{name: pod-%d, weight: "1"}`)), "must have at most 1000 items"),
	Entry("a static weight twice", static(`{name: a, weight: "1"}, {name: a, weight: "2"}`), "endpoints: duplicate entries for key"),
	Entry("a static weight without a name", static(`{name: "", weight: "1"}`), "at least 1 chars"),
	Entry("a static weight of a name of 254 characters", static(`{name: `+strings.Repeat("n", 254)+`, weight: "1"}`), "may not be more than 253"),
	Entry("a static weight below 0.01", static(`{name: a, weight: "0.0099"}`), "weight must be a number from 0.01 to 100 with at most 4 decimals, such as 1.5; got 0.0099"),
	Entry("a static weight above 100", static(`{name: a, weight: "101"}`), "got 101"),
	Entry("kp above 10", custom(`kp: "10.1"`), "kp must be a number from 0 to 10 with at most 6 decimals, such as 0.5; got 10.1"),
	Entry("ki below 0", custom(`ki: "-0.1"`), "ki must be a number from 0 to 10 with at most 6 decimals, such as 0.05; got -0.1"),
	Entry("kd of 7 decimals", custom(`kd: "0.0000001"`), "kd must be a number from 0 to 10 with at most 6 decimals, such as 0.1; got 0.0000001"),
	Entry("an interval of updates below 1s", custom("interval: 500ms"), "interval must be from 1s to 10m; got"),
	Entry("an interval of updates above 10m", custom("interval: 11m"), "interval must be from 1s to 10m; got"),

	Entry("a minWeight below 0.01", limited(`minWeight: "0.0099"`), "minWeight must be a number from 0.01 to 1 with at most 4 decimals, such as 0.1; got 0.0099"),
	Entry("a minWeight above 1", limited(`minWeight: "1.1"`), "minWeight must be a number from 0.01 to 1"),
	Entry("a maxWeight below 1", limited(`maxWeight: "0.9"`), "maxWeight must be a number from 1 to 100 with at most 4 decimals, such as 8; got 0.9"),
	Entry("a maxWeight above 100", limited(`maxWeight: "101"`), "got 101"),
	Entry("a maxStep below 1%", limited(`maxStep: "0.99%"`), "maxStep must be a percentage from 1% to 100% with at most 2 decimals, such as 50%; got 0.99%"),
	Entry("a maxStep above 100%", limited(`maxStep: "101%"`), "got 101%"),
	Entry("a coldStartWeight below 0.01", limited(`coldStartWeight: "0"`), "coldStartWeight must be a number from 0.01 to 1"),
	Entry("a coldStartWeight below minWeight", limited(`minWeight: "0.5", coldStartWeight: "0.4"`), "minWeight <= coldStartWeight <= maxWeight must hold; got 0.5, 0.4 and 8"),
	Entry("a minReporting below 10%", limited(`minReporting: "9.99%"`), "minReporting must be a percentage from 10% to 100% with at most 2 decimals, such as 50%; got 9.99%"),
	Entry("a minReporting above 100%", limited(`minReporting: "100.01%"`), "got 100.01%"),

	Entry("more than all", rolling("percent: 101"), "spec.rollout.percent", "less than or equal to 100"),
	Entry("less than nothing", rolling("percent: -1"), "spec.rollout.percent", "greater than or equal to 0"),
	Entry("17 steps", rolling("steps: ["+numberedList(17, "{percent: %d, duration: 1m}")+"]"), "must have at most 16 items"),
	Entry("steps that fall", rolling("steps: [{percent: 5, duration: 1m}, {percent: 5, duration: 1m}]"), "the percent of steps must grow; steps[1] has 5 after 5"),
	Entry("a step beyond the end", rolling("percent: 50, steps: [{percent: 51, duration: 1m}]"), "spec.rollout.steps", "the last of steps must have at most rollout.percent, 50; got 51"),
	Entry("a step of more than all", rolling("steps: [{percent: 101, duration: 1m}]"), "less than or equal to 100"),
	Entry("a step below 1s", rolling("steps: [{percent: 1, duration: 0s}]"), "duration must be from 1s to 8760h; got"),
	Entry("a step above a year", rolling("steps: [{percent: 1, duration: 8761h}]"), "duration must be from 1s to 8760h; got"),
	Entry("a beginning with PID", rolling("from: {type: PID}"), "from.type must be Equal or Static; got PID"),
	Entry("a beginning with Static without weights", rolling("from: {type: Static}"), "staticWeights must be set with type Static, and with no other"),
	Entry("an abort for nothing", rolling("abort: {for: 1m}"), "spec.rollout.abort: Required value: at least one of maxOverAverage and errorRatio must be set"),
	Entry("an abort below 1.01", rolling(`abort: {maxOverAverage: "1.009"}`), "maxOverAverage must be a number from 1.01 to 100 with at most 3 decimals, such as 1.5; got 1.009"),
	Entry("an abort above 100", rolling(`abort: {maxOverAverage: "100.1"}`), "got 100.1"),
	Entry("an abort for no error", rolling(`abort: {errorRatio: "0%"}`), "errorRatio must be a percentage from 0.01% to 100% with at most 2 decimals, such as 1%; got 0%"),
	Entry("an abort after more than 24h", rolling(`abort: {errorRatio: "1%", for: 1441m}`), "for must be at most 24h; got"),

	Entry("65 zones of clients", weighing("locality: ["+numberedList(65, "{from: zone-%d, to: {a: 1}}")+"]"), "must have at most 64 items"),
	Entry("a zone of clients twice", weighing("locality: [{from: a, to: {a: 1}}, {from: a, to: {b: 1}}]"), "spec.locality: duplicate entries for key"),
	Entry("an empty zone of clients", weighing("locality: [{from: '', to: {a: 1}}]"), "spec.locality[0].from", "at least 1 chars"),
	Entry("a zone of clients of 64 characters", weighing("locality: [{from: "+strings.Repeat("z", 64)+", to: {a: 1}}]"), "may not be more than 63"),
	Entry("no zone of servers", local("to: {}"), "should have at least 1 properties"),
	Entry("65 zones of servers", local("to: {"+numberedList(65, "zone-%d: 1")+"}"), "must have at most 64 items"),
	Entry("a zone of servers of 64 characters", local("to: {"+strings.Repeat("z", 64)+": 1}"), "the zones of to must have 1 to 63 characters"),
	Entry("a part of 0", local("to: {a: 0}"), "greater than or equal to 1"),
	Entry("a part of 10,001", local("to: {a: 10001}"), "less than or equal to 10000"),
	Entry("17 zones that take over", local("to: {a: 1}, failover: ["+numberedList(17, "zone-%d")+"]"), "must have at most 16 items"),
	Entry("a zone that takes over twice", local("to: {a: 1}, failover: [b, b]"), "failover: duplicate entries for key"),
	Entry("a zone that takes over from itself", local("to: {a: 1}, failover: [b, a]"), "failover must not name the zones of to; got a"),
	Entry("a zone that takes over of 64 characters", local("to: {a: 1}, failover: ["+strings.Repeat("z", 64)+"]"), "may not be more than 63"),
	Entry("locality of a HashRing", "spec: {"+toHashRing+", locality: [{from: a, to: {a: 1}}]}", "locality and publish.configMap are for a target of kind Service; targetRef.kind is HashRing"),

	Entry("a mode that there is not", weighing("publish: {eds: {mode: Best}}"), `spec.publish.eds.mode: Unsupported value: "Best"`),
	Entry("a ConfigMap without a name", weighing("publish: {configMap: {}}"), "spec.publish.configMap.name: Required value"),
	Entry("a ConfigMap of 254 characters", weighing("publish: {configMap: {name: "+strings.Repeat("c", 254)+"}}"), "may not be more than 253"),
	Entry("a ConfigMap in capitals", weighing("publish: {configMap: {name: A}}"), "spec.publish.configMap.name", "should match"),
	Entry("a ConfigMap of a HashRing", "spec: {"+toHashRing+", publish: {configMap: {name: a}}}", "locality and publish.configMap are for a target of kind Service"),
	Entry("a tombstone above 720h", weighing("deletion: {tombstone: 721h}"), "tombstone must be at most 720h; got"),
	Entry("a field that there is not", weighing("weights: {}"), "spec.weights"),
)

var _ = Describe("A WeightPolicy", func() {
	It("keeps its target", func(ctx SpecContext) {
		Expect(apply(ctx, ofKind("WeightPolicy", "kept", "spec: {"+toService+"}"))).To(Succeed())
		Expect(apply(ctx, ofKind("WeightPolicy", "kept", "spec: {targetRef: {name: other}}"))).To(MatchError(And(
			ContainSubstring("spec.targetRef: Forbidden"), ContainSubstring("targetRef cannot be changed; it is Service checkout: make another WeightPolicy"))))
	})

	It("has a name of at most 63 characters", func(ctx SpecContext) {
		Expect(apply(ctx, ofKind("WeightPolicy", strings.Repeat("n", 63), "spec: {"+toService+"}"))).To(Succeed())
		Expect(apply(ctx, ofKind("WeightPolicy", strings.Repeat("n", 64), "spec: {"+toService+"}"))).To(
			MatchError(ContainSubstring("metadata.name must have at most 63 characters; got 64")))
	})
})
