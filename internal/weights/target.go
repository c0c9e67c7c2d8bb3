// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/observe"
)

// Resolver finds the endpoints of targets. It is safe for concurrent use.
type Resolver struct {
	// Reader is a cache of Services, EndpointSlices and HashRings, with the indexes of package observe.
	Reader client.Reader
	// Live reads the ConfigMaps of rings, which are too large to be cached.
	Live client.Reader
	// Loopback takes endpoints with names under localhost for 127.0.0.1, as tests and demos have them: the API server takes no loopback address
	// in an EndpointSlice. Other names are no endpoints: EDS has IP addresses only.
	Loopback bool

	rings ringBackends
}

// targetError says what is wrong with a target.
type targetError struct {
	reason  v1alpha1.ConditionReason
	message string
}

func (e *targetError) Error() string { return e.message }

func refused(reason v1alpha1.ConditionReason, format string, args ...any) error {
	return &targetError{reason: reason, message: fmt.Sprintf(format, args...)}
}

// Resolve returns the endpoints of a policy's target, sorted by ID. The error is a *targetError where somebody has to change something.
func (r *Resolver) Resolve(ctx context.Context, policy *v1alpha1.WeightPolicy) ([]Endpoint, error) {
	resolve := r.service
	if policy.Spec.TargetRef.Kind == v1alpha1.TargetHashRing {
		resolve = r.hashRing
	}
	endpoints, err := resolve(ctx, policy.Namespace, policy.Spec.TargetRef)
	if err != nil {
		return nil, err
	}
	endpoints = sortEndpoints(endpoints)
	if len(endpoints) > MaxEndpoints {
		return nil, refused(v1alpha1.ReasonTooManyEndpoints, "%s %s has %d endpoints, the limit is %d",
			policy.Spec.TargetRef.Kind, policy.Spec.TargetRef.Name, len(endpoints), MaxEndpoints)
	}
	return endpoints, nil
}

func (r *Resolver) service(ctx context.Context, namespace string, target v1alpha1.WeightTarget) ([]Endpoint, error) {
	service := &corev1.Service{}
	if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: target.Name}, service); apierrors.IsNotFound(err) {
		return nil, refused(v1alpha1.ReasonServiceNotFound, "There is no Service %s in namespace %s", target.Name, namespace)
	} else if err != nil {
		return nil, fmt.Errorf("reading Service %s: %w", target.Name, err)
	}
	port, err := portOf(service, target.Port)
	if err != nil {
		return nil, err
	}
	list := &discoveryv1.EndpointSliceList{}
	if err := r.Reader.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{observe.IndexService: target.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the EndpointSlices of Service %s: %w", target.Name, err)
	}
	var endpoints []Endpoint
	for i := range list.Items {
		switch slice := &list.Items[i]; {
		case slice.AddressType == addressType(service):
			endpoints = append(endpoints, ofSlice(slice, port)...)
		case r.Loopback && slice.AddressType == discoveryv1.AddressTypeFQDN:
			endpoints = append(endpoints, onLoopback(ofSlice(slice, port))...)
		}
	}
	return endpoints, nil
}

// onLoopback gives the endpoints with names under localhost, which RFC 6761 has for this host, its address.
func onLoopback(endpoints []Endpoint) []Endpoint {
	endpoints = slices.DeleteFunc(endpoints, func(e Endpoint) bool { return !strings.HasSuffix(e.Address, ".localhost") })
	for i := range endpoints {
		endpoints[i].Address = "127.0.0.1"
		if endpoints[i].PodUID == "" {
			endpoints[i].ID = endpoints[i].HostPort()
		}
	}
	return endpoints
}

// portOf returns the port of a Service that a policy names, by name or number, or its only one.
func portOf(service *corev1.Service, wanted *intstr.IntOrString) (corev1.ServicePort, error) {
	ports := service.Spec.Ports
	if wanted == nil {
		if len(ports) == 1 {
			return ports[0], nil
		}
		return corev1.ServicePort{}, refused(v1alpha1.ReasonPortNotFound, "Service %s has %d ports: spec.targetRef.port has to name one", service.Name, len(ports))
	}
	i := slices.IndexFunc(ports, func(p corev1.ServicePort) bool {
		return wanted.Type == intstr.String && p.Name == wanted.StrVal || wanted.Type == intstr.Int && p.Port == wanted.IntVal
	})
	if i < 0 {
		return corev1.ServicePort{}, refused(v1alpha1.ReasonPortNotFound, "Service %s has no port %s", service.Name, wanted)
	}
	return ports[i], nil
}

// addressType is the family of the addresses that count: one endpoint of a dual-stack Service has an address of each.
func addressType(service *corev1.Service) discoveryv1.AddressType {
	if len(service.Spec.IPFamilies) > 0 && service.Spec.IPFamilies[0] == corev1.IPv6Protocol {
		return discoveryv1.AddressTypeIPv6
	}
	return discoveryv1.AddressTypeIPv4
}

// ofSlice returns the endpoints of a slice, but for those that are on their way out.
func ofSlice(slice *discoveryv1.EndpointSlice, port corev1.ServicePort) []Endpoint {
	i := slices.IndexFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool { return ptr.Deref(p.Name, "") == port.Name && p.Port != nil })
	if i < 0 {
		return nil
	}
	var endpoints []Endpoint
	for _, e := range slice.Endpoints {
		if len(e.Addresses) == 0 || ptr.Deref(e.Conditions.Terminating, false) {
			continue
		}
		endpoint := Endpoint{
			Address: e.Addresses[0], Port: *slice.Ports[i].Port, Zone: ptr.Deref(e.Zone, ""), Ready: ptr.Deref(e.Conditions.Ready, true),
		}
		if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
			endpoint.Pod, endpoint.PodUID = e.TargetRef.Name, string(e.TargetRef.UID)
		}
		if endpoint.ID = endpoint.PodUID; endpoint.ID == "" {
			endpoint.ID = endpoint.HostPort()
		}
		endpoints = append(endpoints, endpoint)
	}
	return endpoints
}
