// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// BackendSource is a Service whose endpoints are backends. They are read from its EndpointSlices: one backend for each pod,
// or for each address where no pod stands behind it.
type BackendSource struct {
	// service names the Service, in the namespace of the HashRing, and which of its ports the backends are dialled at.
	// +required
	Service ServicePort `json:"service"`

	// identity is what the name of a backend is made of: Hostname, PodName or Address. With identity NGINX and Address of the
	// HashRing, whose points are computed from addresses, it is Address, and an absent field means that. With identity Name an
	// absent field means Hostname. A change renames the backends, which with identity Name moves all of their keys.
	// +optional
	Identity SourceIdentity `json:"identity,omitempty"`

	// preferredIPFamily is which address a pod that has both is dialled at: IPv4 (the default) or IPv6. A pod that has one
	// only is dialled at that. With identity Address and NGINX a change moves all keys of the pods that have both; and where
	// the Service has both families, a pod is placed once its address of this family is known.
	// +optional
	// +default="IPv4"
	PreferredIPFamily IPFamily `json:"preferredIPFamily,omitempty"`

	// weight is the weight of each backend that has none of its own, 0 to 1000000, default 1. 0 drains them.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight *int32 `json:"weight,omitempty"`

	// weightAnnotation is the name of an annotation whose value is the weight of a backend, 0 to 1000000: that of the pod, or
	// without it that of the EndpointSlice. Absent, none is read. A value that is no such number is reported by condition
	// BackendsResolved, and the backend keeps the weight that it has on the published ring.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`
	WeightAnnotation string `json:"weightAnnotation,omitempty"`

	// labels are given to every backend from here, at most 32. They are what features select by.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, v, k.size() <= 317 && v.size() <= 63)",message="the keys of labels must have at most 317 characters and the values at most 63"
	Labels map[string]string `json:"labels,omitempty"`

	// labelsFromPod are the keys of labels that a backend takes from its pod, at most 16; they go before those in labels. A
	// pod that does not have one gives none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=317
	LabelsFromPod []string `json:"labelsFromPod,omitempty"`
}

// ServicePort names a port of a Service.
type ServicePort struct {
	// name is the name of the Service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name"`

	// port is the name of a port of the Service, with at least one letter and in at most 63 characters, or its number there, 1 to
	// 65535; the pods are dialled at its target port. It may be left out where the Service has one port only.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`type(self) == int ? self >= 1 && self <= 65535 : string(self).matches('^[a-z0-9-]*[a-z][a-z0-9-]*$') && !string(self).startsWith('-') && !string(self).endsWith('-')`,messageExpression=`'port must be a number from 1 to 65535 without quotes, or the name of a port of the Service: lower-case letters, digits and dashes with at least one letter; got ' + (type(self) == int ? string(self) : '"' + string(self) + '"')`
	Port *intstr.IntOrString `json:"port,omitempty"`
}

// SourceIdentity says what the name of a backend from a Service is made of.
//
// +kubebuilder:validation:Enum=Hostname;PodName;Address
type SourceIdentity string

const (
	// SourceHostname names a backend by the hostname of its endpoint, as the pods of a StatefulSet have one: it stays when the
	// pod comes back with another address.
	SourceHostname SourceIdentity = "Hostname"

	// SourcePodName names a backend by its pod. It stays for as long as the pod does.
	SourcePodName SourceIdentity = "PodName"

	// SourceAddress names a backend by address and port.
	SourceAddress SourceIdentity = "Address"
)

// IPFamily is a family of IP addresses.
//
// +kubebuilder:validation:Enum=IPv4;IPv6
type IPFamily string

const (
	// IPv4 is version 4.
	IPv4 IPFamily = "IPv4"
	// IPv6 is version 6.
	IPv6 IPFamily = "IPv6"
)

// Membership says when a backend is placed on the ring and when it is removed. Whatever it keeps away from the ring, the last
// good ring stays published.
type Membership struct {
	// minBackends is how many backends of a weight above 0 a ring must have, 1 to 4096, default 1. One of fewer is not
	// published: condition Held has reason BelowMinimum.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	MinBackends int32 `json:"minBackends,omitempty"`

	// joinDelay is how long an endpoint has to be ready without interruption before it is placed, 0s to 24h, default 0s. Those
	// of the first ring are placed at once.
	// +optional
	// +default="0s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self <= duration('24h')",messageExpression="'joinDelay must be at most 24h; got %s'.format([self])"
	JoinDelay *metav1.Duration `json:"joinDelay,omitempty"`

	// leaveDelay is how long an endpoint that is on the ring has to be gone or not ready before it is removed, 0s to 168h, default
	// 5m. Until then it keeps its place, and routing.json says that it is down, so that readers pass over it. A backend that is
	// taken out of backends is removed at once, as is one of a source that is taken out of backendsFrom where no source is left.
	// +optional
	// +default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self <= duration('168h')",messageExpression="'leaveDelay must be at most 168h; got %s'.format([self])"
	LeaveDelay *metav1.Duration `json:"leaveDelay,omitempty"`

	// maxRemoved is the part of the backends that may be lost at one time, "0%" to "100%" with at most 4 decimals, default "50%":
	// those that are gone, not ready or taken out of spec, less those that joined meanwhile; what one edit takes out of backends
	// counts without those that it adds. While more are lost, none is removed: condition Held has reason SuddenLoss until enough of them come
	// back or somebody confirms the loss with kubectl hashring release.
	// +optional
	// +default="50%"
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(0|[1-9][0-9]{0,2})([.][0-9]{1,4})?%$') && double(self.replace('%', '')) <= 100.0`,messageExpression="'maxRemoved must be a percentage from 0% to 100% with at most 4 decimals, such as 50%; got ' + self"
	MaxRemoved string `json:"maxRemoved,omitempty"`

	// maxMovement is the part of the key space that one change of backends, features or views may move, "0%" to "100%" with at most 4
	// decimals; absent, any. What counts is the view that moves most: that of all backends, of each feature that both rings have, and
	// under V3 each declared view of such features. A change that moves more becomes the candidate, and condition Held has reason
	// MovementBudget and names the view: a higher maxMovement, or changePolicy Immediate, lets it through.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(0|[1-9][0-9]{0,2})([.][0-9]{1,4})?%$') && double(self.replace('%', '')) <= 100.0`,messageExpression="'maxMovement must be a percentage from 0% to 100% with at most 4 decimals, such as 5%; got ' + self"
	MaxMovement string `json:"maxMovement,omitempty"`
}

// ChangePolicy says how a change that moves keys between backends that stay is carried out.
//
// +kubebuilder:validation:Enum=Migrate;Immediate
type ChangePolicy string

const (
	// ChangeMigrate makes the change the candidate, which is shown in status and waits.
	ChangeMigrate ChangePolicy = "Migrate"

	// ChangeImmediate publishes it.
	ChangeImmediate ChangePolicy = "Immediate"
)

// Deletion says what becomes of what is published when the HashRing is deleted.
type Deletion struct {
	// tombstone is how long the published files outlive the HashRing, 0s to 720h, default 72h, so that a deletion by mistake
	// takes nothing from those who read them. A HashRing of the same name that is made within that time takes them over, revisions and
	// trims included, and moves no key. 0s deletes them with the HashRing. What is valid is what the HashRing last said.
	// +optional
	// +default="72h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self <= duration('720h')",messageExpression="'tombstone must be at most 720h; got %s'.format([self])"
	Tombstone *metav1.Duration `json:"tombstone,omitempty"`
}
