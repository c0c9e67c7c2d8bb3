// SPDX-License-Identifier: Apache-2.0

// Package agent_test runs what an agent reads a cluster with against a real API server, on which the operator publishes.
package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/internal/manager"
	"github.com/ringwright/ringwright/internal/testenv"
)

var (
	root         string
	controlPlane *testenv.ControlPlane
	admin        client.WithWatch
)

func TestAgent(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "agent")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	var err error
	root, err = testenv.ModuleRoot()
	Expect(err).NotTo(HaveOccurred())
	controlPlane, err = testenv.Start(context.WithoutCancel(ctx), testenv.Options{CRDPaths: []string{}, Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(controlPlane.Stop()).To(Succeed()) })
	scheme, err := manager.Scheme()
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.NewWithWatch(controlPlane.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(controlPlane.Install(ctx, filepath.Join(root, "config", "default"), nil)).To(Succeed())
	startOperator()
})

// startOperator runs the operator under the service account that it is shipped with, until the tests end.
func startOperator() {
	GinkgoHelper()
	user, err := controlPlane.ServiceAccount("ringwright-system", "ringwright-controller-manager")
	Expect(err).NotTo(HaveOccurred())
	mgr, err := manager.New(user.Config, manager.Options{MetricsAddress: "0", ProbeAddress: "0", SkipNameValidation: true, Concurrency: 2})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(done).Should(Receive(BeNil()))
	})
}

// sample returns the objects of a sample.
func sample(name string) []*unstructured.Unstructured {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(root, "config", "samples", name))
	Expect(err).NotTo(HaveOccurred())
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(document), &object.Object)).To(Succeed())
		objects = append(objects, object)
	}
	return objects
}
