// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

var _ = Describe("a tool that applies the manifests again and again", func() {
	It("undoes nothing of what people ask for by actions", func(ctx SpecContext) {
		s := newSite(ctx, "ams")
		ring := s.newRing("edge")
		ring.Spec.Algorithm = s.ring.Spec.Algorithm
		m := s.newPlan("healed", toApproved("50%"), to("100%"))
		manifests := []*unstructured.Unstructured{manifest("HashRing", ring), manifest("RingMigration", m)}
		applied := make(chan int, 1)
		ending, end := context.WithCancel(ctx)
		defer end()
		go func() {
			defer GinkgoRecover()
			applied <- selfHeal(ending, manifests)
		}()
		key := client.ObjectKeyFromObject(m)
		Eventually(func() error { return admin.Get(ctx, key, m) }).Should(Succeed())
		holds(ctx, m, migration.HoldAwaitingApproval)
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(ring), ring)).To(Succeed())
		accepted(ctx, m, v1alpha1.ActionPause)
		accepted(ctx, m, v1alpha1.ActionApprove)
		Consistently(func(g Gomega) {
			got := &v1alpha1.RingMigration{}
			g.Expect(admin.Get(ctx, key, got)).To(Succeed())
			g.Expect(got.Status.Paused).NotTo(BeNil())
			g.Expect(got.Status.Dispatch.Approved).To(BeTrue())
			g.Expect(got.Status.Position.Step).To(Equal(int32(0)))
		}).WithTimeout(time.Second).Should(Succeed())
		accepted(ctx, m, v1alpha1.ActionResume)
		got := reaches(ctx, m, v1alpha1.MigrationSucceeded)
		end()
		Expect(<-applied).To(BeNumerically(">", 10))
		Expect(got.Generation).To(Equal(int64(1)))
		after := &v1alpha1.HashRing{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(ring), after)).To(Succeed())
		Expect(after.Generation).To(Equal(ring.Generation))
	})
})

// manifest is what Git has of an object.
func manifest(kind string, object client.Object) *unstructured.Unstructured {
	GinkgoHelper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	Expect(err).NotTo(HaveOccurred())
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return u
}

// selfHeal applies manifests until its context ends, and returns how often.
func selfHeal(ctx context.Context, manifests []*unstructured.Unstructured) int {
	rounds, ticker := 0, time.NewTicker(100*time.Millisecond)
	defer ticker.Stop()
	for ; ; rounds++ {
		for _, u := range manifests {
			err := admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner("argocd-controller"), client.ForceOwnership)
			if ctx.Err() == nil {
				Expect(err).NotTo(HaveOccurred())
			}
		}
		select {
		case <-ctx.Done():
			return rounds
		case <-ticker.C:
		}
	}
}
