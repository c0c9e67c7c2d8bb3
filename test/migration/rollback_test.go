// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// disturbance is something that keeps a migration from going forward.
type disturbance func(ctx context.Context, s *site, m *v1alpha1.RingMigration)

func nothing(context.Context, *site, *v1alpha1.RingMigration) {}

func suspended(ctx context.Context, _ *site, m *v1alpha1.RingMigration) {
	editPlan(ctx, m, func(spec *v1alpha1.RingMigrationSpec) { spec.Suspend = true })
	holds(ctx, m, migration.HoldSuspended)
}

func paused(ctx context.Context, _ *site, m *v1alpha1.RingMigration) {
	accepted(ctx, m, v1alpha1.ActionPause)
	holds(ctx, m, migration.HoldPaused)
}

func gateDown(ctx context.Context, _ *site, m *v1alpha1.RingMigration) {
	editPlan(ctx, m, func(spec *v1alpha1.RingMigrationSpec) {
		spec.Gates = append(spec.Gates, v1alpha1.MigrationGate{
			Name: "errors", PassWhen: "value < 1.0", FailWhen: "value > 1.0", Interval: &metav1.Duration{Duration: time.Second},
			Prometheus: &v1alpha1.PrometheusGate{Address: fmt.Sprintf("http://127.0.0.1:%d", freePort()), Query: "up"},
		})
	})
	holds(ctx, m, migration.HoldGateUnknown)
}

func unreachable(ctx context.Context, s *site, m *v1alpha1.RingMigration) {
	s.agents["ams"].stop()
	Expect(holds(ctx, m, migration.HoldDatacenterUnreachable).Detail).To(Equal("ams"))
}

func edited(ctx context.Context, s *site, _ *v1alpha1.RingMigration) {
	s.edit(ctx, s.ring, func(r *v1alpha1.HashRing) {
		r.Spec.Backends = append(r.Spec.Backends, v1alpha1.Backend{Name: "new", Address: "10.1.0.99", Port: ptr.To(int32(8080))})
	})
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(s.ring), s.ring)).To(Succeed())
		g.Expect(s.ring.Status.ObservedGeneration).To(Equal(s.ring.Generation))
	}).Should(Succeed())
}

func everything(ctx context.Context, s *site, m *v1alpha1.RingMigration) {
	for _, disturb := range []disturbance{suspended, paused, gateDown, edited, unreachable} {
		disturb(ctx, s, m)
	}
}

func byAction(ctx context.Context, m *v1alpha1.RingMigration) {
	ask(ctx, m, v1alpha1.ActionRollback, "")
}

func byDirection(ctx context.Context, m *v1alpha1.RingMigration) {
	editPlan(ctx, m, func(spec *v1alpha1.RingMigrationSpec) { spec.Direction = v1alpha1.DirectionBackward })
}

var _ = DescribeTable("a rollback while approval is pending goes through at once",
	func(ctx SpecContext, disturb disturbance, back func(context.Context, *v1alpha1.RingMigration), cause string, unreached ...string) {
		s := newSite(ctx, "lab", "ams")
		candidate, seen := s.ring.Status.Candidate.Digest, s.record(ctx)
		m := s.newPlan("back", toApproved("50%"), to("100%"))
		m.Spec.Acknowledgement.Deadline = &metav1.Duration{Duration: time.Minute} // Longer than it takes to ask somebody again.
		if len(unreached) > 0 {
			m.Spec.Acknowledgement.Deadline = &metav1.Duration{Duration: 5 * time.Second}
		}
		Expect(admin.Create(ctx, m)).To(Succeed())
		holds(ctx, m, migration.HoldAwaitingApproval)
		disturb(ctx, s, m)
		back(ctx, m)
		got := reaches(ctx, m, v1alpha1.MigrationRolledBack)
		Expect(got.Status.Rollback.Cause).To(Equal(cause))
		Expect(got.Status.Rollback.Unreached).To(HaveExactElements(unreached))
		for _, datacenter := range []string{"lab", "ams"} {
			Expect(seen.shares("edge", datacenter, candidate)).To(Equal([]int{0, 5000, 0}), datacenter)
		}
		if len(unreached) > 0 {
			Expect(seen.held(m.Name, v1alpha1.MigrationRollingBack)).To(ContainElement(HavePrefix("DatacenterUnreachable: ams")))
		}
		Eventually(func(g Gomega) { g.Expect(s.routingOf(ctx).Candidate).To(BeNil()) }).Should(Succeed())
	},
	Entry("with nothing else", nothing, byAction, "Action"),
	Entry("with suspend: true", suspended, byAction, "Action"),
	Entry("with suspend: true, by spec", suspended, byDirection, "Backward"),
	Entry("when paused, by spec", paused, byDirection, "Backward"),
	Entry("with the gate's Prometheus down", gateDown, byAction, "Action"),
	Entry("with an edited HashRing, by spec", edited, byDirection, "Backward"),
	Entry("with a datacenter that cannot be reached", unreachable, byAction, "Action", "ams"),
	Entry("with all of these", everything, byAction, "Action", "ams"),
	Entry("with all of these, by spec", everything, byDirection, "Backward", "ams"),
)

// held returns the holds that a migration has had in a phase.
func (r *record) held(name string, phase v1alpha1.MigrationPhase) []string {
	var list []string
	for _, m := range r.migrations(name) {
		for _, h := range m.Status.Holds {
			if m.Status.Phase == phase {
				list = append(list, fmt.Sprintf("%s: %s", h.Type, h.Detail))
			}
		}
	}
	return list
}
