// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// ask gives an action; without a token it names no step.
func ask(ctx context.Context, m *v1alpha1.RingMigration, kind v1alpha1.ActionType, token string) *v1alpha1.RingMigrationAction {
	GinkgoHelper()
	a := &v1alpha1.RingMigrationAction{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, GenerateName: m.Name + "-"},
		Spec: v1alpha1.RingMigrationActionSpec{
			MigrationRef: v1alpha1.RingMigrationReference{Name: m.Name}, Type: kind, Actor: v1alpha1.ActionActor{Username: self}, Reason: "a test",
		},
	}
	if token != "" {
		a.Spec.Step = &v1alpha1.ActionStep{Token: token}
	}
	Expect(admin.Create(ctx, a)).To(Succeed())
	return a
}

// tokenOf returns the token of the present step.
func tokenOf(ctx context.Context, m *v1alpha1.RingMigration) string {
	GinkgoHelper()
	got := &v1alpha1.RingMigration{}
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(m), got)).To(Succeed())
	return got.Status.Token
}

// answered waits until somebody has decided on an action.
func answered(ctx context.Context, a *v1alpha1.RingMigrationAction) *v1alpha1.RingMigrationAction {
	GinkgoHelper()
	got := &v1alpha1.RingMigrationAction{}
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(a), got)).To(Succeed())
		g.Expect(got.Status.Phase).NotTo(BeEmpty())
	}).Should(Succeed())
	return got
}

// accepted gives an action that goes through.
func accepted(ctx context.Context, m *v1alpha1.RingMigration, kind v1alpha1.ActionType) {
	GinkgoHelper()
	got := answered(ctx, ask(ctx, m, kind, tokenOf(ctx, m)))
	Expect(got.Status.Phase).To(Equal(v1alpha1.ActionAccepted), "%s: %s", kind, got.Status.Message)
}
