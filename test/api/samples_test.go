// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const samples = "../../config/samples"

var _ = Describe("The samples", func() {
	// The list of what is applied is that of the kustomization, so that no sample is forgotten in either.
	var resources []string

	BeforeEach(func() {
		document, err := os.ReadFile(filepath.Join(samples, "kustomization.yaml"))
		Expect(err).NotTo(HaveOccurred())
		var kustomization struct {
			Resources []string `json:"resources"`
		}
		Expect(yaml.Unmarshal(document, &kustomization)).To(Succeed())
		resources = kustomization.Resources
	})

	It("are all in the kustomization", func() {
		files, err := filepath.Glob(filepath.Join(samples, "[hrw]*_*.yaml")) // Those of our kinds.
		Expect(err).NotTo(HaveOccurred())
		names := make([]string, 0, len(files))
		for _, file := range files {
			names = append(names, filepath.Base(file))
		}
		Expect(names).NotTo(BeEmpty())
		Expect(resources).To(ConsistOf(names))
	})

	It("apply, first as a dry run and then for real, and apply again without a change", func(ctx SpecContext) {
		for _, name := range resources {
			By(name)
			document, err := os.ReadFile(filepath.Join(samples, name))
			Expect(err).NotTo(HaveOccurred())
			sample := decode(string(document))
			Expect(apply(ctx, sample, client.DryRunAll)).To(Succeed())
			Expect(apply(ctx, sample)).To(Succeed())

			// The second apply may write once: the API server drops the status of a new object, and stores its default
			// with the next write.
			Expect(apply(ctx, sample)).To(Succeed())
			settled := stored(ctx, sample)
			Expect(settled.GetGeneration()).To(BeEquivalentTo(1))
			Expect(apply(ctx, sample)).To(Succeed())
			Expect(stored(ctx, sample).GetResourceVersion()).To(Equal(settled.GetResourceVersion()))
		}
	})
})

// stored returns what the API server stored of an object.
func stored(ctx context.Context, object *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	got := &unstructured.Unstructured{}
	got.SetGroupVersionKind(object.GroupVersionKind())
	Expect(api.Get(ctx, keyOf(object), got)).To(Succeed())
	return got
}
