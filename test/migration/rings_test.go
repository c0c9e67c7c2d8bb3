// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

var _ = Describe("several rings", func() {
	It("move in step, and another migration of one of them waits", func(ctx SpecContext) {
		s := newSite(ctx, "ams")
		other := s.newRing("core")
		Expect(admin.Create(ctx, other)).To(Succeed())
		s.startAgent(ctx, other, "ams")
		s.propose(ctx, other)
		seen := s.record(ctx)
		m := s.newPlan("both", toApproved("50%"), to("100%"))
		m.Spec.RingRef, m.Spec.RingSelector = nil, &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": "edge"}}
		Expect(admin.Create(ctx, m)).To(Succeed())
		holds(ctx, m, migration.HoldAwaitingApproval)
		for _, r := range []*v1alpha1.HashRing{s.ring, other} {
			got := &v1alpha1.HashRing{}
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), got)).To(Succeed())
			Expect(got.Status.Migration.UID).To(Equal(string(m.UID)), r.Name)
			Expect(got.Status.Migration.Split).To(Equal([]v1alpha1.DatacenterShare{{Datacenter: "ams", BasisPoints: 5000}}), r.Name)
		}

		second := s.newPlan("second", to("100%"))
		second.Spec.RingRef.Name = other.Name
		Expect(admin.Create(ctx, second)).To(Succeed())
		Expect(holds(ctx, second, migration.HoldLocked).Detail).To(Equal("core: the lock has RingMigration both"))
		reaches(ctx, second, v1alpha1.MigrationQueued)
		accepted(ctx, m, v1alpha1.ActionApprove)
		reaches(ctx, m, v1alpha1.MigrationSucceeded)
		for _, r := range []*v1alpha1.HashRing{s.ring, other} {
			Expect(seen.shares(r.Name, "ams", r.Status.Candidate.Digest)).To(Equal([]int{0, 5000, 10000}), r.Name)
			seen.checkOrder(r.Name, m.Name)
		}
		seen.checkAcknowledged(m.Name)
		Expect(holds(ctx, second, migration.HoldNoCandidate).Detail).To(Equal("core has no candidate"))
	})
})
