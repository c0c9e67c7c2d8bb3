// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/cli"
	"github.com/ringwright/ringwright/internal/routingtest"
)

const shards = `apiVersion: ringwright.dev/v1alpha1
kind: HashRing
metadata: {name: shards}
spec:
  identity: Name
  publication: {minInterval: 0s}
  backends:
  - {name: shard-0, address: shard-0.example.com, port: 11211}
  - {name: shard-1, address: 10.0.1.1, port: 11211, weight: 2, zone: a}
`

var _ = Describe("A published ring", Ordered, func() {
	var manifest string
	var stop func()

	BeforeAll(func(ctx SpecContext) {
		manifest = writeFile("shards.yaml", []byte(shards))
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(shards), &object.Object)).To(Succeed())
		object.SetNamespace(namespace)
		Expect(controlPlane.Apply(ctx, object)).To(Succeed())
		stop = startOperator()
		settled(ctx, namespace, "shards")
		// What follows edits what the operator would restore.
		stop()
	})

	It("has the bytes that build writes, so every source gives the same answers", func(ctx SpecContext) {
		out := GinkgoT().TempDir()
		code, _, errOut := hashring(ctx, "build", "-f", manifest, "-n", namespace, "-o", out)
		Expect(code).To(Equal(cli.ExitOK), errOut)

		keys := []string{"-o", "tsv", "--owners", "2", "a", "b", "c"}
		cluster := succeed(ctx, append([]string{"lookup", "shards"}, keys...)...)
		code, directory, errOut := hashring(ctx, append([]string{"lookup", "--dir", out}, keys...)...)
		Expect(code).To(Equal(cli.ExitOK), errOut)
		Expect(cluster).To(Equal(directory))
		Expect(cluster).To(ContainSubstring("shard-0.example.com:11211"))

		slot := &corev1.ConfigMap{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "shards-a"}, slot)).To(Succeed())
		snapshot := writeFile("published.snap", slot.BinaryData["ring-a.snap"])
		code, verified, errOut := hashring(ctx, "verify", "--snapshot", snapshot, "-f", manifest)
		Expect(code).To(Equal(cli.ExitOK), verified+errOut)
	})

	It("is inspected with its revision", func(ctx SpecContext) {
		var report cli.InspectReport
		Expect(json.Unmarshal([]byte(succeed(ctx, "inspect", "shards", "-o", "json")), &report)).To(Succeed())
		Expect(report.Source).To(Equal("HashRing " + namespace + "/shards"))
		Expect(report.Revision).To(BeEquivalentTo(1))
		Expect(report.Generation).To(BeEquivalentTo(1))
		Expect(report.Backends).To(HaveLen(2))
		Expect(report.Backends[1].Address).To(Equal("10.0.1.1:11211"))
	})

	It("passes every check, also against its manifest", func(ctx SpecContext) {
		out := succeed(ctx, "verify", "shards", "-f", manifest)
		Expect(out).NotTo(ContainSubstring("skip"))
		for _, check := range []string{
			"HashRing " + namespace + "/shards: status.active is what is published",
			"HashRing " + namespace + "/shards: status.routing is what is published",
			"ConfigMap " + namespace + "/shards-a: has the right annotation ringwright.dev/digest",
			"ConfigMap " + namespace + "/shards-b: has the right annotation ringwright.dev/content-digest",
			manifest + ": gives the published routing.json",
		} {
			Expect(out).To(ContainSubstring("ok    " + check + "\n"))
		}
	})

	It("is read with no permission but that to read ConfigMaps", func(ctx SpecContext) {
		user, err := controlPlane.User("reader")
		Expect(err).NotTo(HaveOccurred())
		grantConfigMaps(ctx, "reader")
		config := writeFile("kubeconfig", user.Kubeconfig)
		as := func(args ...string) (int, string, string) {
			return hashring(ctx, append(args, "--kubeconfig", config, "-n", namespace)...)
		}
		code, _, errOut := as("lookup", "shards", "a")
		Expect(code).To(Equal(cli.ExitOK), errOut)
		code, _, errOut = as("inspect", "shards")
		Expect(code).To(Equal(cli.ExitOK), errOut)
		code, _, errOut = as("verify", "shards")
		Expect(code).To(Equal(cli.ExitFailure))
		Expect(errOut).To(HavePrefix(fmt.Sprintf(`error: reading HashRing %s/shards: hashrings.ringwright.dev "shards" is forbidden`, namespace)))
	})

	It("is not taken for one that does not exist", func(ctx SpecContext) {
		code, _, errOut := inCluster(ctx, "lookup", "nope", "a")
		Expect(code).To(Equal(cli.ExitFailure))
		Expect(errOut).To(Equal(fmt.Sprintf(
			"error: ConfigMap %[1]s/nope-routing does not exist: no ring of the name nope has been published in namespace %[1]s\n", namespace)))
		code, _, errOut = inCluster(ctx, "verify", "nope")
		Expect(code).To(Equal(cli.ExitFailure))
		Expect(errOut).To(ContainSubstring(`reading HashRing ` + namespace + `/nope: hashrings.ringwright.dev "nope" not found`))
	})

	It("fails the checks of what was edited", func(ctx SpecContext) {
		for name, edit := range map[string]struct {
			change func(cm *corev1.ConfigMap)
			object string
			want   string
		}{
			"the snapshot": {
				func(cm *corev1.ConfigMap) { cm.BinaryData["ring-a.snap"][100] ^= 1 }, "shards-a",
				"FAIL  ConfigMap %s/shards-a: has the digest that routing.json names: ",
			},
			"an address": {
				func(cm *corev1.ConfigMap) {
					cm.Data["routing.json"] = routingtest.Reseal(strings.Replace(cm.Data["routing.json"], "10.0.1.1", "10.0.1.2", 1))
				},
				"shards-routing", "FAIL  HashRing %s/shards: status.routing is what is published: ",
			},
			"the revision": {
				func(cm *corev1.ConfigMap) { cm.Annotations[v1alpha1.AnnotationRevision] = "7" }, "shards-a",
				"FAIL  HashRing %s/shards: status.active is what is published: it is revision 1 in slot a",
			},
			"the other slot": {
				func(cm *corev1.ConfigMap) { delete(cm.BinaryData, "ring-b.snap") }, "shards-b",
				"FAIL  ConfigMap %[1]s/shards-b: is empty or holds a ring: ConfigMap %[1]s/shards-b has no ring-b.snap",
			},
		} {
			By(name)
			undo := change(ctx, edit.object, edit.change)
			code, out, errOut := inCluster(ctx, "verify", "shards")
			Expect(code).To(Equal(cli.ExitFailure))
			Expect(out).To(ContainSubstring(fmt.Sprintf(edit.want, namespace)))
			Expect(errOut).To(MatchRegexp(`^error: \d of \d+ checks failed\n$`))
			undo()
		}
		succeed(ctx, "verify", "shards")
	})

	It("is not taken from another namespace", func(ctx SpecContext) {
		other, err := controlPlane.CreateNamespace(ctx, "cli-")
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"shards-a", "shards-routing"} {
			cm := &corev1.ConfigMap{}
			Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cm)).To(Succeed())
			Expect(admin.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: name}, Data: cm.Data, BinaryData: cm.BinaryData,
			})).To(Succeed())
		}
		code, _, errOut := hashring(ctx, "lookup", "shards", "a", "--kubeconfig", kubeconfig, "-n", other)
		Expect(code).To(Equal(cli.ExitFailure))
		Expect(errOut).To(Equal(fmt.Sprintf("error: ConfigMap %s/shards-routing is of ring %s/shards, not %[1]s/shards\n", other, namespace)))
	})
})

// grantConfigMaps lets a user read the ConfigMaps of the namespace by their names.
func grantConfigMaps(ctx context.Context, user string) {
	GinkgoHelper()
	Expect(admin.Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}},
	})).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}},
		RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: user},
	})).To(Succeed())
}

// change edits a ConfigMap and returns what puts it back.
func change(ctx context.Context, name string, edit func(*corev1.ConfigMap)) (undo func()) {
	GinkgoHelper()
	cm := &corev1.ConfigMap{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cm)).To(Succeed())
	before := cm.DeepCopy()
	edit(cm)
	Expect(admin.Update(ctx, cm)).To(Succeed())
	return func() {
		GinkgoHelper()
		before.ResourceVersion = cm.ResourceVersion
		Expect(admin.Update(ctx, before)).To(Succeed())
	}
}

var _ = Describe("Every sample", func() {
	It("builds offline, unless its backends are those of Services", func(ctx SpecContext) {
		files, err := filepath.Glob("../../config/samples/hashring_*.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(files).NotTo(BeEmpty())
		for _, file := range files {
			By(file)
			dir := GinkgoT().TempDir()
			code, out, errOut := hashring(ctx, "build", "-f", file, "-o", dir)
			text, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			if bytes.Contains(text, []byte("backendsFrom:")) {
				Expect(code).To(Equal(cli.ExitFailure), out)
				Expect(errOut).To(ContainSubstring("spec.backendsFrom takes backends from Service "))
				continue
			}
			Expect(code).To(Equal(cli.ExitOK), out+errOut)
			code, out, errOut = hashring(ctx, "verify", "--dir", dir, "-f", file)
			Expect(code).To(Equal(cli.ExitOK), out+errOut)
		}
	})
})
