// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/catalog"
	"github.com/ringwright/ringwright/internal/controller"
	"github.com/ringwright/ringwright/internal/manager"
)

// restartWithCatalog starts an operator that keeps a catalog in namespace, in place of the one that runs.
func restartWithCatalog(namespace string) {
	GinkgoHelper()
	operator.stop()
	operator = startManager(manager.Options{
		LeaderElection: true, LeaderElectionNamespace: systemNamespace, Concurrency: 2,
		CatalogNamespace: namespace, CatalogDelay: 200 * time.Millisecond, CatalogCopies: 2, CatalogCopyInterval: 2 * time.Second,
	})
}

func catalogOf(cm *corev1.ConfigMap) (catalog.Catalog, error) {
	return catalog.Payload{Data: cm.Data, BinaryData: cm.BinaryData}.Unpack()
}

// listed returns what the catalog says of a ring.
func listed(ctx context.Context, namespace string, r *v1alpha1.HashRing) (ring *catalog.Ring, tombstone *catalog.Tombstone) {
	cm := &corev1.ConfigMap{}
	if admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: catalog.Name}, cm) != nil {
		return nil, nil
	}
	c, err := catalogOf(cm)
	if err != nil {
		return nil, nil
	}
	for i := range c.Rings {
		if c.Rings[i].Namespace == r.Namespace && c.Rings[i].Name == r.Name {
			ring = &c.Rings[i]
		}
	}
	for i := range c.Tombstones {
		if c.Tombstones[i].Namespace == r.Namespace && c.Tombstones[i].Name == r.Name {
			tombstone = &c.Tombstones[i]
		}
	}
	return ring, tombstone
}

// catalogCopies returns the copies in the order in which they were taken.
func catalogCopies(ctx context.Context, namespace string) []corev1.ConfigMap {
	GinkgoHelper()
	list := &corev1.ConfigMapList{} // An API server lists in the order of names.
	Expect(admin.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelCatalog: v1alpha1.CatalogCopy})).To(Succeed())
	return list.Items
}

// writesOfCatalog looks at the catalog by hand and returns how often that writes.
func writesOfCatalog(ctx context.Context, namespace string) int {
	GinkgoHelper()
	writes := 0
	c := interceptor.NewClient(admin, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			writes++
			return c.Create(ctx, object, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			writes++
			return c.Apply(ctx, object, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			writes++
			return c.Delete(ctx, object, opts...)
		},
	})
	reconciler := controller.NewCatalogReconciler(c, admin, events.NewFakeRecorder(10), clock.RealClock{}, controller.CatalogOptions{
		Namespace: namespace, Copies: catalog.Policy{Keep: 2, Interval: time.Hour},
	})
	_, err := reconciler.Reconcile(ctx, ctrl.Request{})
	Expect(err).NotTo(HaveOccurred())
	return writes
}

var _ = Describe("the catalog", Ordered, func() {
	var namespace string
	var r *v1alpha1.HashRing

	// upToDate waits until the catalog says of r what its status says.
	upToDate := func(ctx context.Context) {
		GinkgoHelper()
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		Eventually(func(g Gomega) {
			ring, tombstone := listed(ctx, namespace, r)
			g.Expect(tombstone).To(BeNil())
			g.Expect(ring).To(Equal(&catalog.Ring{
				Namespace: r.Namespace, Name: r.Name, UID: string(got.UID), Digest: got.Status.Active.Digest, Revision: got.Status.Active.Revision,
				Points: got.Status.Snapshot.Points, Bytes: got.Status.Snapshot.Bytes, Algorithm: "V2", State: "RingPublished",
			}))
		}).Should(Succeed())
	}

	BeforeAll(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		r = newRing(newNamespace(ctx), "listed", 3)
		r.Labels = map[string]string{"argocd.argoproj.io/instance": "cdn"}
		Expect(admin.Create(ctx, r)).To(Succeed())
		restartWithCatalog(namespace)
		upToDate(ctx)
	})
	AfterAll(func() {
		operator.stop()
		restart()
	})

	It("lists every ring, and follows", func(ctx SpecContext) {
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(5) })
		upToDate(ctx)
		cm := getConfigMap(ctx, namespace, catalog.Name)
		Expect(cm.Labels).To(Equal(map[string]string{
			v1alpha1.LabelManagedBy: v1alpha1.ManagedByRingwright, v1alpha1.LabelCatalog: v1alpha1.CatalogCurrent,
		}))
		c, err := catalogOf(cm)
		Expect(err).NotTo(HaveOccurred())
		rings := &v1alpha1.HashRingList{}
		Expect(admin.List(ctx, rings)).To(Succeed())
		Expect(c.Rings).To(HaveLen(len(rings.Items)))
	})

	DescribeTable("is brought back when it is", func(ctx SpecContext, damage func(*corev1.ConfigMap) error) {
		before := getConfigMap(ctx, namespace, catalog.Name)
		Expect(damage(before.DeepCopy())).To(Succeed())
		Eventually(func(g Gomega) {
			now := &corev1.ConfigMap{}
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(before), now)).To(Succeed())
			g.Expect(payload(now)).To(Equal(payload(before)))
			g.Expect(now.Labels).To(Equal(before.Labels))
			g.Expect(now.Annotations).To(Equal(before.Annotations))
		}).Should(Succeed())
	},
		Entry("deleted", func(cm *corev1.ConfigMap) error { return admin.Delete(context.Background(), cm) }),
		Entry("edited", func(cm *corev1.ConfigMap) error {
			cm.Data[catalog.FileName] = "{}"
			return admin.Update(context.Background(), cm)
		}),
		Entry("added to", func(cm *corev1.ConfigMap) error {
			cm.Data["more"] = "x"
			return admin.Update(context.Background(), cm)
		}),
		Entry("stripped of its labels", func(cm *corev1.ConfigMap) error {
			cm.Labels = nil
			return admin.Update(context.Background(), cm)
		}),
		Entry("stripped of its annotations", func(cm *corev1.ConfigMap) error {
			cm.Annotations = nil
			return admin.Update(context.Background(), cm)
		}),
	)

	It("is copied when it has changed, and the oldest copy goes", func(ctx SpecContext) {
		var digests []string
		for n := 6; n <= 9; n++ {
			edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(n) })
			upToDate(ctx)
			want := settled(ctx, r, v1alpha1.ReasonRingPublished).Status.Active.Digest
			digests = append(digests, want)
			Eventually(func(g Gomega) {
				copies := catalogCopies(ctx, namespace)
				g.Expect(copies).NotTo(BeEmpty())
				g.Expect(copies[len(copies)-1].Data[catalog.FileName]).To(ContainSubstring(want))
			}).Should(Succeed())
		}
		Eventually(func(g Gomega) { g.Expect(catalogCopies(ctx, namespace)).To(HaveLen(2)) }).Should(Succeed())
		copies := catalogCopies(ctx, namespace)
		// Usually it is the ring before; but the catalog lists other rings too, and can have been copied again with the last one.
		Expect(copies[0].Data[catalog.FileName]).To(Or(ContainSubstring(digests[2]), ContainSubstring(digests[3])))
		for i := range copies {
			taken, ok := catalog.CopyTime(copies[i].Name)
			Expect(ok).To(BeTrue(), copies[i].Name)
			Expect(taken).To(BeTemporally("~", copies[i].CreationTimestamp.Time, 2*time.Second))
			edited := copies[i].DeepCopy()
			edited.Data[catalog.FileName] = "{}"
			Expect(apierrors.IsInvalid(admin.Update(ctx, edited))).To(BeTrue(), "a copy was changed")
		}
		first, _ := catalog.CopyTime(copies[0].Name)
		second, _ := catalog.CopyTime(copies[1].Name)
		Expect(second.Sub(first)).To(BeNumerically(">=", 2*time.Second))
	})

	It("shows tombstones until they are over", func(ctx SpecContext) {
		gone := withTombstone(newRing(newNamespace(ctx), "gone", 3), 4*time.Second)
		Expect(admin.Create(ctx, gone)).To(Succeed())
		got := settled(ctx, gone, v1alpha1.ReasonRingPublished)
		remove(ctx, gone, metav1.DeletePropagationBackground)
		until := marked(ctx, gone)
		Eventually(func(g Gomega) {
			ring, tombstone := listed(ctx, namespace, gone)
			g.Expect(ring).To(BeNil())
			g.Expect(tombstone).To(Equal(&catalog.Tombstone{
				Namespace: gone.Namespace, Name: "gone", UID: string(got.UID), Digest: got.Status.Active.Digest, Revision: 1,
				Until: until.Format(time.RFC3339),
			}))
		}).Should(Succeed())
		Eventually(func(g Gomega) {
			ring, tombstone := listed(ctx, namespace, gone)
			g.Expect(ring).To(BeNil())
			g.Expect(tombstone).To(BeNil())
		}).Should(Succeed())
	})

	It("is not written again by an operator that starts anew, and neither is a copy", func(ctx SpecContext) {
		Eventually(func(g Gomega) { // The last copy may still be on its way.
			copies := catalogCopies(ctx, namespace)
			g.Expect(copies[len(copies)-1].Data).To(Equal(getConfigMap(ctx, namespace, catalog.Name).Data))
		}).Should(Succeed())
		Expect(writesOfCatalog(ctx, namespace)).To(BeZero())
		operator.stop()
		Expect(client.IgnoreNotFound(admin.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: catalog.Name}}))).To(Succeed())
		Expect(writesOfCatalog(ctx, namespace)).To(Equal(2), "the claim and the apply: else the count misses something")
		restart()
	})

	It("leaves alone what somebody else has in its place", func(ctx SpecContext) {
		other := newNamespace(ctx)
		foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: catalog.Name}, Data: map[string]string{"mine": "yes"}}
		Expect(admin.Create(ctx, foreign)).To(Succeed())
		restartWithCatalog(other)
		Eventually(func(g Gomega) {
			list := &eventsv1.EventList{}
			g.Expect(admin.List(ctx, list, client.InNamespace(other))).To(Succeed())
			g.Expect(list.Items).To(ContainElement(And(
				HaveField("Reason", "NameConflict"), HaveField("Note", ContainSubstring(other+"/"+catalog.Name+" is somebody else's")))))
		}).Should(Succeed())
		Expect(getConfigMap(ctx, other, catalog.Name).ResourceVersion).To(Equal(foreign.ResourceVersion))
	})
})
