// SPDX-License-Identifier: Apache-2.0

package namespaced_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/catalog"
)

var _ = Describe("an operator and a balancer of one namespace", Ordered, func() {
	var outside string

	BeforeAll(func(ctx SpecContext) {
		var err error
		outside, err = controlPlane.CreateNamespace(ctx, "outside-")
		Expect(err).NotTo(HaveOccurred())
		// What is outside is there first, so that it would have been seen before what is inside.
		for _, namespace := range []string{outside, watched} {
			Expect(admin.Create(ctx, newRing(namespace))).To(Succeed())
			Expect(admin.Create(ctx, newService(namespace))).To(Succeed())
			Expect(admin.Create(ctx, newPolicy(namespace))).To(Succeed())
		}
	})

	It("publish what is in it, and keep the catalog in their own", func(ctx SpecContext) {
		r := newRing(watched)
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), r)).To(Succeed())
			ready := meta.FindStatusCondition(r.Status.Conditions, string(v1alpha1.ConditionReady))
			g.Expect(ready).NotTo(BeNil())
			g.Expect(ready.Reason).To(Equal(string(v1alpha1.ReasonRingPublished)), "%s", ready.Message)
		}).Should(Succeed())
		Expect(published(ctx, watched)).To(ConsistOf("ring-a", "ring-b", "ring-routing"))
		Eventually(func(g Gomega) {
			cm := &corev1.ConfigMap{}
			g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: catalog.Name}, cm)).To(Succeed())
			content, err := catalog.Payload{Data: cm.Data, BinaryData: cm.BinaryData}.Unpack()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(content.Rings).To(HaveLen(1))
			g.Expect(content.Rings[0].Namespace + "/" + content.Rings[0].Name).To(Equal(watched + "/ring"))
		}).Should(Succeed())
	})

	It("balance what is in it", func(ctx SpecContext) {
		p := newPolicy(watched)
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
			g.Expect(p.Status.ObservedGeneration).To(Equal(p.Generation))
		}).Should(Succeed())
	})

	It("leave alone what is outside", func(ctx SpecContext) {
		r, p := newRing(outside), newPolicy(outside)
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), r)).To(Succeed())
		Expect(r.Status).To(Equal(v1alpha1.HashRingStatus{ObservedGeneration: -1}), "the default of the schema")
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
		Expect(p.Status.ObservedGeneration).To(BeNumerically("<", 1))
		Expect(p.Status.Conditions).To(BeEmpty())
		Expect(published(ctx, outside)).To(BeEmpty())
	})

	It("ask for nothing that they may not, and for nothing of other namespaces", func() {
		seen := map[string]bool{}
		for _, event := range auditEvents() {
			request := event.Verb + " " + event.RequestURI
			Expect(event.Annotations).NotTo(HaveKeyWithValue("authorization.k8s.io/decision", "forbid"), request)
			Expect(event.ObjectRef.Namespace).To(BeElementOf(watched, systemNamespace), request)
			seen[event.User.Username+" in "+event.ObjectRef.Namespace] = true
		}
		Expect(seen).To(HaveLen(4), "both programs in both namespaces")
	})

	It("have no trouble with what is left of a ring in a namespace that is not watched", func() {
		families, err := metrics.Registry.Gather()
		Expect(err).NotTo(HaveOccurred())
		counted := 0
		for _, family := range families {
			if family.GetName() != "controller_runtime_reconcile_errors_total" {
				continue
			}
			for _, metric := range family.GetMetric() {
				Expect(metric.GetCounter().GetValue()).To(BeZero(), "%v", metric.GetLabel())
				counted++
			}
		}
		Expect(counted).To(BeNumerically(">=", 3))
	})
})

func newRing(namespace string) *v1alpha1.HashRing {
	return &v1alpha1.HashRing{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ring"},
		Spec: v1alpha1.HashRingSpec{
			Backends: []v1alpha1.Backend{{Name: "c0", Address: "10.1.0.0", Port: ptr.To(int32(8080))}, {Name: "c1", Address: "10.1.0.1", Port: ptr.To(int32(8080))}},
		},
	}
}

func newService(namespace string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "checkout"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "checkout"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func newPolicy(namespace string) *v1alpha1.WeightPolicy {
	return &v1alpha1.WeightPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "checkout"},
		Spec:       v1alpha1.WeightPolicySpec{TargetRef: v1alpha1.WeightTarget{Name: "checkout"}},
	}
}

// published returns the names of the ConfigMaps of the ring in a namespace.
func published(ctx context.Context, namespace string) []string {
	GinkgoHelper()
	list := &corev1.ConfigMapList{}
	Expect(admin.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelRing: "ring"})).To(Succeed())
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}
