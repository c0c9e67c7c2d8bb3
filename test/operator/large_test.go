// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/materialize"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/internal/ringcache"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// large is how many backends with 160 points each take two chunks, and few how many take one.
const large, few = 2048, 1000

// newLargeRing returns a HashRing that takes two chunks.
func newLargeRing(namespace, name string, chunks int32, encoding v1alpha1.Encoding) *v1alpha1.HashRing {
	r := newRing(namespace, name, large)
	r.Spec.Publication.Chunks, r.Spec.Publication.Encoding = chunks, encoding
	return r
}

// mounted opens what is published as a pod would.
func mounted(ctx context.Context, r *v1alpha1.HashRing) *ringclient.Client {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	Expect(materialize.Write(dir, files(ctx, r))).To(Succeed())
	c, err := ringclient.Open(dir, ringclient.Options{PollInterval: time.Hour})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(c.Close)
	return c
}

// expectOwners compares the owners that a client gives with those of the ring that the spec asks for.
func expectOwners(c *ringclient.Client, spec v1alpha1.HashRingSpec) {
	GinkgoHelper()
	spec.Publication = v1alpha1.Publication{Chunks: v1alpha1.MaxChunks, Encoding: v1alpha1.EncodingPoints}
	desired, err := plan.Build(spec)
	Expect(err).NotTo(HaveOccurred())
	want, err := ring.Open(desired.Ring.Snapshot())
	Expect(err).NotTo(HaveOccurred())
	for i := range 10_000 {
		key := fmt.Appendf(nil, "key-%d", i)
		owner, err := want.Owner(ring.Hash(key))
		Expect(err).NotTo(HaveOccurred())
		got, err := c.Lookup(key, nil, 1)
		Expect(err).NotTo(HaveOccurred())
		Expect(got[0].ID()).To(Equal(want.ID(owner)))
	}
}

// expectGone waits until there are no such ConfigMaps.
func expectGone(ctx context.Context, r *v1alpha1.HashRing, parts ...string) {
	GinkgoHelper()
	for _, part := range parts {
		Eventually(func() bool {
			err := admin.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name + "-" + part}, &corev1.ConfigMap{})
			return apierrors.IsNotFound(err)
		}).Should(BeTrue(), part)
	}
}

var _ = Describe("a large ring", func() {
	It("is published in chunks that a pod can read", func(ctx SpecContext) {
		r := newLargeRing(newNamespace(ctx), "chunked", 3, v1alpha1.EncodingAuto)
		Expect(admin.Create(ctx, r)).To(Succeed())
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		checkPublication(ctx, got)
		size := got.Status.Snapshot
		Expect(*size).To(Equal(v1alpha1.SnapshotSize{
			Points: 327680, Bytes: size.Bytes, BytesPerPoint: "3.66", Encoding: v1alpha1.EncodingPoints, Chunks: 2, BudgetUsed: "39%",
		}))
		Expect(published(ctx, got)["a"].BinaryData["ring-a.snap"]).To(HaveLen(1<<20), "a ConfigMap that is as full as it can be")
		expectOwners(mounted(ctx, got), got.Spec)
		Expect(reconcileOnce(ctx, r, nil).writes).To(BeEmpty())
	})

	It("is published as a recipe where its points do not fit", func(ctx SpecContext) {
		r := newLargeRing(newNamespace(ctx), "recipe", 1, v1alpha1.EncodingAuto)
		Expect(admin.Create(ctx, r)).To(Succeed())
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		checkPublication(ctx, got)
		Expect(got.Status.Snapshot.Encoding).To(Equal(v1alpha1.EncodingRecipe))
		Expect(got.Status.Snapshot.BudgetUsed).To(Equal("4%"))
		Expect(got.Status.Balance.CoefficientOfVariation).To(MatchRegexp(`^[78]\.\d\d%$`))
		expectOwners(mounted(ctx, got), got.Spec)
		Expect(reconcileOnce(ctx, r, nil).writes).To(BeEmpty())
	})

	It("is built once, however often it is looked at", func(ctx SpecContext) {
		r := newLargeRing(newNamespace(ctx), "remembered", 1, v1alpha1.EncodingRecipe)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished)
		rings := ringcache.New(plan.MaxPoints)
		for range 3 {
			counted := reconcileWith(ctx, r, rings, nil)
			Expect(counted.err).NotTo(HaveOccurred())
			Expect(counted.writes).To(BeEmpty())
		}
		Expect(rings.Builds()).To(BeEquivalentTo(1))
	})

	It("crosses from one chunk to two, from points to a recipe, and back", func(ctx SpecContext) {
		r := newRing(newNamespace(ctx), "crossing", few)
		r.Spec.Publication.Chunks = 2
		Expect(admin.Create(ctx, r)).To(Succeed())
		var last *v1alpha1.HashRing
		check := func(encoding v1alpha1.Encoding, chunks, revision int) {
			GinkgoHelper()
			last = settled(ctx, r, v1alpha1.ReasonRingPublished)
			Expect(last.Status.Snapshot.Encoding).To(Equal(encoding))
			Expect(last.Status.Snapshot.Chunks).To(BeEquivalentTo(chunks))
			Expect(last.Status.Active.Revision).To(BeEquivalentTo(revision))
			Expect(last.Status.Routing.Generation).To(BeEquivalentTo(revision))
			checkPublication(ctx, last)
			Expect(mounted(ctx, last).State().Digest()).To(Equal(last.Status.Active.Digest))
		}
		check(v1alpha1.EncodingPoints, 1, 1)
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(large) })
		check(v1alpha1.EncodingPoints, 2, 2)
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Publication.Encoding = v1alpha1.EncodingRecipe })
		check(v1alpha1.EncodingRecipe, 1, 3)
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Publication.Encoding = v1alpha1.EncodingAuto })
		check(v1alpha1.EncodingPoints, 2, 4)
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(few) })
		check(v1alpha1.EncodingPoints, 1, 5)
	})

	It("gives up chunks that it is not to take any more, and takes new ones", func(ctx SpecContext) {
		r := newLargeRing(newNamespace(ctx), "resized", 3, v1alpha1.EncodingAuto)
		Expect(admin.Create(ctx, r)).To(Succeed())
		first := settled(ctx, r, v1alpha1.ReasonRingPublished)
		By("giving up one that is empty")
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Publication.Chunks = 2 })
		got := settled(ctx, r, v1alpha1.ReasonRingPublished)
		expectGone(ctx, r, "a-2", "b-2")
		checkPublication(ctx, got)
		Expect(got.Status.Active).To(Equal(first.Status.Active), "nothing changed for readers")
		By("giving up one that it is in")
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Publication.Chunks = 1 })
		got = settled(ctx, r, v1alpha1.ReasonRingPublished)
		expectGone(ctx, r, "a-1", "b-1")
		checkPublication(ctx, got)
		Expect(got.Status.Snapshot.Encoding).To(Equal(v1alpha1.EncodingRecipe))
		By("taking more")
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Publication.Chunks = 4 })
		got = settled(ctx, r, v1alpha1.ReasonRingPublished)
		checkPublication(ctx, got)
		Expect(got.Status.Active.Digest).To(Equal(first.Status.Active.Digest))
		list := &eventsv1.EventList{}
		Expect(admin.List(ctx, list, client.InNamespace(r.Namespace))).To(Succeed())
		for _, event := range list.Items {
			Expect(event.Reason).NotTo(Equal("Restored"), "a new chunk is taken for one that was lost: %s", event.Note)
		}
	})

	It("keeps its chunks while what is asked for does not fit", func(ctx SpecContext) {
		r := newLargeRing(newNamespace(ctx), "kept", 2, v1alpha1.EncodingPoints)
		Expect(admin.Create(ctx, r)).To(Succeed())
		before := published(ctx, settled(ctx, r, v1alpha1.ReasonRingPublished))
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Publication.Chunks = 1 })
		got := settled(ctx, r, v1alpha1.ReasonSnapshotTooLarge)
		Expect(readyMessage(got)).To(ContainSubstring("revision 1 stays published"))
		Expect(reconcileOnce(ctx, r, nil).writes).To(BeEmpty())
		for part, cm := range before {
			Expect(getConfigMap(ctx, r.Namespace, cm.Name).ResourceVersion).To(Equal(cm.ResourceVersion), part)
		}
	})

	It("leaves alone what somebody else has put in the place of a chunk", func(ctx SpecContext) {
		foreign := &corev1.ConfigMap{Data: map[string]string{"mine": "yes"}}
		foreign.Namespace, foreign.Name = newNamespace(ctx), "foreign-a-1"
		Expect(admin.Create(ctx, foreign)).To(Succeed())
		r := newRing(foreign.Namespace, "foreign", 3)
		Expect(admin.Create(ctx, r)).To(Succeed())
		settled(ctx, r, v1alpha1.ReasonRingPublished) // Without chunks it is in nobody's way.
		edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Publication.Chunks = 2 })
		got := settled(ctx, r, v1alpha1.ReasonNameConflict)
		Expect(readyMessage(got)).To(ContainSubstring("/foreign-a-1 exists"))
		Expect(getConfigMap(ctx, r.Namespace, "foreign-a-1").ResourceVersion).To(Equal(foreign.ResourceVersion))
	})

	It("comes back byte for byte when a chunk is edited or deleted", func(ctx SpecContext) {
		r := newLargeRing(newNamespace(ctx), "mended", 3, v1alpha1.EncodingPoints)
		Expect(admin.Create(ctx, r)).To(Succeed())
		want := files(ctx, settled(ctx, r, v1alpha1.ReasonRingPublished))
		for name, damage := range map[string]func(map[string]*corev1.ConfigMap) error{
			"edited": func(cms map[string]*corev1.ConfigMap) error {
				cms["a-1"].BinaryData["ring-a.snap.1"][100] ^= 1
				return admin.Update(ctx, cms["a-1"], client.FieldOwner("somebody"))
			},
			"filled though it is not needed": func(cms map[string]*corev1.ConfigMap) error {
				cms["a-2"].BinaryData["ring-a.snap.2"] = []byte("x")
				return admin.Update(ctx, cms["a-2"], client.FieldOwner("somebody"))
			},
			"deleted":              func(cms map[string]*corev1.ConfigMap) error { return admin.Delete(ctx, cms["a-1"]) },
			"deleted in slot b":    func(cms map[string]*corev1.ConfigMap) error { return admin.Delete(ctx, cms["b-2"]) },
			"deleted while unused": func(cms map[string]*corev1.ConfigMap) error { return admin.Delete(ctx, cms["a-2"]) },
		} {
			By(name)
			Expect(damage(published(ctx, r))).To(Succeed())
			Eventually(func(g Gomega) {
				g.Expect(reconcileOnce(ctx, r, nil).err).NotTo(HaveOccurred())
				got := map[string][]byte{}
				for _, name := range plan.Names(r) {
					cm := &corev1.ConfigMap{}
					g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, cm)).To(Succeed())
					for file, content := range payload(cm) {
						got[file] = []byte(content)
					}
				}
				g.Expect(got).To(Equal(want))
			}).Should(Succeed())
			after := settled(ctx, r, v1alpha1.ReasonRingPublished)
			Expect(after.Status.Active.Revision).To(BeEquivalentTo(1))
			Expect(after.Status.Routing.Generation).To(BeEquivalentTo(1))
			checkPublication(ctx, after)
		}
	})

	It("leaves readers with the last good ring when the operator is killed between two writes", func(ctx SpecContext) {
		operator.stop() // Its turn is over for this test: the reconciles here are made by hand.
		defer func() {
			operator = startOperator()
		}()
		r := newRing(newNamespace(ctx), "killed", few)
		r.Spec.Publication.Chunks = 2
		Expect(admin.Create(ctx, r)).To(Succeed())
		reconcileUntilQuiet(ctx, r)
		dir := GinkgoT().TempDir()
		Expect(materialize.Write(dir, files(ctx, r))).To(Succeed())
		reader, err := ringclient.Open(dir, ringclient.Options{PollInterval: 10 * time.Millisecond})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(reader.Close)
		revision := 1
		for survives := range 4 {
			for _, backendCount := range []int{large - survives, few + survives} { // From one chunk to two and back.
				By(fmt.Sprintf("with %d backends, after %d writes", backendCount, survives))
				before := reader.State()
				edit(ctx, r, func(r *v1alpha1.HashRing) { r.Spec.Backends = backends(backendCount) })
				reconcileOnce(ctx, r, killedAfter(survives))
				Expect(materialize.Write(dir, files(ctx, r))).To(Succeed())
				if survives < 3 { // Two chunks, then routing.json.
					Consistently(func() string { return reader.State().Digest() }, "50ms", "10ms").Should(Equal(before.Digest()))
				}
				reconcileUntilQuiet(ctx, r)
				revision++
				got := settled(ctx, r, v1alpha1.ReasonRingPublished)
				Expect(got.Status.Active.Revision).To(BeEquivalentTo(revision))
				Expect(got.Status.Routing.Generation).To(BeEquivalentTo(revision))
				checkPublication(ctx, got)
				Expect(materialize.Write(dir, files(ctx, r))).To(Succeed())
				Eventually(func() string { return reader.State().Digest() }).Should(Equal(got.Status.Active.Digest))
			}
		}
	})
})
