// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// remove deletes a migration and waits until it is gone.
func remove(ctx context.Context, m *v1alpha1.RingMigration) {
	GinkgoHelper()
	Expect(admin.Delete(ctx, m)).To(Succeed())
	isGone(ctx, m)
}

func isGone(ctx context.Context, m *v1alpha1.RingMigration) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		got := &v1alpha1.RingMigration{}
		err := admin.Get(ctx, client.ObjectKeyFromObject(m), got)
		g.Expect(apierrors.IsNotFound(err) || err == nil && got.UID != m.UID).To(BeTrue(), "%s: %+v", got.Status.Phase, got.Status.Holds)
	}).Should(Succeed())
}

// isUnlocked waits until no migration has the ring.
func (s *site) isUnlocked(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		got := &v1alpha1.HashRing{}
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(s.ring), got)).To(Succeed())
		g.Expect(got.Status.Migration).To(BeNil())
	}).Should(Succeed())
}

var _ = Describe("a deletion", func() {
	It("rolls back before it goes", func(ctx SpecContext) {
		s := newSite(ctx, "ams")
		candidate, seen := s.ring.Status.Candidate.Digest, s.record(ctx)
		m := s.newPlan("deleted", toApproved("50%"), to("100%"))
		Expect(admin.Create(ctx, m)).To(Succeed())
		holds(ctx, m, migration.HoldAwaitingApproval)
		remove(ctx, m)
		s.isUnlocked(ctx)
		Expect(seen.places(m.Name)).To(endWith("RollingBack", "RolledBack"))
		Expect(seen.shares("edge", "ams", candidate)).To(Equal([]int{0, 5000, 0}))
		Eventually(func(g Gomega) { g.Expect(s.routingOf(ctx).Candidate).To(BeNil()) }).Should(Succeed())
	})

	It("with onDelete Freeze leaves the split, which another migration can only take back", func(ctx SpecContext) {
		s := newSite(ctx, "ams")
		m := s.newPlan("frozen", toApproved("50%"), to("100%"))
		m.Spec.OnDelete = v1alpha1.DeletionFreeze
		Expect(admin.Create(ctx, m)).To(Succeed())
		holds(ctx, m, migration.HoldAwaitingApproval)
		before := s.routingOf(ctx)
		remove(ctx, m)
		s.isUnlocked(ctx)
		after := s.routingOf(ctx)
		Expect([]any{after.Stable, after.Candidate, after.Split}).To(Equal([]any{before.Stable, before.Candidate, before.Split}))

		next := s.newPlan("next", to("100%"))
		Expect(admin.Create(ctx, next)).To(Succeed())
		Expect(holds(ctx, next, migration.HoldForeignSplit).Detail).To(Equal("edge"))
		Expect(s.routingOf(ctx).Split).To(Equal(before.Split))
		ask(ctx, next, v1alpha1.ActionRollback, "")
		reaches(ctx, next, v1alpha1.MigrationRolledBack)
		s.isUnlocked(ctx)
		Eventually(func(g Gomega) { g.Expect(s.routingOf(ctx).Candidate).To(BeNil()) }).Should(Succeed())
		accepted(ctx, next, v1alpha1.ActionRetry)
		reaches(ctx, next, v1alpha1.MigrationSucceeded)
		remove(ctx, next)
		Expect(s.routingOf(ctx).Stable.Digest).To(Equal(before.Candidate.Digest))
	})

	It("of the HashRing holds it, and it goes back with nothing left to lower", func(ctx SpecContext) {
		s := newSite(ctx, "ams")
		m := s.newPlan("orphan", toApproved("50%"), to("100%"))
		m.Spec.Acknowledgement.Deadline = &metav1.Duration{Duration: time.Second}
		Expect(admin.Create(ctx, m)).To(Succeed())
		holds(ctx, m, migration.HoldAwaitingApproval)
		Expect(admin.Delete(ctx, s.ring)).To(Succeed())
		Expect(holds(ctx, m, migration.HoldRingDrift).Detail).To(Equal("edge: it is gone"))
		remove(ctx, m)
	})
})
