// SPDX-License-Identifier: Apache-2.0

// Package namespaced_test runs the operator and a balancer against a real API server, installed from config/namespaced: with rights in one
// namespace and in their own.
package namespaced_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/balancer"
	"github.com/ringwright/ringwright/internal/manager"
	"github.com/ringwright/ringwright/internal/testenv"
)

const (
	systemNamespace = "ringwright-system"
	// watched is the namespace that config/namespaced names.
	watched = "ringwright-rings"
)

var (
	controlPlane *testenv.ControlPlane
	admin        client.Client
	auditLog     string
)

func TestNamespaced(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "namespaced")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	root, err := testenv.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	startControlPlane()
	scheme, err := manager.Scheme()
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.New(controlPlane.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: watched}})).To(Succeed())
	Expect(controlPlane.Install(ctx, filepath.Join(root, "config", "namespaced"), nil)).To(Succeed())
	leaveSomething(ctx)
	startOperator(ctx)
	startBalancer(ctx)
})

// startControlPlane starts an API server that writes down every request of both service accounts.
func startControlPlane() {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	auditLog = filepath.Join(dir, "audit.log")
	policy := filepath.Join(dir, "policy.yaml")
	Expect(os.WriteFile(policy, fmt.Appendf(nil, `
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
  omitStages: [RequestReceived, ResponseStarted]
  userGroups: ["system:serviceaccounts:%s"]
- level: None
`, systemNamespace), 0o600)).To(Succeed())
	var err error
	controlPlane, err = testenv.Start(context.Background(), testenv.Options{
		CRDPaths: []string{}, // They come with the rest.
		Configure: func(env *envtest.Environment) {
			env.ControlPlane.GetAPIServer().Configure().Set("audit-policy-file", policy).Set("audit-log-path", auditLog)
		},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(controlPlane.Stop()).To(Succeed()) })
}

// leaveSomething leaves in the operator's own namespace what a ring had there while all namespaces were watched.
func leaveSomething(ctx context.Context) {
	GinkgoHelper()
	Expect(admin.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: systemNamespace, Name: "left-routing",
		Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByRingwright, v1alpha1.LabelRing: "left"},
	}})).To(Succeed())
}

// namespacesOf returns what the manifest gives a program as --namespaces.
func namespacesOf(ctx context.Context, deployment string) []string {
	GinkgoHelper()
	d := &appsv1.Deployment{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: deployment}, d)).To(Succeed())
	for _, arg := range d.Spec.Template.Spec.Containers[0].Args {
		if value, ok := strings.CutPrefix(arg, "--namespaces="); ok {
			return strings.Split(value, ",")
		}
	}
	Fail(deployment + " is not told which namespaces it has")
	return nil
}

func startOperator(ctx context.Context) {
	GinkgoHelper()
	user, err := controlPlane.ServiceAccount(systemNamespace, "ringwright-controller-manager")
	Expect(err).NotTo(HaveOccurred())
	mgr, err := manager.New(user.Config, manager.Options{
		Namespaces: namespacesOf(ctx, "ringwright-controller-manager"), MetricsAddress: "0", ProbeAddress: "0", SkipNameValidation: true,
		LeaderElection: true, PodNamespace: systemNamespace, Concurrency: 2,
		CatalogNamespace: systemNamespace, CatalogDelay: 10 * time.Millisecond, CatalogCopies: 1, CatalogCopyInterval: time.Hour,
	})
	Expect(err).NotTo(HaveOccurred())
	run(mgr)
}

func startBalancer(ctx context.Context) {
	GinkgoHelper()
	user, err := controlPlane.ServiceAccount(systemNamespace, "ringwright-balancer")
	Expect(err).NotTo(HaveOccurred())
	b, err := balancer.New(user.Config, balancer.Options{
		Namespaces: namespacesOf(ctx, "ringwright-balancer"), MetricsAddress: "0", ProbeAddress: "0", SkipNameValidation: true,
		Roles: balancer.Roles, Name: "balancer-0", Namespace: systemNamespace, Listen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0",
		Replicas: []string{"system:serviceaccount:" + systemNamespace + ":ringwright-balancer"},
		Audience: "ringwright-balancer", Concurrency: 2, MaxStreams: 1, MaxORCAStreams: 1,
	})
	Expect(err).NotTo(HaveOccurred())
	run(b)
}

// run starts a program, and at the end stops it as a signal would.
func run(program interface{ Start(context.Context) error }) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- program.Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(done).Should(Receive(BeNil()))
	})
}

// auditEvents reads what both programs have asked for, discovery left out.
func auditEvents() []auditv1.Event {
	GinkgoHelper()
	file, err := os.Open(auditLog)
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	var events []auditv1.Event
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var event auditv1.Event
		Expect(json.Unmarshal(scanner.Bytes(), &event)).To(Succeed())
		if event.ObjectRef != nil {
			events = append(events, event)
		}
	}
	Expect(scanner.Err()).NotTo(HaveOccurred())
	return events
}
