// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// getMigration returns what the API server stored.
func getMigration(ctx context.Context, name string) *v1alpha1.RingMigration {
	GinkgoHelper()
	migration := &v1alpha1.RingMigration{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, migration)).To(Succeed())
	return migration
}

func duration(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// wantMigrationDefaults is what the schema makes of the shortest plan.
func wantMigrationDefaults() v1alpha1.RingMigrationSpec {
	return v1alpha1.RingMigrationSpec{
		RingRef: &v1alpha1.RingReference{Name: "edge"},
		Stages: []v1alpha1.MigrationStage{{
			Name: "world", Datacenters: v1alpha1.StageDatacenters{Remainder: true},
			Steps: []v1alpha1.MigrationStep{{Traffic: "100%", Soak: duration(0), Approval: v1alpha1.ApprovalNone}},
		}},
		Limits:          v1alpha1.MigrationLimits{MaxTraffic: "100%"},
		Direction:       v1alpha1.DirectionForward,
		Attempt:         1,
		Acknowledgement: v1alpha1.Acknowledgement{Quorum: "100%", Deadline: duration(10 * time.Minute)},
		Rollback: v1alpha1.RollbackPolicy{
			Automatic: v1alpha1.AutomaticRollbackEnabled, Strategy: v1alpha1.RollbackImmediate, Interval: duration(5 * time.Minute),
		},
		Retirement: v1alpha1.RetirementPolicy{Soak: duration(24 * time.Hour), Approval: v1alpha1.ApprovalNone},
		OnDelete:   v1alpha1.DeletionRollback,
	}
}

var _ = Describe("The defaults of a RingMigration", func() {
	It("complete the shortest plan", func(ctx SpecContext) {
		Expect(apply(ctx, ofKind("RingMigration", "shortest", staged(wholeStage)))).To(Succeed())
		stored := getMigration(ctx, "shortest")
		Expect(cmp.Diff(wantMigrationDefaults(), stored.Spec)).To(BeEmpty())
		Expect(stored.Status).To(Equal(v1alpha1.RingMigrationStatus{ObservedGeneration: -1}))
	})

	It("complete an object that a Go program creates with zero values", func(ctx SpecContext) {
		migration := &v1alpha1.RingMigration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "zero-migration"}}
		migration.Spec.RingRef = &v1alpha1.RingReference{Name: "edge"}
		migration.Spec.Stages = []v1alpha1.MigrationStage{{
			Name: "world", Datacenters: v1alpha1.StageDatacenters{Remainder: true}, Steps: []v1alpha1.MigrationStep{{Traffic: "100%"}},
		}}
		Expect(api.Create(ctx, migration)).To(Succeed())
		Expect(cmp.Diff(wantMigrationDefaults(), migration.Spec)).To(BeEmpty())
	})

	It("complete gates and parts of the rest", func(ctx SpecContext) {
		Expect(apply(ctx, ofKind("RingMigration", "parts", migrating(`
    gates: [{name: errors, failWhen: value > 1.0, prometheus: {address: "http://prometheus:9090", query: up}}, {name: agents, consumers: {maxErrorRatio: "0.1%"}}],
    limits: {excludedDatacenters: [ams01]}, acknowledgement: {deadline: 1m}, rollback: {strategy: Staged, steps: ["0%"]}, retirement: {soak: 0s}`)))).To(Succeed())
		want := wantMigrationDefaults()
		gate := v1alpha1.MigrationGate{Mode: v1alpha1.GateEnforce, Interval: duration(time.Minute), FailureThreshold: 3, FailureWindow: duration(10 * time.Minute)}
		want.Gates = []v1alpha1.MigrationGate{gate, gate}
		want.Gates[0].Name, want.Gates[0].FailWhen = "errors", "value > 1.0"
		want.Gates[0].Prometheus = &v1alpha1.PrometheusGate{
			Address: "http://prometheus:9090", Query: "up", Window: duration(5 * time.Minute), Timeout: duration(10 * time.Second),
		}
		want.Gates[1].Name, want.Gates[1].Consumers = "agents", &v1alpha1.ConsumersGate{MaxErrorRatio: "0.1%"}
		want.Limits.ExcludedDatacenters = []string{"ams01"}
		want.Acknowledgement.Deadline = duration(time.Minute)
		want.Rollback.Strategy, want.Rollback.Steps = v1alpha1.RollbackStaged, []string{"0%"}
		want.Retirement.Soak = duration(0)
		Expect(cmp.Diff(want, getMigration(ctx, "parts").Spec)).To(BeEmpty())
	})
})
