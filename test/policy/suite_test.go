// SPDX-License-Identifier: Apache-2.0

// Package policy_test asks a real API server, with what config/default installs, who may do what to migrations.
package policy_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/testenv"
)

var (
	controlPlane *testenv.ControlPlane
	scheme       = runtime.NewScheme()
	// admin may do everything, and is the user "admin".
	admin     client.Client
	namespace string
)

func TestPolicy(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Policy")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())

	root, err := testenv.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	controlPlane, err = testenv.Start(context.WithoutCancel(ctx), testenv.Options{Log: GinkgoWriter, CRDPaths: []string{}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(controlPlane.Stop()).To(Succeed()) })
	Expect(controlPlane.Install(ctx, filepath.Join(root, "config", "default"), nil)).To(Succeed())

	admin, err = client.New(controlPlane.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	namespace, err = controlPlane.CreateNamespace(ctx, "policy-")
	Expect(err).NotTo(HaveOccurred())
	// The API server needs a moment before it follows a policy.
	Eventually(func() error {
		return admin.Create(ctx, newAction("edge", v1alpha1.ActionPause, "nobody"), client.DryRunAll)
	}).WithContext(ctx).WithTimeout(testTimeout).Should(MatchError(ContainSubstring("ValidatingAdmissionPolicy")))
	Eventually(func(g Gomega) {
		m := newMigration("probe")
		g.Expect(client.IgnoreAlreadyExists(admin.Create(ctx, m))).To(Succeed())
		inPhase(ctx, m, v1alpha1.MigrationShifting)
		g.Expect(admin.Delete(ctx, m, client.DryRunAll)).To(MatchError(ContainSubstring("ValidatingAdmissionPolicy")))
	}).WithContext(ctx).WithTimeout(testTimeout).Should(Succeed())
})

// testTimeout is for what takes the API server a moment.
const testTimeout = 30 * time.Second

// user returns a client of a user who has ClusterRoles of config/rbac, or others, in the namespace.
func user(ctx context.Context, name string, roles ...string) client.Client {
	GinkgoHelper()
	u, err := controlPlane.User(name)
	Expect(err).NotTo(HaveOccurred())
	for _, role := range roles {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "test-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		}
		Expect(admin.Create(ctx, binding)).To(Succeed())
	}
	c, err := client.New(u.Config, client.Options{Scheme: scheme, Mapper: admin.RESTMapper()})
	Expect(err).NotTo(HaveOccurred())
	return c
}

func newAction(migration string, kind v1alpha1.ActionType, actor string) *v1alpha1.RingMigrationAction {
	return &v1alpha1.RingMigrationAction{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "test-"},
		Spec: v1alpha1.RingMigrationActionSpec{
			MigrationRef: v1alpha1.RingMigrationReference{Name: migration}, Type: kind,
			Step: &v1alpha1.ActionStep{Token: "1.1.1-2"}, Actor: v1alpha1.ActionActor{Username: actor},
		},
	}
}

func newMigration(name string) *v1alpha1.RingMigration {
	return &v1alpha1.RingMigration{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.RingMigrationSpec{
			RingRef: &v1alpha1.RingReference{Name: "edge"},
			Stages: []v1alpha1.MigrationStage{{
				Name: "world", Datacenters: v1alpha1.StageDatacenters{Remainder: true}, Steps: []v1alpha1.MigrationStep{{Traffic: "100%"}},
			}},
		},
	}
}

// inPhase stores a status of a phase.
func inPhase(ctx context.Context, m *v1alpha1.RingMigration, phase v1alpha1.MigrationPhase) {
	GinkgoHelper()
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
	m.Status = v1alpha1.RingMigrationStatus{Phase: phase}
	Expect(admin.Status().Update(ctx, m)).To(Succeed())
}
