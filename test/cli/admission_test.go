// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/internal/crdschema"
)

// ask returns what the API server makes of a spec, and what crdschema does.
func ask(ctx context.Context, spec string) (server, offline *unstructured.Unstructured, serverErr, offlineErr error) {
	GinkgoHelper()
	text, err := yaml.YAMLToJSON([]byte("{apiVersion: ringwright.dev/v1alpha1, kind: HashRing, metadata: {name: asked}, spec: " + spec + "}"))
	Expect(err).NotTo(HaveOccurred())
	server = &unstructured.Unstructured{}
	Expect(json.Unmarshal(text, &server.Object)).To(Succeed())
	server.SetNamespace(namespace)
	offline = server.DeepCopy()
	schema, err := crdschema.HashRing()
	Expect(err).NotTo(HaveOccurred())
	serverErr = admin.Create(ctx, server, client.DryRunAll, client.FieldValidation("Strict"))
	offlineErr = schema.Admit(ctx, offline)
	return server, offline, serverErr, offlineErr
}

var _ = Describe("The offline schema", func() {
	const one = "backends: [{name: a, address: 10.0.0.1, port: 1}]"

	DescribeTable("fills in what the API server does", func(ctx SpecContext, spec string) {
		server, offline, serverErr, offlineErr := ask(ctx, spec)
		Expect(serverErr).NotTo(HaveOccurred())
		Expect(offlineErr).NotTo(HaveOccurred())
		Expect(offline.Object["spec"]).To(Equal(server.Object["spec"]))
	},
		Entry("nothing but backends", "{"+one+"}"),
		Entry("no backends", "{}"),
		Entry("a part of algorithm", "{algorithm: {version: V1}, "+one+"}"),
		Entry("nulls", "{algorithm: null, publication: {minInterval: null}, features: null, backends: [{name: a, address: 10.0.0.1, port: 1, weight: null}]}"),
		Entry("a number with a point", "{backends: [{name: a, address: 10.0.0.1, port: 80.0}]}"),
		Entry("sources", `{identity: Name, backendsFrom: [{service: {name: cache}}, {service: {name: cache, port: 80}, identity: PodName, weight: 0,
			weightAnnotation: example.com/weight, preferredIPFamily: IPv6, labels: {a: b}, labelsFromPod: [eu]}, {service: {name: b, port: http}}]}`),
		Entry("a part of membership and of deletion", `{membership: {maxMovement: "5%"}, deletion: {}, historyLimit: 1, pinnedRevision: 7}`),
		Entry("nulls of membership", "{membership: {joinDelay: null, maxRemoved: null}, deletion: null, pinnedRevision: null, changePolicy: null}"),
		Entry("everything", `{algorithm: {version: V2, pointsPerWeight: 4}, identity: NGINX, publication: {minInterval: 1h},
			features: [{name: eu, selector: {matchLabels: {eu: "true"}, matchExpressions: [{key: a, operator: In, values: [b]}]}}],
			backends: [{name: a, address: "[2001:db8::1]", port: 80, weight: 0, zone: z, labels: {eu: "true"}}, {name: b, address: B.example}]}`),
	)

	DescribeTable("refuses what the API server does, in its words", func(ctx SpecContext, spec string) {
		_, _, serverErr, offlineErr := ask(ctx, spec)
		Expect(serverErr).To(HaveOccurred())
		var rejection *crdschema.Rejection
		Expect(errors.As(offlineErr, &rejection)).To(BeTrue(), "%v", offlineErr)
		Expect(rejection.Violations).To(ConsistOf(violations(serverErr)))
	},
		Entry("unknown fields", "{algoritm: {}, backends: [{name: a, address: 10.0.0.1, port: 1, wieght: 1}]}"),
		Entry("V1 with 40 points", "{algorithm: {version: V1, pointsPerWeight: 40}, "+one+"}"),
		Entry("an unknown version", "{algorithm: {version: V9}, "+one+"}"),
		Entry("brackets under Address", `{backends: [{name: a, address: "[2001:db8::1]", port: 1}]}`),
		Entry("bare IPv6 under NGINX", `{identity: NGINX, backends: [{name: a, address: "2001:db8::1"}]}`),
		Entry("no port", "{backends: [{name: a, address: 10.0.0.1}]}"),
		Entry("duplicate names", "{backends: [{name: a, address: 10.0.0.1, port: 1}, {name: a, address: 10.0.0.2, port: 1}]}"),
		Entry("duplicate features", "{features: [{name: a, selector: {matchLabels: {a: b}}}, {name: a, selector: {matchLabels: {a: b}}}]}"),
		Entry("an empty selector", "{features: [{name: a, selector: {}}]}"),
		Entry("weights and ports out of bounds", "{backends: [{name: a, address: 10.0.0.1, port: 65536, weight: 1000001}, {name: b, address: 10.0.0.1, port: 0, weight: -1}]}"),
		Entry("text for a number", `{backends: [{name: a, address: 10.0.0.1, port: "1"}]}`),
		Entry("a list for an object", "{algorithm: [], "+one+"}"),
		Entry("missing fields", "{backends: [{}], features: [{}]}"),
		Entry("intervals", "{publication: {minInterval: 2h}}"),
		Entry("no interval", "{publication: {minInterval: 3d}}"),
		Entry("a bad name and address", `{backends: [{name: "-a", address: "10.0.0.1:80", port: 1}]}`),
		Entry("a long label", "{backends: [{name: a, address: 10.0.0.1, port: 1, labels: {a: "+strings.Repeat("x", 64)+"}}]}"),
		Entry("sources by hostname and pod", "{backendsFrom: [{service: {name: a}, identity: Hostname}, {service: {name: b}, identity: PodName}]}"),
		Entry("bad ports of Services", `{backendsFrom: [{service: {name: a, port: 0}}, {service: {name: a, port: 65536}}, {service: {name: a, port: "80"}},
			{service: {name: a, port: ""}}, {service: {name: a, port: HTTP}}]}`),
		Entry("a long port of a Service", "{backendsFrom: [{service: {name: a, port: "+strings.Repeat("x", 64)+"}}]}"),
		Entry("a number with a point for a port", "{backendsFrom: [{service: {name: a, port: 80.5}}]}"),
		Entry("an object for a port", "{backendsFrom: [{service: {name: a, port: {}}}]}"),
		Entry("missing fields of sources", "{backendsFrom: [{}, {service: {}}]}"),
		Entry("labels of pods twice", "{backendsFrom: [{service: {name: a}, labelsFromPod: [a, a]}]}"),
		Entry("labels of sources", "{backendsFrom: [{service: {name: a}, labels: {a: "+strings.Repeat("x", 64)+"}}]}"),
		Entry("17 sources", "{backendsFrom: ["+strings.Repeat("{service: {name: a}}, ", 17)+"]}"),
		Entry("bounds of membership", `{membership: {minBackends: 0, joinDelay: 25h, leaveDelay: 169h, maxRemoved: "101%", maxMovement: "5"}}`),
		Entry("delays in days", "{membership: {joinDelay: 1d, leaveDelay: 1d}, deletion: {tombstone: 3d}}"),
		Entry("the other bounds", "{pinnedRevision: 0, historyLimit: 101, deletion: {tombstone: 721h}, changePolicy: Migrate}"),
		Entry("an unknown policy and family", "{changePolicy: Never, backendsFrom: [{service: {name: a}, preferredIPFamily: IPv5}]}"),
		Entry("4097 backends", "{backends: ["+strings.Repeat("{name: a, address: 10.0.0.1, port: 1}, ", 4097)+"]}"),
	)
})

// violations puts the causes of a refusal into the form of crdschema.
func violations(err error) []string {
	GinkgoHelper()
	var status *apierrors.StatusError
	Expect(errors.As(err, &status)).To(BeTrue(), "%v", err)
	var list []string
	if status.ErrStatus.Details == nil || len(status.ErrStatus.Details.Causes) == 0 {
		// A strict decoding error names the fields in its message.
		for part := range strings.SplitSeq(status.ErrStatus.Message, ", ") {
			if _, name, found := strings.Cut(part, `unknown field "`); found {
				list = append(list, strings.TrimSuffix(name, `"`)+": unknown field")
			}
		}
		return list
	}
	for _, cause := range status.ErrStatus.Details.Causes {
		if !strings.Contains(cause.Message, "some validation rules were not checked") { // What it does not check, it does not refuse.
			list = append(list, fmt.Sprintf("%s: %s", cause.Field, cause.Message))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
