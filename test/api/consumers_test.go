// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	applyv1alpha1 "github.com/ringwright/ringwright/api/v1alpha1/applyconfiguration/api/v1alpha1"
)

// consumers is a spec whose consumers have a selector and more fields.
func consumers(fields string) string {
	return "spec: {consumers: {selector: {matchLabels: {app: edge}}, " + fields + "}}"
}

// consumed is a spec whose consumers have this selector.
func consumed(selector string) string { return "spec: {consumers: {selector: " + selector + "}}" }

// manyExpressions are n requirements.
func manyExpressions(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("{key: k%d, operator: Exists}", i)
	}
	return "[" + strings.Join(list, ", ") + "]"
}

var _ = DescribeTable("A HashRing is accepted with", accepted,
	Entry("consumers by labels", consumers("")),
	Entry("consumers by expressions", consumed("{matchExpressions: [{key: app, operator: In, values: [edge, proxy]}]}")),
	Entry("the largest selector of consumers", consumed("{matchLabels: "+manyLabels(32)+", matchExpressions: "+manyExpressions(32)+"}")),
	Entry("an operator for consumers that there is not, which a condition reports", consumed("{matchExpressions: [{key: app, operator: Is}]}")),
	Entry("port 1 of consumers", consumers("port: 1")),
	Entry("port 65,535 of consumers", consumers("port: 65535")),
	Entry("the shortest time-out", consumers("timeout: 100ms")),
	Entry("the longest time-out", consumers("timeout: 10s")),
	Entry("the longest time-out in parts", consumers("timeout: 9s1000ms")),
	Entry("kubelets that take their time", consumers("refresh: Kubelet")),
	Entry("pods that are touched", consumers("refresh: TouchPods")),
)

var _ = DescribeTable("A HashRing is refused with", refused,
	Entry("consumers without a selector", "spec: {consumers: {port: 80}}",
		"spec.consumers.selector: Required value"),
	Entry("an empty selector of consumers", consumed("{}"),
		"spec.consumers.selector: Required value", "must have matchLabels or matchExpressions; an empty one would select every pod of the namespace"),
	Entry("a selector of consumers of empty lists", consumed("{matchLabels: {}, matchExpressions: []}"),
		"spec.consumers.selector: Required value"),
	Entry("33 labels of consumers", consumed("{matchLabels: "+manyLabels(33)+"}"),
		"spec.consumers.selector", "selector must have at most 32 matchLabels and at most 32 matchExpressions"),
	Entry("33 expressions of consumers", consumed("{matchExpressions: "+manyExpressions(33)+"}"),
		"spec.consumers.selector", "selector must have at most 32 matchLabels and at most 32 matchExpressions"),
	Entry("port 0 of consumers", consumers("port: 0"),
		"spec.consumers.port", "should be greater than or equal to 1"),
	Entry("port 65,536 of consumers", consumers("port: 65536"),
		"spec.consumers.port", "should be less than or equal to 65535"),
	Entry("a time-out of nothing", consumers("timeout: 0s"),
		"spec.consumers.timeout", "timeout must be from 100ms to 10s; got 0s"),
	Entry("a time-out below the limit", consumers("timeout: 99ms"),
		"spec.consumers.timeout", "timeout must be from 100ms to 10s; got 0.099s"),
	Entry("a time-out over the limit", consumers("timeout: 11s"),
		"spec.consumers.timeout", "timeout must be from 100ms to 10s; got 11s"),
	Entry("a time-out in days", consumers("timeout: 1d"),
		"spec.consumers.timeout", "1d"),
	Entry("another way to refresh", consumers("refresh: Restart"),
		`spec.consumers.refresh: Unsupported value: "Restart": supported values: "Kubelet", "TouchPods"`),
	Entry("another scheme", consumers("scheme: HTTPS"), ".spec.consumers.scheme: field not declared in schema"),
)

var _ = Describe("spec.consumers", func() {
	It("has a port, a time-out and a way to refresh by default, and is absent by default", func(ctx SpecContext) {
		Expect(apply(ctx, hashRing("consumers", consumers("")))).To(Succeed())
		Expect(cmp.Diff(&v1alpha1.Consumers{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "edge"}},
			Port:     v1alpha1.DefaultConsumerPort, Timeout: &metav1.Duration{Duration: 2 * time.Second},
			Refresh: v1alpha1.RefreshKubelet,
		}, get(ctx, "consumers").Spec.Consumers)).To(BeEmpty())
		Expect(apply(ctx, hashRing("consumers", "{spec: {}}"))).To(Succeed())
		Expect(get(ctx, "consumers").Spec.Consumers).To(BeNil())
	})
})

var _ = Describe("status.refresh", func() {
	It("keeps every field as it was written", func(ctx SpecContext) {
		Expect(apply(ctx, hashRing("refreshed", "{spec: {}}"))).To(Succeed())
		status := applyv1alpha1.RefreshStatus().WithGeneration(41).WithTotal(120).WithTouched(118).WithRefused(1)
		ring := applyv1alpha1.HashRing("refreshed", namespace).WithStatus(applyv1alpha1.HashRingStatus().WithRefresh(status))
		Expect(api.Status().Apply(ctx, ring, client.FieldOwner(v1alpha1.FieldManager))).To(Succeed())
		Expect(get(ctx, "refreshed").Status.Refresh).To(HaveValue(Equal(v1alpha1.RefreshStatus{Generation: 41, Total: 120, Touched: 118, Refused: 1})))
	})
})

// fullConsumers is a status.consumers with every field set.
func fullConsumers() *applyv1alpha1.ConsumerStatusApplyConfiguration {
	return applyv1alpha1.ConsumerStatus().WithGeneration(41).WithTotal(120).WithCurrent(119).WithStale(1).
		WithUnreachable(1).WithMismatched(1).WithOverridden(1).
		WithStalePods(applyv1alpha1.StalePod().WithName("edge-7").WithDatacenter("lab01").WithReason(v1alpha1.StaleLoadError).
			WithGeneration(40).WithMessage("digest: it is another")).
		WithDatacenters(
			applyv1alpha1.DatacenterConsumers().WithTotal(20).WithCurrent(20).WithStable(20),
			applyv1alpha1.DatacenterConsumers().WithName("lab01").WithTotal(100).WithCurrent(99).WithStable(100).WithCandidate(98))
}

var _ = Describe("status.consumers", func() {
	write := func(ctx SpecContext, status *applyv1alpha1.ConsumerStatusApplyConfiguration) error {
		GinkgoHelper()
		Expect(apply(ctx, hashRing("consumed", "{spec: {}}"))).To(Succeed())
		ring := applyv1alpha1.HashRing("consumed", namespace).WithStatus(applyv1alpha1.HashRingStatus().WithConsumers(status))
		return api.Status().Apply(ctx, ring, client.FieldOwner(v1alpha1.FieldManager))
	}

	It("keeps every field as it was written", func(ctx SpecContext) {
		Expect(write(ctx, fullConsumers())).To(Succeed())
		Expect(cmp.Diff(&v1alpha1.ConsumerStatus{
			Generation: 41, Total: 120, Current: 119, Stale: 1, Unreachable: 1, Mismatched: 1, Overridden: 1,
			StalePods: []v1alpha1.StalePod{{
				Name: "edge-7", Datacenter: "lab01", Reason: v1alpha1.StaleLoadError, Generation: 40, Message: "digest: it is another",
			}},
			Datacenters: []v1alpha1.DatacenterConsumers{
				{Total: 20, Current: 20, Stable: 20}, {Name: "lab01", Total: 100, Current: 99, Stable: 100, Candidate: 98},
			},
		}, get(ctx, "consumed").Status.Consumers)).To(BeEmpty())
	})

	It("has room for 10 stale pods and 1,024 datacenters, with the longest texts", func(ctx SpecContext) {
		status := fullConsumers()
		status.StalePods, status.Datacenters = nil, nil
		for range 10 {
			status.WithStalePods(applyv1alpha1.StalePod().WithName(long(253)).WithDatacenter(long(63)).
				WithReason(v1alpha1.StaleUnreachable).WithMessage(long(256)))
		}
		for i := range 1024 {
			status.WithDatacenters(applyv1alpha1.DatacenterConsumers().WithName(fmt.Sprintf("%s%04d", long(59), i)).WithTotal(1).WithCurrent(1).WithStable(1))
		}
		Expect(write(ctx, status)).To(Succeed())
		Expect(write(ctx, status.WithStalePods(applyv1alpha1.StalePod().WithName("a").WithReason(v1alpha1.StaleNotReady)))).
			To(MatchError(ContainSubstring("status.consumers.stalePods: Too many: 11: must have at most 10 items")))
		status.StalePods = nil
		Expect(write(ctx, status.WithDatacenters(applyv1alpha1.DatacenterConsumers().WithTotal(1).WithCurrent(1).WithStable(1)))).
			To(MatchError(ContainSubstring("status.consumers.datacenters: Too many: 1025: must have at most 1024 items")))
	})

	It("refuses a reason that there is not, and texts that are too long", func(ctx SpecContext) {
		pod := applyv1alpha1.StalePod().WithName("a").WithReason("Asleep")
		status := fullConsumers().WithStalePods(pod)
		Expect(write(ctx, status)).To(MatchError(ContainSubstring(`status.consumers.stalePods[1].reason: Unsupported value: "Asleep"`)))
		status.StalePods[1].WithReason(v1alpha1.StaleNotReady).WithMessage(long(257))
		Expect(write(ctx, status)).To(MatchError(ContainSubstring("status.consumers.stalePods[1].message: Too long: may not be more than 256")))
	})
})
