// SPDX-License-Identifier: Apache-2.0

// Package operator_test runs the operator against a real API server, installed from config/default and as the service
// account that config/rbac makes for it.
package operator_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ringwright/ringwright/internal/manager"
	"github.com/ringwright/ringwright/internal/testenv"
)

const (
	systemNamespace = "ringwright-system"
	serviceAccount  = "ringwright-controller-manager"
)

var (
	root         string
	controlPlane *testenv.ControlPlane
	admin        client.WithWatch
	auditLog     string
	operator     *runningManager
)

func TestOperator(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "operator")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	var err error
	root, err = testenv.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	startControlPlane()
	scheme, err := manager.Scheme()
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.NewWithWatch(controlPlane.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(controlPlane.Install(ctx, filepath.Join(root, "config", "default"), nil)).To(Succeed())
	operator = startOperator()
	DeferCleanup(func() { operator.stop() })
})

// startControlPlane starts an API server that writes down every request of the operator.
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
  users: ["system:serviceaccount:%s:%s"]
- level: None
`, systemNamespace, serviceAccount), 0o600)).To(Succeed())
	var err error
	controlPlane, err = testenv.Start(context.Background(), testenv.Options{
		CRDPaths: []string{}, // They come with the rest of config/default.
		Configure: func(env *envtest.Environment) {
			env.ControlPlane.GetAPIServer().Configure().Set("audit-policy-file", policy).Set("audit-log-path", auditLog)
		},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(controlPlane.Stop()).To(Succeed()) })
}

// runningManager is an operator in this process.
type runningManager struct {
	cancel  context.CancelFunc
	done    chan error
	metrics string
	probes  string
}

// startOperator starts the one that most tests are about, as it is shipped.
func startOperator() *runningManager {
	GinkgoHelper()
	return startManager(manager.Options{LeaderElection: true, LeaderElectionNamespace: systemNamespace, Concurrency: 2})
}

// restartOperator stops it and starts another.
func restartOperator() {
	GinkgoHelper()
	operator.stop()
	operator = startOperator()
}

// startManager starts an operator under the service account that it is shipped with.
func startManager(options manager.Options) *runningManager {
	GinkgoHelper()
	user, err := controlPlane.ServiceAccount(systemNamespace, serviceAccount)
	Expect(err).NotTo(HaveOccurred())
	m := &runningManager{done: make(chan error, 1), metrics: freeAddress(), probes: freeAddress()}
	options.MetricsAddress, options.ProbeAddress, options.SkipNameValidation = m.metrics, m.probes, true
	options.ConsumerLoopback = true
	mgr, err := manager.New(user.Config, options)
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	go func() { m.done <- mgr.Start(ctx) }()
	return m
}

// stop ends the operator as a signal would and reports how that went. It may be called twice.
func (m *runningManager) stop() {
	GinkgoHelper()
	m.cancel()
	Eventually(m.done).Should(Receive(BeNil()))
	m.done <- nil
}

func freeAddress() string {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}

func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	name, err := controlPlane.CreateNamespace(ctx, "rings-")
	Expect(err).NotTo(HaveOccurred())
	return name
}

func getConfigMap(ctx context.Context, namespace, name string) *corev1.ConfigMap {
	GinkgoHelper()
	cm := &corev1.ConfigMap{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cm)).To(Succeed())
	return cm
}
