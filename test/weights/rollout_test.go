// SPDX-License-Identifier: Apache-2.0

package weights_test

import (
	"os/exec"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

var _ = Describe("a rollout", func() {
	It("is computed in shadow, foretells what it is worth, and comes by steps", func(ctx SpecContext) {
		s := newShop(ctx, "shop", 1, 1, 2, 3)
		s.open(startReplica("a"))
		policy := s.policy()
		policy.Spec.Rollout.Steps = []v1alpha1.RolloutStep{
			{Percent: 0, Duration: metav1.Duration{Duration: 10 * time.Second}}, {Percent: 50, Duration: metav1.Duration{Duration: 4 * time.Second}},
		}
		Expect(admin.Create(ctx, policy)).To(Succeed())
		Eventually(condition(ctx, policy, v1alpha1.ConditionReady)).Should(Equal("True Shadow"))
		equal := s.maxOverAverage()
		Eventually(func() string { return status(ctx, policy).PredictedMaxOverAverage }, 9*time.Second).Should(HavePrefix("1.0"))
		Expect(s.maxOverAverage()).To(Equal(equal), "shadow is not served")
		Eventually(func() string { return status(ctx, policy).Rollout.Percent }).Should(Equal("50%"))
		half := 0.0
		Eventually(func() float64 { half = s.maxOverAverage(); return half }).Should(And(BeNumerically("<", equal-0.05), BeNumerically(">", 1.05)))
		Eventually(func() string { return status(ctx, policy).Rollout.Percent }).Should(Equal("100%"))
		Eventually(s.maxOverAverage).Should(BeNumerically("<=", 1.02))
	})

	It("goes back when abort is met, and stays there until spec changes", func(ctx SpecContext) {
		s := newShop(ctx, "shop", 1, 1, 2, 3)
		s.open(startReplica("a"))
		policy := s.policy()
		policy.Spec.Rollout.Abort = &v1alpha1.RolloutAbort{MaxOverAverage: "1.3", For: ptr.To(metav1.Duration{})}
		// What is wrong stays so, however late the first look is.
		policy.Spec.Limits.MaxWeight = "1.02"
		Expect(admin.Create(ctx, policy)).To(Succeed())
		Eventually(condition(ctx, policy, v1alpha1.ConditionReady)).Should(Equal("False RolloutAborted"))
		Eventually(func() map[int32]uint32 { return s.client.weights() }).Should(HaveEach(BeEquivalentTo(v1alpha1.WeightScale)))
		Expect(status(ctx, policy).Rollout.Aborted).To(ContainSubstring("abort is at 1.3"))
		Consistently(condition(ctx, policy, v1alpha1.ConditionReady), 3*time.Second).Should(Equal("False RolloutAborted"))
		edit(ctx, policy, func(p *v1alpha1.WeightPolicy) {
			p.Spec.Rollout.Abort, p.Spec.Limits.MaxWeight = nil, "8"
		})
		Eventually(s.maxOverAverage).Should(BeNumerically("<=", 1.02))
	})

	It("keeps weights while suspended, and serves an earlier record while pinned", func(ctx SpecContext) {
		s := newShop(ctx, "shop", 1, 1, 2, 3)
		s.open(startReplica("a"))
		policy := s.policy()
		Expect(admin.Create(ctx, policy)).To(Succeed())
		Eventually(s.maxOverAverage).Should(BeNumerically("<=", 1.02))
		edit(ctx, policy, func(p *v1alpha1.WeightPolicy) { p.Spec.Suspend = true })
		Eventually(condition(ctx, policy, v1alpha1.ConditionReady)).Should(Equal("True Suspended"))
		kept := s.client.weights()
		s.mu.Lock()
		s.servers[3].speed = 1 // As slow as the others.
		s.mu.Unlock()
		Consistently(func() map[int32]uint32 { return s.client.weights() }, 3*time.Second).Should(Equal(kept))

		By("kubectl hashring weights rollback")
		edit(ctx, policy, func(p *v1alpha1.WeightPolicy) { p.Spec.Suspend = false })
		Eventually(s.maxOverAverage).Should(BeNumerically("<=", 1.02))
		out := cli("weights", "rollback", "shop", "-n", s.namespace, "--to-revision", "1", "--yes")
		Expect(out).To(ContainSubstring("revision 1"))
		Eventually(condition(ctx, policy, v1alpha1.ConditionReady)).Should(Equal("True Pinned"))
		Eventually(func() map[int32]uint32 { return s.client.weights() }).Should(HaveEach(BeEquivalentTo(v1alpha1.WeightScale)), "the first record is of equal weights")
		Expect(cli("weights", "history", "shop", "-n", s.namespace)).To(ContainSubstring("first weights"))
		Expect(cli("weights", "status", "shop", "-n", s.namespace)).To(ContainSubstring("Pinned"))
		cli("weights", "resume", "shop", "-n", s.namespace)
		Eventually(s.maxOverAverage).Should(BeNumerically("<=", 1.02))
	})
})

// cli runs kubectl hashring as the admin.
func cli(arguments ...string) string {
	GinkgoHelper()
	command := exec.Command(plugin, append(arguments, "--kubeconfig", adminKubeconfig)...)
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl hashring %s: %s", strings.Join(arguments, " "), out)
	return string(out)
}
