// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

var _ = Describe("a migration", func() {
	It("goes from V1 to V3 by datacenter, back when its gate fails, and through when it is tried again", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.traffic(ctx)
		w.holds(ctx)
		before := map[string][]string{}
		for _, datacenter := range datacenters {
			before[datacenter] = w.owners(ctx, NewGomega(Fail), datacenter)
		}
		By("asking for V3, which becomes the candidate")
		ring := w.hashRing(ctx)
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"algorithm":{"version":"V3"}}}`))
		Expect(admin.Patch(ctx, ring, patch)).To(Succeed())
		w.apply(ctx, "migration.yaml", nil)

		By("a backend that refuses connections in the first step")
		w.waitMigration(ctx, HaveField("Status.StepPhase", v1alpha1.StepSoaking))
		w.tell(ctx, "cache-2", "break")
		w.waitMigration(ctx, HaveField("Status.Phase", v1alpha1.MigrationRolledBack))
		w.tell(ctx, "cache-2", "mend")
		w.holds(ctx)
		for _, datacenter := range datacenters {
			Expect(w.owners(ctx, NewGomega(Fail), datacenter)).To(Equal(before[datacenter]), "the owners of before in %s", datacenter)
		}

		By("trying again")
		m := &v1alpha1.RingMigration{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "edge-to-v3"}, m)).To(Succeed())
		Expect(admin.Patch(ctx, m, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"attempt":2}}`)))).To(Succeed())
		w.waitMigration(ctx, HaveField("Status.Phase", v1alpha1.MigrationSucceeded))
		w.holds(ctx)
		state, end, err := w.load(ctx, "dc1")
		Expect(err).NotTo(HaveOccurred())
		defer end()
		Expect(state.Version().String()).To(Equal("V3"))
		_, candidate := state.Candidate()
		Expect(candidate).To(BeFalse(), "the old ring has gone")
	})
})

// waitMigration waits until the migration is as wanted.
func (w *world) waitMigration(ctx context.Context, wanted gomegatypes.GomegaMatcher) {
	GinkgoHelper()
	m := &v1alpha1.RingMigration{}
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "edge-to-v3"}, m)).To(Succeed())
		g.Expect(*m).To(wanted, "%+v", m.Status.Conditions)
	}, 6*time.Minute, time.Second).Should(Succeed())
}
