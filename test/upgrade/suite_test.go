// SPDX-License-Identifier: Apache-2.0

// Package upgrade_test has this build of the operator take over what an earlier one wrote: published objects stay as they are, byte for
// byte, and what was under way goes on.
//
// What the earlier build wrote is in testdata as etcd had it, so that the test needs no history. With the history it is written anew by
// that build, and this one follows it on the same API server. To write testdata again, with another [baseline]:
//
//	go test ./test/upgrade -record
package upgrade_test

import (
	"context"
	"flag"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ringwright/ringwright/internal/manager"
	"github.com/ringwright/ringwright/internal/testenv"
)

// baseline is the commit of the earlier build.
const baseline = "1b6f4b721d9a608e9e7e20db031d5863b873f806"

const (
	systemNamespace = "ringwright-system"
	serviceAccount  = "ringwright-controller-manager"
	// namespace is where everything of the tests is; what is in testdata names it.
	namespace = "upgrade"
	// interval is how often migrations are looked at here.
	interval = 200 * time.Millisecond
)

var record = flag.Bool("record", false, "write testdata with the build of the baseline")

func TestUpgrade(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(60 * time.Second)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "upgrade")
}

var _ = BeforeSuite(func() { ctrl.SetLogger(GinkgoLogr) })

// cluster is an API server with an empty namespace for the tests.
type cluster struct {
	*testenv.ControlPlane
	admin client.Client
	// etcd is where its etcd listens.
	etcd string
}

// newCluster starts one and installs the operator's manifests from the tree at root.
func newCluster(ctx context.Context, root string) *cluster {
	GinkgoHelper()
	c := &cluster{}
	var env *envtest.Environment
	var err error
	c.ControlPlane, err = testenv.Start(context.Background(), testenv.Options{
		CRDPaths: []string{}, Log: GinkgoWriter, Configure: func(e *envtest.Environment) { env = e },
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(c.Stop()).To(Succeed()) })
	c.etcd = env.ControlPlane.Etcd.URL.String()
	scheme, err := manager.Scheme()
	Expect(err).NotTo(HaveOccurred())
	c.admin, err = client.New(c.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	c.install(ctx, root)
	Expect(c.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	return c
}

func (c *cluster) install(ctx context.Context, root string) {
	GinkgoHelper()
	Expect(c.Install(ctx, filepath.Join(root, "config", "default"), nil)).To(Succeed())
}

// startOperator starts the operator of this build, which stops with the test.
func (c *cluster) startOperator() {
	GinkgoHelper()
	user, err := c.ServiceAccount(systemNamespace, serviceAccount)
	Expect(err).NotTo(HaveOccurred())
	mgr, err := manager.New(user.Config, manager.Options{
		LeaderElection: true, LeaderElectionNamespace: systemNamespace, Concurrency: 2, MetricsAddress: "0", ProbeAddress: "0",
		SkipNameValidation: true, ConsumerLoopback: true, MigrationInterval: interval,
	})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(done).Should(Receive(BeNil()))
	})
}
