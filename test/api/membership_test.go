// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
)

// source is a spec with one Service, of which fields says what else there is.
func source(fields string) string { return sourceOf("Name", "service: {name: cache}, "+fields) }

// service is a spec with one Service of these fields.
func service(fields string) string { return sourceOf("Name", "service: {"+fields+"}") }

func sourceOf(identity, fields string) string {
	return fmt.Sprintf("spec: {identity: %s, backendsFrom: [{%s}]}", identity, fields)
}

// manySources are n Services, each with as much as a source can have.
func manySources(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("{service: {name: %s, port: %s}, identity: Hostname, weightAnnotation: %s, labels: %s, labelsFromPod: %s}",
			long(63), long(63), long(253)+"/"+long(63), longLabels(32), longKeys(16))
	}
	return "spec: {identity: Name, backendsFrom: [" + strings.Join(list, ", ") + "]}"
}

func long(n int) string { return strings.Repeat("a", n) }

// longLabels are n labels whose keys and values are as long as they may be.
func longLabels(n int) string {
	labels := make([]string, n)
	for i := range labels {
		labels[i] = fmt.Sprintf("%s%04d: %s", long(313), i, long(63))
	}
	return "{" + strings.Join(labels, ", ") + "}"
}

func longKeys(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s%04d", long(313), i)
	}
	return "[" + strings.Join(keys, ", ") + "]"
}

func membership(fields string) string { return "spec: {membership: {" + fields + "}}" }

const badPort = "port must be a number from 1 to 65535 without quotes, or the name of a port of the Service: " +
	"lower-case letters, digits and dashes with at least one letter; got "

var _ = DescribeTable("A HashRing is accepted with", accepted,
	Entry("a Service alone", "spec: {backendsFrom: [{service: {name: cache}}]}"),
	Entry("a Service and backends", "spec: {backends: ["+valid+"], backendsFrom: [{service: {name: cache, port: http}}]}"),
	Entry("Address: a Service by address", sourceOf("Address", "service: {name: cache}, identity: Address")),
	Entry("NGINX: a Service by address", sourceOf("NGINX", "service: {name: cache}, identity: Address")),
	Entry("NGINX: a Service that says nothing", sourceOf("NGINX", "service: {name: cache}")),
	Entry("Name: a Service by hostname", source("identity: Hostname")),
	Entry("Name: a Service by pod", source("identity: PodName")),
	Entry("Name: a Service by address", source("identity: Address")),
	Entry("Name: a Service that says nothing", source("")),
	Entry("an empty list of Services", "spec: {backendsFrom: []}"),
	Entry("16 Services that are as large as they may be", manySources(16)),
	Entry("a Service twice, which is one backend for each pod", "spec: {backendsFrom: [{service: {name: cache}}, {service: {name: cache}}]}"),
	Entry("a Service of one letter", service("name: a")),
	Entry("a Service of 63 letters", service("name: "+long(63))),
	Entry("port 1", service("name: cache, port: 1")),
	Entry("port 65,535", service("name: cache, port: 65535")),
	Entry("a port of one letter", service("name: cache, port: a")),
	Entry("a port of 63 letters", service("name: cache, port: "+long(63))),
	Entry("a port whose name is a number", service(`name: cache, port: "8080x"`)),
	Entry("IPv6 before IPv4", source("preferredIPFamily: IPv6")),
	Entry("a drained source", source("weight: 0")),
	Entry("the largest weight of a source", source("weight: 1000000")),
	Entry("a weight annotation without a prefix", source("weightAnnotation: weight")),
	Entry("a weight annotation of 317 characters", source("weightAnnotation: "+long(253)+"/"+long(63))),
	Entry("32 labels of a source", source("labels: "+longLabels(32))),
	Entry("16 labels of pods", source("labelsFromPod: "+longKeys(16))),

	Entry("1 backend at least", membership("minBackends: 1")),
	Entry("4,096 backends at least", membership("minBackends: 4096")),
	Entry("no delays", membership("joinDelay: 0s, leaveDelay: 0s")),
	Entry("the longest delays", membership("joinDelay: 24h, leaveDelay: 168h")),
	Entry("the longest delays in minutes", membership("joinDelay: 1440m, leaveDelay: 10080m")),
	Entry("delays in parts", membership("joinDelay: 1m30s, leaveDelay: 1h1m1s1ms")),
	Entry("none removed", membership(`maxRemoved: "0%"`)),
	Entry("all removed", membership(`maxRemoved: "100%"`)),
	Entry("4 decimals of backends", membership(`maxRemoved: "33.3333%"`)),
	Entry("nothing moved", membership(`maxMovement: "0%"`)),
	Entry("anything moved", membership(`maxMovement: "100.0000%"`)),
	Entry("4 decimals of the key space", membership(`maxMovement: "0.0001%"`)),

	Entry("migrations", "spec: {changePolicy: Migrate}"),
	Entry("changes at once", "spec: {changePolicy: Immediate}"),
	Entry("the first revision", "spec: {pinnedRevision: 1}"),
	Entry("a large revision", "spec: {pinnedRevision: 9007199254740992}"),
	Entry("1 revision kept", "spec: {historyLimit: 1}"),
	Entry("100 revisions kept", "spec: {historyLimit: 100}"),
	Entry("no tombstone", "spec: {deletion: {tombstone: 0s}}"),
	Entry("the longest tombstone", "spec: {deletion: {tombstone: 720h}}"),
)

var _ = DescribeTable("A HashRing is refused with", refused,
	Entry("Address: a Service by hostname", sourceOf("Address", "service: {name: cache}, identity: Hostname"),
		"spec.backendsFrom", "with identity Address, whose points are computed from addresses, backendsFrom[0].identity must be Address; got Hostname: set identity of the HashRing to Name"),
	Entry("NGINX: the second Service by pod", "spec: {identity: NGINX, backendsFrom: [{service: {name: a}}, {service: {name: b}, identity: PodName}]}",
		"spec.backendsFrom", "with identity NGINX, whose points are computed from addresses, backendsFrom[1].identity must be Address; got PodName: set identity of the HashRing to Name"),
	Entry("an identity of a source that there is not", source("identity: UID"),
		"spec.backendsFrom[0].identity", `Unsupported value: "UID": supported values: "Hostname", "PodName", "Address"`),
	Entry("17 Services", "spec: {backendsFrom: ["+strings.Repeat("{service: {name: cache}}, ", 17)+"]}",
		"spec.backendsFrom", "Too many: 17: must have at most 16 items"),
	Entry("no Service", "spec: {backendsFrom: [{weight: 1}]}",
		"spec.backendsFrom[0].service", "Required value"),
	Entry("a Service without a name", service("port: 80"),
		"spec.backendsFrom[0].service.name", "Required value"),
	Entry("a Service of an empty name", service(`name: ""`),
		"spec.backendsFrom[0].service.name", "should be at least 1 chars long"),
	Entry("a Service of 64 letters", service("name: "+long(64)),
		"spec.backendsFrom[0].service.name", "may not be more than 63"),
	Entry("a Service of another namespace", service("name: cdn/cache"),
		"spec.backendsFrom[0].service.name", `"cdn/cache"`, "should match"),

	Entry("port 0 of a Service", service("name: cache, port: 0"),
		"spec.backendsFrom[0].service.port", badPort+"0"),
	Entry("port 65,536 of a Service", service("name: cache, port: 65536"),
		"spec.backendsFrom[0].service.port", badPort+"65536"),
	Entry("a port below 0 of a Service", service("name: cache, port: -1"),
		"spec.backendsFrom[0].service.port", badPort+"-1"),
	Entry("an empty port of a Service", service(`name: cache, port: ""`),
		"spec.backendsFrom[0].service.port", badPort+`""`),
	Entry("a port of a Service in capitals", service("name: cache, port: HTTP"),
		"spec.backendsFrom[0].service.port", badPort+`"HTTP"`),
	Entry("a port of a Service that ends with a dash", service("name: cache, port: http-"),
		"spec.backendsFrom[0].service.port", badPort+`"http-"`),
	Entry("a number in quotes for a port of a Service", service(`name: cache, port: "8080"`),
		"spec.backendsFrom[0].service.port", badPort+`"8080"`),
	Entry("a port of a Service that starts with a dash", service("name: cache, port: -http"),
		"spec.backendsFrom[0].service.port", badPort+`"-http"`),
	Entry("a port of a Service of 64 letters", service("name: cache, port: "+long(64)),
		"spec.backendsFrom[0].service.port", "may not be more than 63"),
	Entry("half a port of a Service", service("name: cache, port: 80.5"),
		"spec.backendsFrom[0].service.port", "must be of type integer,string"),
	Entry("an object for a port of a Service", service("name: cache, port: {}"),
		"spec.backendsFrom[0].service.port", "must be of type integer,string"),

	Entry("a family that there is not", source("preferredIPFamily: IPv5"),
		"spec.backendsFrom[0].preferredIPFamily", `Unsupported value: "IPv5"`),
	Entry("a weight of a source below 0", source("weight: -1"),
		"spec.backendsFrom[0].weight", "should be greater than or equal to 0"),
	Entry("a weight of a source over the limit", source("weight: 1000001"),
		"spec.backendsFrom[0].weight", "should be less than or equal to 1000000"),
	Entry("a weight annotation of 318 characters", source("weightAnnotation: "+long(254)+"/"+long(63)),
		"spec.backendsFrom[0].weightAnnotation", "may not be more than 317"),
	Entry("a weight annotation with a space", source("weightAnnotation: my weight"),
		"spec.backendsFrom[0].weightAnnotation", "should match"),
	Entry("33 labels of a source", source("labels: "+longLabels(33)),
		"spec.backendsFrom[0].labels", "Too many: 33: must have at most 32 items"),
	Entry("a long label of a source", source("labels: {k: "+long(64)+"}"),
		"spec.backendsFrom[0].labels", "keys of labels must have at most 317 characters and the values at most 63"),
	Entry("a long key of a source", source("labels: {"+long(318)+": v}"),
		"spec.backendsFrom[0].labels", "keys of labels must have at most 317 characters and the values at most 63"),
	Entry("17 labels of pods", source("labelsFromPod: "+longKeys(17)),
		"spec.backendsFrom[0].labelsFromPod", "Too many: 17: must have at most 16 items"),
	Entry("a label of pods twice", source("labelsFromPod: [eu, eu]"),
		"spec.backendsFrom[0].labelsFromPod", `duplicate entries for key [="eu"]`),
	Entry("an empty label of pods", source(`labelsFromPod: [""]`),
		"spec.backendsFrom[0].labelsFromPod[0]", "should be at least 1 chars long"),
	Entry("a long label of pods", source("labelsFromPod: ["+long(318)+"]"),
		"spec.backendsFrom[0].labelsFromPod[0]", "may not be more than 317"),

	Entry("0 backends at least", membership("minBackends: 0"),
		"spec.membership.minBackends", "should be greater than or equal to 1"),
	Entry("4,097 backends at least", membership("minBackends: 4097"),
		"spec.membership.minBackends", "should be less than or equal to 4096"),
	Entry("a long joinDelay", membership("joinDelay: 24h1s"),
		"spec.membership.joinDelay", "joinDelay must be at most 24h; got 86401s"),
	Entry("a joinDelay in days", membership("joinDelay: 1d"),
		"spec.membership.joinDelay", "1d"),
	Entry("a negative joinDelay", membership("joinDelay: -1s"),
		"spec.membership.joinDelay", "should match"),
	Entry("a joinDelay without a unit", membership("joinDelay: 30"),
		"spec.membership.joinDelay", "must be of type duration"),
	Entry("a long leaveDelay", membership("leaveDelay: 169h"),
		"spec.membership.leaveDelay", "leaveDelay must be at most 168h; got 608400s"),
	Entry("a leaveDelay in days", membership("leaveDelay: 7d"),
		"spec.membership.leaveDelay", "7d"),
	Entry("a negative leaveDelay", membership("leaveDelay: -1s"),
		"spec.membership.leaveDelay", "should match"),
	Entry("more than all removed", membership(`maxRemoved: "100.0001%"`),
		"spec.membership.maxRemoved", "maxRemoved must be a percentage from 0% to 100% with at most 4 decimals, such as 50%; got 100.0001%"),
	Entry("removed in 5 decimals", membership(`maxRemoved: "0.00001%"`),
		"spec.membership.maxRemoved", "such as 50%; got 0.00001%"),
	Entry("removed without a sign", membership(`maxRemoved: "0.5"`),
		"spec.membership.maxRemoved", "such as 50%; got 0.5"),
	Entry("a negative part removed", membership(`maxRemoved: "-1%"`),
		"spec.membership.maxRemoved", "such as 50%; got -1%"),
	Entry("removed as a number", membership(`maxRemoved: 50`),
		"spec.membership.maxRemoved", "expected string"),
	Entry("more than anything moved", membership(`maxMovement: "101%"`),
		"spec.membership.maxMovement", "maxMovement must be a percentage from 0% to 100% with at most 4 decimals, such as 5%; got 101%"),
	Entry("moved in 5 decimals", membership(`maxMovement: "5.00000%"`),
		"spec.membership.maxMovement", "such as 5%; got 5.00000%"),
	Entry("moved without a sign", membership(`maxMovement: "5"`),
		"spec.membership.maxMovement", "such as 5%; got 5"),
	Entry("moved in 17 characters", membership(`maxMovement: "`+long(17)+`"`),
		"spec.membership.maxMovement", "may not be more than 16"),

	Entry("a policy that there is not", "spec: {changePolicy: Never}",
		"spec.changePolicy", `Unsupported value: "Never": supported values: "Migrate", "Immediate"`),
	Entry("revision 0", "spec: {pinnedRevision: 0}",
		"spec.pinnedRevision", "should be greater than or equal to 1"),
	Entry("a revision in quotes", `spec: {pinnedRevision: "1"}`,
		"spec.pinnedRevision", "expected"),
	Entry("no revision kept", "spec: {historyLimit: 0}",
		"spec.historyLimit", "should be greater than or equal to 1"),
	Entry("101 revisions kept", "spec: {historyLimit: 101}",
		"spec.historyLimit", "should be less than or equal to 100"),
	Entry("a long tombstone", "spec: {deletion: {tombstone: 721h}}",
		"spec.deletion.tombstone", "tombstone must be at most 720h; got 2595600s"),
	Entry("a tombstone in days", "spec: {deletion: {tombstone: 3d}}",
		"spec.deletion.tombstone", "3d"),
	Entry("a negative tombstone", "spec: {deletion: {tombstone: -1h}}",
		"spec.deletion.tombstone", "should match"),
)
