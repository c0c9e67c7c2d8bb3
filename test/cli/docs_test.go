// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/catalog"
	"github.com/ringwright/ringwright/internal/manager"
	"github.com/ringwright/ringwright/internal/testenv"
	"github.com/ringwright/ringwright/internal/testenv/golden"
)

// The page is its own golden file: after a change of output, go test ./test/cli -update writes what the examples print.
var _ = Describe("docs/cli.md", func() {
	It("shows what its examples print", func(ctx SpecContext) {
		root, err := testenv.ModuleRoot()
		Expect(err).NotTo(HaveOccurred())
		path := filepath.Join(root, "docs", "cli.md")
		page, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		prepareExamples(ctx, string(page))
		golden.Assert(GinkgoTB(), path, []byte(runExamples(ctx, string(page))))
	})
})

// systemNamespace is where the plugin looks for the catalog.
const systemNamespace = "ringwright-system"

// prepareExamples changes into a directory with the manifests of the page, and publishes the one that lacks a backend and then the
// first one, which it holds.
func prepareExamples(ctx context.Context, page string) {
	GinkgoHelper()
	GinkgoT().Chdir(GinkgoT().TempDir())
	GinkgoT().Setenv("KUBECONFIG", kubeconfig)
	manifests := blocks(page, "yaml")
	Expect(manifests).To(HaveLen(2))
	for name, content := range map[string]string{
		"ring.yaml": manifests[0], "bad.yaml": manifests[1], "changed.yaml": without(manifests[0], "{name: c02,"),
	} {
		Expect(os.WriteFile(name, []byte(content), 0o600)).To(Succeed())
	}
	Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}})).To(Succeed())
	stop := startOperatorWith(manager.Options{CatalogNamespace: systemNamespace, CatalogDelay: 100 * time.Millisecond})
	var ring *v1alpha1.HashRing
	for i, name := range []string{"changed.yaml", "ring.yaml"} {
		text, err := os.ReadFile(name)
		Expect(err).NotTo(HaveOccurred())
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal(text, &object.Object)).To(Succeed())
		if i == 0 {
			Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.GetNamespace()}})).To(Succeed())
		}
		Expect(controlPlane.Apply(ctx, object)).To(Succeed())
		ring = settled(ctx, object.GetNamespace(), object.GetName())
		Expect(ring.Status.Active.Revision).To(BeEquivalentTo(i + 1))
	}
	Eventually(func(g Gomega) {
		cm := &corev1.ConfigMap{}
		g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: catalog.Name}, cm)).To(Succeed())
		g.Expect(cm.Data[catalog.FileName]).To(And(ContainSubstring(ring.Status.Active.Digest), ContainSubstring(`"RingPublished"`)))
	}).Should(Succeed())
	stop()
	hold := []byte(`{"status":{"hold":{"reason":"SuddenLoss","since":"2026-12-01T09:00:00Z","token":"f8f0f7f3c9b5a1d2",
		"backends":["10.0.0.1:8080","10.0.0.2:8080","10.0.0.3:8080"],"count":3}}}`)
	Expect(admin.Status().Patch(ctx, ring, client.RawPatch(types.MergePatchType, hold))).To(Succeed())
}

// blocks returns the content of the page's code blocks in a language.
func blocks(page, language string) []string {
	var list []string
	for _, part := range strings.Split(page, "\n```"+language+"\n")[1:] {
		content, _, _ := strings.Cut(part, "```")
		list = append(list, content)
	}
	return list
}

// without returns text without the line that contains part.
func without(text, part string) string {
	GinkgoHelper()
	Expect(strings.Count(text, part)).To(Equal(1))
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if !strings.Contains(line, part) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// runExamples returns the page with the output of every command in place of what is there.
func runExamples(ctx context.Context, page string) string {
	var out strings.Builder
	inExample := false
	for line := range strings.Lines(page) {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			inExample = line == "```console\n"
			out.WriteString(line)
		case !inExample:
			out.WriteString(line)
		case isCommand:
			out.WriteString(line + runExample(ctx, strings.TrimSpace(command)))
		}
	}
	return out.String()
}

// runExample runs a command as a shell would, as far as the page needs one: printf can stand before a pipe.
func runExample(ctx context.Context, command string) string {
	GinkgoHelper()
	var in io.Reader = strings.NewReader("")
	if rest, isPipe := strings.CutPrefix(command, "printf '"); isPipe {
		text, after, found := strings.Cut(rest, "' | ")
		Expect(found).To(BeTrue(), command)
		text, err := strconv.Unquote(`"` + text + `"`)
		Expect(err).NotTo(HaveOccurred())
		in, command = strings.NewReader(text), after
	}
	args, found := strings.CutPrefix(command, "kubectl hashring ")
	Expect(found).To(BeTrue(), command)
	_, out, errOut := hashringWith(ctx, in, strings.Fields(args)...)
	return generated.ReplaceAllString(timestamps.ReplaceAllString(out+errOut, "2026-12-01T09:00:00Z"), "${1}x7k2p")
}

// generated are the names that the API server makes; the page has the same always.
var generated = regexp.MustCompile(`(v1-to-v3-[a-z]+-)[a-z0-9]{5}\b`)

// timestamps are when the examples were run; the page has the same always.
var timestamps = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
