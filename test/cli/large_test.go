// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/cli"
)

// largeManifest is a ring of 327,680 points, which take two chunks.
func largeManifest(name, publication string) []byte {
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: ringwright.dev/v1alpha1\nkind: HashRing\nmetadata: {name: %s}\nspec:\n", name)
	fmt.Fprintf(&text, "  publication: {minInterval: 0s, %s}\n  backends:\n", publication)
	for i := range 2048 {
		fmt.Fprintf(&text, "  - {name: c%d, address: 10.3.%d.%d, port: 8080}\n", i, i/256, i%256)
	}
	return []byte(text.String())
}

var _ = Describe("A large ring", Ordered, func() {
	manifests := map[string]string{}

	BeforeAll(func(ctx SpecContext) {
		stop := startOperator()
		for name, publication := range map[string]string{"chunked": "chunks: 3", "recipe": "encoding: Recipe"} {
			text := largeManifest(name, publication)
			manifests[name] = writeFile(name+".yaml", text)
			object := &unstructured.Unstructured{}
			Expect(yaml.Unmarshal(text, &object.Object)).To(Succeed())
			object.SetNamespace(namespace)
			Expect(controlPlane.Apply(ctx, object)).To(Succeed())
			settled(ctx, namespace, name)
		}
		// What follows edits what the operator would restore.
		stop()
	})

	It("gives the same answers in chunks and as a recipe", func(ctx SpecContext) {
		keys := []string{"-o", "tsv", "--owners", "3", "a", "b", "c", "d", "e", "f"}
		Expect(succeed(ctx, append([]string{"lookup", "chunked"}, keys...)...)).To(
			Equal(succeed(ctx, append([]string{"lookup", "recipe"}, keys...)...)))
		Expect(succeed(ctx, "inspect", "chunked")).To(ContainSubstring("encoding    Points\n"))
		Expect(succeed(ctx, "inspect", "recipe")).To(ContainSubstring("encoding    Recipe\n"))
	})

	It("passes every check, also against its manifest", func(ctx SpecContext) {
		for name, manifest := range manifests {
			out := succeed(ctx, "verify", name, "-f", manifest)
			Expect(out).NotTo(ContainSubstring("skip"))
			Expect(out).To(ContainSubstring(manifest + ": gives the published routing.json\n"))
		}
		out := succeed(ctx, "verify", "chunked")
		for _, check := range []string{
			"chunked-a-1: has the right annotation ringwright.dev/digest", "chunked-a-1: has the right annotation ringwright.dev/encoding",
			"chunked-a-2: has the right annotation ringwright.dev/content-digest", "chunked-a-2: is empty, as it is not needed",
			"chunked-b-2: is empty, as it is not needed",
		} {
			Expect(out).To(ContainSubstring("ok    ConfigMap " + namespace + "/" + check + "\n"))
		}
	})

	It("fails the checks of what was edited", func(ctx SpecContext) {
		for name, edit := range map[string]struct {
			change       func(cm *corev1.ConfigMap)
			object, want string
			unusable     bool
		}{
			"a chunk": {
				func(cm *corev1.ConfigMap) { cm.BinaryData["ring-a.snap.1"][100] ^= 1 }, "chunked-a-1",
				"FAIL  ConfigMap %[1]s/chunked-a: has the digest that routing.json names: ConfigMap %[1]s/chunked-a to ring-a.snap.1 together have", true,
			},
			"a chunk that is gone": {
				func(cm *corev1.ConfigMap) { delete(cm.BinaryData, "ring-a.snap.1") }, "chunked-a-1",
				"FAIL  ConfigMap %[1]s/chunked-a-1: has the digest that routing.json names: ConfigMap %[1]s/chunked-a-1 has no ring-a.snap.1", true,
			},
			"a chunk that is not needed": {
				func(cm *corev1.ConfigMap) { cm.BinaryData["ring-b.snap.1"] = []byte("x") }, "chunked-b-1",
				"FAIL  ConfigMap %[1]s/chunked-b-1: is empty, as it is not needed: it has 1 bytes", false,
			},
			"the encoding": {
				func(cm *corev1.ConfigMap) { cm.Annotations[v1alpha1.AnnotationEncoding] = "Recipe" }, "chunked-a",
				"FAIL  ConfigMap %[1]s/chunked-a: has the right annotation ringwright.dev/encoding: it is Recipe, not Points", false,
			},
		} {
			By(name)
			undo := change(ctx, edit.object, edit.change)
			code, out, _ := inCluster(ctx, "verify", "chunked")
			Expect(code).To(Equal(cli.ExitFailure))
			Expect(out).To(ContainSubstring(fmt.Sprintf(edit.want, namespace)))
			code, _, _ = inCluster(ctx, "lookup", "chunked", "a")
			Expect(code == cli.ExitFailure).To(Equal(edit.unusable))
			undo()
		}
		succeed(ctx, "verify", "chunked")
	})
})
