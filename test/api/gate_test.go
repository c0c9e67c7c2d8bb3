// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
)

// gated is a spec with one gate.
func gated(fields string) string { return migrating("gates: [{name: g, " + fields + "}]") }

// byConsumers is one with a gate of consumers and what else it says.
func byConsumers(fields string) string {
	return gated(`consumers: {maxErrorRatio: "1%"}, ` + fields)
}

// byPrometheus is one with a gate of a Prometheus and what else that says; judged says when it fails.
func byPrometheus(fields string) string {
	return gated(`failWhen: value > 1.0, prometheus: {address: "http://prometheus.monitoring:9090", query: up, ` + fields + "}")
}

// at is one with a Prometheus at an address.
func at(address string) string {
	return gated(`failWhen: value > 1.0, prometheus: {query: up, address: "` + address + `"}`)
}

// byObject is one with a gate of an object.
func byObject(apiVersion, kind, name, condition string) string {
	return gated(fmt.Sprintf("object: {apiVersion: %q, kind: %q, name: %q, condition: %q}", apiVersion, kind, name, condition))
}

func gatesOf(n int) string {
	return migrating("gates: " + listed(n, func(i int) string { return fmt.Sprintf(`{name: g%d, consumers: {maxErrorRatio: "1%%"}}`, i) }))
}

var _ = DescribeTable("A gate is accepted with", acceptedAs("RingMigration"),
	Entry("errors of consumers", gated(`consumers: {maxErrorRatio: "0%"}`)),
	Entry("failovers of consumers", gated(`consumers: {maxFailoverRatio: "100.0000%"}`)),
	Entry("both", gated(`consumers: {maxErrorRatio: "0.0001%", maxFailoverRatio: "99.9999%"}`)),
	Entry("a condition of an object", byObject("apps/v1", "Deployment", "edge", "Available")),
	Entry("an object of a long name", byObject(strings.Repeat("g", 248)+"/v1b1", "K"+strings.Repeat("k", 62), strings.Repeat("n", 253), strings.Repeat("c", 316))),
	Entry("an object of the core group", byObject("v1", "Pod", "edge-0", "Ready")),
	Entry("a Prometheus", byPrometheus("")),
	Entry("a Prometheus with TLS and a path", at("https://prometheus.example:9090/team/a")),
	Entry("a Prometheus by address", at("http://[2001:db8::1]:9090")),
	Entry("a Prometheus of 512 characters", at("http://"+strings.Repeat("p", 505))),
	Entry("passWhen alone", gated(`passWhen: "true", prometheus: {address: "http://p", query: up}`)),
	Entry("expressions of 1,024 characters", gated(`passWhen: "`+strings.Repeat("p", 1024)+`", failWhen: "`+strings.Repeat("f", 1024)+`", prometheus: {address: "http://p", query: up}`)),
	Entry("queries of 4,096 characters", gated(`passWhen: "true", prometheus: {address: "http://p", query: `+strings.Repeat("q", 4096)+
		", baselineQuery: "+strings.Repeat("b", 4096)+", samplesQuery: "+strings.Repeat("s", 4096)+"}")),
	Entry("the shortest window and timeout", byPrometheus("window: 1s, timeout: 100ms")),
	Entry("the longest window and timeout", byPrometheus("window: 24h, timeout: 1m")),
	Entry("a Secret", byPrometheus("auth: {secretName: "+strings.Repeat("s", 253)+"}")),
	Entry("samples of a Prometheus", gated(`minSamples: 1000000000000, passWhen: "true", prometheus: {address: "http://p", query: up, samplesQuery: up}`)),
	Entry("samples of consumers", byConsumers("minSamples: 1000")),
	Entry("no samples of an object", gated("minSamples: 0, object: {apiVersion: v1, kind: Pod, name: a, condition: Ready}")),
	Entry("observation", byConsumers("mode: Observe")),
	Entry("the shortest interval", byConsumers("interval: 1s, failureWindow: 2s")),
	Entry("the longest interval and window", byConsumers("interval: 1h, failureWindow: 24h, failureThreshold: 25")),
	Entry("the first failure", byConsumers("failureThreshold: 1, failureWindow: 1s")),
	Entry("100 failures", byConsumers("failureThreshold: 100, interval: 1s, failureWindow: 99s")),
	Entry("observation at an interval beyond its window", byConsumers("mode: Observe, interval: 1h")),
	Entry("a name of 63 characters", migrating("gates: [{name: "+strings.Repeat("g", 63)+`, consumers: {maxErrorRatio: "1%"}}]`)),
	Entry("15 others", gatesOf(16)),
)

var _ = DescribeTable("A gate is refused with", refusedAs("RingMigration"),
	Entry("16 others", gatesOf(17), "spec.gates: Too many: 17: must have at most 16 items"),
	Entry("its name twice", migrating(`gates: [{name: a, consumers: {maxErrorRatio: "1%"}}, {name: a, consumers: {maxErrorRatio: "2%"}}]`),
		`.spec.gates: duplicate entries for key [name="a"]`),
	Entry("a name in capitals", migrating(`gates: [{name: Errors, consumers: {maxErrorRatio: "1%"}}]`), "spec.gates[0].name", `"Errors"`),
	Entry("a name of 64 characters", migrating("gates: [{name: "+strings.Repeat("g", 64)+`, consumers: {maxErrorRatio: "1%"}}]`), "spec.gates[0].name", "may not be more than 63"),
	Entry("nothing that is measured", gated("mode: Enforce"), "spec.gates[0]: Required value: gate g: exactly one of prometheus, consumers and object must be set; got 0"),
	Entry("two that are measured", gated(`consumers: {maxErrorRatio: "1%"}, object: {apiVersion: v1, kind: Pod, name: a, condition: Ready}`),
		"gate g: exactly one of prometheus, consumers and object must be set; got 2"),
	Entry("a mode that there is not", byConsumers("mode: Ignore"), `spec.gates[0].mode: Unsupported value: "Ignore": supported values: "Enforce", "Observe"`),
	Entry("a Prometheus that never says anything", gated(`prometheus: {address: "http://p", query: up}`),
		"gate g: failWhen and passWhen go with prometheus, which needs at least one of them"),
	Entry("an expression over consumers", byConsumers("failWhen: value > 1.0"), "gate g: failWhen and passWhen go with prometheus"),
	Entry("an empty failWhen", byConsumers("failWhen: ''"), "spec.gates[0].failWhen", "at least 1 chars"),
	Entry("an empty passWhen", byConsumers("passWhen: ''"), "spec.gates[0].passWhen", "at least 1 chars"),
	Entry("a failWhen of 1,025 characters", byConsumers("failWhen: "+strings.Repeat("f", 1025)), "spec.gates[0].failWhen", "may not be more than 1024"),
	Entry("a passWhen of 1,025 characters", byConsumers("passWhen: "+strings.Repeat("p", 1025)), "spec.gates[0].passWhen", "may not be more than 1024"),
	Entry("samples that nobody counts", gated(`minSamples: 10, passWhen: "true", prometheus: {address: "http://p", query: up}`),
		"spec.gates[0].minSamples", "gate g: minSamples must be 0 without prometheus.samplesQuery or consumers, which count the samples; got 10"),
	Entry("samples of an object", gated("minSamples: 1, object: {apiVersion: v1, kind: Pod, name: a, condition: Ready}"), "spec.gates[0].minSamples", "minSamples must be 0"),
	Entry("negative samples", byConsumers("minSamples: -1"), "spec.gates[0].minSamples", "should be greater than or equal to 0"),
	Entry("too many samples", byConsumers("minSamples: 1000000000001"), "spec.gates[0].minSamples", "should be less than or equal to 1000000000000"),
	Entry("an interval below a second", byConsumers("interval: 999ms"), "spec.gates[0].interval", "interval must be from 1s to 1h; got 0.999s"),
	Entry("an interval above an hour", byConsumers("interval: 61m, failureWindow: 24h"), "interval must be from 1s to 1h; got 3660s"),
	Entry("no failures", byConsumers("failureThreshold: 0"), "spec.gates[0].failureThreshold", "should be greater than or equal to 1"),
	Entry("101 failures", byConsumers("failureThreshold: 101, interval: 1s"), "spec.gates[0].failureThreshold", "should be less than or equal to 100"),
	Entry("a window below a second", byConsumers("failureThreshold: 1, failureWindow: 0s"), "spec.gates[0].failureWindow", "failureWindow must be from 1s to 24h; got 0s"),
	Entry("a window above a day", byConsumers("failureWindow: 25h"), "failureWindow must be from 1s to 24h; got 90000s"),
	Entry("a window that its failures do not fit into", byConsumers("interval: 1h"),
		"spec.gates[0].failureWindow", "gate g: failureWindow must be at least 7200s, so that 3 failures at interval 3600s fall within it; got 600s"),
	Entry("100 failures and a window that is a second too short", byConsumers("failureThreshold: 100, interval: 1s, failureWindow: 98s"), "must be at least 99s"),

	Entry("no address", gated(`failWhen: "true", prometheus: {query: up}`), "spec.gates[0].prometheus.address: Required value"),
	Entry("an address that is none", at("prometheus:9090"), "spec.gates[0].prometheus.address", "address must be a URL of http or https with a host; got prometheus:9090"),
	Entry("an address of another scheme", at("ftp://prometheus"), "address must be a URL of http or https with a host; got ftp://prometheus"),
	Entry("an address without a host", at("http:///metrics"), "address must be a URL of http or https with a host; got http:///metrics"),
	Entry("an address of 513 characters", at("http://"+strings.Repeat("p", 506)), "spec.gates[0].prometheus.address", "may not be more than 512"),
	Entry("no query", gated(`failWhen: "true", prometheus: {address: "http://p"}`), "spec.gates[0].prometheus.query: Required value"),
	Entry("an empty query", gated(`failWhen: "true", prometheus: {address: "http://p", query: ""}`), "spec.gates[0].prometheus.query", "at least 1 chars"),
	Entry("a query of 4,097 characters", gated(`failWhen: "true", prometheus: {address: "http://p", query: `+strings.Repeat("q", 4097)+"}"), "spec.gates[0].prometheus.query", "may not be more than 4096"),
	Entry("a baselineQuery of 4,097 characters", byPrometheus("baselineQuery: "+strings.Repeat("q", 4097)), "spec.gates[0].prometheus.baselineQuery", "may not be more than 4096"),
	Entry("a samplesQuery of 4,097 characters", byPrometheus("samplesQuery: "+strings.Repeat("q", 4097)), "spec.gates[0].prometheus.samplesQuery", "may not be more than 4096"),
	Entry("empty queries", byPrometheus("baselineQuery: '', samplesQuery: ''"), "spec.gates[0].prometheus.baselineQuery", "spec.gates[0].prometheus.samplesQuery", "at least 1 chars"),
	Entry("a range below a second", byPrometheus("window: 0s"), "spec.gates[0].prometheus.window", "window must be from 1s to 24h; got 0s"),
	Entry("a range above a day", byPrometheus("window: 25h"), "window must be from 1s to 24h; got 90000s"),
	Entry("a timeout below 100ms", byPrometheus("timeout: 99ms"), "spec.gates[0].prometheus.timeout", "timeout must be from 100ms to 1m; got 0.099s"),
	Entry("a timeout above a minute", byPrometheus("timeout: 61s"), "timeout must be from 100ms to 1m; got 61s"),
	Entry("a Secret without a name", byPrometheus("auth: {secretName: ''}"), "spec.gates[0].prometheus.auth.secretName", "at least 1 chars"),
	Entry("a Secret of 254 characters", byPrometheus("auth: {secretName: "+strings.Repeat("s", 254)+"}"), "spec.gates[0].prometheus.auth.secretName", "may not be more than 253"),

	Entry("consumers without a limit", gated("consumers: {}"), "spec.gates[0].consumers: Required value: at least one of maxErrorRatio and maxFailoverRatio must be set"),
	Entry("5 decimals of maxErrorRatio", gated(`consumers: {maxErrorRatio: "0.00001%"}`),
		"spec.gates[0].consumers.maxErrorRatio", "maxErrorRatio must be a percentage from 0% to 100% with at most 4 decimals, such as 0.1%; got 0.00001%"),
	Entry("maxErrorRatio above all", gated(`consumers: {maxErrorRatio: "101%"}`), "such as 0.1%; got 101%"),
	Entry("5 decimals of maxFailoverRatio", gated(`consumers: {maxFailoverRatio: "0.00001%"}`),
		"spec.gates[0].consumers.maxFailoverRatio", "maxFailoverRatio must be a percentage from 0% to 100% with at most 4 decimals, such as 1%; got 0.00001%"),
	Entry("maxFailoverRatio above all", gated(`consumers: {maxFailoverRatio: "100.1%"}`), "such as 1%; got 100.1%"),

	Entry("an object of no version", byObject("apps/", "Deployment", "a", "Available"), "spec.gates[0].object.apiVersion", `"apps/"`),
	Entry("an object of an empty version", byObject("", "Pod", "a", "Ready"), "spec.gates[0].object.apiVersion", "at least 1 chars"),
	Entry("an object of a version of 254 characters", byObject(strings.Repeat("v", 254), "Pod", "a", "Ready"), "spec.gates[0].object.apiVersion", "may not be more than 253"),
	Entry("an object by resource", byObject("v1", "pods", "a", "Ready"), "spec.gates[0].object.kind", `"pods"`),
	Entry("an object of a kind of 64 characters", byObject("v1", "K"+strings.Repeat("k", 63), "a", "Ready"), "spec.gates[0].object.kind", "may not be more than 63"),
	Entry("an object without a name", byObject("v1", "Pod", "", "Ready"), "spec.gates[0].object.name", "at least 1 chars"),
	Entry("an object of a name of 254 characters", byObject("v1", "Pod", strings.Repeat("n", 254), "Ready"), "spec.gates[0].object.name", "may not be more than 253"),
	Entry("an object without a condition", byObject("v1", "Pod", "a", ""), "spec.gates[0].object.condition", "at least 1 chars"),
	Entry("an object with a condition of 317 characters", byObject("v1", "Pod", "a", strings.Repeat("c", 317)), "spec.gates[0].object.condition", "may not be more than 316"),
)
