// SPDX-License-Identifier: Apache-2.0

package upgrade_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/testenv"
)

// written is what the earlier build wrote, an object a line.
const written = "testdata/written.jsonl"

var _ = Describe("this build", func() {
	var root string
	BeforeEach(func() {
		var err error
		root, err = testenv.ModuleRoot()
		Expect(err).NotTo(HaveOccurred())
	})

	It("takes over what the earlier build wrote once", func(ctx SpecContext) {
		if *record {
			Skip("testdata is about to be written")
		}
		text, err := os.ReadFile(written)
		Expect(err).NotTo(HaveOccurred())
		c := newCluster(ctx, root)
		var all []entry
		for line := range bytes.Lines(text) {
			var e entry
			Expect(json.Unmarshal(line, &e)).To(Succeed())
			all = append(all, e)
		}
		c.startReader(ctx)
		c.restore(ctx, all)
		c.takeOver(ctx)
	})

	It("takes over from the earlier build", func(ctx SpecContext) {
		tree := unpackBaseline(root)
		c := newCluster(ctx, tree)
		c.startReader(ctx)
		earlier := c.startBaseline(ctx, tree)
		c.publishAll(ctx)
		earlier.stop()
		if *record {
			var text []byte
			for _, e := range c.dump(ctx) {
				line, err := json.Marshal(e)
				Expect(err).NotTo(HaveOccurred())
				text = append(append(text, line...), '\n')
			}
			Expect(os.MkdirAll(filepath.Dir(written), 0o755)).To(Succeed())
			Expect(os.WriteFile(written, text, 0o644)).To(Succeed())
		}
		c.install(ctx, root)
		c.takeOver(ctx)
	})
})

// takeOver starts this build on what an earlier one left, and checks that it leaves that as it is, and goes on from there.
func (c *cluster) takeOver(ctx context.Context) {
	GinkgoHelper()
	before, migrating := c.published(ctx), c.awaitApproval(ctx)
	target := migrating.Status.Rings[0].Candidate
	Expect(target).NotTo(BeEmpty())
	Expect(len(before)).To(BeNumerically(">=", 3*len(specs)+2+len(specs)), "the ConfigMaps and the records of all rings")
	looked := reconciled()
	c.startOperator()
	Eventually(func() float64 { return reconciled() - looked }).Should(BeNumerically(">=", len(specs)+1), "not all of it was looked at")
	Consistently(func(g Gomega) {
		after := c.published(ctx)
		g.Expect(after).To(HaveLen(len(before)))
		for name, object := range before {
			g.Expect(after).To(HaveKeyWithValue(name, object), "%s is no more as it was", name)
		}
	}, "5s").Should(Succeed())

	By("publishing another ring after the ones that there were")
	for name, ready := range map[string]v1alpha1.ConditionReason{
		"v1": v1alpha1.ReasonRingPublished, "v2": v1alpha1.ReasonRingPublished, "v3": v1alpha1.ReasonRingPublished, "chunked": v1alpha1.ReasonRingPublished,
		"declared": v1alpha1.ReasonRingPublished, "pinned": v1alpha1.ReasonPinned, "waiting": v1alpha1.ReasonCandidateWaiting, "held": v1alpha1.ReasonSuddenLoss,
	} {
		c.condition(ctx, name, v1alpha1.ConditionReady, ready)
	}
	ring := &v1alpha1.HashRing{}
	Expect(c.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "v3"}, ring)).To(Succeed())
	last := ring.Status.Active
	ring.Spec.Backends = ring.Spec.Backends[1:]
	Expect(c.admin.Update(ctx, ring)).To(Succeed())
	Eventually(func(g Gomega) {
		g.Expect(c.admin.Get(ctx, client.ObjectKeyFromObject(ring), ring)).To(Succeed())
		g.Expect(ring.Status.Active.Revision).To(Equal(last.Revision + 1))
		g.Expect(ring.Status.Active.Movement).NotTo(BeEmpty(), "the ring that was published is known")
	}).Should(Succeed())

	By("going on with the migration where it was")
	c.approve(ctx, migrating)
	Eventually(func(g Gomega) {
		g.Expect(c.admin.Get(ctx, client.ObjectKeyFromObject(migrating), migrating)).To(Succeed())
		g.Expect(migrating.Status.Phase).To(Equal(v1alpha1.MigrationSucceeded), "%+v", migrating.Status.Holds)
	}).WithTimeout(2 * time.Minute).Should(Succeed())
	Expect(c.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "moving"}, ring)).To(Succeed())
	Expect(ring.Status.Active.Digest).To(Equal(target))
}

// published returns what is published in the namespace, as it is stored, by kind and name.
func (c *cluster) published(ctx context.Context) map[string]string {
	GinkgoHelper()
	objects := map[string]string{}
	add := func(kind string, object client.Object) {
		text, err := json.Marshal(object) // With its version, the owners of its fields, and every byte of its data.
		Expect(err).NotTo(HaveOccurred())
		objects[kind+" "+object.GetName()] = string(text)
	}
	ours := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedByRingwright}}
	configMaps, revisions := &corev1.ConfigMapList{}, &appsv1.ControllerRevisionList{}
	Expect(c.admin.List(ctx, configMaps, ours...)).To(Succeed())
	Expect(c.admin.List(ctx, revisions, ours...)).To(Succeed())
	for i := range configMaps.Items {
		add("ConfigMap", &configMaps.Items[i])
	}
	for i := range revisions.Items {
		add("ControllerRevision", &revisions.Items[i])
	}
	return objects
}

// approve lets a migration take its next step.
func (c *cluster) approve(ctx context.Context, m *v1alpha1.RingMigration) {
	GinkgoHelper()
	review := &authenticationv1.SelfSubjectReview{}
	Expect(c.admin.Create(ctx, review)).To(Succeed())
	Expect(c.admin.Create(ctx, &v1alpha1.RingMigrationAction{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "approve"},
		Spec: v1alpha1.RingMigrationActionSpec{
			MigrationRef: v1alpha1.RingMigrationReference{Name: m.Name}, Type: v1alpha1.ActionApprove, Reason: "it was upgraded",
			Actor: v1alpha1.ActionActor{Username: review.Status.UserInfo.Username}, Step: &v1alpha1.ActionStep{Token: m.Status.Token},
		},
	})).To(Succeed())
}

// reconciled returns how many HashRings and RingMigrations operators of this process have looked at.
func reconciled() float64 {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	sum := 0.0
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			sum += metric.GetCounter().GetValue()
		}
	}
	return sum
}
