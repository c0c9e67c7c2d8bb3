// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// configurationOf is what server-side apply takes of an object.
func configurationOf(object client.Object) runtime.ApplyConfiguration {
	GinkgoHelper()
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	Expect(err).NotTo(HaveOccurred())
	delete(u, "status")
	delete(u["metadata"].(map[string]any), "creationTimestamp")
	configuration := &unstructured.Unstructured{Object: u}
	configuration.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RingMigrationAction"))
	return client.ApplyConfigurationFromUnstructured(configuration)
}

// finalizer keeps what a test deletes, as that of the operator does.
const finalizer = "test.ringwright.dev/keep"

// annotated creates a migration of a phase with a value of the annotation.
func annotated(ctx context.Context, name string, phase v1alpha1.MigrationPhase, allow string) *v1alpha1.RingMigration {
	GinkgoHelper()
	m := newMigration(name)
	if allow != "" {
		m.Annotations = map[string]string{v1alpha1.AnnotationAllowActiveDeletion: allow}
	}
	Expect(admin.Create(ctx, m)).To(Succeed())
	if phase != "" {
		inPhase(ctx, m, phase)
	}
	return m
}

var _ = Describe("A RingMigration", func() {
	DescribeTable("that does not run can be deleted", func(ctx SpecContext, phase v1alpha1.MigrationPhase) {
		Expect(admin.Delete(ctx, annotated(ctx, "idle", phase, ""))).To(Succeed())
	},
		Entry("never looked at", v1alpha1.MigrationPhase("")), Entry(nil, v1alpha1.MigrationPending), Entry(nil, v1alpha1.MigrationQueued),
		Entry(nil, v1alpha1.MigrationSucceeded), Entry(nil, v1alpha1.MigrationRolledBack),
	)

	DescribeTable("that runs can be deleted with the annotation only", func(ctx SpecContext, phase v1alpha1.MigrationPhase) {
		m := annotated(ctx, "active", phase, "")
		c := user(ctx, "deletes-"+string(phase), "ringwright-ringmigration-admin-role")
		for _, deleter := range []client.Client{c, admin} {
			err := deleter.Delete(ctx, m)
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(ContainSubstring("RingMigration active is " + string(phase) + "; deleting it takes all keys back to the stable ring (onDelete: Rollback). " +
				`To go back and keep it, use kubectl hashring migration rollback; to delete it all the same, annotate it with ringwright.dev/allow-active-deletion: "true" first`)))
		}
		Expect(c.DeleteAllOf(ctx, &v1alpha1.RingMigration{}, client.InNamespace(namespace))).To(MatchError(ContainSubstring("allow-active-deletion")))
		for _, value := range []string{"false", "yes", "True", ""} {
			m.Annotations = map[string]string{v1alpha1.AnnotationAllowActiveDeletion: value}
			Expect(admin.Update(ctx, m)).To(Succeed())
			Expect(admin.Delete(ctx, m)).To(MatchError(ContainSubstring("allow-active-deletion")))
		}
		m.Annotations = map[string]string{v1alpha1.AnnotationAllowActiveDeletion: "true"}
		Expect(admin.Update(ctx, m)).To(Succeed())
		Expect(c.Delete(ctx, m)).To(Succeed())
	},
		Entry(nil, v1alpha1.MigrationPreparing), Entry(nil, v1alpha1.MigrationShifting), Entry(nil, v1alpha1.MigrationSoaking),
		Entry(nil, v1alpha1.MigrationRetiring), Entry(nil, v1alpha1.MigrationRollingBack),
	)

	It("that would be frozen is refused in those words", func(ctx SpecContext) {
		m := newMigration("frozen")
		m.Spec.OnDelete = v1alpha1.DeletionFreeze
		Expect(admin.Create(ctx, m)).To(Succeed())
		inPhase(ctx, m, v1alpha1.MigrationShifting)
		Expect(admin.Delete(ctx, m)).To(MatchError(ContainSubstring("deleting it leaves the split as it is (onDelete: Freeze)")))
	})

	It("that is being deleted can be deleted again", func(ctx SpecContext) {
		m := annotated(ctx, "twice", v1alpha1.MigrationShifting, "true")
		m.Finalizers = []string{finalizer}
		Expect(admin.Update(ctx, m)).To(Succeed())
		Expect(admin.Delete(ctx, m)).To(Succeed())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
		m.Annotations = nil
		Expect(admin.Update(ctx, m)).To(Succeed())
		Expect(admin.Delete(ctx, m)).To(Succeed())
		m.Finalizers = nil
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
		m.Finalizers = nil
		Expect(admin.Update(ctx, m)).To(Succeed())
	})

	It("goes with its namespace, and not with the owner that somebody gave it", func(ctx SpecContext) {
		doomed, err := controlPlane.CreateNamespace(ctx, "policy-")
		Expect(err).NotTo(HaveOccurred())
		m := newMigration("edge")
		m.Namespace = doomed
		Expect(admin.Create(ctx, m)).To(Succeed())
		inPhase(ctx, m, v1alpha1.MigrationShifting)
		collector, err := controlPlane.User("system:serviceaccount:kube-system:generic-garbage-collector", "system:masters")
		Expect(err).NotTo(HaveOccurred())
		c, err := client.New(collector.Config, client.Options{Scheme: scheme, Mapper: admin.RESTMapper()})
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Delete(ctx, m)).To(MatchError(ContainSubstring("allow-active-deletion")))

		Expect(admin.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: doomed}})).To(Succeed())
		Eventually(func() error { return admin.Delete(ctx, m) }).WithContext(ctx).WithTimeout(testTimeout).Should(Succeed())
	})
})
