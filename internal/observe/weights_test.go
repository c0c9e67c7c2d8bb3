// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// TestSlimWeightSet: of a HashRing's set IDs and weights stay, of a Service's the frame alone.
func TestSlimWeightSet(t *testing.T) {
	for ring, want := range map[string][]v1alpha1.WeightedEndpoint{"": nil, "edge": {{ID: "a", Weight: 9000}}} {
		set := &v1alpha1.WeightSet{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelWeightPolicy: "load"}, Annotations: map[string]string{"a": "b"}},
			Policy:     v1alpha1.PolicyIdentity{Name: "load"}, Version: 3, Sets: 1,
			Endpoints: []v1alpha1.WeightedEndpoint{{ID: "a", Weight: 9000, Name: "pod", Zone: "z", Computed: 8000, Utilization: 5}},
		}
		if ring != "" {
			set.Labels[v1alpha1.LabelWeightRing] = ring
		}
		if _, err := slimWeightSet(set); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, set.Endpoints); diff != "" || set.Version != 3 || set.Policy.Name != "load" || set.Annotations != nil {
			t.Errorf("ring %q: %+v\n%s", ring, set, diff)
		}
	}
}

func TestSlimWeightPolicy(t *testing.T) {
	policy := &v1alpha1.WeightPolicy{ObjectMeta: metav1.ObjectMeta{Name: "load", Annotations: map[string]string{"a": "b"}}, Spec: v1alpha1.WeightPolicySpec{
		TargetRef: v1alpha1.WeightTarget{Name: "checkout"}, Suspend: true, Locality: []v1alpha1.LocalityRule{{From: "a"}},
	}}
	if _, err := slimWeightPolicy(policy); err != nil {
		t.Fatal(err)
	}
	want := &v1alpha1.WeightPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "load"}, Spec: v1alpha1.WeightPolicySpec{TargetRef: v1alpha1.WeightTarget{Name: "checkout"}},
	}
	if diff := cmp.Diff(want, policy); diff != "" {
		t.Error(diff)
	}
}
