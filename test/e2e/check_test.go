// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// holds is what must be so after every scenario: the consumers agree with the operator about every owner, no request failed, and the
// operator has left nothing behind.
func (w *world) holds(ctx context.Context) {
	GinkgoHelper()
	w.agree(ctx)
	for datacenter, s := range w.stats(ctx) {
		Expect(s.Failed).To(BeZero(), "%s: %d of %d requests failed: %v", datacenter, s.Failed, s.Requests, s.Failures)
	}
	Expect(w.left(ctx)).To(HaveExactElements("edge-a", "edge-b", "edge-routing"), "ConfigMaps of the ring")
	revisions := &appsv1.ControllerRevisionList{}
	Expect(admin.List(ctx, revisions, client.InNamespace(w.namespace), client.HasLabels{v1alpha1.LabelRing})).To(Succeed())
	Expect(len(revisions.Items)).To(BeNumerically("<=", 11), "the history of the ring")
}

// agree waits until each consumer gets every object from the backend that the published ring names.
func (w *world) agree(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		for datacenter, s := range w.stats(ctx) {
			g.Expect(s.Owners).To(Equal(w.owners(ctx, g, datacenter)), datacenter)
		}
	}).Should(Succeed())
}

// owners are the backends of the objects by the published ring, seen from a datacenter.
func (w *world) owners(ctx context.Context, g Gomega, datacenter string) []string {
	state, end, err := w.load(ctx, datacenter)
	g.Expect(err).NotTo(HaveOccurred())
	defer end()
	owners := make([]string, keys)
	for i := range owners {
		decision, err := state.Pick(fmt.Appendf(nil, "/%d", i))
		g.Expect(err).NotTo(HaveOccurred())
		owners[i] = decision.ID()
	}
	return owners
}

// left returns the names of the ConfigMaps that the operator manages in the namespace.
func (w *world) left(ctx context.Context) []string {
	GinkgoHelper()
	list := &corev1.ConfigMapList{}
	Expect(admin.List(ctx, list, client.InNamespace(w.namespace), client.HasLabels{v1alpha1.LabelRing})).To(Succeed())
	names := make([]string, 0, len(list.Items))
	for _, cm := range list.Items {
		names = append(names, cm.Name)
	}
	slices.Sort(names)
	return names
}
