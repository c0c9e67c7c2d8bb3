// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/internal/consumer"
)

// Consumers returns the pods of a namespace that a selector selects: those that could read a ring, which neither have ended nor
// are being deleted.
func (o Reader) Consumers(ctx context.Context, namespace string, selector labels.Selector) ([]consumer.Pod, error) {
	list := &corev1.PodList{}
	err := o.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	var pods []consumer.Pod
	for i := range list.Items {
		p := &list.Items[i]
		ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		if p.DeletionTimestamp.IsZero() && !ended {
			pods = append(pods, consumer.Pod{Name: p.Name, UID: p.UID, IP: p.Status.PodIP})
		}
	}
	return pods, nil
}

// ConsumerChanged says that two versions of a pod differ in something that [Reader.Consumers] looks at.
func ConsumerChanged(before, after *corev1.Pod) bool {
	return before.UID != after.UID || before.Status.PodIP != after.Status.PodIP || before.Status.Phase != after.Status.Phase ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() || !labels.Equals(before.Labels, after.Labels)
}

// slimPod keeps what says whether and where a pod can be asked, which rings it could mount, and what it was touched for.
func slimPod(pod *corev1.Pod) {
	slimMeta(pod)
	pod.Annotations, pod.GenerateName = mountAnnotations(pod), ""
	pod.Spec = corev1.PodSpec{}
	pod.Status = corev1.PodStatus{Phase: pod.Status.Phase, PodIP: pod.Status.PodIP}
}
