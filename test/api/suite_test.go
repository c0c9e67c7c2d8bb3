// SPDX-License-Identifier: Apache-2.0

// Package api_test applies HashRings to a real API server: what the schema and its CEL rules accept, what they refuse
// and how they say so, and what they fill in.
package api_test

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/testenv"
)

// manager is the field manager of everything that the tests apply.
const manager = client.FieldOwner("api-test")

var (
	config    *rest.Config
	api       client.Client
	namespace string
)

func TestAPI(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "API")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())

	// The control plane lives until DeferCleanup stops it, longer than the context of this node.
	controlPlane, err := testenv.Start(context.WithoutCancel(ctx), testenv.Options{Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(controlPlane.Stop()).To(Succeed()) })

	config = controlPlane.Config()
	api, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	namespace, err = controlPlane.CreateNamespace(ctx, "api-")
	Expect(err).NotTo(HaveOccurred())
})

// decode returns the object in a YAML document, with the namespace of the tests.
func decode(document string) *unstructured.Unstructured {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	Expect(yaml.UnmarshalStrict([]byte(document), &object.Object)).To(Succeed())
	object.SetNamespace(namespace)
	return object
}

// hashRing returns a HashRing with a spec in YAML.
func hashRing(name, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	object := decode(spec)
	object.Object = map[string]any{"spec": object.Object["spec"]}
	object.SetAPIVersion(v1alpha1.GroupVersion.String())
	object.SetKind("HashRing")
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// apply applies an object as kubectl apply --server-side does.
func apply(ctx context.Context, object *unstructured.Unstructured, options ...client.ApplyOption) error {
	options = append(options, manager)
	return api.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), options...)
}

// get returns what the API server stored.
func get(ctx context.Context, name string) *v1alpha1.HashRing {
	GinkgoHelper()
	ring := &v1alpha1.HashRing{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, ring)).To(Succeed())
	return ring
}

// backends returns a spec of n backends, each of which format makes from its number.
func backends(identity v1alpha1.Identity, n int, format func(i int) string) string {
	spec := fmt.Sprintf("spec:\n  identity: %s\n  backends:\n", identity)
	for i := range n {
		spec += "  - " + format(i) + "\n"
	}
	return spec
}
