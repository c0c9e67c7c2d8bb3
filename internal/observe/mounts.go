// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// seenMounts is an annotation that exists only in the cache, in place of the volumes of a pod: the names of the ConfigMaps that it mounts
// and that could be those of a ring, separated by commas. An API server takes no key with a space, so nobody can put it there.
const seenMounts = "mounted ConfigMaps"

// ofRing is what the names of ConfigMaps of rings end in.
var ofRing = regexp.MustCompile(`-(routing|[ab](-[0-9]+)?)$`)

// mountAnnotations returns what is kept of a pod's annotations and volumes: nil for almost all pods.
func mountAnnotations(pod *corev1.Pod) map[string]string {
	var kept map[string]string
	keep := func(key, value string) {
		if kept == nil {
			kept = map[string]string{}
		}
		kept[key] = value
	}
	for key, value := range pod.Annotations {
		if strings.HasPrefix(key, v1alpha1.AnnotationSnapshotPrefix) && len(value) <= maxAnnotationBytes || key == seenMounts {
			keep(key, value)
		}
	}
	if names := slices.DeleteFunc(configMapsOf(pod), func(name string) bool { return !ofRing.MatchString(name) }); len(names) > 0 {
		keep(seenMounts, strings.Join(names, ","))
	}
	return kept
}

// configMapsOf returns the ConfigMaps of a pod's volumes, projected ones included.
func configMapsOf(pod *corev1.Pod) []string {
	var names []string
	for _, volume := range pod.Spec.Volumes {
		if volume.ConfigMap != nil {
			names = append(names, volume.ConfigMap.Name)
		}
		if volume.Projected == nil {
			continue
		}
		for _, s := range volume.Projected.Sources {
			if s.ConfigMap != nil {
				names = append(names, s.ConfigMap.Name)
			}
		}
	}
	return names
}

// CouldMount says that a pod of the cache runs and mounts what could be a ring's.
func CouldMount(pod *corev1.Pod) bool {
	_, mounts := pod.Annotations[seenMounts]
	return mounts && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero()
}

// MountChanged says that two versions of a pod differ in something that [Reader.Mounting] looks at.
func MountChanged(before, after *corev1.Pod) bool {
	return before.UID != after.UID || CouldMount(before) != CouldMount(after) || !labels.Equals(before.Labels, after.Labels) ||
		!maps.Equal(before.Annotations, after.Annotations)
}

// Mounting returns the pods that run, are selected by spec.consumers of a ring and mount one of its ConfigMaps, in the order of their names,
// by a cache that was set up with [CacheOptions].
func (o Reader) Mounting(ctx context.Context, r *v1alpha1.HashRing) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(&r.Spec.Consumers.Selector)
	if err != nil {
		return nil, err
	}
	list := &corev1.PodList{}
	err = o.Client.List(ctx, list, client.InNamespace(r.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	pods := slices.DeleteFunc(slices.Clone(list.Items), func(pod corev1.Pod) bool { return !mounts(&pod, r) })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, nil
}

// Mounts says that a pod of the cache is among those that [Reader.Mounting] returns for a ring.
func Mounts(pod *corev1.Pod, r *v1alpha1.HashRing) bool {
	selector, err := metav1.LabelSelectorAsSelector(&r.Spec.Consumers.Selector)
	return err == nil && pod.Namespace == r.Namespace && selector.Matches(labels.Set(pod.Labels)) && mounts(pod, r)
}

func mounts(pod *corev1.Pod, r *v1alpha1.HashRing) bool {
	if !CouldMount(pod) {
		return false
	}
	published := plan.Names(r)
	return slices.ContainsFunc(strings.Split(pod.Annotations[seenMounts], ","), func(name string) bool { return slices.Contains(published, name) })
}

// MountingOf returns what plan wants to know of a pod that mounts a ring.
func MountingOf(pod *corev1.Pod, ringName string) plan.Mounting {
	return plan.Mounting{Name: pod.Name, Made: pod.CreationTimestamp.Time, Mark: pod.Annotations[plan.TouchAnnotation(ringName)]}
}
