// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// What Argo CD puts on the objects of an application to find them again, by label and by annotation.
const (
	trackingLabel      = "app.kubernetes.io/instance"
	trackingAnnotation = "argocd.argoproj.io/tracking-id"
	argoCD             = client.FieldOwner("argocd-controller")
)

// tracked is a HashRing as Argo CD applies it.
func tracked(r *v1alpha1.HashRing) *unstructured.Unstructured {
	GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
	Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("HashRing"))
	object.SetLabels(map[string]string{trackingLabel: "edge"})
	object.SetAnnotations(map[string]string{trackingAnnotation: "edge:ringwright.dev/HashRing:" + r.Namespace + "/" + r.Name})
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	return object
}

var _ = Describe("Under Argo CD", Ordered, func() {
	var ring *v1alpha1.HashRing

	sync := func(ctx context.Context, reason v1alpha1.ConditionReason, change func(*v1alpha1.HashRing)) {
		GinkgoHelper()
		change(ring)
		Expect(admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(tracked(ring)), argoCD)).To(Succeed())
		settled(ctx, ring, reason)
	}

	BeforeAll(func(ctx SpecContext) {
		ring = newRing(newNamespace(ctx), "edge", 3)
		ring.Spec.ChangePolicy = v1alpha1.ChangeMigrate
		sync(ctx, v1alpha1.ReasonRingPublished, func(*v1alpha1.HashRing) {})
		sync(ctx, v1alpha1.ReasonRingPublished, func(r *v1alpha1.HashRing) { r.Spec.Backends = r.Spec.Backends[:2] })
		first := int64(1)
		sync(ctx, v1alpha1.ReasonPinned, func(r *v1alpha1.HashRing) { r.Spec.PinnedRevision = &first })
		sync(ctx, v1alpha1.ReasonBelowMinimum, func(r *v1alpha1.HashRing) { r.Spec.PinnedRevision, r.Spec.Backends = nil, nil })
		sync(ctx, v1alpha1.ReasonCandidateWaiting, func(r *v1alpha1.HashRing) {
			r.Spec.Backends, r.Spec.Algorithm.PointsPerWeight = backends(3), 40
		})
	})

	It("published objects carry nothing that would have them pruned", func(ctx SpecContext) {
		var objects []metav1.Object
		configMaps, records, events := &corev1.ConfigMapList{}, &appsv1.ControllerRevisionList{}, &eventsv1.EventList{}
		for _, list := range []client.ObjectList{configMaps, records, events} {
			Expect(admin.List(ctx, list, client.InNamespace(ring.Namespace))).To(Succeed())
		}
		for i := range configMaps.Items {
			if configMaps.Items[i].Name != "kube-root-ca.crt" {
				objects = append(objects, &configMaps.Items[i])
			}
		}
		for i := range records.Items {
			objects = append(objects, &records.Items[i])
		}
		Expect(len(configMaps.Items)).To(BeNumerically(">=", 3))
		Expect(records.Items).NotTo(BeEmpty())
		for _, object := range objects {
			By(object.GetName())
			Expect(slices.Sorted(maps.Keys(object.GetLabels()))).To(HaveExactElements(v1alpha1.LabelManagedBy, v1alpha1.LabelRing))
			Expect(object.GetAnnotations()).NotTo(HaveKey(trackingAnnotation))
			Expect(object.GetOwnerReferences()).To(BeEmpty())
		}
		Expect(events.Items).NotTo(BeEmpty())
		for _, event := range events.Items {
			Expect(event.Labels).NotTo(HaveKey(trackingLabel))
			Expect(event.Annotations).NotTo(HaveKey(trackingAnnotation))
		}
	})

	It("spec and metadata are written by Argo CD alone, and status by the operator", func(ctx SpecContext) {
		got := &v1alpha1.HashRing{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(ring), got)).To(Succeed())
		writers := map[string][]string{}
		for _, entry := range got.ManagedFields {
			fields := map[string]any{}
			Expect(json.Unmarshal([]byte(entry.FieldsV1.GetRawString()), &fields)).To(Succeed())
			for field := range fields {
				writers[field] = append(writers[field], entry.Manager+" "+string(entry.Operation)+" "+entry.Subresource)
			}
		}
		Expect(writers).To(Equal(map[string][]string{
			"f:metadata": {string(argoCD) + " Apply "},
			"f:spec":     {string(argoCD) + " Apply "},
			"f:status":   {v1alpha1.FieldManager + " Apply status"},
		}))
		Expect(got.Labels).To(HaveLen(1))
		Expect(got.Annotations).To(HaveLen(1))
		Expect(got.Finalizers).To(BeEmpty())
	})

	It("an application that is synced again changes nothing", func(ctx SpecContext) {
		Eventually(func(g Gomega) { // The operator may still be writing the counts in the status.
			before, after := &v1alpha1.HashRing{}, &v1alpha1.HashRing{}
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(ring), before)).To(Succeed())
			g.Expect(admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(tracked(ring)), argoCD)).To(Succeed())
			g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(ring), after)).To(Succeed())
			g.Expect(after.ResourceVersion).To(Equal(before.ResourceVersion))
		}).Should(Succeed())
	})
})
