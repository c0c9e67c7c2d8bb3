// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operatorLabels select its pods.
var operatorLabels = client.MatchingLabels{"app.kubernetes.io/name": "ringwright", "app.kubernetes.io/component": "manager"}

var _ = Describe("the operator", func() {
	It("goes on where it was killed in the middle of a publication", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.traffic(ctx)
		for _, backends := range []int{6, 4, 5} {
			w.scale(ctx, backends)
			w.waitBackends(ctx, backends)
			killLeader(ctx)
			w.waitReady(ctx, backends)
		}
		waitRolledOut(ctx, client.ObjectKey{Namespace: systemNamespace, Name: operatorName})
		w.holds(ctx)
	})

	It("changes nothing that is published when it becomes another build, and runs one or two", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.traffic(ctx)
		w.holds(ctx)
		versions := w.versions(ctx)
		setImage := func(name string) func(*appsv1.DeploymentSpec) {
			return func(d *appsv1.DeploymentSpec) { d.Template.Spec.Containers[0].Image = name }
		}
		Expect(versions).To(HaveLen(3))
		changeOperator(ctx, setImage(nextImage))
		Consistently(func() map[string]string { return w.versions(ctx) }, 10*time.Second, time.Second).Should(Equal(versions))
		changeOperator(ctx, func(d *appsv1.DeploymentSpec) { d.Replicas = ptr.To[int32](1) })
		changeOperator(ctx, func(d *appsv1.DeploymentSpec) { d.Replicas = ptr.To[int32](2) })
		w.scale(ctx, 5) // It works.
		w.waitBackends(ctx, 5)
		w.waitReady(ctx, 5)
		w.scale(ctx, 4)
		w.waitBackends(ctx, 4)
		w.waitReady(ctx, 4)
		changeOperator(ctx, setImage(image))
		w.holds(ctx)
	})

	It("starts within five seconds", func(ctx SpecContext) {
		pods := &corev1.PodList{}
		Expect(admin.List(ctx, pods, client.InNamespace(systemNamespace), operatorLabels)).To(Succeed())
		Expect(pods.Items).NotTo(BeEmpty())
		for _, pod := range pods.Items {
			var started, ready time.Time
			for _, s := range pod.Status.ContainerStatuses {
				Expect(s.State.Running).NotTo(BeNil())
				started = s.State.Running.StartedAt.Time
			}
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.ContainersReady {
					ready = c.LastTransitionTime.Time
				}
			}
			AddReportEntry("start to ready", ready.Sub(started).String())
			Expect(ready.Sub(started)).To(BeNumerically("<=", 5*time.Second), pod.Name)
		}
	})
})

// versions are the resource versions of what is published.
func (w *world) versions(ctx context.Context) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for _, name := range w.left(ctx) {
		cm := &corev1.ConfigMap{}
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, cm)).To(Succeed())
		found[name] = cm.ResourceVersion
	}
	return found
}

// killLeader kills the pod that holds the lease, at once.
func killLeader(ctx context.Context) {
	GinkgoHelper()
	leases := &coordinationv1.LeaseList{}
	Expect(admin.List(ctx, leases, client.InNamespace(systemNamespace))).To(Succeed())
	pods := &corev1.PodList{}
	Expect(admin.List(ctx, pods, client.InNamespace(systemNamespace), operatorLabels)).To(Succeed())
	killed := 0
	for i := range pods.Items {
		for j := range leases.Items {
			if holder := ptr.Deref(leases.Items[j].Spec.HolderIdentity, ""); pods.Items[i].DeletionTimestamp == nil && isOf(holder, pods.Items[i].Name) {
				Expect(client.IgnoreNotFound(admin.Delete(ctx, &pods.Items[i], client.GracePeriodSeconds(0)))).To(Succeed())
				killed++
				break
			}
		}
	}
	Expect(killed).To(Equal(1), "no pod holds the lease")
}

// isOf says whether the holder of a lease is a pod: its name and something behind it.
func isOf(holder, pod string) bool { return len(holder) >= len(pod) && holder[:len(pod)] == pod }
