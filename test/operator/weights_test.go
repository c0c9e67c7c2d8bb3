// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/catalog"
)

// newWeightSet returns one of the WeightSets of a policy for a HashRing, as the balancer writes them.
func newWeightSet(r *v1alpha1.HashRing, policy string, number, sets int, version int64, weights map[string]int32) *v1alpha1.WeightSet {
	s := &v1alpha1.WeightSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: policy + "-" + strconv.Itoa(number),
			Labels: map[string]string{v1alpha1.LabelWeightPolicy: policy, v1alpha1.LabelWeightRing: r.Name},
		},
		Policy: v1alpha1.PolicyIdentity{Name: policy, UID: "uid-" + policy, Ring: r.Name},
		Holder: "balancer-0", Version: version, Sets: int32(sets), UpdatedAt: metav1.Now(),
	}
	for id, weight := range weights {
		s.Endpoints = append(s.Endpoints, v1alpha1.WeightedEndpoint{ID: id, Weight: weight, Source: v1alpha1.SourcePush, Utilization: 5000})
	}
	return s
}

// newWeighedRing returns a HashRing whose backends have the weight 100.
func newWeighedRing(namespace, name string, n int) *v1alpha1.HashRing {
	r := newRing(namespace, name, n)
	r.Spec.Algorithm.PointsPerWeight = 2
	for i := range r.Spec.Backends {
		r.Spec.Backends[i].Weight = ptr.To(int32(100))
	}
	return r
}

// loaded waits until the status says that the ring has the factors of a version.
func loaded(ctx context.Context, r *v1alpha1.HashRing, version int64) *v1alpha1.HashRing {
	GinkgoHelper()
	got := &v1alpha1.HashRing{}
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), got)).To(Succeed())
		g.Expect(got.Status.LoadWeights).NotTo(BeNil())
		g.Expect(got.Status.LoadWeights.Version).To(Equal(version))
		g.Expect(got.Status.LoadWeights.Applied).To(BeTrue())
	}).Should(Succeed())
	return got
}

// idOf returns the ID of a backend.
func idOf(b v1alpha1.Backend) string { return b.Address + ":" + strconv.Itoa(int(*b.Port)) }

var _ = Describe("load weights", func() {
	It("move few keys, and back when their tombstone is over", func(ctx SpecContext) {
		r := newWeighedRing(newNamespace(ctx), "followed", 10)
		Expect(admin.Create(ctx, r)).To(Succeed())
		first := settled(ctx, r, v1alpha1.ReasonRingPublished)
		set := newWeightSet(r, "load", 0, 1, 1, map[string]int32{idOf(r.Spec.Backends[0]): 9500})
		Expect(admin.Create(ctx, set)).To(Succeed())
		got := loaded(ctx, r, 1)
		Expect(got.Status.Active.Revision).To(BeEquivalentTo(2))
		moved, err := strconv.ParseFloat(strings.TrimSuffix(got.Status.Active.Movement, "%"), 64)
		Expect(err).NotTo(HaveOccurred())
		Expect(moved).To(And(BeNumerically(">", 0), BeNumerically("<", 1.5)), "5 % of a tenth")
		Expect(got.Status.LoadWeights.Policy).To(Equal("load"))
		Expect(got.Status.LoadWeights.Factors).To(ConsistOf(v1alpha1.LoadFactor{ID: idOf(r.Spec.Backends[0]), Factor: 9500}))

		set.Version, set.Endpoints[0].Weight = 2, 9600
		Expect(admin.Update(ctx, set)).To(Succeed())
		loaded(ctx, r, 2)

		set.TombstoneUntil = ptr.To(metav1.NewTime(time.Now().Add(2 * time.Second)))
		Expect(admin.Update(ctx, set)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), got)).To(Succeed())
			g.Expect(got.Status.LoadWeights).To(BeNil())
			g.Expect(got.Status.Active.Digest).To(Equal(first.Status.Active.Digest))
		}).Should(Succeed())
	})

	It("count when all WeightSets are there, and end with them", func(ctx SpecContext) {
		r := newWeighedRing(newNamespace(ctx), "parts", 4)
		Expect(admin.Create(ctx, r)).To(Succeed())
		first := settled(ctx, r, v1alpha1.ReasonRingPublished)
		one := newWeightSet(r, "load", 0, 2, 1, map[string]int32{idOf(r.Spec.Backends[0]): 5000})
		two := newWeightSet(r, "load", 1, 2, 1, map[string]int32{idOf(r.Spec.Backends[1]): 15000})
		Expect(admin.Create(ctx, one)).To(Succeed())
		Consistently(func(g Gomega) {
			got := &v1alpha1.HashRing{}
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), got)).To(Succeed())
			g.Expect(got.Status.Active.Digest).To(Equal(first.Status.Active.Digest))
			g.Expect(got.Status.LoadWeights).To(BeNil())
		}, time.Second).Should(Succeed())
		Expect(admin.Create(ctx, two)).To(Succeed())
		got := loaded(ctx, r, 1)
		Expect(got.Status.LoadWeights.Factors).To(HaveLen(2))
		Expect(got.Status.Active.Digest).NotTo(Equal(first.Status.Active.Digest))
		Expect(admin.DeleteAllOf(ctx, &v1alpha1.WeightSet{}, client.InNamespace(r.Namespace))).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), got)).To(Succeed())
			g.Expect(got.Status.LoadWeights).To(BeNil())
			g.Expect(got.Status.Active.Digest).To(Equal(first.Status.Active.Digest))
		}).Should(Succeed())
	})

	It("say that weights of 1 are too coarse, and which would do", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "coarse", 4)
		r.Spec.Algorithm.Version = v1alpha1.AlgorithmV1
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(admin.Create(ctx, newWeightSet(r, "load", 0, 1, 1, map[string]int32{idOf(r.Spec.Backends[0]): 8000}))).To(Succeed())
		got := loaded(ctx, r, 1)
		Expect(got.Status.Warnings).To(ContainElement(And(
			HaveField("Reason", v1alpha1.WarningCoarseWeights), HaveField("Message", ContainSubstring("weights 20 times as large in all backends would do")))))
		Expect(got.Status.Active.Revision).To(BeEquivalentTo(1))
	})

	It("are in the catalog with what is left of them", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		restartWithCatalog(namespace)
		DeferCleanup(restartOperator)
		policy := &v1alpha1.WeightPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "checkout"},
			Spec:       v1alpha1.WeightPolicySpec{TargetRef: v1alpha1.WeightTarget{Name: "checkout"}},
		}
		Expect(admin.Create(ctx, policy)).To(Succeed())
		r := newWeighedRing(namespace, "edge", 2)
		set := newWeightSet(r, "checkout", 0, 1, 3, nil)
		Expect(admin.Create(ctx, set)).To(Succeed())
		read := func() (c catalog.Catalog, err error) {
			cm := &corev1.ConfigMap{}
			if err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: catalog.Name}, cm); err != nil {
				return c, err
			}
			return catalogOf(cm)
		}
		Eventually(func(g Gomega) {
			c, err := read()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.WeightPolicies).To(ContainElement(catalog.WeightPolicy{
				Namespace: namespace, Name: "checkout", UID: string(policy.UID), Target: "Service/checkout",
			}))
			g.Expect(c.WeightTombstones).NotTo(ContainElement(HaveField("Namespace", namespace)))
		}).Should(Succeed())

		policy.Status = v1alpha1.WeightPolicyStatus{Endpoints: &v1alpha1.EndpointCounts{Total: 5}}
		Expect(admin.Status().Update(ctx, policy)).To(Succeed())
		Eventually(func(g Gomega) {
			c, err := read()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.WeightPolicies).To(ContainElement(And(HaveField("Namespace", namespace), HaveField("Endpoints", BeEquivalentTo(5)))))
		}).Should(Succeed())

		Expect(admin.Delete(ctx, policy)).To(Succeed())
		until := metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second))
		set.TombstoneUntil = &until
		Expect(admin.Update(ctx, set)).To(Succeed())
		Eventually(func(g Gomega) {
			c, err := read()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.WeightPolicies).NotTo(ContainElement(HaveField("Namespace", namespace)))
			g.Expect(c.WeightTombstones).To(ContainElement(catalog.WeightTombstone{
				Namespace: namespace, Name: "checkout", UID: "uid-checkout", Ring: "edge", Version: 3, Sets: 1, Until: until.UTC().Format(time.RFC3339),
			}))
		}).Should(Succeed())
	})
})
