// SPDX-License-Identifier: Apache-2.0

// Package cli_test runs kubectl hashring against a real API server with the operator on it.
package cli_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/cli"
	"github.com/ringwright/ringwright/internal/manager"
	"github.com/ringwright/ringwright/internal/testenv"
)

var (
	controlPlane *testenv.ControlPlane
	admin        client.Client
	namespace    string
	// kubeconfig is the file that kubectl hashring is called with.
	kubeconfig string
)

func TestCLI(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "kubectl hashring")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	var err error
	controlPlane, err = testenv.Start(context.WithoutCancel(ctx), testenv.Options{Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(controlPlane.Stop()).To(Succeed()) })
	scheme, err := manager.Scheme()
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.New(controlPlane.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	namespace, err = controlPlane.CreateNamespace(ctx, "cli-")
	Expect(err).NotTo(HaveOccurred())
	kubeconfig = writeFile("kubeconfig", controlPlane.Kubeconfig())
})

// startOperator starts an operator in this process and returns what stops it. Its permissions are no subject here.
func startOperator() (stop func()) {
	GinkgoHelper()
	return startOperatorWith(manager.Options{})
}

func startOperatorWith(options manager.Options) (stop func()) {
	GinkgoHelper()
	options.MetricsAddress, options.ProbeAddress, options.Concurrency, options.SkipNameValidation = "0", "0", 1, true
	mgr, err := manager.New(controlPlane.Config(), options)
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return func() {
		GinkgoHelper()
		cancel()
		Eventually(done).Should(Receive(BeNil()))
	}
}

// settled waits until the status is about the present spec.
func settled(ctx context.Context, namespace, name string) *v1alpha1.HashRing {
	GinkgoHelper()
	ring := &v1alpha1.HashRing{}
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, ring)).To(Succeed())
		g.Expect(ring.Status.ObservedGeneration).To(Equal(ring.Generation))
		g.Expect(meta.IsStatusConditionTrue(ring.Status.Conditions, string(v1alpha1.ConditionPublished))).To(BeTrue())
	}).Should(Succeed())
	return ring
}

func writeFile(name string, content []byte) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), name)
	Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	return path
}

// hashring calls kubectl hashring in this process and returns what it printed.
func hashring(ctx context.Context, args ...string) (code int, out, errOut string) {
	return hashringWith(ctx, strings.NewReader(""), args...)
}

func hashringWith(ctx context.Context, in io.Reader, args ...string) (code int, out, errOut string) {
	var stdout, stderr bytes.Buffer
	code = cli.Main(ctx, args, genericiooptions.IOStreams{In: in, Out: &stdout, ErrOut: &stderr})
	return code, stdout.String(), stderr.String()
}

// inCluster is hashring with the flags that name the cluster and the namespace.
func inCluster(ctx context.Context, args ...string) (code int, out, errOut string) {
	return hashring(ctx, append(args, "--kubeconfig", kubeconfig, "--namespace", namespace)...)
}

// succeed is inCluster for a command that has to succeed.
func succeed(ctx context.Context, args ...string) string {
	GinkgoHelper()
	code, out, errOut := inCluster(ctx, args...)
	Expect(code).To(Equal(cli.ExitOK), out+errOut)
	return out
}
