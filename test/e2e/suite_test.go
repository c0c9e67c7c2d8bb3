// SPDX-License-Identifier: Apache-2.0

// Package e2e_test installs Ringwright on a real node, with a kubelet, a garbage collector and pods, and looks at it from inside: real
// traffic goes through the agents to real backends all the time, and none of it may fail.
//
// It needs root, and takes the node of hack/node: make e2e.
package e2e_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/internal/manager"
	"github.com/ringwright/ringwright/internal/testenv"
)

const (
	// systemNamespace and operator are where config/default puts the operator.
	systemNamespace = "ringwright-system"
	operatorName    = "ringwright-controller-manager"
	// image is what is installed, nextImage the same of another build, appImage what runs in the pods beside it.
	image     = "localhost/ringwright:e2e"
	nextImage = "localhost/ringwright:e2e-next"
	appImage  = "localhost/app:e2e"
)

var (
	root  string
	admin client.WithWatch
)

func TestE2E(t *testing.T) {
	if os.Getenv("E2E") != "1" {
		t.Skip("NOT RUN: the end-to-end tests start a real node, as root; make e2e does")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	suite, reporter := GinkgoConfiguration()
	suite.FailFast = true // What comes after a failure is about what it left.
	RunSpecs(t, "e2e", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	var err error
	root, err = testenv.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	startNode()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	Expect(err).NotTo(HaveOccurred())
	config.QPS, config.Burst = 200, 400
	scheme, err := manager.Scheme()
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	loadImages(GinkgoT().TempDir())
	install(ctx, filepath.Join(root, "config", "default"))
})
