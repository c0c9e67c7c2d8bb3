// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

var _ = Describe("actions", func() {
	It("do what they ask for once, and say what became of them", func(ctx SpecContext) {
		s := newSite(ctx, "ams")
		m := s.newPlan("asked", toApproved("50%"), toApproved("100%"))
		m.Spec.Suspend = true
		Expect(admin.Create(ctx, m)).To(Succeed())
		holds(ctx, m, migration.HoldSuspended)
		rejected := func(kind v1alpha1.ActionType, token string, reason migration.Refusal) {
			GinkgoHelper()
			got := answered(ctx, ask(ctx, m, kind, token))
			Expect(got.Status.Phase).To(Equal(v1alpha1.ActionRejected))
			Expect(got.Status.Reason).To(Equal(v1alpha1.ConditionReason(reason)))
			Expect(got.Status.Message).NotTo(BeEmpty())
		}

		By("Resume, which does not end spec.suspend")
		rejected(v1alpha1.ActionResume, tokenOf(ctx, m), migration.NotPaused)
		holds(ctx, m, migration.HoldSuspended)
		accepted(ctx, m, v1alpha1.ActionPause)
		editPlan(ctx, m, func(spec *v1alpha1.RingMigrationSpec) { spec.Suspend = false })
		holds(ctx, m, migration.HoldPaused)
		accepted(ctx, m, v1alpha1.ActionResume)

		By("Approve, twice with one token")
		holds(ctx, m, migration.HoldAwaitingApproval)
		first := tokenOf(ctx, m)
		rejected(v1alpha1.ActionRetry, first, migration.NotRolledBack)
		approved := answered(ctx, ask(ctx, m, v1alpha1.ActionApprove, first))
		Expect(approved.Status.Phase).To(Equal(v1alpha1.ActionAccepted))
		Expect(metav1.IsControlledBy(approved, m)).To(BeTrue())
		Expect(approved.Status.MigrationUID).To(Equal(m.UID))
		Eventually(func() string { return tokenOf(ctx, m) }).ShouldNot(Equal(first))
		holds(ctx, m, migration.HoldAwaitingApproval)
		rejected(v1alpha1.ActionApprove, first, migration.StaleStep)
		holds(ctx, m, migration.HoldAwaitingApproval)

		By("Reject, and Retry, and Skip")
		accepted(ctx, m, v1alpha1.ActionReject)
		got := reaches(ctx, m, v1alpha1.MigrationRolledBack)
		Expect(got.Status.Rollback.Cause).To(Equal("Rejected"))
		Expect(got.Status.Rollback.Detail).To(Equal("by " + self))
		seed := got.Status.Seed
		rejected(v1alpha1.ActionSkip, got.Status.Token, migration.NothingToSkip)
		accepted(ctx, m, v1alpha1.ActionRetry)
		holds(ctx, m, migration.HoldAwaitingApproval)
		accepted(ctx, m, v1alpha1.ActionSkip)
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(m), got)).To(Succeed())
			g.Expect(got.Status.Position.Step).To(Equal(int32(1)))
		}).Should(Succeed())
		Expect(got.Status.Attempt).To(Equal(int64(2)))
		Expect(got.Status.Seed).To(Equal(seed))
		holds(ctx, m, migration.HoldAwaitingApproval)
		accepted(ctx, m, v1alpha1.ActionApprove)
		got = reaches(ctx, m, v1alpha1.MigrationSucceeded)
		rejected(v1alpha1.ActionRollback, "", migration.TooLate)

		var history []string
		for _, a := range got.Status.History {
			Expect(a.Actor).To(Equal(self))
			history = append(history, string(a.Type)+" "+string(a.Refusal))
		}
		Expect(strings.Join(history, ", ")).To(Equal("Resume NotPaused, Pause , Resume , Retry NotRolledBack, Approve , Approve StaleStep, " +
			"Reject , Skip NothingToSkip, Retry , Skip , Approve "))
		Eventually(func(g Gomega) {
			list := &eventsv1.EventList{}
			g.Expect(admin.List(ctx, list, client.InNamespace(s.namespace))).To(Succeed())
			reasons := map[string]bool{}
			for _, e := range list.Items {
				reasons[e.Reason] = reasons[e.Reason] || e.Regarding.UID == m.UID
			}
			g.Expect(reasons).To(And(HaveKeyWithValue("ActionApprove", true), HaveKeyWithValue("ActionRejected", true), HaveKeyWithValue("RolledBack", true)))
		}).Should(Succeed())
	})

	It("of an earlier migration of the name do nothing", func(ctx SpecContext) {
		s := newSite(ctx, "ams")
		m := s.newPlan("again", toApproved("50%"), to("100%"))
		Expect(admin.Create(ctx, m)).To(Succeed())
		holds(ctx, m, migration.HoldAwaitingApproval)
		a := ask(ctx, m, v1alpha1.ActionPause, tokenOf(ctx, m))
		Expect(answered(ctx, a).Status.Phase).To(Equal(v1alpha1.ActionAccepted))
		operator.stop()
		late := ask(ctx, m, v1alpha1.ActionRollback, "")
		Expect(admin.Patch(ctx, late, client.RawPatch("application/merge-patch+json", []byte(
			`{"metadata":{"ownerReferences":[{"apiVersion":"ringwright.dev/v1alpha1","kind":"RingMigration","name":"again","controller":true,"uid":"`+string(m.UID)+`"}]}}`,
		)))).To(Succeed())
		Expect(admin.Delete(ctx, m)).To(Succeed())
		Expect(admin.Patch(ctx, m, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		isGone(ctx, m)
		next := s.newPlan("again", toApproved("50%"), to("100%"))
		Expect(admin.Create(ctx, next)).To(Succeed())
		operator = startOperator()
		got := answered(ctx, late)
		Expect(got.Status.Reason).To(Equal(v1alpha1.ConditionReason(migration.StaleStep)))
		Expect(holds(ctx, next, migration.HoldForeignSplit).Detail).To(Equal("edge"))
	})
})
