// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// mounter returns a pod that mounts the first ConfigMap alone and the others projected.
func mounter(name string, first string, projected ...string) *corev1.Pod {
	pod := reader(name, corev1.PodRunning, "10.0.0.1")
	pod.Spec.Volumes = []corev1.Volume{{Name: "one", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: first}},
	}}, {Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}},
	}}}}}
	for _, cm := range projected {
		p := pod.Spec.Volumes[1].Projected
		p.Sources = append(p.Sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: cm}}})
	}
	return pod
}

// TestMounting: the cache keeps of a pod which rings it could mount and what it was touched for, and by that those are found that mount one.
func TestMounting(t *testing.T) {
	pending := mounter("pending", "edge-a")
	pending.Status.Phase = corev1.PodPending
	other := mounter("other", "edge-a")
	other.Labels["app"] = "other"
	leaving := mounter("leaving", "edge-a")
	now := metav1.Now()
	leaving.DeletionTimestamp, leaving.Finalizers = &now, []string{"x/y"}
	elsewhere := mounter("elsewhere", "edge-a")
	elsewhere.Namespace = "web"
	touched := mounter("touched", "x", "edge-b-1")
	touched.Annotations[v1alpha1.AnnotationSnapshotPrefix+"edge"] = "41-x"
	c := fake.NewClientBuilder()
	for _, pod := range []*corev1.Pod{
		pending, other, leaving, elsewhere, touched, mounter("routing", "edge-routing"), mounter("projected", "x", "y", "edge-a"),
		mounter("third-chunk", "edge-a-2"), mounter("namesake", "edge-cache-a", "my-edge-a"), mounter("without", "x"),
	} {
		finalizers := pod.Finalizers
		for range 2 { // A transform can be applied twice.
			if _, err := slimPods(pod); err != nil {
				t.Fatal(err)
			}
		}
		if pod.Name == "without" && pod.Annotations != nil {
			t.Errorf("of a pod without a ring, %v is kept", pod.Annotations)
		}
		pod.Finalizers, pod.ResourceVersion = finalizers, ""
		c.WithObjects(pod)
	}
	r := &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{Namespace: "cdn", Name: "edge"}}
	r.Spec.Publication.Chunks = 2
	r.Spec.Consumers = &v1alpha1.Consumers{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "edge"}}}
	pods, err := Reader{Client: c.Build()}.Mounting(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for i := range pods {
		if !Mounts(&pods[i], r) {
			t.Errorf("%s is listed, and does not mount the ring by itself", pods[i].Name)
		}
		got[pods[i].Name] = MountingOf(&pods[i], r.Name).Mark
	}
	if diff := cmp.Diff(map[string]string{"routing": "", "projected": "", "touched": "41-x"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Spec.Consumers.Selector.MatchLabels["app"] = "another"
	for i := range pods {
		if Mounts(&pods[i], r) {
			t.Errorf("%s mounts the ring of others", pods[i].Name)
		}
	}
}
