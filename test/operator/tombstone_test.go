// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
)

// withTombstone sets how long what is published outlives r.
func withTombstone(r *v1alpha1.HashRing, d time.Duration) *v1alpha1.HashRing {
	r.Spec.Deletion.Tombstone = &metav1.Duration{Duration: d}
	return r
}

// remove deletes r, and plays the part of the garbage collector, which the control plane of the tests has not: what has an owner
// reference to r goes, with a foreground deletion before r.
func remove(ctx context.Context, r *v1alpha1.HashRing, policy metav1.DeletionPropagation) {
	GinkgoHelper()
	Expect(admin.Delete(ctx, r, client.PropagationPolicy(policy))).To(Succeed())
	collect(ctx, r)
	if policy != metav1.DeletePropagationBackground {
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Finalizers = nil })
	}
	Eventually(func() bool {
		return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(r), &v1alpha1.HashRing{}))
	}).Should(BeTrue())
}

// collect deletes what has an owner reference to r.
func collect(ctx context.Context, r *v1alpha1.HashRing) {
	GinkgoHelper()
	for _, object := range leftOf(ctx, r) {
		for _, owner := range object.GetOwnerReferences() {
			if owner.UID == r.UID {
				Expect(client.IgnoreNotFound(admin.Delete(ctx, object))).To(Succeed())
			}
		}
	}
}

// leftOf returns all that is published for r by its label.
func leftOf(ctx context.Context, r *v1alpha1.HashRing) []client.Object {
	GinkgoHelper()
	var objects []client.Object
	cms := &corev1.ConfigMapList{}
	Expect(admin.List(ctx, cms, client.InNamespace(r.Namespace), client.MatchingLabels{v1alpha1.LabelRing: r.Name})).To(Succeed())
	for i := range cms.Items {
		objects = append(objects, &cms.Items[i])
	}
	for _, record := range recordsOf(ctx, r) {
		objects = append(objects, record)
	}
	return objects
}

// marked waits until the operator has seen that r is gone, and returns until when its files stay.
func marked(ctx context.Context, r *v1alpha1.HashRing) time.Time {
	GinkgoHelper()
	var until time.Time
	Eventually(func(g Gomega) {
		cm := &corev1.ConfigMap{}
		g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name + "-routing"}, cm)).To(Succeed())
		var err error
		until, err = time.Parse(time.RFC3339, cm.Annotations[v1alpha1.AnnotationTombstoneUntil])
		g.Expect(err).NotTo(HaveOccurred())
	}).Should(Succeed())
	return until
}

// expectFiles checks that what pods mount is what it was, and that the objects are the same ones.
func expectFiles(ctx context.Context, r *v1alpha1.HashRing, before map[string]*corev1.ConfigMap) {
	GinkgoHelper()
	for part, cm := range published(ctx, r) {
		Expect(payload(cm)).To(Equal(payload(before[part])), part)
		Expect(cm.UID).To(Equal(before[part].UID), "%s was deleted and made again", part)
	}
}

var _ = Describe("a deleted HashRing", func() {
	DescribeTable("leaves its files for the tombstone, and not for longer", func(ctx SpecContext, policy metav1.DeletionPropagation) {
		r := withTombstone(newRing(newNamespace(ctx), "mourned", 5), 3*time.Second)
		r.Spec.Publication.Chunks = 2
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		before := published(ctx, r)
		deleted := time.Now()
		remove(ctx, r, policy)
		until := marked(ctx, r)
		Expect(until).To(BeTemporally("~", deleted.Add(3*time.Second), 2500*time.Millisecond))
		for time.Now().Before(until.Add(-200 * time.Millisecond)) {
			expectFiles(ctx, r, before)
		}
		Eventually(func(g Gomega) { g.Expect(leftOf(ctx, r)).To(BeEmpty()) }).Should(Succeed())
		Expect(time.Now()).To(BeTemporally(">=", until), "they went before their time")
	},
		Entry("deleted in the background", metav1.DeletePropagationBackground),
		Entry("deleted in the foreground", metav1.DeletePropagationForeground),
		Entry("deleted with orphans", metav1.DeletePropagationOrphan),
	)

	It("leaves them for three days unless it says otherwise", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "threedays", 3)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(published(ctx, r)["routing"].Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationTombstone, "72h0m0s"))
		remove(ctx, r, metav1.DeletePropagationBackground)
		Expect(marked(ctx, r)).To(BeTemporally("~", time.Now().Add(72*time.Hour), time.Minute))
		By("writing that once")
		writes := writesOfOperator(r.Namespace)["threedays"]
		probe := newRing(r.Namespace, "probe", 2)
		Expect(admin.Create(ctx, probe)).To(Succeed())
		settled(ctx, probe, v1alpha1.ReasonRingPublished)
		Expect(writesOfOperator(r.Namespace)["threedays"]).To(Equal(writes))
	})

	It("takes its files with it where it says so, also when it says so last", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "atonce", 3)
		Expect(admin.Create(ctx, r)).To(Succeed())
		before := settled(ctx, r, v1alpha1.ReasonRingPublished)
		edit(ctx, r, func(r *v1alpha1.HashRing) { withTombstone(r, 0) })
		after := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(after.Status.Active).To(Equal(before.Status.Active), "readers saw a change")
		Expect(after.Status.Routing).To(Equal(before.Status.Routing), "readers saw a change")
		remove(ctx, r, metav1.DeletePropagationBackground)
		Eventually(func(g Gomega) { g.Expect(leftOf(ctx, r)).To(BeEmpty()) }).Should(Succeed())
	})

	It("is mourned across a restart", func(ctx SpecContext) {
		r := withTombstone(newRing(newNamespace(ctx), "survived", 3), 3*time.Second)
		unseen := withTombstone(newRing(r.Namespace, "unseen", 3), 2*time.Second)
		for _, r := range []*v1alpha1.HashRing{r, unseen} {
			Expect(admin.Create(ctx, r)).To(Succeed())
			settled(ctx, r, v1alpha1.ReasonRingPublished)
		}
		remove(ctx, r, metav1.DeletePropagationBackground)
		until := marked(ctx, r)
		operator.stop()
		remove(ctx, unseen, metav1.DeletePropagationBackground)
		before := published(ctx, unseen)
		restart()
		unseenUntil := marked(ctx, unseen)
		expectFiles(ctx, unseen, before)
		for r, until := range map[*v1alpha1.HashRing]time.Time{r: until, unseen: unseenUntil} {
			Eventually(func(g Gomega) { g.Expect(leftOf(ctx, r)).To(BeEmpty()) }).Should(Succeed())
			Expect(time.Now()).To(BeTemporally(">=", until))
		}
	})

	It("takes nothing with it that is not its own", func(ctx SpecContext) {
		r := withTombstone(newRing(newNamespace(ctx), "own", 3), 0)
		labels := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByRingwright, v1alpha1.LabelRing: "own"}
		others := []client.Object{
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "own-notes", Labels: labels}},
			&appsv1.ControllerRevision{
				ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "own-x", Labels: labels}, Revision: 1, Data: runtime.RawExtension{Raw: []byte("{}")},
			},
		}
		for _, other := range others {
			Expect(admin.Create(ctx, other)).To(Succeed())
		}
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		remove(ctx, r, metav1.DeletePropagationBackground)
		Eventually(func(g Gomega) { g.Expect(leftOf(ctx, r)).To(HaveLen(len(others))) }).Should(Succeed())
		for _, other := range others {
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(other), other)).To(Succeed())
		}
	})
})

var _ = Describe("a HashRing that is made again", func() {
	DescribeTable("within the tombstone goes on where it was", func(ctx SpecContext, make func(namespace string) *v1alpha1.HashRing) {
		r := make(newNamespace(ctx))
		spec := r.Spec.DeepCopy()
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		edit(ctx, r, weigh(3, 2)) // What V3 trims from here on depends on it.
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		edit(ctx, r, weigh(3, 1))
		old := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(old.Status.Active.Revision).To(Equal(int64(3)))
		before, snapshot := published(ctx, r), slotRing(ctx, r)
		remove(ctx, r, metav1.DeletePropagationForeground)
		marked(ctx, r)

		again := &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}, Spec: *spec}
		Expect(admin.Create(ctx, again)).To(Succeed())
		got := settled(ctx, again, v1alpha1.ReasonRingPublished)
		Expect(got.UID).NotTo(Equal(old.UID))
		Expect(got.Status.Active.Digest).To(Equal(old.Status.Active.Digest))
		Expect(got.Status.Active.Revision).To(Equal(old.Status.Active.Revision))
		Expect(got.Status.Routing.Generation).To(Equal(old.Status.Routing.Generation+1), "it names another HashRing")
		Expect(moved(snapshot, slotRing(ctx, again))).To(BeZero())
		after := published(ctx, again)
		for part, cm := range before {
			Expect(after[part].UID).To(Equal(cm.UID), "%s was deleted and made again", part)
		}
		Expect(payload(after["a"])).To(Equal(payload(before["a"])))
		checkPublication(ctx, got)
		for _, object := range leftOf(ctx, again) { // The older records as well.
			Expect(object.GetAnnotations()).To(HaveKeyWithValue(v1alpha1.AnnotationRingUID, string(got.UID)), object.GetName())
		}
		Expect(reconcileOnce(ctx, again, nil).writes).To(BeEmpty())
	},
		Entry("over V2", func(namespace string) *v1alpha1.HashRing { return newRing(namespace, "again", 12) }),
		Entry("over V3, with its trims", func(namespace string) *v1alpha1.HashRing { return newTrimmed(namespace, "again", 12) }),
	)

	It("with another spec counts on", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "other", 3)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		remove(ctx, r, metav1.DeletePropagationBackground)
		r = newRing(r.Namespace, r.Name, 4)
		Expect(admin.Create(ctx, r)).To(Succeed())
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(got.Status.Active.Revision).To(Equal(int64(2)))
		checkPublication(ctx, got)
	})

	It("keeps the files alive even while its spec cannot be published", func(ctx SpecContext) {
		r := withTombstone(newRing(newNamespace(ctx), "refused", 3), 2*time.Second)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		snapshot := payload(getConfigMap(ctx, r.Namespace, "refused-a"))
		remove(ctx, r, metav1.DeletePropagationBackground)
		until := marked(ctx, r)
		again := withTombstone(newRing(r.Namespace, r.Name, 4), time.Hour)
		again.Spec.Backends[3].Address = again.Spec.Backends[0].Address
		Expect(admin.Create(ctx, again)).To(Succeed())
		settled(ctx, again, v1alpha1.ReasonDuplicateIdentity)
		before := published(ctx, again)
		Expect(payload(before["a"])).To(Equal(snapshot))
		Expect(routingOf(ctx, again)).To(And(HaveField("UID", string(again.UID)), HaveField("Generation", int64(2))))
		Eventually(time.Now).Should(BeTemporally(">", until.Add(time.Second)))
		By("being deleted once more")
		remove(ctx, again, metav1.DeletePropagationBackground)
		Expect(marked(ctx, again)).To(BeTemporally(">", time.Now().Add(50*time.Minute)), "the old mark, or the old tombstone, counts")
		expectFiles(ctx, again, before)
	})
})

var _ = Describe("the deletion of a namespace", func() {
	// There is no namespace controller here, so the test does what that does: deletes what is there, in whatever order, again and
	// again until nothing is left.
	DescribeTable("is not held up", func(ctx SpecContext, ringsFirst bool) {
		namespace := newNamespace(ctx)
		rings := make([]*v1alpha1.HashRing, 3)
		for i := range rings {
			rings[i] = newRing(namespace, fmt.Sprintf("doomed%d", i), 3)
			Expect(admin.Create(ctx, rings[i])).To(Succeed())
			settled(ctx, rings[i], v1alpha1.ReasonRingPublished)
		}
		Expect(admin.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
		kinds := []client.Object{&corev1.ConfigMap{}, &appsv1.ControllerRevision{}, &v1alpha1.HashRing{}}
		if ringsFirst {
			kinds[0], kinds[2] = kinds[2], kinds[0]
		}
		for _, kind := range kinds {
			Expect(admin.DeleteAllOf(ctx, kind, client.InNamespace(namespace))).To(Succeed())
			if !ringsFirst && kind != kinds[2] {
				By("letting the operator see what it cannot restore")
				Eventually(func(g Gomega) { g.Expect(terminatingRefusals(namespace)).To(BeNumerically(">=", len(rings))) }).Should(Succeed())
				checkNotStormed(ctx, rings)
			}
		}
		for _, r := range rings {
			Expect(leftOf(ctx, r)).To(BeEmpty())
		}
		probe := newRing(newNamespace(ctx), "probe", 2) // Published only after all that happened before has been looked at.
		Expect(admin.Create(ctx, probe)).To(Succeed())
		settled(ctx, probe, v1alpha1.ReasonRingPublished)
		for _, r := range rings {
			Expect(leftOf(ctx, r)).To(BeEmpty(), "it came back")
		}
	},
		Entry("whose HashRings go first", true),
		Entry("whose ConfigMaps go first", false),
	)
})

// terminatingRefusals counts the creates that the API server refused the operator in a namespace.
func terminatingRefusals(namespace string) int {
	GinkgoHelper()
	n := 0
	for _, event := range auditEvents() {
		if event.ObjectRef.Namespace == namespace && event.Verb == "create" && event.ObjectRef.Resource != "events" && event.ResponseStatus.Code == 403 {
			n++
		}
	}
	return n
}

// checkNotStormed checks that no HashRing tells of a failure.
func checkNotStormed(ctx context.Context, rings []*v1alpha1.HashRing) {
	GinkgoHelper()
	for _, r := range rings {
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		list := &eventsv1.EventList{}
		Expect(admin.List(ctx, list, client.InNamespace(r.Namespace))).To(Succeed())
		Expect(list.Items).NotTo(ContainElement(HaveField("Reason", string(v1alpha1.ReasonPublishFailed))))
	}
}

var _ = Describe("the live look before a deletion", func() {
	It("keeps the files of a HashRing that the cache does not know yet", func(ctx SpecContext) {
		r := withTombstone(newRing(newNamespace(ctx), "unknown", 3), 0)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		before := published(ctx, r)
		blind := reconcileBlind(ctx, r)
		Expect(blind.err).NotTo(HaveOccurred())
		Expect(blind.writes).To(BeEmpty())
		expectFiles(ctx, r, before)
		Expect(slotRing(ctx, r).Digest()).To(Equal(ring.Digest(before["a"].BinaryData["ring-a.snap"])))
	})
})
