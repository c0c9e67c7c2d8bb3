// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// Reader reads what backends come from.
type Reader struct {
	// Client reads from caches that were set up with [CacheOptions] and [AddIndexes].
	Client client.Reader
}

// Sources returns what there is of each of spec.backendsFrom, in the same order. What does not exist is no error.
func (o Reader) Sources(ctx context.Context, r *v1alpha1.HashRing) ([]plan.BackendSource, error) {
	var list []plan.BackendSource
	for _, s := range r.Spec.BackendsFrom {
		seen, err := o.source(ctx, r.Namespace, s)
		if err != nil {
			return nil, fmt.Errorf("reading Service %s: %w", s.Service.Name, err)
		}
		list = append(list, seen)
	}
	return list, nil
}

func (o Reader) source(ctx context.Context, namespace string, s v1alpha1.BackendSource) (plan.BackendSource, error) {
	service := &corev1.Service{}
	if err := o.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: s.Service.Name}, service); err != nil {
		return plan.BackendSource{}, client.IgnoreNotFound(err)
	}
	seen := plan.BackendSource{Service: &plan.Service{ExternalName: service.Spec.Type == corev1.ServiceTypeExternalName}}
	for _, p := range service.Spec.Ports {
		seen.Service.Ports = append(seen.Service.Ports, plan.Port{Name: p.Name, Number: p.Port})
	}
	for _, family := range service.Spec.IPFamilies {
		seen.Service.Families = append(seen.Service.Families, v1alpha1.IPFamily(family)) // They have the same names.
	}
	slices := &discoveryv1.EndpointSliceList{}
	if err := o.Client.List(ctx, slices, client.InNamespace(namespace), client.MatchingFields{IndexService: s.Service.Name}); err != nil {
		return seen, err
	}
	for i := range slices.Items {
		seen.Slices = append(seen.Slices, describeSlice(&slices.Items[i]))
	}
	if !plan.ReadsPods(s) {
		return seen, nil
	}
	var err error
	seen.Pods, err = o.pods(ctx, namespace, seen.Slices)
	return seen, err
}

func describeSlice(slice *discoveryv1.EndpointSlice) plan.Slice {
	s := plan.Slice{Name: slice.Name, Annotations: slice.Annotations}
	switch slice.AddressType {
	case discoveryv1.AddressTypeIPv4:
		s.Family = v1alpha1.IPv4
	case discoveryv1.AddressTypeIPv6:
		s.Family = v1alpha1.IPv6
	default:
		return s // Names are no endpoints that can be told apart.
	}
	for _, p := range slice.Ports {
		if p.Port != nil {
			s.Ports = append(s.Ports, plan.Port{Name: ptr.Deref(p.Name, ""), Number: *p.Port})
		}
	}
	for _, e := range slice.Endpoints {
		if len(e.Addresses) > 0 {
			s.Endpoints = append(s.Endpoints, describeEndpoint(e))
		}
	}
	return s
}

func describeEndpoint(e discoveryv1.Endpoint) plan.Endpoint {
	ready := ptr.Deref(e.Conditions.Ready, true) // As the API says of a nil one.
	return plan.Endpoint{
		Address: e.Addresses[0], Ready: ready, Serving: ptr.Deref(e.Conditions.Serving, ready),
		Terminating: ptr.Deref(e.Conditions.Terminating, false),
		Hostname:    ptr.Deref(e.Hostname, ""), Pod: podName(e), Zone: ptr.Deref(e.Zone, ""),
	}
}

// podName returns the name of the pod behind an endpoint, "" where there is none.
func podName(e discoveryv1.Endpoint) string {
	if e.TargetRef == nil || e.TargetRef.Kind != "Pod" {
		return ""
	}
	return e.TargetRef.Name
}

// pods returns the metadata of the pods in slices, of those that there are.
func (o Reader) pods(ctx context.Context, namespace string, slices []plan.Slice) (map[string]plan.Pod, error) {
	found := map[string]plan.Pod{}
	for _, s := range slices {
		for _, e := range s.Endpoints {
			if _, known := found[e.Pod]; known || e.Pod == "" {
				continue
			}
			pod := PodMetadata()
			err := o.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: e.Pod}, pod)
			switch {
			case err == nil:
				found[e.Pod] = plan.Pod{Labels: pod.Labels, Annotations: pod.Annotations}
			case !apierrors.IsNotFound(err):
				return nil, err
			}
		}
	}
	return found, nil
}
