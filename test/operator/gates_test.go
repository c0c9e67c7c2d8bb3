// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/gate"
)

// gateRunner measures under the service account of the operator.
func gateRunner() *gate.Runner {
	GinkgoHelper()
	user, err := controlPlane.ServiceAccount(systemNamespace, serviceAccount)
	Expect(err).NotTo(HaveOccurred())
	reader, err := client.New(user.Config, client.Options{Scheme: admin.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	runner := gate.NewRunner(gate.Options{
		Clock: clock.RealClock{}, Secrets: reader, Objects: reader, Changed: func(types.NamespacedName) {}, Loopback: true,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- runner.Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Expect(<-done).To(Succeed())
	})
	return runner
}

// says returns the result and text of a gate of a step that is in effect since long.
func says(runner *gate.Runner, namespace string, g v1alpha1.MigrationGate) func() string {
	since := time.Now().Add(-time.Hour)
	return func() string {
		list := runner.Follow(gate.Subject{
			UID: types.UID(namespace), Namespace: namespace, Name: "m", Token: "1", Rings: []string{"edge"}, Datacenters: []string{"lab01"}, Effective: since,
		}, []v1alpha1.MigrationGate{g})
		if len(list) == 0 {
			return ""
		}
		return string(list[0].Result) + " " + list[0].Detail
	}
}

// toOperator are the subjects of a binding.
var toOperator = []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: systemNamespace, Name: serviceAccount}}

var _ = Describe("gates of a migration", func() {
	It("read the Secrets that somebody grants, and no others", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer correct" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"scalar","result":[` + r.FormValue("time") + `,"1"]}}`))
		}))
		DeferCleanup(server.Close)
		for name, token := range map[string]string{"prometheus": "correct", "other": "wrong"} {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: map[string]string{"token": token}}
			Expect(admin.Create(ctx, secret)).To(Succeed())
		}
		runner := gateRunner()
		g := v1alpha1.MigrationGate{
			Name: "up", PassWhen: "value == 1", Interval: &metav1.Duration{Duration: time.Second},
			Prometheus: &v1alpha1.PrometheusGate{Address: server.URL, Query: "q", Auth: &v1alpha1.GateAuth{SecretName: "prometheus"}},
		}
		Eventually(says(runner, namespace, g)).Should(HavePrefix("Error the operator may not read Secret prometheus: it needs a Role in namespace " + namespace))
		meta := metav1.ObjectMeta{Namespace: namespace, Name: "gates"}
		Expect(admin.Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"prometheus", "missing"}, Verbs: []string{"get"}},
		}})).To(Succeed())
		Expect(admin.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "gates"}, Subjects: toOperator,
		})).To(Succeed())
		Eventually(says(runner, namespace, g)).Should(Equal("Pass value 1: passWhen holds: value == 1"))
		g.Prometheus.Auth.SecretName = "other"
		Eventually(says(runner, namespace, g)).Should(HavePrefix("Error the operator may not read Secret other"))
		g.Prometheus.Auth.SecretName = "missing"
		Eventually(says(runner, namespace, g)).Should(Equal("Error there is no Secret missing in namespace " + namespace))
	})

	It("read the objects that a team lets them read", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		labels := map[string]string{"app": "edge"}
		deployment := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "edge"},
			Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
			}},
		}
		Expect(admin.Create(ctx, deployment)).To(Succeed())
		runner := gateRunner()
		g := v1alpha1.MigrationGate{
			Name: "ready", Interval: &metav1.Duration{Duration: time.Second},
			Object: &v1alpha1.ObjectGate{APIVersion: "apps/v1", Kind: "Deployment", Name: "edge", Condition: "Available"},
		}
		Eventually(says(runner, namespace, g)).Should(HavePrefix(`Error Deployment edge: the operator may not read it: a ClusterRole with label ringwright.dev/aggregate-to-gates: "true"`))

		role := &rbacv1.ClusterRole{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: "ringwright-gate-objects-role"}, role)).To(Succeed())
		Expect(role.AggregationRule.ClusterRoleSelectors).To(ConsistOf(metav1.LabelSelector{MatchLabels: map[string]string{"ringwright.dev/aggregate-to-gates": "true"}}))
		Expect(role.Rules).To(BeEmpty())
		// The controller that adds rules up does not run here.
		role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}}}
		Expect(admin.Update(ctx, role)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			role.Rules = []rbacv1.PolicyRule{}
			Expect(admin.Update(ctx, role)).To(Succeed())
		})
		Eventually(says(runner, namespace, g)).Should(Equal("NoData Deployment edge: its status has no condition Available"))

		deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
		}}
		Expect(admin.Status().Update(ctx, deployment)).To(Succeed())
		Eventually(says(runner, namespace, g)).Should(Equal("Pass Deployment edge: condition Available is True (MinimumReplicasAvailable)"))
		deployment.Spec.Paused = true // Another generation, which nobody has observed.
		Expect(admin.Update(ctx, deployment)).To(Succeed())
		Eventually(says(runner, namespace, g)).Should(Equal("Inconclusive Deployment edge: its status is of generation 1, and it is at 2"))

		g.Object = &v1alpha1.ObjectGate{APIVersion: "apps/v1", Kind: "Unknown", Name: "edge", Condition: "Available"}
		Eventually(says(runner, namespace, g)).Should(Equal("Error Unknown edge: the cluster has no kind Unknown in apps/v1"))
	})
})
