// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// one is a spec with one backend under an identity.
func one(identity v1alpha1.Identity, backend string) string {
	return backends(identity, 1, func(int) string { return backend })
}

// selector is a spec with one feature.
func selector(selector string) string {
	return "spec: {features: [{name: eu, selector: " + selector + "}]}"
}

const valid = "{name: a, address: 10.0.0.1, port: 80}"

// accepted is the body of tables whose rows are specs.
func accepted(ctx SpecContext, spec string) {
	Expect(apply(ctx, hashRing("accepted", spec), client.DryRunAll)).To(Succeed())
}

// refused is the body of tables whose rows give what the message must say: the field, and what is wrong with it.
func refused(ctx SpecContext, spec string, want ...string) {
	err := apply(ctx, hashRing("refused", spec), client.DryRunAll)
	Expect(err).To(HaveOccurred())
	AddReportEntry("message", err.Error(), ReportEntryVisibilityNever)
	for _, part := range want {
		Expect(err).To(MatchError(ContainSubstring(part)))
	}
}

var _ = DescribeTable("A HashRing is accepted with", accepted,
	Entry("no backends, which a condition reports", "spec: {}"),
	Entry("V1 and its 160 points", "spec: {algorithm: {version: V1, pointsPerWeight: 160}}"),
	Entry("V2 and 1 point", "spec: {algorithm: {pointsPerWeight: 1}}"),
	Entry("V2 and 100,000 points", "spec: {algorithm: {pointsPerWeight: 100000}}"),

	Entry("Address: IPv4", one("Address", valid)),
	Entry("Address: IPv6", one("Address", `{name: a, address: "2001:db8::1", port: 80}`)),
	Entry("Address: IPv6 that is not in its canonical form", one("Address", `{name: a, address: "2001:DB8:0:0::1", port: 80}`)),
	Entry("NGINX: IPv4 without a port", one("NGINX", "{name: a, address: 10.0.0.1}")),
	Entry("NGINX: IPv6 in brackets", one("NGINX", `{name: a, address: "[2001:DB8::1]", port: 80}`)),
	Entry("NGINX: a name", one("NGINX", "{name: a, address: Cache_1.example.com, port: 80}")),
	Entry("Name: IPv6", one("Name", `{name: a, address: "2001:db8::1", port: 80}`)),
	Entry("Name: a name of one label", one("Name", "{name: a, address: memcached, port: 11211}")),
	Entry("Name: a name that starts with digits", one("Name", "{name: a, address: 10.cache.example, port: 11211}")),
	Entry("equal addresses, which a condition reports", "spec: {backends: ["+valid+", {name: b, address: 10.0.0.1, port: 80}]}"),

	Entry("a weight of 0", one("Address", "{name: a, address: 10.0.0.1, port: 80, weight: 0}")),
	Entry("the largest weight", one("Address", "{name: a, address: 10.0.0.1, port: 80, weight: 1000000}")),
	Entry("a name of 253 characters", one("Address", "{name: "+strings.Repeat("a", 253)+", address: 10.0.0.1, port: 80}")),
	Entry("32 labels", one("Address", "{name: a, address: 10.0.0.1, port: 80, labels: "+manyLabels(32)+"}")),
	Entry("4,096 backends", backends("Address", 4096, numbered)),
	Entry("4,096 backends with long names", backends("Name", 4096, longNamed)),

	Entry("matchLabels", selector(`{matchLabels: {eu: "true"}}`)),
	Entry("matchExpressions", selector("{matchExpressions: [{key: tier, operator: Exists}]}")),
	Entry("an operator that there is not, which a condition reports", selector("{matchExpressions: [{key: tier, operator: Is}]}")),
	Entry("12 features", manyFeatures(12)),

	Entry("V3 alone", "spec: {algorithm: {version: V3}}"),
	Entry("V3 with the largest unit and the smallest limit", `spec: {algorithm: {version: V3, weightUnit: 1000000, maxImbalance: "0.0001%"}}`),
	Entry("V3 with the largest limit", `spec: {algorithm: {version: V3, maxImbalance: "100.0000%"}}`),
	Entry("V3 with half a percent", `spec: {algorithm: {version: V3, maxImbalance: "0.5%"}}`),
	Entry("V2 with a unit of 1", "spec: {algorithm: {weightUnit: 1}}"),
	Entry("V2 with what only V3 reads, which a warning reports", views(V2, 7, "Listed", "[[f0], [f1, f0]]")),
	Entry("V1 with what only V3 reads, which a warning reports", `spec: {algorithm: {version: V1, maxImbalance: "1%"}, views: All}`),
	Entry("V3 with all views of 6 features", views(V3, 6, "All", "[]")),
	Entry("V3 with a few views of 12 features", views(V3, 12, "Listed", "[[f0], [f11], [f0, f11]]")),
	Entry("V3 with the view of all backends only", views(V3, 12, "Listed", "[]")),
	Entry("V3 with 64 views of up to 12 features", views(V3, 12, "Listed", manyViews(64))),

	Entry("no interval", "spec: {publication: {minInterval: 0s}}"),
	Entry("an interval in parts", "spec: {publication: {minInterval: 1m30s}}"),
	Entry("the longest interval", "spec: {publication: {minInterval: 60m}}"),
	Entry("16 chunks of points", "spec: {publication: {chunks: 16, encoding: Points}}"),
	Entry("a recipe", "spec: {publication: {chunks: 1, encoding: Recipe}}"),
)

var _ = DescribeTable("A HashRing is refused with", refused,
	Entry("V1 and other than 160 points", "spec: {algorithm: {version: V1, pointsPerWeight: 16}}",
		"spec.algorithm.pointsPerWeight", "pointsPerWeight must be 160 with version V1, as in NGINX; got 16"),
	Entry("no points", "spec: {algorithm: {pointsPerWeight: 0}}",
		"spec.algorithm.pointsPerWeight", "should be greater than or equal to 1"),
	Entry("too many points", "spec: {algorithm: {pointsPerWeight: 100001}}",
		"spec.algorithm.pointsPerWeight", "should be less than or equal to 100000"),
	Entry("an unknown version", "spec: {algorithm: {version: V9}}",
		"spec.algorithm.version", `Unsupported value: "V9"`),
	Entry("an unknown identity", "spec: {identity: Hostname}",
		"spec.identity", `Unsupported value: "Hostname"`),

	Entry("no chunks", "spec: {publication: {chunks: 0}}",
		"spec.publication.chunks", "should be greater than or equal to 1"),
	Entry("17 chunks", "spec: {publication: {chunks: 17}}",
		"spec.publication.chunks", "should be less than or equal to 16"),
	Entry("an unknown encoding", "spec: {publication: {encoding: Gzip}}",
		"spec.publication.encoding", `Unsupported value: "Gzip"`),

	Entry("duplicate names", "spec: {backends: ["+valid+", {name: a, address: 10.0.0.2, port: 80}]}",
		"spec.backends", "the names of backends must be unique", "key a already exists"),
	Entry("4,097 backends", backends("Address", 4097, numbered),
		"spec.backends", "Too many: 4097: must have at most 4096 items"),
	Entry("a duplicate name among 4,096", backends("Address", 4096, func(i int) string { return numbered(i % 4095) }),
		"spec.backends", "the names of backends must be unique", "key c0000 already exists"),
	Entry("an empty name", one("Address", `{name: "", address: 10.0.0.1, port: 80}`),
		"spec.backends[0].name", "should be at least 1 chars long"),
	Entry("a name with a space", one("Address", `{name: "a b", address: 10.0.0.1, port: 80}`),
		"spec.backends[0].name", "should match"),
	Entry("a name of 254 characters", one("Address", "{name: "+strings.Repeat("a", 254)+", address: 10.0.0.1, port: 80}"),
		"spec.backends[0].name", "may not be more than 253"),
	Entry("no name", one("Address", "{address: 10.0.0.1, port: 80}"),
		"spec.backends[0].name", "Required value"),
	Entry("no address", one("Address", "{name: a, port: 80}"),
		"spec.backends[0].address", "Required value"),

	Entry("an address that is none", one("NGINX", "{name: a, address: cache!, port: 80}"),
		"spec.backends[0].address", "address must be an IP address without port and zone, or a DNS name; got cache!"),
	Entry("a port in the address", one("NGINX", `{name: a, address: "10.0.0.1:80"}`),
		"spec.backends[0].address", "got 10.0.0.1:80"),
	Entry("an octet above 255", one("Name", "{name: a, address: 10.0.0.256, port: 80}"),
		"spec.backends[0].address", "got 10.0.0.256"),
	Entry("an IPv6 zone", one("Address", `{name: a, address: "fe80::1%eth0", port: 80}`),
		"spec.backends[0].address", "got fe80::1%eth0"),
	Entry("an IPv4-mapped address", one("Address", `{name: a, address: "::ffff:10.0.0.1", port: 80}`),
		"spec.backends[0].address", "got ::ffff:10.0.0.1"),
	Entry("an empty label", one("Name", "{name: a, address: cache..example, port: 80}"),
		"spec.backends[0].address", "got cache..example"),
	Entry("IPv4 in brackets", one("NGINX", `{name: a, address: "[10.0.0.1]", port: 80}`),
		"spec.backends[0].address", "address in brackets must be an IPv6 address without a zone; got [10.0.0.1]"),
	Entry("an open bracket", one("NGINX", `{name: a, address: "[", port: 80}`),
		"spec.backends[0].address", "got ["),

	Entry("Address: a name", backends("Address", 3, func(i int) string {
		return fmt.Sprintf("{name: c%d, address: %s, port: 80}", i, []string{"10.0.0.1", "cache.example", "10.0.0.3"}[i])
	}), "spec.backends", "with identity Address, backends[1].address must be an IP address without brackets; backend c1 has cache.example"),
	Entry("Address: IPv6 in brackets", one("Address", `{name: a, address: "[2001:db8::1]", port: 80}`),
		"spec.backends", "backends[0].address must be an IP address without brackets; backend a has [2001:db8::1]"),
	Entry("Address: no port", one("Address", "{name: a, address: 10.0.0.1}"),
		"spec.backends: Required value", "with identity Address, backends[0].port must be set; backend a has none"),
	Entry("Name: no port", one("Name", "{name: a, address: cache.example}"),
		"spec.backends: Required value", "with identity Name, backends[0].port must be set; backend a has none"),
	Entry("Name: IPv6 in brackets", one("Name", `{name: a, address: "[2001:db8::1]", port: 80}`),
		"spec.backends", "with identity Name, backends[0].address must be an IP address without brackets or a DNS name"),
	Entry("NGINX: IPv6 without brackets", one("NGINX", `{name: a, address: "2001:db8::1", port: 80}`),
		"spec.backends", "with identity NGINX, backends[0].address must be", "IPv6 address in brackets", "backend a has 2001:db8::1"),

	Entry("port 0", one("Address", "{name: a, address: 10.0.0.1, port: 0}"),
		"spec.backends[0].port", "should be greater than or equal to 1"),
	Entry("port 65,536", one("Address", "{name: a, address: 10.0.0.1, port: 65536}"),
		"spec.backends[0].port", "should be less than or equal to 65535"),
	Entry("a weight below 0", one("Address", "{name: a, address: 10.0.0.1, port: 80, weight: -1}"),
		"spec.backends[0].weight", "should be greater than or equal to 0"),
	Entry("a weight over the limit", one("Address", "{name: a, address: 10.0.0.1, port: 80, weight: 1000001}"),
		"spec.backends[0].weight", "should be less than or equal to 1000000"),
	Entry("a bad zone", one("Address", `{name: a, address: 10.0.0.1, port: 80, zone: "-"}`),
		"spec.backends[0].zone", "should match"),
	Entry("33 labels", one("Address", "{name: a, address: 10.0.0.1, port: 80, labels: "+manyLabels(33)+"}"),
		"spec.backends[0].labels", "Too many: 33: must have at most 32 items"),
	Entry("a long label", one("Address", "{name: a, address: 10.0.0.1, port: 80, labels: {k: "+strings.Repeat("v", 64)+"}}"),
		"spec.backends[0].labels", "keys of labels must have at most 317 characters and the values at most 63"),

	Entry("an empty selector", selector("{}"),
		"spec.features[0].selector: Required value", "must have matchLabels or matchExpressions; an empty one would select every backend"),
	Entry("a selector of empty lists", selector("{matchLabels: {}, matchExpressions: []}"),
		"spec.features[0].selector: Required value"),
	Entry("no selector", "spec: {features: [{name: eu}]}",
		"spec.features[0].selector", "Required value"),
	Entry("a selector that is too large", selector("{matchLabels: "+manyLabels(33)+"}"),
		"spec.features[0].selector", "at most 32 matchLabels"),
	Entry("a feature's name in capitals", "spec: {features: [{name: EU, selector: {matchLabels: {a: b}}}]}",
		"spec.features[0].name", "should match"),
	Entry("13 features", manyFeatures(13),
		"spec.features", "Too many: 13: must have at most 12 items"),
	Entry("V2 and a unit", "spec: {algorithm: {weightUnit: 625}}",
		"spec.algorithm.weightUnit", "weightUnit must be 1 with version V2, whose points it would not divide; got 625"),
	Entry("V1 and a unit", "spec: {algorithm: {version: V1, weightUnit: 2}}",
		"spec.algorithm.weightUnit", "weightUnit must be 1 with version V1, whose points it would not divide; got 2"),
	Entry("a unit of 0", "spec: {algorithm: {version: V3, weightUnit: 0}}",
		"spec.algorithm.weightUnit", "should be greater than or equal to 1"),
	Entry("a unit over the limit", "spec: {algorithm: {version: V3, weightUnit: 1000001}}",
		"spec.algorithm.weightUnit", "should be less than or equal to 1000000"),
	Entry("no imbalance at all", `spec: {algorithm: {version: V3, maxImbalance: "0%"}}`,
		"spec.algorithm.maxImbalance", "maxImbalance must be a percentage from 0.0001% to 100% with at most 4 decimals, such as 0.5%; got 0%"),
	Entry("an imbalance of 0 in decimals", `spec: {algorithm: {version: V3, maxImbalance: "0.0000%"}}`,
		"spec.algorithm.maxImbalance", "maxImbalance must be a percentage from 0.0001% to 100% with at most 4 decimals, such as 0.5%; got 0.0000%"),
	Entry("an imbalance over the limit", `spec: {algorithm: {version: V3, maxImbalance: "100.0001%"}}`,
		"spec.algorithm.maxImbalance", "maxImbalance must be a percentage from 0.0001% to 100% with at most 4 decimals, such as 0.5%; got 100.0001%"),
	Entry("an imbalance far over the limit, whatever the version", `spec: {algorithm: {maxImbalance: "101%"}}`,
		"spec.algorithm.maxImbalance", "maxImbalance must be a percentage from 0.0001% to 100% with at most 4 decimals, such as 0.5%; got 101%"),
	Entry("an imbalance of five decimals", `spec: {algorithm: {version: V3, maxImbalance: "0.00001%"}}`,
		"spec.algorithm.maxImbalance", "with at most 4 decimals, such as 0.5%; got 0.00001%"),
	Entry("an imbalance that is no percentage", `spec: {algorithm: {version: V3, maxImbalance: "0.01"}}`,
		"spec.algorithm.maxImbalance", "must be a percentage from 0.0001% to 100% with at most 4 decimals, such as 0.5%; got 0.01"),
	Entry("an imbalance that is a number", `spec: {algorithm: {version: V3, maxImbalance: 1}}`,
		"spec.algorithm.maxImbalance", "expected string"),
	Entry("all views of 7 features", views(V3, 7, "All", "[]"),
		"spec.views", "with version V3 and views All, features must have at most 6 items, which make 64 views; got 7: set views to Listed and name the views in viewList"),
	Entry("all views of 7 features by default", strings.Replace(views(V3, 7, "All", "[]"), ", views: All, viewList: []", "", 1),
		"spec.views", "with version V3 and views absent, which means All, features must have at most 6 items, which make 64 views; got 7"),
	Entry("views that there are not", views(V3, 2, "Some", "[]"),
		"spec.views", `Unsupported value: "Some"`),
	Entry("a list that is not read", views(V3, 2, "All", "[[f0], [f1]]"),
		"spec.viewList: Forbidden", "viewList is read with views Listed only; views is All, viewList has 2 items"),
	Entry("a view of a feature that there is not", views(V3, 2, "Listed", "[[f0], [f1, f2]]"),
		"spec.viewList", "viewList[1] names f2, which is not among features"),
	Entry("a view where there is no feature", "spec: {views: Listed, viewList: [[eu]]}",
		"spec.viewList", "viewList[0] names eu, which is not among features"),
	Entry("a view twice", views(V3, 3, "Listed", "[[f0, f1], [f2], [f1, f0]]"),
		"spec.viewList", "viewList[0] is a set of features that is there twice: f0, f1"),
	Entry("a feature twice in a view", views(V3, 3, "Listed", "[[f0, f1, f0]]"),
		"spec.viewList[0]", `duplicate entries for key [="f0"]`),
	Entry("a view of nothing, which is always there", views(V3, 3, "Listed", "[[]]"),
		"spec.viewList[0]", "should have at least 1 items"),
	Entry("65 views", views(V3, 12, "Listed", manyViews(65)),
		"spec.viewList", "Too many: 65: must have at most 64 items"),

	Entry("days", "spec: {publication: {minInterval: 3d}}",
		"spec.publication.minInterval", "3d"),
	Entry("a number of seconds", "spec: {publication: {minInterval: 5}}",
		"spec.publication.minInterval", "must be of type duration"),
	Entry("a negative interval", "spec: {publication: {minInterval: -5s}}",
		"spec.publication.minInterval", "should match"),
	Entry("a long interval", "spec: {publication: {minInterval: 61m}}",
		"spec.publication.minInterval", "minInterval must be at most 1h; got 3660s"),
)

var _ = Describe("A HashRing", func() {
	It("has a name of at most 63 characters", func(ctx SpecContext) {
		Expect(apply(ctx, hashRing(strings.Repeat("a", 63), "spec: {}"), client.DryRunAll)).To(Succeed())
		Expect(apply(ctx, hashRing(strings.Repeat("a", 64), "spec: {}"), client.DryRunAll)).To(MatchError(
			ContainSubstring("metadata.name must have at most 63 characters, because it becomes a label value; got 64")))
	})

	It("needs a spec", func(ctx SpecContext) {
		ring := hashRing("no-spec", "spec: {}")
		delete(ring.Object, "spec")
		Expect(apply(ctx, ring, client.DryRunAll)).To(MatchError(ContainSubstring("spec: Required value")))
	})

	It("keeps its identity and may change all else", func(ctx SpecContext) {
		Expect(apply(ctx, hashRing("immutable", one("Name", valid)))).To(Succeed())
		forbidden := "spec.identity: Forbidden: identity cannot be changed, because every key would move; it is Name, got "
		Expect(apply(ctx, hashRing("immutable", one("NGINX", valid)))).To(MatchError(ContainSubstring(forbidden + "NGINX")))
		By("removing it, which sets the default")
		Expect(apply(ctx, hashRing("immutable", "spec: {}"))).To(MatchError(ContainSubstring(forbidden + "Address")))
		Expect(apply(ctx, hashRing("immutable", "spec: {identity: Name, algorithm: {version: V1}}"))).To(Succeed())
	})

	It("has no unknown fields where the client asks for strictness", func(ctx SpecContext) {
		err := api.Create(ctx, hashRing("unknown", "spec: {replicas: 3}"), client.FieldValidation("Strict"))
		Expect(err).To(MatchError(ContainSubstring(`unknown field "spec.replicas"`)))
	})
})

func numbered(i int) string {
	return fmt.Sprintf("{name: c%04d, address: 10.0.%d.%d, port: 80, weight: 100}", i, i/256, i%256)
}

// longNamed makes backends as large as 4,096 of them may be: the API server's limit for a request is 3 MiB.
func longNamed(i int) string {
	name := fmt.Sprintf("cache-%04d.%s.example.com", i, strings.Repeat("a", 40))
	return fmt.Sprintf("{name: %s, address: %s, port: 80, zone: zone-a, labels: %s}", name, name, manyLabels(8))
}

func manyLabels(n int) string {
	labels := make([]string, n)
	for i := range labels {
		labels[i] = fmt.Sprintf("label-%d: value", i)
	}
	return "{" + strings.Join(labels, ", ") + "}"
}

func manyFeatures(n int) string { return "spec: {features: " + features(n) + "}" }

// features are f0, f1 and so on.
func features(n int) string {
	features := make([]string, n)
	for i := range features {
		features[i] = fmt.Sprintf("{name: f%d, selector: {matchLabels: {k: v}}}", i)
	}
	return "[" + strings.Join(features, ", ") + "]"
}

const V2, V3 = v1alpha1.AlgorithmV2, v1alpha1.AlgorithmV3

// views is a spec with n features and what it says of views.
func views(version v1alpha1.AlgorithmVersion, n int, selection, list string) string {
	return fmt.Sprintf("spec: {algorithm: {version: %s}, features: %s, views: %s, viewList: %s}", version, features(n), selection, list)
}

// manyViews are n sets of the 12 features, the largest first.
func manyViews(n int) string {
	views := make([]string, n)
	for i := range views {
		var names []string
		for f := range 12 {
			if (1<<12-1-i)>>f&1 != 0 {
				names = append(names, fmt.Sprintf("f%d", f))
			}
		}
		views[i] = "[" + strings.Join(names, ", ") + "]"
	}
	return "[" + strings.Join(views, ", ") + "]"
}
