// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/cli"
	"github.com/ringwright/ringwright/internal/crdschema"
	"github.com/ringwright/ringwright/internal/testenv"
)

// fixtureNoon is the time that the statuses of the tests are of.
var fixtureNoon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// fixtureStatus returns a status in the soak of the third step, as if that were now.
func fixtureStatus() v1alpha1.RingMigrationStatus {
	GinkgoHelper()
	root, err := testenv.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	text, err := os.ReadFile(filepath.Join(root, "internal", "cli", "testdata", "migration", "soaking.yaml"))
	Expect(err).NotTo(HaveOccurred())
	later := time.Since(fixtureNoon)
	shifted := timesOfFixture.ReplaceAllStringFunc(string(text), func(at string) string {
		t, err := time.Parse(time.RFC3339Nano, at)
		Expect(err).NotTo(HaveOccurred())
		return t.Add(later).UTC().Format("2006-01-02T15:04:05.000000Z")
	})
	m := &v1alpha1.RingMigration{}
	Expect(yaml.Unmarshal([]byte(shifted), m)).To(Succeed())
	m.Status.Conditions = nil // Their times have no fractions; the phase says the same.
	return m.Status
}

// makeMigration creates a RingMigration of the manifest of the fixture, with that status.
func makeMigration(ctx context.Context, namespace, name string, change func(*v1alpha1.RingMigrationStatus)) *v1alpha1.RingMigration {
	GinkgoHelper()
	root, err := testenv.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	text, err := os.ReadFile(filepath.Join(root, "internal", "cli", "testdata", "migration", "soaking.yaml"))
	Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal(text, &object.Object)).To(Succeed())
	delete(object.Object, "status")
	object.Object["metadata"] = map[string]any{"namespace": namespace, "name": name}
	Expect(admin.Create(ctx, object)).To(Succeed())
	setMigration(ctx, namespace, name, func(s *v1alpha1.RingMigrationStatus) {
		*s = fixtureStatus()
		if change != nil {
			change(s)
		}
	})
	return migrationNamed(ctx, namespace, name)
}

func migrationNamed(ctx context.Context, namespace, name string) *v1alpha1.RingMigration {
	GinkgoHelper()
	m := &v1alpha1.RingMigration{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, m)).To(Succeed())
	return m
}

// setMigration writes the status as the operator would.
func setMigration(ctx context.Context, namespace, name string, change func(*v1alpha1.RingMigrationStatus)) {
	GinkgoHelper()
	m := migrationNamed(ctx, namespace, name)
	change(&m.Status)
	m.Status.ObservedGeneration = m.Generation
	Expect(admin.Status().Update(ctx, m)).To(Succeed())
}

// answered waits for the action of a migration and answers it.
func answered(ctx context.Context, name string, status v1alpha1.RingMigrationActionStatus) *v1alpha1.RingMigrationAction {
	GinkgoHelper()
	var action *v1alpha1.RingMigrationAction
	Eventually(func(g Gomega) {
		list := &v1alpha1.RingMigrationActionList{}
		g.Expect(admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		for i := range list.Items {
			if list.Items[i].Spec.MigrationRef.Name == name && list.Items[i].Status.Phase == "" {
				action = &list.Items[i]
			}
		}
		g.Expect(action).NotTo(BeNil())
	}).Should(Succeed())
	action.Status = status
	Expect(admin.Status().Update(ctx, action)).To(Succeed())
	return action
}

// result is what a command printed that ran beside the test.
type result struct {
	code        int
	out, errOut string
}

func beside(ctx context.Context, args ...string) <-chan result {
	done := make(chan result, 1)
	go func() {
		code, out, errOut := inCluster(ctx, args...)
		done <- result{code, out, errOut}
	}()
	return done
}

var _ = Describe("A migration", func() {
	accepted := v1alpha1.RingMigrationActionStatus{Phase: v1alpha1.ActionAccepted}

	It("gets the action that somebody asks for, as the user whom the API server knows", func(ctx SpecContext) {
		makeMigration(ctx, namespace, "acted", nil)
		me, err := whoAmI(ctx)
		Expect(err).NotTo(HaveOccurred())

		done := beside(ctx, "migration", "skip", "acted", "--yes", "--reason", "seen on the dashboard")
		action := answered(ctx, "acted", accepted)
		Expect(action.Name).To(HavePrefix("acted-skip-"))
		Expect(action.Spec).To(Equal(v1alpha1.RingMigrationActionSpec{
			MigrationRef: v1alpha1.RingMigrationReference{Name: "acted"}, Type: v1alpha1.ActionSkip,
			Step:  &v1alpha1.ActionStep{Name: "europe 1/3", Token: "1.2.1-7"},
			Actor: v1alpha1.ActionActor{Username: me}, Reason: "seen on the dashboard",
		}))
		var got result
		Eventually(done).Should(Receive(&got))
		Expect(got.code).To(Equal(cli.ExitOK), got.errOut)
		Expect(got.out).To(And(ContainSubstring("RingMigrationAction "+namespace+"/"+action.Name+" of "+me+" created.\n"), ContainSubstring("\nAccepted. It goes on to the next step.\n")))

		By("an answer that is none that was hoped for")
		done = beside(ctx, "rmig", "approve", "acted", "--yes")
		answered(ctx, "acted", v1alpha1.RingMigrationActionStatus{Phase: v1alpha1.ActionRejected, Reason: "NotAwaitingApproval"})
		Eventually(done).Should(Receive(&got))
		Expect(got.code).To(Equal(cli.ExitFailure))
		Expect(got.errOut).To(ContainSubstring("was rejected with reason NotAwaitingApproval: the step does not wait for an approval, or has it already\n"))

		By("no answer")
		code, _, errOut := inCluster(ctx, "migration", "pause", "acted", "--timeout", "200ms")
		Expect(code).To(Equal(cli.ExitTimedOut), errOut)

		By("a dry run, which makes none")
		before := actionsOf(ctx, "acted")
		Expect(succeed(ctx, "migration", "rollback", "acted", "--dry-run")).To(HaveSuffix("nothing was changed.\n"))
		Expect(actionsOf(ctx, "acted")).To(Equal(before))

		By("nobody to ask")
		code, _, errOut = inCluster(ctx, "migration", "retry", "acted")
		Expect(code).To(Equal(cli.ExitFailure))
		Expect(errOut).To(ContainSubstring("retry has to be confirmed: --yes does that where nobody can be asked"))
		Expect(actionsOf(ctx, "acted")).To(Equal(before))
	})

	It("is rolled back by who may do nothing else", func(ctx SpecContext) {
		makeMigration(ctx, namespace, "oncall", nil)
		user, err := controlPlane.User("oncall@example.com")
		Expect(err).NotTo(HaveOccurred())
		config := writeFile("oncall", user.Kubeconfig)
		rollback := func(args ...string) (int, string, string) {
			return hashring(ctx, append([]string{"migration", "rollback", "oncall", "-n", namespace, "--kubeconfig", config}, args...)...)
		}
		code, _, errOut := rollback()
		Expect(code).To(Equal(cli.ExitFailure))
		Expect(errOut).To(And(ContainSubstring(`cannot create resource "ringmigrationactions"`), ContainSubstring("the verb rollback on ringmigrations.ringwright.dev")))
		Expect(actionsOf(ctx, "oncall")).To(BeEmpty())

		allow(ctx, "oncall@example.com", rbacv1.PolicyRule{APIGroups: []string{"ringwright.dev"}, Resources: []string{"ringmigrationactions"}, Verbs: []string{"create"}},
			rbacv1.PolicyRule{APIGroups: []string{"ringwright.dev"}, Resources: []string{"ringmigrations"}, Verbs: []string{"rollback"}})
		Eventually(func(g Gomega) {
			code, out, errOut := rollback("--wait=false")
			g.Expect(code).To(Equal(cli.ExitOK), errOut)
			g.Expect(out).To(ContainSubstring("of oncall@example.com created.\n"))
			g.Expect(errOut).To(ContainSubstring(": the action goes without the token of a step\n"))
		}).Should(Succeed())
		Expect(actionsOf(ctx, "oncall")).To(HaveLen(1))
	})

	It("is followed to its end", func(ctx SpecContext) {
		makeMigration(ctx, namespace, "followed", nil)
		watched := beside(ctx, "migration", "status", "followed", "--watch")
		waited := beside(ctx, "migration", "wait", "followed", "--for=step=europe/1", "--timeout", "1m")
		back := beside(ctx, "migration", "wait", "followed", "--for=succeeded", "--timeout", "1m")
		setMigration(ctx, namespace, "followed", func(s *v1alpha1.RingMigrationStatus) { s.Position.Step = 1 })
		var got result
		Eventually(waited).Should(Receive(&got))
		Expect(got.code).To(Equal(cli.ExitOK), got.errOut)
		setMigration(ctx, namespace, "followed", func(s *v1alpha1.RingMigrationStatus) {
			s.Phase, s.StepPhase, s.Soak = v1alpha1.MigrationRolledBack, "", nil
			s.Rollback = &v1alpha1.MigrationRollback{Cause: "GateFailed", Since: metav1.NowMicro()}
		})
		Eventually(back).Should(Receive(&got))
		Expect(got.code).To(Equal(cli.ExitRolledBack), got.errOut)
		Eventually(watched).Should(Receive(&got))
		Expect(got.code).To(Equal(cli.ExitOK), got.errOut)
		Expect(got.out).To(ContainSubstring("RolledBack\n"))
		Expect(succeed(ctx, "migration", "wait", "followed", "--for=rolled-back")).To(ContainSubstring("is at what was waited for: rolled-back"))
		code, _, _ := inCluster(ctx, "migration", "wait", "followed", "--for=phase=Queued", "--timeout", "1m")
		Expect(code).To(Equal(cli.ExitRolledBack))

		setMigration(ctx, namespace, "followed", func(s *v1alpha1.RingMigrationStatus) { *s = fixtureStatus() })
		gone := beside(ctx, "migration", "wait", "followed", "--for=succeeded", "--timeout", "1m")
		Expect(admin.Delete(ctx, migrationNamed(ctx, namespace, "followed"))).To(Succeed())
		Eventually(gone).Should(Receive(&got))
		Expect(got.code).To(Or(Equal(cli.ExitEnded), Equal(cli.ExitFailure)), got.errOut) // The latter where it was gone before the first look.
	})

	It("has a history of actions and events", func(ctx SpecContext) {
		m := makeMigration(ctx, namespace, "told", func(s *v1alpha1.RingMigrationStatus) {
			s.History = []v1alpha1.ActionRecord{{UID: "a", Type: "Approve", Token: "1.1.2-6", Actor: "ann", Reason: "looks good", At: metav1.NowMicro()}}
		})
		for name, about := range map[string]string{"told.1": "told", "other.1": "other"} {
			uid := m.UID
			if about != "told" {
				uid = "x"
			}
			Expect(admin.Create(ctx, &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: name},
				InvolvedObject: corev1.ObjectReference{APIVersion: "ringwright.dev/v1alpha1", Kind: "RingMigration", Namespace: namespace, Name: about, UID: uid},
				Reason:         "StepSoaking", Message: "about " + about, EventTime: metav1.NowMicro(), ReportingController: "ringwright", ReportingInstance: "x", Action: "Step", Type: "Normal",
			})).To(Succeed())
		}
		var report cli.MigrationHistory
		Expect(json.Unmarshal([]byte(succeed(ctx, "migration", "history", "told", "-o", "json")), &report)).To(Succeed())
		Expect(report.Notes).To(BeEmpty())
		var kinds []string
		for _, e := range report.Entries {
			kinds = append(kinds, e.Kind+" "+e.What+" "+e.Why)
		}
		Expect(kinds).To(ConsistOf("transition Converging to Soaking Done", "action Approve looks good", "event StepSoaking about told"))
	})

	It("that is none is an error with what there is", func(ctx SpecContext) {
		makeMigration(ctx, namespace, "there", nil)
		code, _, errOut := inCluster(ctx, "migration", "status", "thre")
		Expect(code).To(Equal(cli.ExitFailure))
		Expect(errOut).To(Equal("error: RingMigration " + namespace + "/thre does not exist: did you mean there?\n"))

		By("an API server that does not have the kind")
		text := regexp.MustCompile(`(?m)^( *server: \S+?)/?$`).ReplaceAll(controlPlane.Kubeconfig(), []byte("${1}/nowhere"))
		code, _, errOut = hashring(ctx, "migration", "status", "there", "-n", namespace, "--kubeconfig", writeFile("nowhere", text))
		Expect(code).To(Equal(cli.ExitFailure))
		Expect(errOut).To(HavePrefix("error: this cluster has no RingMigrations: "))
	})
})

var _ = Describe("The offline schema of migrations", func() {
	const head = "apiVersion: ringwright.dev/v1alpha1\nkind: RingMigration\nmetadata: {name: asked}\nspec: {ringRef: {name: edge}, "
	const stages = `stages: [{name: all, datacenters: {names: [b, a]}, steps: [{traffic: "1%", soak: 90s}, {traffic: "100%"}]}]`
	DescribeTable("says what the API server does", func(ctx SpecContext, spec string, accepted bool) {
		server := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(head+spec+"}"), &server.Object)).To(Succeed())
		server.SetNamespace(namespace)
		offline := server.DeepCopy()
		schema, err := crdschema.RingMigration()
		Expect(err).NotTo(HaveOccurred())
		serverErr := admin.Create(ctx, server, client.DryRunAll, client.FieldValidation("Strict"))
		offlineErr := schema.Admit(ctx, offline)
		if !accepted {
			Expect(serverErr).To(HaveOccurred())
			Expect(offlineErr).To(HaveOccurred())
			return
		}
		Expect(serverErr).NotTo(HaveOccurred())
		Expect(offlineErr).NotTo(HaveOccurred())
		Expect(offline.Object["spec"]).To(Equal(server.Object["spec"]))
	},
		Entry("nothing but stages", stages, true),
		Entry("gates and policies", stages+`, gates: [{name: a, consumers: {maxErrorRatio: "1%"}}, {name: p, prometheus: {address: "http://p", query: up}, failWhen: "value > 1.0"}],
			rollback: {strategy: Staged, steps: ["50%", "0%"]}, limits: {maxTraffic: "50%"}, retirement: {}`, true),
		Entry("an unknown field", stages+", gate: []", false),
		Entry("both a ring and a selector", stages+", ringSelector: {matchLabels: {a: b}}", false),
		Entry("falling traffic", strings.Replace(stages, `"1%"`, `"100%"`, 1), false),
		Entry("a gate of two kinds", stages+`, gates: [{name: a, consumers: {maxErrorRatio: "1%"}, object: {apiVersion: v1, kind: A, name: a, condition: C}}]`, false),
		Entry("staged without steps", stages+", rollback: {strategy: Staged}", false),
	)
})

func actionsOf(ctx context.Context, name string) []string {
	GinkgoHelper()
	list := &v1alpha1.RingMigrationActionList{}
	Expect(admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	var names []string
	for _, a := range list.Items {
		if a.Spec.MigrationRef.Name == name {
			names = append(names, a.Name)
		}
	}
	return names
}

// allow gives a user permissions in the namespace.
func allow(ctx context.Context, user string, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "user-"}, Rules: rules}
	Expect(admin.Create(ctx, role)).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
}

// timesOfFixture are the times of the fixture.
var timesOfFixture = regexp.MustCompile(`2026-12-01T\d\d:\d\d:\d\d\.\d+Z`)

// whoAmI returns the name of the user of kubeconfig.
func whoAmI(ctx context.Context) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	err := admin.Create(ctx, review)
	return review.Status.UserInfo.Username, err
}
