// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// newRing returns a HashRing of n backends that is published without a delay, that nothing holds back, and that keeps one
// revision beside the published one.
func newRing(namespace, name string, n int) *v1alpha1.HashRing {
	r := &v1alpha1.HashRing{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.HashRingSpec{
			Publication:  v1alpha1.Publication{MinInterval: &metav1.Duration{}},
			Membership:   v1alpha1.Membership{MaxRemoved: "100%"},
			ChangePolicy: v1alpha1.ChangeImmediate,
			HistoryLimit: ptr.To(int32(1)),
		},
	}
	r.Spec.Backends = backends(n)
	return r
}

func backends(n int) []v1alpha1.Backend {
	list := make([]v1alpha1.Backend, n)
	for i := range list {
		list[i] = v1alpha1.Backend{Name: fmt.Sprintf("c%d", i), Address: fmt.Sprintf("10.1.%d.%d", i/256, i%256), Port: ptr.To(int32(8080))}
	}
	return list
}

// settled waits until the status is about the present spec and returns the ring. With a reason, until Ready has it.
func settled(ctx context.Context, r *v1alpha1.HashRing, reason v1alpha1.ConditionReason) *v1alpha1.HashRing {
	GinkgoHelper()
	got := &v1alpha1.HashRing{}
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(r), got)).To(Succeed())
		g.Expect(got.Status.ObservedGeneration).To(Equal(got.Generation))
		ready := meta.FindStatusCondition(got.Status.Conditions, string(v1alpha1.ConditionReady))
		g.Expect(ready).NotTo(BeNil())
		g.Expect(ready.Reason).To(Equal(string(reason)), "%s", ready.Message)
		g.Expect(ready.ObservedGeneration).To(Equal(got.Generation))
	}).Should(Succeed())
	return got
}

func readyMessage(r *v1alpha1.HashRing) string {
	return meta.FindStatusCondition(r.Status.Conditions, string(v1alpha1.ConditionReady)).Message
}

// edit changes the spec as one would with kubectl edit.
func edit(ctx context.Context, r *v1alpha1.HashRing, change func(*v1alpha1.HashRing)) {
	GinkgoHelper()
	Eventually(func() error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(r), r); err != nil {
			return err
		}
		change(r)
		return admin.Update(ctx, r)
	}).Should(Succeed())
}

// published returns the ConfigMaps of a ring by the last part of their names.
func published(ctx context.Context, r *v1alpha1.HashRing) map[string]*corev1.ConfigMap {
	GinkgoHelper()
	m := map[string]*corev1.ConfigMap{}
	for _, name := range plan.Names(r) {
		m[strings.TrimPrefix(name, r.Name+"-")] = getConfigMap(ctx, r.Namespace, name)
	}
	return m
}

// files returns what a pod that mounts all ConfigMaps of a ring finds.
func files(ctx context.Context, r *v1alpha1.HashRing) map[string][]byte {
	GinkgoHelper()
	m := map[string][]byte{}
	for _, cm := range published(ctx, r) {
		for name, content := range payload(cm) {
			m[name] = []byte(content)
		}
	}
	return m
}

// payload is what pods see of a ConfigMap.
func payload(cm *corev1.ConfigMap) map[string]string {
	m := map[string]string{}
	for key, value := range cm.Data {
		m[key] = value
	}
	for key, value := range cm.BinaryData {
		m[key] = string(value)
	}
	return m
}

var _ = Describe("publication", func() {
	It("publishes every sample, with the bytes of kubectl hashring build", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		plugin := filepath.Join(GinkgoT().TempDir(), "kubectl-hashring")
		run("go", "build", "-o", plugin, filepath.Join(root, "cmd", "kubectl-hashring"))
		samples, err := filepath.Glob(filepath.Join(root, "config", "samples", "hashring_*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(len(samples)).To(BeNumerically(">=", 4))
		for _, path := range samples {
			By(filepath.Base(path))
			text, err := os.ReadFile(path)
			Expect(err).NotTo(HaveOccurred())
			r := &v1alpha1.HashRing{}
			Expect(yaml.UnmarshalStrict(text, r)).To(Succeed())
			if len(r.Spec.BackendsFrom) > 0 {
				continue // There are no such Services here, and nothing to build offline.
			}
			r.Namespace = namespace
			Expect(admin.Create(ctx, r)).To(Succeed())
			got := settled(ctx, r, v1alpha1.ReasonRingPublished)
			checkPublication(ctx, got)
			out := GinkgoT().TempDir()
			run(plugin, "build", "-f", path, "-o", out)
			online := files(ctx, got)
			for name, content := range online {
				offline, err := os.ReadFile(filepath.Join(out, name))
				Expect(err).NotTo(HaveOccurred())
				if name != routing.FileName {
					Expect(content).To(Equal(offline), name)
				}
			}
			entries, err := os.ReadDir(out)
			Expect(err).NotTo(HaveOccurred())
			Expect(entries).To(HaveLen(len(online)))
			// The routing file of a cluster says besides which HashRing of that name it is, which of its rings, and who wrote it.
			offline, err := os.ReadFile(filepath.Join(out, routing.FileName))
			Expect(err).NotTo(HaveOccurred())
			want, err := routing.Parse(offline)
			Expect(err).NotTo(HaveOccurred())
			want.UID, want.Ring = string(got.UID), namespace+"/"+got.Name
			want.Stable.Revision, want.LeaderEpoch = got.Status.Active.Revision, got.Status.Routing.LeaderEpoch
			encoded, err := want.Encode()
			Expect(err).NotTo(HaveOccurred())
			Expect(published(ctx, got)["routing"].Data[routing.FileName]).To(Equal(string(encoded)))
		}
	})

	It("makes no API write when nothing has changed", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "quiet", 3)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		counted := reconcileOnce(ctx, r, nil)
		Expect(counted.writes).To(BeEmpty())
	})

	It("numbers revisions and routing generations by what they count", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "numbers", 3)
		Expect(admin.Create(ctx, r)).To(Succeed())
		first := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(first.Status.Active.Revision).To(Equal(int64(1)))
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(4) })
		second := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(second.Status.Active.Revision).To(Equal(int64(2)))
		Expect(second.Status.Routing.Generation).To(Equal(int64(2)))
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(3) })
		third := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(third.Status.Active.Revision).To(Equal(int64(3)))
		Expect(third.Status.Active.Digest).To(Equal(first.Status.Active.Digest))
		checkPublication(ctx, third)
	})

	It("coalesces changes and ends with the newest", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "coalesced", 3)
		r.Spec.Publication.MinInterval = &metav1.Duration{Duration: 3e9}
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		for n := 4; n <= 9; n++ {
			edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(n) })
		}
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(got.Status.Backends.Total).To(Equal(int32(9)))
		Expect(got.Status.Active.Revision).To(BeNumerically("<=", 3), "six changes within the interval are not six publications")
		checkPublication(ctx, got)
	})

	It("writes nothing into spec and takes no field of it", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "spec", 3)
		Expect(admin.Create(ctx, r)).To(Succeed())
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		for _, entry := range got.ManagedFields {
			if entry.Manager == v1alpha1.FieldManager {
				Expect(entry.Subresource).To(Equal("status"))
				Expect(entry.FieldsV1.GetRawString()).NotTo(ContainSubstring("f:spec"))
			}
		}
		Expect(got.Generation).To(Equal(int64(1)))
	})

	It("keeps the last good ring when the spec cannot be published", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "lastgood", 3)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		before := published(ctx, r)
		rows := []struct {
			name   string
			change func(*v1alpha1.HashRing)
			reason v1alpha1.ConditionReason
			want   string
		}{
			{"one identity twice", func(r *v1alpha1.HashRing) {
				r.Spec.Backends = backends(3)
				r.Spec.Backends[2].Address = r.Spec.Backends[0].Address
			}, v1alpha1.ReasonDuplicateIdentity, `"10.1.0.0:8080"`},
			{"too large", func(r *v1alpha1.HashRing) {
				r.Spec.Backends, r.Spec.Publication.Encoding = backends(2048), v1alpha1.EncodingPoints
			}, v1alpha1.ReasonSnapshotTooLarge, "a ConfigMap takes 1048576: spec.publication.chunks 2, or spec.publication.encoding Recipe"},
		}
		for _, row := range rows {
			By(row.name)
			edit(ctx, r, row.change)
			got := settled(ctx, r, row.reason)
			Expect(readyMessage(got)).To(And(ContainSubstring(row.want), ContainSubstring("revision 1 stays published")))
			Expect(meta.IsStatusConditionTrue(got.Status.Conditions, string(v1alpha1.ConditionStalled))).To(BeTrue())
			Expect(got.Status.Active.Revision).To(Equal(int64(1)))
			for part, cm := range published(ctx, r) {
				Expect(cm.ResourceVersion).To(Equal(before[part].ResourceVersion), "%s was written", part)
			}
		}
		By("all drained, which is held")
		edit(ctx, r, func(r *v1alpha1.HashRing) {
			r.Spec.Backends = backends(3)
			for i := range r.Spec.Backends {
				r.Spec.Backends[i].Weight = ptr.To(int32(0))
			}
		})
		Expect(readyMessage(settled(ctx, r, v1alpha1.ReasonBelowMinimum))).To(ContainSubstring("revision 1 is published"))
		Expect(getConfigMap(ctx, r.Namespace, "lastgood-a").ResourceVersion).To(Equal(before["a"].ResourceVersion))
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(5) })
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(meta.FindStatusCondition(got.Status.Conditions, string(v1alpha1.ConditionStalled))).To(BeNil())
		checkPublication(ctx, got)
	})

	It("reports a ConfigMap that somebody else made and does not touch it", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		foreign := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "taken-routing"}, Data: map[string]string{"mine": "yes"},
		}
		Expect(admin.Create(ctx, foreign)).To(Succeed())
		r := newRing(namespace, "taken", 3)
		Expect(admin.Create(ctx, r)).To(Succeed())
		got := settled(ctx, r, v1alpha1.ReasonNameConflict)
		Expect(readyMessage(got)).To(ContainSubstring("ConfigMap " + namespace + "/taken-routing exists"))
		Expect(getConfigMap(ctx, namespace, "taken-routing").ResourceVersion).To(Equal(foreign.ResourceVersion))
		again := reconcileOnce(ctx, r, nil)
		Expect(again.result.RequeueAfter).To(Equal(30*time.Second), "nothing else would tell when the name is free")
		Expect(again.writes).To(BeEmpty())
		err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "taken-a"}, &corev1.ConfigMap{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "half a publication was written")

		Expect(admin.Delete(ctx, foreign)).To(Succeed())
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(4) })
		checkPublication(ctx, settled(ctx, r, v1alpha1.ReasonRingPublished))
	})

	It("does not touch what another controller owns, whatever its labels", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		foreign := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "owned-a",
				Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByRingwright, v1alpha1.LabelRing: "owned"},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "apps/v1", Kind: "Deployment", Name: "other", UID: "other-uid", Controller: ptr.To(true),
				}},
			},
			Data: map[string]string{"mine": "yes"},
		}
		Expect(admin.Create(ctx, foreign)).To(Succeed())
		r := newRing(namespace, "owned", 3)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonNameConflict)
		Expect(getConfigMap(ctx, namespace, "owned-a").ResourceVersion).To(Equal(foreign.ResourceVersion))
	})

	It("mends a status that somebody has wiped", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "wiped", 3)
		Expect(admin.Create(ctx, r)).To(Succeed())
		before := settled(ctx, r, v1alpha1.ReasonRingPublished)
		wiped := before.DeepCopy()
		wiped.Status = v1alpha1.HashRingStatus{}
		Expect(admin.Status().Update(ctx, wiped)).To(Succeed())
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Expect(got.Status.Active.Revision).To(Equal(before.Status.Active.Revision))
		Expect(got.Status.Routing).To(Equal(before.Status.Routing))
	})

	It("tells what it did in events", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "told", 3)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		cms := published(ctx, r)
		Expect(admin.Delete(ctx, cms["a"])).To(Succeed())
		Expect(admin.Delete(ctx, cms["routing"])).To(Succeed())
		Eventually(func(g Gomega) {
			list := &eventsv1.EventList{}
			g.Expect(admin.List(ctx, list, client.InNamespace(r.Namespace))).To(Succeed())
			notes := []string{}
			for _, event := range list.Items {
				notes = append(notes, event.Type+" "+event.Reason+" "+event.Note)
			}
			g.Expect(notes).To(ContainElements(
				"Normal RingPublished revision 1 is published in slot a",
				"Normal Restored restored ConfigMap told-a, which had been edited or deleted",
				"Normal Restored restored ConfigMap told-routing, which had been edited or deleted",
			))
		}).Should(Succeed())
		By("counting what happens again")
		Expect(admin.Delete(ctx, published(ctx, r)["a"])).To(Succeed())
		Eventually(func(g Gomega) {
			list := &eventsv1.EventList{}
			g.Expect(admin.List(ctx, list, client.InNamespace(r.Namespace))).To(Succeed())
			g.Expect(list.Items).To(ContainElement(And(
				HaveField("Note", "restored ConfigMap told-a, which had been edited or deleted"), HaveField("Series.Count", BeNumerically(">=", 2)))))
		}).Should(Succeed())
	})
})

func run(name string, args ...string) {
	GinkgoHelper()
	out, err := exec.Command(name, args...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
}

// checkPublication checks what pods and people see of a published ring against its spec and status.
func checkPublication(ctx context.Context, r *v1alpha1.HashRing) {
	GinkgoHelper()
	cms := published(ctx, r)

	var snapshot []byte
	for chunk := 0; cms[routing.SlotA.ChunkFolder(chunk)] != nil; chunk++ { // A chunk that is not used is empty.
		snapshot = append(snapshot, cms[routing.SlotA.ChunkFolder(chunk)].BinaryData[routing.SlotA.ChunkFileName(chunk)]...)
	}
	opened, err := plan.OpenSnapshot(snapshot)
	Expect(err).NotTo(HaveOccurred())
	Expect(opened.Verify()).To(Succeed())
	want, err := plan.BuildFrom(r.Spec, opened)
	Expect(err).NotTo(HaveOccurred())
	Expect(snapshot).To(Equal(want.Ring.Snapshot()))
	used := len(want.Ring.Chunks())
	for chunk := range want.Chunks {
		a, b := cms[routing.SlotA.ChunkFolder(chunk)], cms[routing.SlotB.ChunkFolder(chunk)]
		Expect(a.BinaryData).To(HaveLen(1))
		Expect(a.BinaryData).To(HaveKey(routing.SlotA.ChunkFileName(chunk)))
		Expect(chunk < used).To(Equal(a.Annotations[v1alpha1.AnnotationDigest] != ""), a.Name)
		other := []byte{}
		if chunk == 0 {
			other = ring.EmptySlot()
		}
		Expect(b.BinaryData).To(Equal(map[string][]byte{routing.SlotB.ChunkFileName(chunk): other}))
	}
	checkRecord(ctx, r, opened)
	file, err := routing.Parse([]byte(cms["routing"].Data["routing.json"]))
	Expect(err).NotTo(HaveOccurred())
	stable := routing.NewReference(routing.SlotA, opened.Digest(), string(r.Spec.Algorithm.Version), used)
	stable.Revision = r.Status.Active.Revision
	Expect(file).To(Equal(routing.File{
		APIVersion: routing.APIVersion, Ring: r.Namespace + "/" + r.Name, UID: string(r.UID), Generation: r.Status.Routing.Generation,
		LeaderEpoch: r.Status.Routing.LeaderEpoch, Stable: stable,
		Addresses: want.Addresses,
	}))

	Expect(r.Status.Active.Digest).To(Equal(opened.Digest()))
	Expect(r.Status.Snapshot.Chunks).To(BeEquivalentTo(used))
	Expect(r.Status.Snapshot.Encoding).To(BeEquivalentTo(opened.Encoding().String()))
	Expect(cms["a"].Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationEncoding, opened.Encoding().String()))
	Expect(cms["a"].Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationDigest, opened.Digest()))
	Expect(cms["a"].Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationRevision, fmt.Sprint(r.Status.Active.Revision)))
	for part, cm := range cms {
		Expect(cm.Labels).To(Equal(map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByRingwright, v1alpha1.LabelRing: r.Name}), part)
		Expect(cm.OwnerReferences).To(BeEmpty(), part)
		Expect(cm.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationRingUID, string(r.UID)), part)
		Expect(cm.Annotations).NotTo(HaveKey(v1alpha1.AnnotationTombstoneUntil), part)
		Expect(cm.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationContentDigest, plan.ContentDigest(cm.Data, cm.BinaryData)), part)
		for key := range cm.Annotations {
			Expect(strings.HasPrefix(key, "cache.")).To(BeFalse(), "an annotation of the cache was written: %s", key)
		}
	}
}
