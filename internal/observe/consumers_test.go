// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ringwright/ringwright/internal/consumer"
)

// reader returns a pod with what a pod usually has.
func reader(name string, phase corev1.PodPhase, ip string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "cdn", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "123456", GenerateName: "edge-",
			Labels: map[string]string{
				"app": "edge", "pod-template-hash": "5d8f7c9b6d", "app.kubernetes.io/version": "v1.2.3", "topology.kubernetes.io/zone": "ams01-a",
			},
			Annotations:     map[string]string{"checksum/config": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
			OwnerReferences: []metav1.OwnerReference{{Name: "edge-5d8f7c9b6d"}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "edge", Image: "edge"}}, NodeName: "node-1"},
		Status: corev1.PodStatus{
			Phase: phase, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, HostIP: "10.0.0.1",
			ContainerStatuses: []corev1.ContainerStatus{{Name: "edge"}}, Conditions: []corev1.PodCondition{{Type: corev1.PodReady}},
		},
	}
}

// TestConsumers: what can read a ring is a pod that is selected, has not ended and is not on its way out; and the transform of the
// cache keeps what says so.
func TestConsumers(t *testing.T) {
	other := reader("other", corev1.PodRunning, "10.0.0.9")
	other.Labels["app"] = "other"
	elsewhere := reader("elsewhere", corev1.PodRunning, "10.0.0.9")
	elsewhere.Namespace = "web"
	leaving := reader("leaving", corev1.PodRunning, "10.0.0.9")
	now := metav1.Now()
	leaving.DeletionTimestamp = &now
	objects := []client.Object{
		other, elsewhere, leaving, reader("running", corev1.PodRunning, "10.0.0.1"), reader("pending", corev1.PodPending, ""),
		reader("initialising", corev1.PodPending, "2001:db8::1"), reader("done", corev1.PodSucceeded, "10.0.0.9"), reader("failed", corev1.PodFailed, "10.0.0.9"),
	}
	for _, object := range objects {
		if _, err := slimPods(object); err != nil {
			t.Fatal(err)
		}
	}
	leaving.Finalizers = []string{"x/y"} // The fake client wants a reason why it is still there.
	selector, err := labels.Parse("app=edge")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Reader{Client: fake.NewClientBuilder().WithObjects(objects...).Build()}.Consumers(t.Context(), "cdn", selector)
	want := []consumer.Pod{
		{Name: "initialising", UID: "uid-initialising", IP: "2001:db8::1"}, {Name: "pending", UID: "uid-pending"},
		{Name: "running", UID: "uid-running", IP: "10.0.0.1"},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestConsumerChanged: what is looked at, and what goes on in every pod.
func TestConsumerChanged(t *testing.T) {
	for name, row := range map[string]struct {
		change func(p *corev1.Pod)
		want   bool
	}{
		"nothing":    {func(*corev1.Pod) {}, false},
		"a version":  {func(p *corev1.Pod) { p.ResourceVersion = "2" }, false},
		"a label":    {func(p *corev1.Pod) { p.Labels["app"] = "other" }, true},
		"an address": {func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.2" }, true},
		"a phase":    {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true},
		"an end":     {func(p *corev1.Pod) { now := metav1.Now(); p.DeletionTimestamp = &now }, true},
		"another":    {func(p *corev1.Pod) { p.UID = "2" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := reader("a", corev1.PodRunning, "10.0.0.1")
			after := before.DeepCopy()
			row.change(after)
			if got := ConsumerChanged(before, after); got != row.want {
				t.Errorf("changed: %t, want %t", got, row.want)
			}
		})
	}
}

// TestPodMemory holds docs/operations.md to what it says of the memory for a pod.
func TestPodMemory(t *testing.T) {
	const pods, limit = 2000, 2560
	heap := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := heap()
	kept := make([]any, pods)
	for i := range kept {
		text, err := reader(fmt.Sprintf("edge-5d8f7c9b6d-%05d", i), corev1.PodRunning, "10.0.0.1").Marshal()
		if err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{}
		if err := pod.Unmarshal(text); err != nil {
			t.Fatal(err)
		}
		if kept[i], err = slimPods(pod); err != nil {
			t.Fatal(err)
		}
	}
	perPod := (heap() - before) / pods
	runtime.KeepAlive(kept)
	t.Logf("%d bytes a pod", perPod)
	if perPod > limit {
		t.Errorf("%d bytes a pod, at most %d", perPod, limit)
	}
}
