// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

func TestPortOf(t *testing.T) {
	two := []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "grpc", Port: 9000}}
	for name, test := range map[string]struct {
		ports  []corev1.ServicePort
		wanted *intstr.IntOrString
		want   string
		err    string
	}{
		"the only one":        {two[:1], nil, "http", ""},
		"one of two":          {two, nil, "", "Service checkout has 2 ports: spec.targetRef.port has to name one"},
		"none":                {nil, nil, "", "Service checkout has 0 ports: spec.targetRef.port has to name one"},
		"by name":             {two, ptr.To(intstr.FromString("grpc")), "grpc", ""},
		"by number":           {two, ptr.To(intstr.FromInt32(9000)), "grpc", ""},
		"no such name":        {two, ptr.To(intstr.FromString("web")), "", "Service checkout has no port web"},
		"no such number":      {two, ptr.To(intstr.FromInt32(8080)), "", "Service checkout has no port 8080"},
		"a number as a name":  {two, ptr.To(intstr.FromString("80")), "", "Service checkout has no port 80"},
		"an unnamed, by name": {[]corev1.ServicePort{{Port: 80}}, ptr.To(intstr.FromInt32(80)), "", ""},
	} {
		service := &corev1.Service{Spec: corev1.ServiceSpec{Ports: test.ports}}
		service.Name = "checkout"
		got, err := portOf(service, test.wanted)
		text := ""
		var problem *targetError
		if errors.As(err, &problem) {
			text = problem.message
			if problem.reason != v1alpha1.ReasonPortNotFound {
				t.Errorf("%s: %s", name, problem.reason)
			}
		}
		if got.Name != test.want || text != test.err {
			t.Errorf("%s: %q, %q", name, got.Name, text)
		}
	}
}

func pod(name string) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "Pod", Name: name, UID: types.UID("uid-" + name)}
}

func TestOfSlice(t *testing.T) {
	slice := &discoveryv1.EndpointSlice{
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To("other"), Port: ptr.To[int32](1)}, {Name: ptr.To("grpc"), Port: ptr.To[int32](9000)}, {Name: ptr.To("any")}},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.0.0.1", "10.0.0.2"}, TargetRef: pod("a"), Zone: ptr.To("zone-a")},
			{Addresses: []string{"10.0.0.3"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}},
			{Addresses: []string{"10.0.0.4"}, TargetRef: pod("t"), Conditions: discoveryv1.EndpointConditions{Terminating: ptr.To(true), Serving: ptr.To(true)}},
			{Addresses: []string{"fd00::1"}, TargetRef: &corev1.ObjectReference{Kind: "Node", Name: "n", UID: "u"}},
			{TargetRef: pod("without an address")},
		},
	}
	want := []Endpoint{
		{ID: "uid-a", Pod: "a", PodUID: "uid-a", Address: "10.0.0.1", Port: 9000, Zone: "zone-a", Ready: true},
		{ID: "10.0.0.3:9000", Address: "10.0.0.3", Port: 9000},
		{ID: "[fd00::1]:9000", Address: "fd00::1", Port: 9000, Ready: true},
	}
	if diff := cmp.Diff(want, ofSlice(slice, corev1.ServicePort{Name: "grpc"})); diff != "" {
		t.Error(diff)
	}
	for _, port := range []string{"", "web", "any"} {
		if got := ofSlice(slice, corev1.ServicePort{Name: port}); got != nil {
			t.Errorf("port %q: %v", port, got)
		}
	}
}

func TestResolve(t *testing.T) {
	c := newCluster(t, 2)
	add := func(name string, family discoveryv1.AddressType, endpoints ...discoveryv1.Endpoint) {
		slice := sliceOf(0)
		slice.Name, slice.AddressType, slice.Endpoints = name, family, endpoints
		if err := c.client.Create(t.Context(), slice); err != nil {
			t.Fatal(err)
		}
	}
	notReady := discoveryv1.EndpointConditions{Ready: ptr.To(false)}
	add("v6", discoveryv1.AddressTypeIPv6, discoveryv1.Endpoint{Addresses: []string{"fd00::1"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "pod-000000", UID: "uid-000000"}})
	add("again", discoveryv1.AddressTypeIPv4, // An endpoint moves from one slice to another.
		discoveryv1.Endpoint{Addresses: []string{"10.0.0.1"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "pod-000001", UID: "uid-000001"}, Conditions: notReady})
	add("names", discoveryv1.AddressTypeFQDN, discoveryv1.Endpoint{Addresses: []string{"s.localhost"}}, discoveryv1.Endpoint{Addresses: []string{"example.com"}})
	want := newEndpoints(2)
	for name, test := range map[string]struct {
		resolver *Resolver
		family   corev1.IPFamily
		want     []Endpoint
	}{
		"IPv4":     {&Resolver{}, corev1.IPv4Protocol, want},
		"IPv6":     {&Resolver{}, corev1.IPv6Protocol, []Endpoint{{ID: "uid-000000", Pod: "pod-000000", PodUID: "uid-000000", Address: "fd00::1", Port: 8080, Ready: true}}},
		"loopback": {&Resolver{Loopback: true}, corev1.IPv4Protocol, append([]Endpoint{{ID: "127.0.0.1:8080", Address: "127.0.0.1", Port: 8080, Ready: true}}, want...)},
	} {
		service := &corev1.Service{}
		if err := c.client.Get(t.Context(), key, service); err != nil {
			t.Fatal(err)
		}
		service.Spec.IPFamilies = []corev1.IPFamily{test.family}
		if err := c.client.Update(t.Context(), service); err != nil {
			t.Fatal(err)
		}
		test.resolver.Reader = c.client
		got, err := test.resolver.Resolve(t.Context(), newPolicy())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	_, err := (&Resolver{Reader: c.client}).Resolve(t.Context(), newPolicy(func(p *v1alpha1.WeightPolicy) { p.Spec.TargetRef.Name = "gone" }))
	var problem *targetError
	if !errors.As(err, &problem) || problem.reason != v1alpha1.ReasonServiceNotFound {
		t.Errorf("without a Service: %v", err)
	}
}
