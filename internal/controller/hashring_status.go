// SPDX-License-Identifier: Apache-2.0

package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// statusConfiguration returns the apply configuration of the whole status: an apply that leaves a field out gives it up.
// The resourceVersion makes the apply fail if the HashRing has changed since it was read.
func statusConfiguration(ring *v1alpha1.HashRing, status v1alpha1.HashRingStatus) (runtime.ApplyConfiguration, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("HashRing"))
	object.SetNamespace(ring.Namespace)
	object.SetName(ring.Name)
	object.SetResourceVersion(ring.ResourceVersion)
	return client.ApplyConfigurationFromUnstructured(object), nil
}

// announceTransition records an event when the status tells another story than before.
func (r *HashRingReconciler) announceTransition(ring *v1alpha1.HashRing, status v1alpha1.HashRingStatus) {
	before := meta.FindStatusCondition(ring.Status.Conditions, string(v1alpha1.ConditionPublished))
	after := meta.FindStatusCondition(status.Conditions, string(v1alpha1.ConditionPublished))
	if after == nil || before != nil && before.Reason == after.Reason && before.Message == after.Message {
		return
	}
	kind := corev1.EventTypeNormal
	if after.Status == metav1.ConditionFalse && after.Reason != string(v1alpha1.ReasonCoalescing) {
		kind = corev1.EventTypeWarning
	}
	r.Recorder.Eventf(ring, nil, kind, after.Reason, "Publish", "%s", after.Message)
}

// announceRestored records what of a publication had been edited or deleted and is back.
func (r *HashRingReconciler) announceRestored(ring *v1alpha1.HashRing, out outcome) {
	if out.failure != nil || !out.decision.Restores {
		return
	}
	if record := out.decision.Record; record != nil {
		related := &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "ControllerRevision", Namespace: ring.Namespace, Name: record.Name}
		r.Recorder.Eventf(ring, related, corev1.EventTypeNormal, "Restored", "Restore",
			"restored ControllerRevision %s, which was missing or had been edited", record.Name)
	}
	for _, cm := range out.decision.Writes {
		// One event each, about the ConfigMap: events that differ in their text alone are counted as one, and the text of all
		// but the first is lost.
		related := &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: ring.Namespace, Name: cm.Name}
		r.Recorder.Eventf(ring, related, corev1.EventTypeNormal, "Restored", "Restore",
			"restored ConfigMap %s, which had been edited or deleted", cm.Name)
	}
}
