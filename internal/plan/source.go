// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/ringwright/ringwright/api/v1alpha1"
)

// BackendSource is what was seen of a Service that spec.backendsFrom names.
type BackendSource struct {
	// Service is nil where there is none of that name.
	Service *Service
	// Slices are its EndpointSlices, in any order.
	Slices []Slice
	// Pods are those that the slices name, by their names. They are read only where the source asks for labels or an
	// annotation of pods.
	Pods map[string]Pod
}

// Service is what counts of a Service.
type Service struct {
	// ExternalName says that it is a name in another DNS, without endpoints.
	ExternalName bool
	Ports        []Port
	// Families are spec.ipFamilies; empty where that is not known.
	Families []v1alpha1.IPFamily
}

// Port is a port of a Service, or with its target's number that of a slice. Name is "" where it has none.
type Port struct {
	Name   string
	Number int32
}

// Slice is an EndpointSlice.
type Slice struct {
	Name string
	// Family is IPv4 or IPv6.
	Family      v1alpha1.IPFamily
	Annotations map[string]string
	Ports       []Port
	Endpoints   []Endpoint
}

// Endpoint is one endpoint of a slice.
type Endpoint struct {
	// Address is the first address; the others are the same endpoint.
	Address string
	// Ready, Serving and Terminating are its conditions, with the defaults of the API for those that are absent.
	Ready, Serving, Terminating bool
	// Hostname, Pod and Zone are "" where they are not given. Pod is the name of the pod in the same namespace.
	Hostname, Pod, Zone string
}

// Pod is the metadata of a pod.
type Pod struct {
	Labels, Annotations map[string]string
}

// ReadsPods says whether a source needs the metadata of pods.
func ReadsPods(s v1alpha1.BackendSource) bool {
	return s.WeightAnnotation != "" || len(s.LabelsFromPod) > 0
}

// Problem is why a source was not read, or an endpoint not understood.
type Problem struct {
	Reason v1alpha1.ConditionReason
	// Message names the source, what was found and what would mend it.
	Message string
	// Unread says that the endpoints of the source are not known. Nothing is removed meanwhile.
	Unread bool
}
