// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/controller"
)

var _ = Describe("an operator that is behind in a migration", Serial, func() {
	var r *v1alpha1.HashRing
	var candidate string
	// behind is a reconciler whose cache has the ring as it was.
	behind := func(old *v1alpha1.HashRing, live client.Reader) *controller.HashRingReconciler {
		c := interceptor.NewClient(admin, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
				if cached, ok := object.(*v1alpha1.HashRing); ok {
					old.DeepCopyInto(cached)
					return nil
				}
				return c.Get(ctx, key, object, opts...)
			},
		})
		return controller.NewHashRingReconciler(c, live, built, events.NewFakeRecorder(100), clock.RealClock{})
	}
	// publish sets the lock, and has an operator that knows it publish that.
	publish := func(ctx context.Context, lock *v1alpha1.RingLock) *v1alpha1.HashRing {
		GinkgoHelper()
		setLock(ctx, r, lock)
		reconcileUntilQuiet(ctx, r)
		got := &v1alpha1.HashRing{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), got)).To(Succeed())
		return got
	}
	// lookAgain has it reconcile, and wants it to find that it is behind.
	lookAgain := func(ctx context.Context, reconciler *controller.HashRingReconciler) {
		GinkgoHelper()
		result, err := reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(r)})
		Expect(err).NotTo(HaveOccurred())
		Expect(result.RequeueAfter).NotTo(BeZero(), "it does not know that it is behind")
	}

	BeforeEach(func(ctx SpecContext) {
		r = newChanging(ctx, newNamespace(ctx), "behind")
		candidate = r.Status.Candidate.Digest
		operator.stop() // Its turn is over: the reconciles here are made by hand.
		DeferCleanup(func() { operator = startOperator() })
	})

	DescribeTable("writes nothing of an older lock", func(ctx SpecContext, before, now *v1alpha1.RingLock, want string) {
		for _, lock := range []*v1alpha1.RingLock{before, now} {
			if lock.Phase != v1alpha1.LockLocked {
				lock.Candidate = candidate
			}
		}
		old := publish(ctx, before)
		publish(ctx, now)
		expectRoute(ctx, r, want)
		written := getConfigMap(ctx, r.Namespace, "behind-routing").ResourceVersion
		lookAgain(ctx, behind(old, admin))
		Expect(getConfigMap(ctx, r.Namespace, "behind-routing").ResourceVersion).To(Equal(written))
		Expect(publishedState(ctx, r).Complete).To(BeTrue())
	},
		Entry("of a share that was lowered", newLock(v1alpha1.LockSplit, "", 5000), newLock(v1alpha1.LockSplit, "", 0), "1a 2b 0"),
		Entry("of a candidate that was withdrawn", newLock(v1alpha1.LockSplit, "", 5000), &v1alpha1.RingLock{Name: "move", UID: "u", Phase: v1alpha1.LockLocked}, "1a"),
		Entry("of a lock that was taken since", &v1alpha1.RingLock{Name: "move", UID: "u", Phase: v1alpha1.LockLocked}, newLock(v1alpha1.LockSplit, "", 5000), "1a 2b 5000"),
	)

	It("takes no ring out of its slot for a lock that was wiped for a moment", func(ctx SpecContext) {
		publish(ctx, newLock(v1alpha1.LockSplit, candidate, 10000))
		old := publish(ctx, newLock(v1alpha1.LockPromoted, candidate, 0))
		old.Status.Migration = nil // It was wiped, and put there again.
		lookAgain(ctx, behind(old, admin))
		Expect(publishedState(ctx, r).Emptied).To(BeFalse())
	})

	It("loses against a share that is lowered and published right behind its look at the lock", func(ctx SpecContext) {
		publish(ctx, newLock(v1alpha1.LockSplit, candidate, 50))
		setLock(ctx, r, newLock(v1alpha1.LockSplit, candidate, 5000))
		now := &v1alpha1.HashRing{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), now)).To(Succeed())
		looked := 0
		live := interceptor.NewClient(admin, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
				err := c.Get(ctx, key, object, opts...)
				if _, ok := object.(*v1alpha1.HashRing); ok {
					looked++
					publish(ctx, newLock(v1alpha1.LockSplit, candidate, 0))
				}
				return err
			},
		})
		lookAgain(ctx, behind(now, live))
		Expect(looked).To(Equal(1))
		Expect(route(routingFile(ctx, r))).To(Equal("1a 2b 0"))
	})
})

var _ = Describe("a crash in a migration", Serial, func() {
	It("between any two writes is made good by the next run, and readable meanwhile", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		var rings []*v1alpha1.HashRing
		for survives := range 5 {
			rings = append(rings, newChanging(ctx, namespace, fmt.Sprint("ring-", survives)))
		}
		operator.stop() // Its turn is over: the reconciles here are made by hand.
		defer func() { operator = startOperator() }()
		for survives, r := range rings {
			moments := watchMoments(ctx, r)
			carryOut := func(lock *v1alpha1.RingLock, want string) {
				GinkgoHelper()
				setLock(ctx, r, lock)
				reconcileOnce(ctx, r, killedAfter(survives))
				reconcileUntilQuiet(ctx, r)
				Expect(route(routingFile(ctx, r))).To(Equal(want), "after %d writes", survives)
				Expect(publishedState(ctx, r).Complete).To(BeTrue())
			}
			locked := &v1alpha1.RingLock{Name: "move", UID: "uid-m", Phase: v1alpha1.LockLocked}
			candidate := r.Status.Candidate.Digest
			carryOut(newLock(v1alpha1.LockSplit, candidate, 50), "1a 2b 50")
			carryOut(locked, "1a")
			Expect(publishedState(ctx, r).Emptied).To(BeTrue())
			carryOut(newLock(v1alpha1.LockSplit, candidate, 10000), "1a 2b 10000")
			carryOut(newLock(v1alpha1.LockPromoted, candidate, 0), "2b")
			Expect(publishedState(ctx, r).Emptied).To(BeFalse())
			carryOut(newLock(v1alpha1.LockRetired, candidate, 0), "2b")
			Expect(publishedState(ctx, r).Emptied).To(BeTrue())
			moments("1a", "1a 2b 50", "1a", "1a 2b 10000", "2b")
		}
	})
})
