// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSlimMetadata: a long annotation is cut, and is never taken for one that is not there, nor for a weight.
func TestSlimMetadata(t *testing.T) {
	pod := PodMetadata()
	pod.Labels = map[string]string{"region": "eu"}
	pod.Annotations = map[string]string{
		"weight": "7", "longest": strings.Repeat("0", 255) + "7", "longer": strings.Repeat("0", 256) + "7",
		"split": strings.Repeat("x", 255) + "é",
	}
	pod.OwnerReferences = []metav1.OwnerReference{{Name: "x"}}
	if _, err := slimPods(pod); err != nil {
		t.Fatal(err)
	}
	want := PodMetadata()
	want.Labels = map[string]string{"region": "eu"}
	want.Annotations = map[string]string{
		"weight": "7", "longest": strings.Repeat("0", 255) + "7", "longer": strings.Repeat("0", 256) + "…",
		"split": strings.Repeat("x", 255) + "…",
	}
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
