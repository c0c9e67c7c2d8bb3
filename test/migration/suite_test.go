// SPDX-License-Identifier: Apache-2.0

// Package migration_test carries RingMigrations out with the real operator, API server and agents: what the plan moves and what takes it
// back, whatever happens in between.
package migration_test

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
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/internal/manager"
	"github.com/ringwright/ringwright/internal/testenv"
)

const (
	systemNamespace = "ringwright-system"
	serviceAccount  = "ringwright-controller-manager"
	// interval is how often migrations are looked at here.
	interval = 200 * time.Millisecond
)

var (
	controlPlane *testenv.ControlPlane
	admin        client.WithWatch
	kubeconfig   string
	operator     *runningManager
	// account is who operators are, and self who the tests are.
	account *testenv.User
	self    string
)

func TestMigration(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(60 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "migration")
}

var _ = BeforeSuite(func() {
	ctrl.SetLogger(GinkgoLogr)
	root, err := testenv.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	controlPlane, err = testenv.Start(context.Background(), testenv.Options{CRDPaths: []string{}, Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(controlPlane.Stop()).To(Succeed()) })
	scheme, err := manager.Scheme()
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.NewWithWatch(controlPlane.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(controlPlane.Install(context.Background(), filepath.Join(root, "config", "default"), nil)).To(Succeed())
	kubeconfig = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(kubeconfig, controlPlane.Kubeconfig(), 0o600)).To(Succeed())
	account, err = controlPlane.ServiceAccount(systemNamespace, serviceAccount)
	Expect(err).NotTo(HaveOccurred())
	review := &authenticationv1.SelfSubjectReview{}
	Expect(admin.Create(context.Background(), review)).To(Succeed())
	self = review.Status.UserInfo.Username
	operator = startOperator()
	DeferCleanup(func() { operator.stop() })
})

// runningManager is an operator in this process.
type runningManager struct {
	cancel context.CancelFunc
	done   chan error
}

// startOperator starts an operator under the service account that it is shipped with.
func startOperator() *runningManager { return startOperatorOver(nil, true) }

// startOperatorOver starts one that reaches the API server over a link; nil is a plain one. Without election it leads whatever others do.
func startOperatorOver(over *link, election bool) *runningManager {
	GinkgoHelper()
	config := rest.CopyConfig(account.Config)
	if over != nil {
		config.Wrap(over.wrap)
	}
	m := &runningManager{done: make(chan error, 1)}
	mgr, err := manager.New(config, manager.Options{
		LeaderElection: election, LeaderElectionNamespace: systemNamespace, Concurrency: 2, MetricsAddress: "0", ProbeAddress: "0",
		SkipNameValidation: true, ConsumerLoopback: true, GateLoopback: true, MigrationInterval: interval,
	})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	go func() { m.done <- mgr.Start(ctx) }()
	return m
}

// stop ends the operator as a signal would. It may be called twice.
func (m *runningManager) stop() {
	GinkgoHelper()
	m.cancel()
	Eventually(m.done).Should(Receive(BeNil()))
	m.done <- nil
}

// bury ends an operator that has been killed: whatever it says.
func (m *runningManager) bury() {
	GinkgoHelper()
	m.cancel()
	Eventually(m.done).Should(Receive())
	m.done <- nil
}

func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	name, err := controlPlane.CreateNamespace(ctx, "migration-")
	Expect(err).NotTo(HaveOccurred())
	return name
}

// freePort returns a port that is free on all addresses.
func freePort() int32 {
	GinkgoHelper()
	listener, err := net.Listen("tcp", ":0")
	Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	address, ok := listener.Addr().(*net.TCPAddr)
	Expect(ok).To(BeTrue(), fmt.Sprint(listener.Addr()))
	return int32(address.Port)
}
