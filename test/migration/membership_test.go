// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

var _ = Describe("backends while a migration runs", func() {
	It("leave both rings without a new revision, and the step goes on where it was", func(ctx SpecContext) {
		s := newSite(ctx, "ams")
		seen := s.record(ctx)
		m := s.newPlan("drained", toApproved("50%"), to("100%"))
		Expect(admin.Create(ctx, m)).To(Succeed())
		holds(ctx, m, migration.HoldAwaitingApproval)
		before, token := s.routingOf(ctx), tokenOf(ctx, m)
		s.edit(ctx, s.ring, func(r *v1alpha1.HashRing) { r.Spec.Backends[3].Weight = ptr.To(int32(0)) })
		Eventually(func(g Gomega) { g.Expect(s.routingOf(ctx).Down).To(HaveLen(1)) }).Should(Succeed())
		after := s.routingOf(ctx)
		Expect(after.Generation).To(BeNumerically(">", before.Generation))
		Expect([]any{after.Stable, after.Candidate, after.Split}).To(Equal([]any{before.Stable, before.Candidate, before.Split}))
		Expect(tokenOf(ctx, m)).To(Equal(token))
		accepted(ctx, m, v1alpha1.ActionApprove)
		reaches(ctx, m, v1alpha1.MigrationSucceeded)
		Expect(seen.shares("edge", "ams", before.Candidate.Digest)).To(Equal([]int{0, 5000, 10000}))
		for _, phase := range []v1alpha1.MigrationPhase{v1alpha1.MigrationShifting, v1alpha1.MigrationSoaking} {
			Expect(seen.held(m.Name, phase)).NotTo(ContainElement(HavePrefix("RingDrift")))
		}
	})

	It("hold it when more than a tenth has left, until they are back", func(ctx SpecContext) {
		s := newSite(ctx, "ams")
		m := s.newPlan("drifted", toApproved("50%"), to("100%"))
		Expect(admin.Create(ctx, m)).To(Succeed())
		holds(ctx, m, migration.HoldAwaitingApproval)
		s.edit(ctx, s.ring, func(r *v1alpha1.HashRing) { r.Spec.Backends = r.Spec.Backends[:8] })
		Expect(holds(ctx, m, migration.HoldRingDrift).Detail).To(ContainSubstring("2000 basis points"))
		Expect(s.routingOf(ctx).Down).To(HaveLen(2))
		accepted(ctx, m, v1alpha1.ActionApprove)
		s.edit(ctx, s.ring, func(r *v1alpha1.HashRing) { r.Spec.Backends = s.newRing("edge").Spec.Backends })
		reaches(ctx, m, v1alpha1.MigrationSucceeded)
	})

	It("go back to the algorithm that is published, and it rolls back", func(ctx SpecContext) {
		s := newSite(ctx, "ams")
		m := s.newPlan("reverted", toApproved("50%"), to("100%"))
		Expect(admin.Create(ctx, m)).To(Succeed())
		holds(ctx, m, migration.HoldAwaitingApproval)
		s.edit(ctx, s.ring, func(r *v1alpha1.HashRing) { r.Spec.Algorithm = s.newRing("edge").Spec.Algorithm })
		got := reaches(ctx, m, v1alpha1.MigrationRolledBack)
		Expect(got.Status.Rollback.Cause).To(Equal("Reverted"))
		Eventually(func(g Gomega) { g.Expect(s.routingOf(ctx).Candidate).To(BeNil()) }).Should(Succeed())
	})
})

var _ = Describe("a plan with a gate that does not compile", func() {
	It("is held and says where, until it is corrected", func(ctx SpecContext) {
		s := newSite(ctx, "ams")
		m := s.newPlan("invalid", to("100%"))
		m.Spec.Gates = []v1alpha1.MigrationGate{{
			Name: "errors", Mode: v1alpha1.GateObserve, FailWhen: "value >", PassWhen: "value < 1.0",
			Prometheus: &v1alpha1.PrometheusGate{Address: "http://127.0.0.1:1", Query: "up"},
		}}
		Expect(admin.Create(ctx, m)).To(Succeed())
		Expect(holds(ctx, m, migration.HoldInvalidPlan).Detail).To(HavePrefix(`gates[errors].failWhen`))
		got := reaches(ctx, m, v1alpha1.MigrationPending)
		invalid := condition(got, v1alpha1.ConditionAccepted)
		Expect(invalid.Status).To(Equal(metav1.ConditionFalse))
		Expect(invalid.Reason).To(Equal(string(v1alpha1.ReasonInvalidPlan)))
		Expect(invalid.Message).To(ContainSubstring(`gates[errors].failWhen`))
		editPlan(ctx, m, func(spec *v1alpha1.RingMigrationSpec) { spec.Gates[0].FailWhen = "value > 1.0" })
		got = reaches(ctx, m, v1alpha1.MigrationSucceeded)
		Expect(condition(got, v1alpha1.ConditionAccepted).Status).To(Equal(metav1.ConditionTrue))
	})
})

var _ = Describe("a migration that is held", func() {
	It("has nothing written", func(ctx SpecContext) {
		s := newSite(ctx, "ams")
		m := s.newPlan("held", toApproved("50%"), to("100%"))
		Expect(admin.Create(ctx, m)).To(Succeed())
		holds(ctx, m, migration.HoldAwaitingApproval)
		Eventually(func(g Gomega) { // What was still on its way, such as the consumers in the HashRing's status.
			got := &v1alpha1.HashRing{}
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(s.ring), got)).To(Succeed())
			g.Expect(got.Status.Consumers).NotTo(BeNil())
			g.Expect(got.Status.Consumers.Current).To(Equal(int32(1)))
		}).Should(Succeed())
		seen := s.record(ctx)
		Eventually(func() int { return len(seen.migrations(m.Name)) }).Should(Equal(1))
		Consistently(func() int { return len(seen.migrations(m.Name)) }).WithTimeout(4 * interval).Should(Equal(1))
		written := len(seen.all())
		Consistently(func() int { return len(seen.all()) }).WithTimeout(15 * interval).Should(Equal(written))
	})
})
