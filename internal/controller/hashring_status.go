// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// statusConfiguration returns the apply configuration of the whole status but for the lock, which is the migration controller's: an apply
// that leaves a field out gives it up.
// The resourceVersion makes the apply fail if the HashRing has changed since it was read.
func statusConfiguration(ring *v1alpha1.HashRing, status v1alpha1.HashRingStatus) (runtime.ApplyConfiguration, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return nil, err
	}
	delete(fields, "migration")
	object := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("HashRing"))
	object.SetNamespace(ring.Namespace)
	object.SetName(ring.Name)
	object.SetResourceVersion(ring.ResourceVersion)
	return client.ApplyConfigurationFromUnstructured(object), nil
}

// announced are the conditions whose transitions are events, with the action that each is about.
var announced = []struct {
	kind   v1alpha1.ConditionType
	action string
	// good is the status that is nothing to worry about; a condition that begins with it is no transition, but for the first
	// publication.
	good metav1.ConditionStatus
}{
	{v1alpha1.ConditionPublished, "Publish", metav1.ConditionTrue},
	{v1alpha1.ConditionBackendsResolved, "Resolve", metav1.ConditionTrue},
	{v1alpha1.ConditionHeld, "Hold", metav1.ConditionFalse},
	{v1alpha1.ConditionMigrationRequired, "Propose", metav1.ConditionFalse},
}

// announceTransitions records an event for each condition that tells another story than before.
func (r *HashRingReconciler) announceTransitions(ring *v1alpha1.HashRing, status v1alpha1.HashRingStatus) {
	for _, a := range announced {
		before := meta.FindStatusCondition(ring.Status.Conditions, string(a.kind))
		after := meta.FindStatusCondition(status.Conditions, string(a.kind))
		switch {
		case after == nil:
			continue
		case before == nil && after.Status == a.good && a.kind != v1alpha1.ConditionPublished:
			continue
		case before != nil && before.Reason == after.Reason && (before.Message == after.Message || a.kind != v1alpha1.ConditionPublished):
			continue // Messages of the others count what comes and goes.
		}
		r.Recorder.Eventf(ring, nil, eventType(*after, a.good), after.Reason, a.action, "%s", note(*after, status))
	}
	r.announceMismatch(ring, status)
	r.announceUntouched(ring, status)
}

// announceUntouched records that pods cannot be touched. That they are not yet is no event.
func (r *HashRingReconciler) announceUntouched(ring *v1alpha1.HashRing, status v1alpha1.HashRingStatus) {
	before := meta.FindStatusCondition(ring.Status.Conditions, string(v1alpha1.ConditionRefreshed))
	after := meta.FindStatusCondition(status.Conditions, string(v1alpha1.ConditionRefreshed))
	if after == nil || before != nil && before.Reason == after.Reason {
		return
	}
	switch v1alpha1.ConditionReason(after.Reason) {
	case v1alpha1.ReasonTouchForbidden, v1alpha1.ReasonPodsRefused:
		r.Recorder.Eventf(ring, nil, corev1.EventTypeWarning, after.Reason, "Touch", "%s", after.Message)
	}
}

// announceMismatch records that consumers have another ring than what is published. That they have it late is no event: it
// happens with every publication.
func (r *HashRingReconciler) announceMismatch(ring *v1alpha1.HashRing, status v1alpha1.HashRingStatus) {
	before := meta.FindStatusCondition(ring.Status.Conditions, string(v1alpha1.ConditionApplied))
	after := meta.FindStatusCondition(status.Conditions, string(v1alpha1.ConditionApplied))
	const mismatch = string(v1alpha1.ReasonDigestMismatch)
	if after != nil && after.Reason == mismatch && (before == nil || before.Reason != mismatch) {
		r.Recorder.Eventf(ring, nil, corev1.EventTypeWarning, mismatch, "Acknowledge", "%s", after.Message)
	}
}

// eventType warns of what somebody should look at.
func eventType(c metav1.Condition, good metav1.ConditionStatus) string {
	for _, expected := range []v1alpha1.ConditionReason{
		v1alpha1.ReasonCoalescing, v1alpha1.ReasonSourcesUnread, v1alpha1.ReasonPinned, v1alpha1.ReasonAlgorithmChanged,
	} {
		if c.Status == good || c.Reason == string(expected) {
			return corev1.EventTypeNormal
		}
	}
	return corev1.EventTypeWarning
}

// announceStep records what a publication did in a migration. A change of the split is none: the migration tells of it.
func (r *HashRingReconciler) announceStep(ring *v1alpha1.HashRing, out outcome) {
	if text := stepText(out); text != "" {
		r.Recorder.Eventf(ring, nil, corev1.EventTypeNormal, string(out.decision.Step), "Publish", "%s", text)
	}
}

func stepText(out outcome) string {
	d := out.decision
	if out.failure != nil || d.Publication == nil {
		return ""
	}
	stable, candidate := d.Publication.File.Stable, d.Publication.File.Candidate
	switch d.Step {
	case plan.StepPropose:
		return fmt.Sprintf("revision %d is published in slot %s as the candidate beside revision %d", candidate.Revision, candidate.Slot, stable.Revision)
	case plan.StepWithdraw:
		return fmt.Sprintf("the candidate is withdrawn, and slot %s is empty: revision %d answers all keys", d.Publication.Empty, stable.Revision)
	case plan.StepPromote:
		return fmt.Sprintf("revision %d, which was the candidate, answers all keys from slot %s", stable.Revision, stable.Slot)
	case plan.StepEmpty:
		return fmt.Sprintf("the ring before revision %d is taken out of slot %s", stable.Revision, d.Publication.Empty)
	default:
		return ""
	}
}

// note returns the text of an event; that of a publication says what it moved.
func note(c metav1.Condition, status v1alpha1.HashRingStatus) string {
	if c.Reason == string(v1alpha1.ReasonRingPublished) && status.Active != nil && status.Active.Movement != "" {
		return c.Message + "; " + status.Active.Movement + " of the key space has another owner than before"
	}
	return c.Message
}

// announceRestored records what of a publication had been edited or deleted and is back.
func (r *HashRingReconciler) announceRestored(ring *v1alpha1.HashRing, out outcome) {
	if out.failure != nil || !out.decision.Restores {
		return
	}
	for _, record := range out.decision.Records {
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
