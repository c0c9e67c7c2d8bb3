// SPDX-License-Identifier: Apache-2.0

package weights_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// largestJump is by how much the weight of an endpoint changed from one set of weights to the next, as a part of it.
func largestJump(history []map[int32]uint32) float64 {
	jump := 0.0
	for i := 1; i < len(history); i++ {
		for port, weight := range history[i] {
			if before := history[i-1][port]; before > 0 {
				jump = max(jump, math.Abs(float64(weight)/float64(before)-1))
			}
		}
	}
	return jump
}

var _ = Describe("three replicas", func() {
	It("take over what a killed one has within its lease, without a jump, and refuse what it says later", func(ctx SpecContext) {
		replicas := []*replica{startReplica("a"), startReplica("b"), startReplica("c")}
		shops := make([]*shop, 6)
		holders := map[string]bool{}
		for i := range shops {
			shops[i] = newShop(ctx, fmt.Sprintf("shop%d", i), 1, 1, 2, 3)
			shops[i].open(replicas...)
			Expect(admin.Create(ctx, shops[i].policy())).To(Succeed())
		}
		for _, s := range shops {
			Eventually(s.maxOverAverage, 60*time.Second).Should(BeNumerically("<=", 1.02))
			holders[status(ctx, s.policy()).Shard.Holder] = true
		}
		victim := replicas[slices.IndexFunc(replicas, func(r *replica) bool { return r.name == status(ctx, shops[0].policy()).Shard.Holder })]
		By("killing " + victim.name + fmt.Sprintf(", one of the holders %v", holders))
		held, before := map[*shop]int64{}, map[*shop]int{}
		for _, s := range shops {
			if shard := status(ctx, s.policy()).Shard; shard.Holder == victim.name {
				held[s] = shard.Epoch
			}
			before[s] = len(s.client.history())
		}
		killed := time.Now()
		victim.kill()
		for s, epoch := range held {
			Eventually(func() int64 { return status(ctx, s.policy()).Shard.Epoch }).Should(Equal(epoch + 1))
			Expect(status(ctx, s.policy()).Shard.Holder).NotTo(Equal(victim.name))
		}
		Expect(time.Since(killed)).To(BeNumerically("<", 4*lease), "the lease is %v", lease)
		for _, s := range shops {
			Consistently(s.maxOverAverage, 2*time.Second).Should(BeNumerically("<=", 1.03))
			Expect(largestJump(s.client.history()[before[s]-1:])).To(BeNumerically("<", 0.1), "the weights of %s", s.name)
		}
		By("the API server refusing the epoch of before")
		for s, epoch := range held {
			set := &v1alpha1.WeightSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name + "-0"}}
			// Without the version of the object: whoever holds it now goes on to write it.
			late := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"epoch": %d}`, epoch))
			Expect(admin.Patch(ctx, set, late)).To(MatchError(ContainSubstring(fmt.Sprintf("epoch cannot fall; it is %d, got %d", epoch+1, epoch))))
		}
	})

	It("hand policies over when one is stopped, and when one comes", func(ctx SpecContext) {
		a := startReplica("a")
		s := newShop(ctx, "shop", 1, 2, 2, 3)
		b := &replica{name: "b", listen: freeAddress(), http: freeAddress(), probe: freeAddress(), metrics: freeAddress()}
		s.open(a)
		policy := s.policy()
		Expect(admin.Create(ctx, policy)).To(Succeed())
		Eventually(s.maxOverAverage, 40*time.Second).Should(BeNumerically("<=", 1.02))
		before := len(s.client.history())
		b.start()
		DeferCleanup(b.kill)
		a.stop() // The client and the pods of a come back when it does.
		given := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "ringwright-balancer-" + a.name}}
		Expect(apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(given), given))).To(BeTrue(), "a stopped replica gives its Lease up")
		Eventually(func() string { return status(ctx, policy).Shard.Holder }).Should(Equal("b"))
		a.start()
		Eventually(func() int { return len(s.client.history()) }).Should(BeNumerically(">", before))
		Eventually(s.maxOverAverage).Should(BeNumerically("<=", 1.02))
		Expect(largestJump(s.client.history()[before-1:])).To(BeNumerically("<", 0.1))
	})
})

// waitFor passes time, in which what is looked at goes on.
func waitFor(d time.Duration) { Eventually(time.After(d), d+time.Second).Should(Receive()) }

// edit changes a policy as somebody with kubectl would.
func edit(ctx context.Context, policy *v1alpha1.WeightPolicy, change func(*v1alpha1.WeightPolicy)) {
	GinkgoHelper()
	Eventually(func() error {
		current := &v1alpha1.WeightPolicy{}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(policy), current); err != nil {
			return err
		}
		change(current)
		return admin.Update(ctx, current)
	}).Should(Succeed())
}
