// SPDX-License-Identifier: Apache-2.0

package weights_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// condition is a condition of a policy as "Status Reason".
func condition(ctx context.Context, policy *v1alpha1.WeightPolicy, kind v1alpha1.ConditionType) func() string {
	return func() string {
		current := &v1alpha1.WeightPolicy{}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(policy), current); err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(current.Status.Conditions, string(kind))
		if c == nil {
			return "absent"
		}
		return string(c.Status) + " " + c.Reason
	}
}

func status(ctx context.Context, policy *v1alpha1.WeightPolicy) v1alpha1.WeightPolicyStatus {
	GinkgoHelper()
	current := &v1alpha1.WeightPolicy{}
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(policy), current)).To(Succeed())
	return current.Status
}

var _ = Describe("a WeightPolicy with targetRef alone", func() {
	It("balances servers of three speeds, and says so", func(ctx SpecContext) {
		s := newShop(ctx, "shop", 1, 1, 1, 2, 2, 2, 3, 3)
		s.open(startReplica("a"))
		policy := s.policy()
		Expect(admin.Create(ctx, policy)).To(Succeed())
		Eventually(func() int { return len(s.client.weights()) }).Should(Equal(8))
		Expect(s.maxOverAverage()).To(BeNumerically(">", 1.4), "equal weights would do")
		Eventually(s.maxOverAverage).Should(BeNumerically("<=", 1.02))
		Consistently(s.maxOverAverage, 5*time.Second).Should(BeNumerically("<=", 1.02))

		Eventually(condition(ctx, policy, v1alpha1.ConditionReady)).Should(Equal("True WeightsServed"))
		Eventually(condition(ctx, policy, v1alpha1.ConditionReporting)).Should(Equal("True ReportsFresh"))
		Eventually(condition(ctx, policy, v1alpha1.ConditionConverged)).Should(Equal("True Converged"))
		Eventually(condition(ctx, policy, v1alpha1.ConditionEffective)).Should(Equal("True Balancing"))
		found := status(ctx, policy)
		Expect(found.Endpoints).To(HaveValue(HaveField("Reporting", BeEquivalentTo(8))))
		Expect(found.Shard).To(HaveValue(Equal(v1alpha1.ShardStatus{Holder: "a", Epoch: 1})))
		Expect(found.Rollout).To(HaveValue(HaveField("Percent", "100%")))
		Expect(found.Sources).To(HaveLen(3))
		Expect(found.Sources[1]).To(HaveField("Endpoints", BeEquivalentTo(8)))

		set := &v1alpha1.WeightSet{}
		Eventually(func() int {
			Expect(admin.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "shop-0"}, set)).To(Succeed())
			return len(set.Endpoints)
		}).Should(Equal(8))
		Expect(set.Endpoints[0].Source).To(Equal(v1alpha1.SourcePush))
		Expect(set.Endpoints[0].State).To(Equal(v1alpha1.EndpointBalanced))
	})

	It("goes on after a kill with the weights of before", func(ctx SpecContext) {
		s := newShop(ctx, "shop", 1, 2, 3, 3)
		balancer := startReplica("a")
		s.open(balancer)
		policy := s.policy()
		Expect(admin.Create(ctx, policy)).To(Succeed())
		Eventually(s.maxOverAverage, 40*time.Second).Should(BeNumerically("<=", 1.02))
		Consistently(s.maxOverAverage, 4*time.Second).Should(BeNumerically("<=", 1.03)) // In which the weights are stored.
		before := len(s.client.history())
		balancer.kill()
		balancer.start()
		Eventually(func() int { return len(s.client.history()) }).Should(BeNumerically(">", before), "the client is not told anything")
		for range 30 {
			Expect(s.maxOverAverage()).To(BeNumerically("<=", 1.03))
			Eventually(time.After(100 * time.Millisecond)).Should(Receive())
		}
		Eventually(func() int64 { return status(ctx, policy).Shard.Epoch }).Should(BeEquivalentTo(2))
	})

	It("starts a new server low and brings it to its place", func(ctx SpecContext) {
		s := newShop(ctx, "shop", 1, 1, 2, 2)
		s.open(startReplica("a"))
		Expect(admin.Create(ctx, s.policy())).To(Succeed())
		Eventually(s.maxOverAverage, 40*time.Second).Should(BeNumerically("<=", 1.02))
		added := s.add(ctx, 2)
		Eventually(func() uint32 { return s.client.weights()[added.port] }).Should(BeNumerically(">", 0))
		first := uint32(0)
		for _, weights := range s.client.history() {
			if weights[added.port] > 0 {
				first = weights[added.port]
				break
			}
		}
		Expect(first).To(BeNumerically("<=", 1600), "a tenth of the mean, and a first step")
		Eventually(s.maxOverAverage, 40*time.Second).Should(BeNumerically("<=", 1.02))
	})

	It("keeps the weights while too few report", func(ctx SpecContext) {
		s := newShop(ctx, "shop", 1, 1, 2, 2)
		s.open(startReplica("a"))
		policy := s.policy()
		policy.Spec.Load.Sources = []v1alpha1.LoadSource{{Type: v1alpha1.SourcePush, StaleAfter: &metav1.Duration{Duration: 5 * time.Second}}}
		Expect(admin.Create(ctx, policy)).To(Succeed())
		Eventually(s.maxOverAverage, 40*time.Second).Should(BeNumerically("<=", 1.02))
		for _, server := range s.servers[1:] {
			server.mute.Store(true)
		}
		Eventually(condition(ctx, policy, v1alpha1.ConditionReporting)).Should(Equal("False FewReports"))
		frozen := s.client.weights()
		s.silent.Store(true)
		Eventually(condition(ctx, policy, v1alpha1.ConditionReporting)).Should(Equal("False NoReports"))
		Expect(s.client.weights()).To(Equal(frozen))
	})

	It("finds out that clients ignore the weights", func(ctx SpecContext) {
		s := newShop(ctx, "shop", 1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3)
		s.equal.Store(true)
		s.open(startReplica("a"))
		policy := s.policy()
		Expect(admin.Create(ctx, policy)).To(Succeed())
		Eventually(condition(ctx, policy, v1alpha1.ConditionEffective), time.Minute).Should(Equal("False WeightsIgnored"))
	})
})
