// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/observe"
	"github.com/ringwright/ringwright/internal/plan"
)

// TestService: what decides a backend outlives the transform of the cache.
func TestService(t *testing.T) {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "cache", Namespace: "cdn", Labels: map[string]string{"a": "b"}},
		Spec: corev1.ServiceSpec{
			Ports:      []corev1.ServicePort{{Name: "http", Port: 80}},
			IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}, ClusterIP: "10.0.0.1",
		},
	}
	for object, options := range observe.CacheOptions() {
		if _, ok := object.(*corev1.Service); !ok {
			continue
		}
		if _, err := options.Transform(service); err != nil {
			t.Fatal(err)
		}
	}
	if service.Labels != nil || service.Spec.ClusterIP != "" {
		t.Errorf("kept: %+v", service)
	}
	reader := observe.Reader{Client: fake.NewClientBuilder().WithObjects(service).
		WithIndex(&discoveryv1.EndpointSlice{}, observe.IndexService, func(client.Object) []string { return nil }).Build()}
	got, err := reader.Sources(t.Context(), &v1alpha1.HashRing{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cdn"},
		Spec:       v1alpha1.HashRingSpec{BackendsFrom: []v1alpha1.BackendSource{{Service: v1alpha1.ServicePort{Name: "cache"}}}},
	})
	want := []plan.BackendSource{{Service: &plan.Service{
		Ports: []plan.Port{{Name: "http", Number: 80}}, Families: []v1alpha1.IPFamily{v1alpha1.IPv6, v1alpha1.IPv4},
	}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
