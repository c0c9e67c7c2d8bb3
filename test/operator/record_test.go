// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// recipeOf returns what a ControllerRevision holds, read as anybody would read it.
func recipeOf(record *appsv1.ControllerRevision) (digest string, recipe []byte) {
	GinkgoHelper()
	var data struct {
		Digest string `json:"digest"`
		Recipe []byte `json:"recipe"`
	}
	Expect(json.Unmarshal(record.Data.Raw, &data)).To(Succeed())
	return data.Digest, data.Recipe
}

func recordsOf(ctx context.Context, r *v1alpha1.HashRing) map[string]*appsv1.ControllerRevision {
	GinkgoHelper()
	list := &appsv1.ControllerRevisionList{}
	Expect(admin.List(ctx, list, client.InNamespace(r.Namespace), client.MatchingLabels{v1alpha1.LabelRing: r.Name})).To(Succeed())
	m := map[string]*appsv1.ControllerRevision{}
	for i := range list.Items {
		m[list.Items[i].Name] = &list.Items[i]
	}
	return m
}

// checkRecord checks what the published ring can be built from again.
func checkRecord(ctx context.Context, r *v1alpha1.HashRing, published *ring.Ring) {
	GinkgoHelper()
	records := recordsOf(ctx, r)
	name := fmt.Sprintf("%s-%d", r.Name, r.Status.Active.Revision)
	Expect(records).To(HaveKey(name))
	Expect(len(records)).To(BeNumerically("<=", 2), "older records are left over")
	record := records[name]
	Expect(record.Revision).To(Equal(r.Status.Active.Revision))
	Expect(record.Labels).To(Equal(map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByRingwright, v1alpha1.LabelRing: r.Name}))
	Expect(record.Annotations).To(Equal(map[string]string{v1alpha1.AnnotationRingUID: string(r.UID)}))
	Expect(record.OwnerReferences).To(BeEmpty())
	digest, recipe := recipeOf(record)
	Expect(digest).To(Equal(published.Digest()))
	opened, err := ring.Open(recipe)
	Expect(err).NotTo(HaveOccurred())
	again, err := ring.Build(opened.Config())
	Expect(err).NotTo(HaveOccurred())
	want := again.Snapshot()
	if published.Encoding() == ring.EncodingRecipe {
		want = again.Recipe()
	}
	Expect(ring.Digest(want)).To(Equal(published.Digest()), "the record gives other bytes")
}

var _ = Describe("a record", func() {
	It("carries none of the labels of its HashRing", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "tracked", 3)
		r.Labels = map[string]string{"argocd.argoproj.io/instance": "cdn"}
		Expect(admin.Create(ctx, r)).To(Succeed())
		checkPublication(ctx, settled(ctx, r, v1alpha1.ReasonRingPublished))
	})

	It("is kept of the published ring and of the one before", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "kept", 3)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		for n := 4; n <= 6; n++ {
			edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(n) })
			settled(ctx, r, v1alpha1.ReasonRingPublished)
		}
		Expect(recordsOf(ctx, r)).To(And(HaveLen(2), HaveKey("kept-3"), HaveKey("kept-4")))
	})

	It("fits where the snapshot fits", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "largest", 4096)
		r.Spec.Identity, r.Spec.Algorithm.PointsPerWeight = v1alpha1.IdentityNGINX, 1
		label := strings.Repeat("x", 58)
		for i := range r.Spec.Backends {
			r.Spec.Backends[i].Address = fmt.Sprintf("c%d.%s.%s.%s.%s", i, label, label, label, label)
		}
		Expect(admin.Create(ctx, r)).To(Succeed())
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(got.Status.Snapshot.Bytes).To(BeNumerically(">", 1_000_000))
		checkPublication(ctx, got)
	})

	DescribeTable("comes back when somebody", func(ctx SpecContext, damage func(context.Context, *appsv1.ControllerRevision)) {
		r := newRing(newNamespace(ctx), "mended", 3)
		Expect(admin.Create(ctx, r)).To(Succeed())
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		before := recordsOf(ctx, r)["mended-1"]
		damage(ctx, before.DeepCopy())
		Eventually(func(g Gomega) {
			now := &appsv1.ControllerRevision{}
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(before), now)).To(Succeed())
			g.Expect(now.Data.Raw).To(Equal(before.Data.Raw))
			g.Expect(now.Labels).To(Equal(before.Labels))
			g.Expect(now.Annotations).To(Equal(before.Annotations))
			g.Expect(now.OwnerReferences).To(BeEmpty())
			list := &eventsv1.EventList{}
			g.Expect(admin.List(ctx, list, client.InNamespace(r.Namespace))).To(Succeed())
			g.Expect(list.Items).To(ContainElement(HaveField("Note", "restored ControllerRevision mended-1, which was missing or had been edited")))
		}).Should(Succeed())
		after := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(after.Status.Active).To(Equal(got.Status.Active))
		checkPublication(ctx, after)
	},
		Entry("deletes it", func(ctx context.Context, record *appsv1.ControllerRevision) {
			Expect(admin.Delete(ctx, record)).To(Succeed())
		}),
		Entry("takes its labels, and with that takes it out of the operator's sight", func(ctx context.Context, record *appsv1.ControllerRevision) {
			record.Labels = nil
			Expect(admin.Update(ctx, record)).To(Succeed())
		}),
		Entry("gives it an owner", func(ctx context.Context, record *appsv1.ControllerRevision) {
			record.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other-uid"}}
			Expect(admin.Update(ctx, record)).To(Succeed())
		}),
		Entry("takes its annotations", func(ctx context.Context, record *appsv1.ControllerRevision) {
			record.Annotations = nil
			Expect(admin.Update(ctx, record)).To(Succeed())
		}),
		Entry("gives it another number, and then loses a slot", func(ctx context.Context, record *appsv1.ControllerRevision) {
			record.Revision = 7
			Expect(admin.Update(ctx, record)).To(Succeed())
			slot := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: record.Namespace, Name: "mended-a"}}
			Expect(admin.Delete(ctx, slot)).To(Succeed())
		}),
		Entry("puts another in its place", func(ctx context.Context, record *appsv1.ControllerRevision) {
			Expect(admin.Delete(ctx, record)).To(Succeed())
			record.ResourceVersion, record.UID = "", ""
			record.Data = runtime.RawExtension{Raw: []byte(`{"digest":"sha256:0","recipe":""}`)}
			// The operator may be faster, which is the same as deleting it.
			Expect(client.IgnoreAlreadyExists(admin.Create(ctx, record))).To(Succeed())
		}),
	)

	It("is replaced when another set of backends is declared and the ring is the same to the byte", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		newEndpoints(ctx, namespace, "cache", 2)
		r := newSourced(namespace, "cache")
		r.Spec.Backends = []v1alpha1.Backend{{Name: "cache-0", Address: "10.244.0.1", Port: ptr.To(int32(8080)), Zone: "a"}}
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		Eventually(func() []string { return backendsOn(ctx, r) }).Should(Equal([]string{"cache-0", "cache-1"}))
		var revision int64
		Eventually(func() string {
			active := settled(ctx, r, v1alpha1.ReasonRingPublished).Status.Active
			revision = active.Revision
			return active.Digest
		}).Should(Equal(ring.Digest(files(ctx, r)[routing.SlotA.FileName()])))
		name := plan.RecordName(r.Name, revision)
		before := recordsOf(ctx, r)[name]
		Expect(string(before.Data.Raw)).To(ContainSubstring(`"declared":["cache-0"]`))
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = nil })
		Eventually(func(g Gomega) {
			records := recordsOf(ctx, r)
			g.Expect(records).To(HaveKey(name))
			g.Expect(records[name].UID).NotTo(Equal(before.UID))
			g.Expect(string(records[name].Data.Raw)).NotTo(ContainSubstring("declared"))
		}).Should(Succeed())
		Expect(settled(ctx, r, v1alpha1.ReasonRingPublished).Status.Active.Revision).To(Equal(revision))
	})

	It("of somebody else is reported and not touched", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		foreign := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "theirs-2"}, Revision: 2,
			Data: runtime.RawExtension{Raw: []byte(`{"mine":"yes"}`)},
		}
		Expect(admin.Create(ctx, foreign)).To(Succeed())
		r := newRing(namespace, "theirs", 3)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		before := published(ctx, r)
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(4) })
		got := settled(ctx, r, v1alpha1.ReasonNameConflict)
		Expect(readyMessage(got)).To(And(
			ContainSubstring("ControllerRevision "+namespace+"/theirs-2 exists"), ContainSubstring("revision 1 stays published")))
		now := &appsv1.ControllerRevision{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(foreign), now)).To(Succeed())
		Expect(now.ResourceVersion).To(Equal(foreign.ResourceVersion))
		for part, cm := range published(ctx, r) {
			Expect(cm.ResourceVersion).To(Equal(before[part].ResourceVersion), "%s was written", part)
		}
		Expect(reconcileOnce(ctx, r, nil).result.RequeueAfter).To(BeNumerically(">", 0), "nothing else would tell when the name is free")

		Expect(admin.Delete(ctx, foreign)).To(Succeed())
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(5) })
		checkPublication(ctx, settled(ctx, r, v1alpha1.ReasonRingPublished))
	})
})
