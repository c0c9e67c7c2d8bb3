// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/gateway"
)

func TestDirectory(t *testing.T) {
	d := NewDirectory()
	first, second := newPolicy(), newPolicy(func(p *v1alpha1.WeightPolicy) {
		p.Name, p.Spec.Load.CustomMetric = "another", "queue"
		p.Spec.Load.Sources = []v1alpha1.LoadSource{{Type: v1alpha1.SourcePush, Interval: seconds(30)}}
	})
	endpoints := newEndpoints(2)
	endpoints = append(endpoints, Endpoint{ID: "10.0.0.9:80", Ready: true})
	d.Set(first, endpoints)
	d.Set(second, []Endpoint{{ID: "backend-b", PodUID: "uid-000000"}, {ID: "backend-a", PodUID: "uid-000000"}})
	want := []gateway.Target{
		{Policy: "shop/another", Endpoint: "backend-a", CustomMetric: "queue", Interval: 30 * time.Second},
		{Policy: "shop/another", Endpoint: "backend-b", CustomMetric: "queue", Interval: 30 * time.Second},
		{Policy: "shop/checkout", Endpoint: "uid-000000", Interval: 5 * time.Second},
	}
	got := d.Endpoints("uid-000000")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got[0].Policy = "changed by the caller"
	d.Set(first, endpoints[1:])
	if diff := cmp.Diff(want[:2], d.Endpoints("uid-000000")); diff != "" {
		t.Errorf("after a pod went: %s", diff)
	}
	second.Spec.Load.Sources = []v1alpha1.LoadSource{{Type: v1alpha1.SourceLRS}}
	d.Set(second, []Endpoint{{ID: "backend-b", PodUID: "uid-000000"}})
	if got := d.Endpoints("uid-000000"); len(got) != 0 {
		t.Errorf("a policy to which nobody pushes: %v", got)
	}
	d.Remove("shop/checkout")
	d.Remove("shop/unknown")
	if len(d.pods) != 0 || len(d.policies) != 0 {
		t.Errorf("what is left: %v, %v", d.pods, d.policies)
	}
}
