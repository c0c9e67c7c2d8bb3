// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/cli"
	"github.com/ringwright/ringwright/internal/manager"
)

// inCatalog calls kubectl hashring catalog on the catalog in system.
func inCatalog(ctx context.Context, system string, args ...string) (code int, out, errOut string) {
	return hashring(ctx, append(append([]string{"catalog"}, args...), "--kubeconfig", kubeconfig, "--catalog-namespace", system)...)
}

// catalogReport returns what is in the catalog of a namespace of rings.
func catalogReport(ctx context.Context, system, rings string) (report cli.CatalogReport) {
	_, out, _ := inCatalog(ctx, system, "-n", rings, "-o", "json")
	_ = json.Unmarshal([]byte(out), &report) // Empty where it cannot be read yet.
	return report
}

func catalogedRing(namespace, name string, n int) *v1alpha1.HashRing {
	r := &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	r.Spec.Publication.MinInterval = &metav1.Duration{}
	r.Spec.Membership.MaxRemoved = "100%"
	r.Spec.HistoryLimit = ptr.To(int32(1))
	for i := range n {
		r.Spec.Backends = append(r.Spec.Backends, v1alpha1.Backend{
			Name: string(rune('a' + i)), Address: "10.9.0." + string(rune('1'+i)), Port: ptr.To(int32(80)),
		})
	}
	return r
}

var _ = Describe("The catalog of a cluster", func() {
	It("is printed, and what a copy of it says is restored", func(ctx SpecContext) {
		system, err := controlPlane.CreateNamespace(ctx, "system-")
		Expect(err).NotTo(HaveOccurred())
		namespace, err := controlPlane.CreateNamespace(ctx, "catalog-")
		Expect(err).NotTo(HaveOccurred())
		code, _, errOut := inCatalog(ctx, system)
		Expect(code).To(Equal(cli.ExitFailure))
		Expect(errOut).To(HavePrefix("error: ConfigMap " + system + "/ringwright-catalog does not exist"))

		names := []string{"one", "same", "forgotten", "deleted", "owned"}
		good := map[string]*v1alpha1.HashRing{}
		for _, name := range names {
			Expect(admin.Create(ctx, catalogedRing(namespace, name, 3))).To(Succeed())
		}
		options := manager.Options{CatalogNamespace: system, CatalogDelay: 100 * time.Millisecond, CatalogCopies: 1, CatalogCopyInterval: time.Hour}
		stop := startOperator()
		for _, name := range names {
			good[name] = settled(ctx, namespace, name)
		}
		stop()
		stop = startOperatorWith(options)
		defer func() { stop() }()
		Eventually(func(g Gomega) {
			report := catalogReport(ctx, system, namespace)
			g.Expect(report.Rings).To(HaveLen(len(names)))
			g.Expect(report.Copies).To(HaveLen(1))
		}).Should(Succeed())
		taken := catalogReport(ctx, system, namespace).Copies[0]

		By("changing what the copy says")
		change := func(name string, backends int) *v1alpha1.HashRing {
			GinkgoHelper()
			Eventually(func() error {
				ring := &v1alpha1.HashRing{}
				if err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, ring); err != nil {
					return err
				}
				ring.Spec.Backends = catalogedRing(namespace, name, backends).Spec.Backends
				return admin.Update(ctx, ring)
			}).Should(Succeed())
			return settled(ctx, namespace, name)
		}
		change("one", 4)
		for n := 4; n <= 6; n++ {
			change("forgotten", n)
		}
		change("owned", 4)
		pin := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"pinnedRevision": int64(2)}}}
		pin.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("HashRing"))
		pin.SetNamespace(namespace)
		pin.SetName("owned")
		Expect(admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(pin), client.FieldOwner("argocd"))).To(Succeed())
		Expect(admin.Delete(ctx, good["deleted"])).To(Succeed())
		Eventually(func(g Gomega) {
			report := catalogReport(ctx, system, namespace)
			g.Expect(report.Rings).To(HaveLen(len(names) - 1))
			g.Expect(report.Tombstones).To(ContainElement(HaveField("Name", "deleted")))
		}).Should(Succeed())

		By("restoring it, dry at first")
		restore := func(args ...string) (report cli.RestoreReport) {
			GinkgoHelper()
			code, out, errOut := inCatalog(ctx, system, append([]string{"restore", "--at", taken, "-n", namespace, "-o", "json"}, args...)...)
			Expect(code).To(Equal(cli.ExitFailure))
			Expect(errOut).To(Equal("error: 3 of 5 rings cannot be restored\n"))
			Expect(json.Unmarshal([]byte(out), &report)).To(Succeed())
			return report
		}
		results := func(report cli.RestoreReport) map[string]string {
			m := map[string]string{}
			for _, r := range report.Rings {
				m[r.Name] = r.Result
			}
			return m
		}
		Expect(results(restore("--dry-run"))).To(Equal(map[string]string{
			"one": "would be pinned", "owned": "cannot be restored", "same": "unchanged", "forgotten": "cannot be restored", "deleted": "cannot be restored",
		}))
		Expect(settled(ctx, namespace, "one").Spec.PinnedRevision).To(BeNil())
		report := restore()
		Expect(results(report)).To(Equal(map[string]string{
			"one": "pinned", "owned": "cannot be restored", "same": "unchanged", "forgotten": "cannot be restored", "deleted": "cannot be restored",
		}))
		Expect(report.Rings).To(ContainElement(And(HaveField("Name", "owned"), HaveField("Reason", ContainSubstring(`conflict with "argocd"`)))))
		Eventually(func(g Gomega) {
			one := settled(ctx, namespace, "one")
			g.Expect(one.Spec.PinnedRevision).To(HaveValue(BeEquivalentTo(1)))
			g.Expect(one.Status.Active.Digest).To(Equal(good["one"].Status.Active.Digest))
		}).Should(Succeed())
		one := settled(ctx, namespace, "one")
		Expect(managedBy(one, "kubectl-hashring")).To(ConsistOf(`Apply {"f:spec":{"f:pinnedRevision":{}}}`))
		Expect(results(restore())).To(HaveKeyWithValue("one", "unchanged"))
	})
})
