// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxWeightSetEndpoints is how many endpoints a WeightSet has at most.
const MaxWeightSetEndpoints = 1000

// WeightScale is the number that stands for the mean weight in WeightSets, in weights.json and on the wire.
const WeightScale = 10000

// WeightSet holds the last good weights of endpoints of a WeightPolicy, and what its controller has to remember of them. Only the balancer
// writes it, at most once a minute, and reads it after a restart. WeightSets of a policy are named <policy>-0, <policy>-1 and so on; the
// first one has the figures of the whole policy. They carry the labels ringwright.dev/weight-policy, and ringwright.dev/weight-ring where the target is
// a HashRing.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=weightsets,singular=weightset,scope=Namespaced,shortName=wset,categories=ringwright
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.policy.name`
// +kubebuilder:printcolumn:name="Version",type=integer,JSONPath=`.version`
// +kubebuilder:printcolumn:name="Epoch",type=integer,JSONPath=`.epoch`
// +kubebuilder:printcolumn:name="Holder",type=string,JSONPath=`.holder`
// +kubebuilder:printcolumn:name="Updated",type=date,JSONPath=`.updatedAt`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type WeightSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// policy is the WeightPolicy, in the namespace of the WeightSet.
	// +required
	Policy PolicyIdentity `json:"policy"`

	// epoch grows with every change of the holder.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",messageExpression="'epoch cannot fall; it is %d, got %d'.format([oldSelf, self])"
	Epoch int64 `json:"epoch"`

	// holder is the replica of the balancer that wrote it.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Holder string `json:"holder"`

	// version grows with every change of the weights. All WeightSets of a policy that belong together have the same.
	// +required
	// +kubebuilder:validation:Minimum=0
	Version int64 `json:"version"`

	// sets is how many WeightSets belong together.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Sets int32 `json:"sets"`

	// updatedAt is when the weights were computed.
	// +required
	UpdatedAt metav1.Time `json:"updatedAt"`

	// noise is the controller's estimate of the noise of reports, in millionths.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Noise int64 `json:"noise,omitempty"`

	// tombstoneUntil is when the weights of a policy that is gone are deleted.
	// +optional
	TombstoneUntil *metav1.Time `json:"tombstoneUntil,omitempty"`

	// endpoints have weights, in the order of their IDs over all WeightSets of the policy; at most 1000.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Endpoints []WeightedEndpoint `json:"endpoints,omitempty"`
}

// WeightSetList is a list of WeightSets.
//
// +kubebuilder:object:root=true
type WeightSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WeightSet `json:"items"`
}

// PolicyIdentity is the WeightPolicy of a WeightSet.
type PolicyIdentity struct {
	// name is its name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// uid is its UID.
	// +required
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid"`

	// tombstone is spec.deletion.tombstone as the policy last said it.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	Tombstone *metav1.Duration `json:"tombstone,omitempty"`

	// ring is the name of the HashRing where the target is one.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Ring string `json:"ring,omitempty"`
}

// WeightedEndpoint is an endpoint with its weight.
type WeightedEndpoint struct {
	// id is the UID of the endpoint's pod, or "address:port" where there is no pod, or the ID of the backend of a HashRing.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ID string `json:"id"`

	// name is the name of the pod; absent where there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// address is the IP address or host name.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Address string `json:"address,omitempty"`

	// port is the TCP port.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// zone is the zone of the endpoint.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Zone string `json:"zone,omitempty"`

	// weight is what is served; 10000 is the mean.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Weight int32 `json:"weight"`

	// computed is the controller's own weight, which a rollout mixes with another; absent where it equals weight.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Computed int32 `json:"computed,omitempty"`

	// utilization is what was last measured, in ten-thousandths.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Utilization int64 `json:"utilization,omitempty"`

	// integral and lastError are the controller's memory, in millionths.
	// +optional
	Integral int64 `json:"integral,omitempty"`
	// lastError is the error of the last update, in millionths.
	// +optional
	LastError int64 `json:"lastError,omitempty"`

	// reportedAt is when the last report that counted ended.
	// +optional
	ReportedAt *metav1.Time `json:"reportedAt,omitempty"`

	// source is where it came from.
	// +optional
	Source LoadSourceType `json:"source,omitempty"`

	// state is Balanced, Cold, Silent, Guarded, Clamped, or NotReady.
	// +optional
	State EndpointState `json:"state,omitempty"`
}

// EndpointState says what the controller makes of an endpoint.
//
// +kubebuilder:validation:Enum=Balanced;Cold;Silent;Guarded;Clamped;NotReady
type EndpointState string

const (
	// EndpointBalanced is one whose weight follows its load.
	EndpointBalanced EndpointState = "Balanced"

	// EndpointCold is one that is new and has not reported yet.
	EndpointCold EndpointState = "Cold"

	// EndpointSilent is one without a fresh report, whose weight stays.
	EndpointSilent EndpointState = "Silent"

	// EndpointGuarded is one that counts as busier than it says, because it fails or stalls.
	EndpointGuarded EndpointState = "Guarded"

	// EndpointClamped is one with the least or the largest weight.
	EndpointClamped EndpointState = "Clamped"

	// EndpointNotReady is one that is not ready, whose weight stays.
	EndpointNotReady EndpointState = "NotReady"
)
