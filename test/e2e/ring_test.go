// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

var _ = Describe("a ring under traffic", func() {
	It("follows its backends: the first ring, more of them, fewer of them", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.traffic(ctx)
		w.holds(ctx)

		By("scaling up")
		w.scale(ctx, 6)
		w.waitBackends(ctx, 6)
		w.waitReady(ctx, 6)
		w.holds(ctx)

		By("scaling down")
		w.scale(ctx, 3)
		w.waitBackends(ctx, 3)
		w.waitReady(ctx, 3)
		w.holds(ctx)
	})

	It("moves no key in a rolling restart of backends with stable identities, and fails no request", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.traffic(ctx)
		w.agree(ctx)
		owners, generation := w.owners(ctx, NewGomega(Fail), "dc1"), w.stableDigest(ctx)
		before := w.stats(ctx)
		w.restart(ctx)
		w.waitBackends(ctx, 4)
		Expect(w.owners(ctx, NewGomega(Fail), "dc1")).To(Equal(owners))
		Expect(w.stableDigest(ctx)).To(Equal(generation), "the snapshot has changed")
		w.holds(ctx)
		requests := 0
		for datacenter, s := range w.stats(ctx) {
			requests += s.Requests - before[datacenter].Requests
		}
		AddReportEntry("rolling restart", map[string]any{"requests": requests, "failed": 0, "keys moved": 0})
	})

	It("passes over a backend that is killed, or that refuses connections, until it is back", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.traffic(ctx)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "cache-1"}}
		Expect(admin.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
		w.waitBackends(ctx, 4)
		w.holds(ctx)

		w.tell(ctx, "cache-2", "break")
		Eventually(func(g Gomega) {
			for _, s := range w.stats(ctx) {
				g.Expect(s.Owners).NotTo(ContainElement("cache-2"))
			}
		}).Should(Succeed())
		w.tell(ctx, "cache-2", "mend")
		w.holds(ctx)
	})

	It("is there for a consumer that restarts, with no operator", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.traffic(ctx)
		changeOperator(ctx, func(d *appsv1.DeploymentSpec) { d.Replicas = ptr.To[int32](0) })
		DeferCleanup(func(ctx SpecContext) {
			changeOperator(ctx, func(d *appsv1.DeploymentSpec) { d.Replicas = ptr.To[int32](2) })
		})
		for _, pod := range w.consumers(ctx) {
			Expect(admin.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
		}
		for _, datacenter := range datacenters {
			waitRolledOut(ctx, client.ObjectKey{Namespace: w.namespace, Name: "consumer-" + datacenter})
		}
		w.holds(ctx)
	})

	It("comes back byte for byte when its ConfigMap is deleted, and when the HashRing is, within its tombstone time", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.traffic(ctx)
		was := map[string]map[string][]byte{}
		for _, name := range w.left(ctx) {
			was[name] = w.content(ctx, name)
		}
		for _, name := range w.left(ctx) {
			Expect(admin.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}})).To(Succeed())
			Eventually(func(g Gomega) {
				g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, &corev1.ConfigMap{})).To(Succeed())
			}).Should(Succeed())
			Expect(w.content(ctx, name)).To(Equal(was[name]), name)
		}
		w.holds(ctx)

		ring := w.hashRing(ctx)
		digest := w.stableDigest(ctx)
		Expect(admin.Delete(ctx, ring)).To(Succeed())
		Consistently(func() []string { return w.left(ctx) }, 10*time.Second, time.Second).Should(HaveLen(3), "what is published outlives the HashRing")
		w.apply(ctx, "ring.yaml", nil)
		w.waitReady(ctx, 4)
		Expect(w.stableDigest(ctx)).To(Equal(digest))
		w.holds(ctx)
	})
})

// restart restarts the backends one after the other, as kubectl rollout restart does.
func (w *world) restart(ctx context.Context) {
	GinkgoHelper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "cache"}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"template":{"metadata":{"annotations":{"restarted":"yes"}}}}}`))
	Expect(admin.Patch(ctx, set, patch)).To(Succeed())
}

// tell has a backend refuse connections, or take them again.
func (w *world) tell(ctx context.Context, backend, what string) {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: backend}, pod)).To(Succeed())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+pod.Status.PodIP+":8081/"+what, nil)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	Expect(response.StatusCode).To(Equal(http.StatusOK))
}

// stableDigest is that of the snapshot that is published.
func (w *world) stableDigest(ctx context.Context) string {
	GinkgoHelper()
	state, end, err := w.load(ctx, "")
	Expect(err).NotTo(HaveOccurred())
	defer end()
	return state.Stable().Digest
}

// content is what a ConfigMap of the ring has.
func (w *world) content(ctx context.Context, name string) map[string][]byte {
	GinkgoHelper()
	cm := &corev1.ConfigMap{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, cm)).To(Succeed())
	content := map[string][]byte{}
	for file, data := range cm.BinaryData {
		content[file] = data
	}
	for file, text := range cm.Data {
		content[file] = []byte(text)
	}
	Expect(cm.Labels).To(HaveKeyWithValue(v1alpha1.LabelRing, "edge"))
	return content
}
