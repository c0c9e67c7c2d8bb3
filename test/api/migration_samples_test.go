// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/gate"
	"github.com/ringwright/ringwright/internal/migrationapi"
)

// waveAnnotation is by which Argo CD orders what it applies.
const waveAnnotation = "argocd.argoproj.io/sync-wave"

// typed returns a RingMigration as the operator reads it.
func typed(object *unstructured.Unstructured) *v1alpha1.RingMigration {
	GinkgoHelper()
	migration := &v1alpha1.RingMigration{}
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, migration)).To(Succeed())
	return migration
}

// wantPlan fails where the operator would not take a plan, or a gate of it.
func wantPlan(migration *v1alpha1.RingMigration) {
	GinkgoHelper()
	spec, err := migrationapi.Spec(migration.Spec)
	Expect(err).NotTo(HaveOccurred())
	Expect(spec.Validate()).To(Succeed())
	for _, g := range migration.Spec.Gates {
		Expect(gate.Validate(g)).To(Succeed())
	}
}

var _ = Describe("The samples of RingMigrations", func() {
	It("are plans and gates that the operator takes", func(ctx SpecContext) {
		files, err := filepath.Glob(filepath.Join(samples, "ringmigration_*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(len(files)).To(BeNumerically(">=", 4))
		for _, file := range files {
			By(file)
			document, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			sample := decode(string(document))
			Expect(apply(ctx, sample)).To(Succeed())
			wantPlan(typed(stored(ctx, sample)))
		}
	})

	It("name HashRings that are samples, too", func() {
		for migration, ring := range map[string]string{"minimal": "minimal", "stages": "features", "rollback": "trimmed"} {
			document, err := os.ReadFile(filepath.Join(samples, "ringmigration_"+migration+".yaml"))
			Expect(err).NotTo(HaveOccurred())
			Expect(typed(decode(string(document))).Spec.RingRef.Name).To(Equal(ring))
			document, err = os.ReadFile(filepath.Join(samples, "hashring_"+ring+".yaml"))
			Expect(err).NotTo(HaveOccurred())
			Expect(decode(string(document)).GetName()).To(Equal(ring))
		}
	})
})

var _ = Describe("The sample of sync waves", func() {
	It("applies wave by wave, the ring, the migration and the consumers, and again without a change", func(ctx SpecContext) {
		objects := build(filepath.Join(samples, "gitops"))
		slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return wave(a) - wave(b) })
		var kinds []string
		for round := range 3 {
			for i, object := range objects {
				object.SetNamespace(namespace)
				Expect(apply(ctx, object)).To(Succeed())
				if round == 0 {
					Expect(wave(object)).To(Equal(i))
					kinds = append(kinds, object.GetKind())
				}
			}
		}
		Expect(kinds).To(Equal([]string{"HashRing", "RingMigration", "Deployment"}))

		ring, migration, consumers := stored(ctx, objects[0]), typed(stored(ctx, objects[1])), stored(ctx, objects[2])
		wantPlan(migration)
		Expect(migration.Spec.RingRef.Name).To(Equal(ring.GetName()))
		for _, object := range objects {
			before := stored(ctx, object).GetResourceVersion()
			Expect(apply(ctx, object)).To(Succeed())
			Expect(stored(ctx, object).GetResourceVersion()).To(Equal(before))
		}
		selected, _, err := unstructured.NestedStringMap(ring.Object, "spec", "consumers", "selector", "matchLabels")
		Expect(err).NotTo(HaveOccurred())
		labels, _, err := unstructured.NestedStringMap(consumers.Object, "spec", "template", "metadata", "labels")
		Expect(err).NotTo(HaveOccurred())
		for key, value := range selected {
			Expect(labels).To(HaveKeyWithValue(key, value))
		}
	})
})

// wave is the wave in which Argo CD applies an object.
func wave(object *unstructured.Unstructured) int {
	GinkgoHelper()
	number, err := strconv.Atoi(object.GetAnnotations()[waveAnnotation])
	Expect(err).NotTo(HaveOccurred())
	return number
}
