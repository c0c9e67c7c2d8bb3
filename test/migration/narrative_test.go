// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

var _ = Describe("a migration", func() {
	It("moves its datacenters by steps, and ends with the candidate as the stable ring", func(ctx SpecContext) {
		s := newSite(ctx, "lab", "ams")
		candidate := s.ring.Status.Candidate.Digest
		m := s.newMigration()
		Expect(admin.Create(ctx, m)).To(Succeed())
		got := reaches(ctx, m, v1alpha1.MigrationSucceeded)
		file := s.routingOf(ctx)
		Expect(file.Stable.Digest).To(Equal(candidate))
		Expect(file.Candidate).To(BeNil())
		Expect(file.Split).To(BeNil())
		Expect(condition(got, v1alpha1.ConditionSucceeded).Status).To(Equal(metav1.ConditionTrue))
		Expect(condition(got, v1alpha1.ConditionRollbackAvailable).Status).To(Equal(metav1.ConditionFalse))
		Eventually(func(g Gomega) {
			r := &v1alpha1.HashRing{}
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(s.ring), r)).To(Succeed())
			g.Expect(r.Status.Migration).To(BeNil())
			g.Expect(r.Status.Candidate).To(BeNil())
			g.Expect(r.Status.Active.Digest).To(Equal(candidate))
		}).Should(Succeed())
	})
})
