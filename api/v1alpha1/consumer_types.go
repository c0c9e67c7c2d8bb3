// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultConsumerPort is spec.consumers.port where spec does not set it; the schema has the same default.
const DefaultConsumerPort = 9465

// Consumers says which pods read a ring. The operator asks each of them which ring it has, at /v1/status as the agent serves it.
type Consumers struct {
	// selector says which pods of the HashRing's namespace read the ring, by their labels: at most 32 matchLabels and 32
	// matchExpressions, at least one of both. Pods that have ended or are being deleted do not count. Values that do not fit
	// an operator are reported by condition Applied with reason InvalidSelector.
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",reason=FieldValueRequired,message="selector must have matchLabels or matchExpressions; an empty one would select every pod of the namespace"
	// +kubebuilder:validation:XValidation:rule="(!has(self.matchLabels) || self.matchLabels.size() <= 32) && (!has(self.matchExpressions) || self.matchExpressions.size() <= 32)",message="selector must have at most 32 matchLabels and at most 32 matchExpressions"
	Selector metav1.LabelSelector `json:"selector"`

	// port is the TCP port of the pods at which they are asked, 1 to 65535, default 9465: that of the agent's --status-listen.
	// +optional
	// +default=9465
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// timeout is how long a pod may take to answer, 100ms to 10s, default 2s. One that takes longer is Unreachable.
	// +optional
	// +default="2s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self >= duration('100ms') && self <= duration('10s')",messageExpression="'timeout must be from 100ms to 10s; got %s'.format([self])"
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// refresh is how what is published reaches the volumes of running pods: Kubelet (the default), when the kubelet of each of them next
	// syncs it, which takes a minute or more; or TouchPods, by an annotation that the operator changes on the pods that mount the
	// ConfigMaps of the ring, on which their kubelets sync them at once. TouchPods needs config/components/touch-pods, which lets the
	// operator patch pods; status.refresh and condition Refreshed say what becomes of it. It has no effect on what is published, nor
	// on when.
	// +optional
	// +default="Kubelet"
	Refresh RefreshMode `json:"refresh,omitempty"`
}

// RefreshMode says how what is published reaches the volumes of running pods.
//
// +kubebuilder:validation:Enum=Kubelet;TouchPods
type RefreshMode string

const (
	// RefreshKubelet leaves it to the kubelets, which sync each pod from time to time.
	RefreshKubelet RefreshMode = "Kubelet"

	// RefreshTouchPods changes an annotation of the pods, on which their kubelets sync them at once.
	RefreshTouchPods RefreshMode = "TouchPods"
)

// RefreshStatus says how many pods were touched for what is published.
type RefreshStatus struct {
	// generation is the routing generation that they are touched for.
	// +required
	Generation int64 `json:"generation"`

	// total is how many pods run, are selected by spec.consumers and mount a ConfigMap of the ring, alone or in a projected volume.
	// +required
	Total int32 `json:"total"`

	// touched is how many of them were touched for that generation, or were made after it and started with it.
	// +required
	Touched int32 `json:"touched"`

	// refused is how many of the others could not be touched when that was tried last; the message of condition Refreshed names the first.
	// +optional
	Refused int32 `json:"refused,omitempty"`
}

// ConsumerStatus says what the pods that spec.consumers selects have of what is published. It changes with what they have, not
// with each time that they are asked. After a publication each pod is asked within seconds; that one which was current hangs,
// or has changed by itself, is found out within a minute or two, and later where many hang. While there is always something new
// it is written every 30 seconds.
type ConsumerStatus struct {
	// generation is the routing generation that they are measured against.
	// +required
	Generation int64 `json:"generation"`

	// total is how many pods there are: current + stale.
	// +required
	Total int32 `json:"total"`

	// current is how many of them have that generation with the digests that are published, and use it as it says.
	// +required
	Current int32 `json:"current"`

	// stale is how many do not, or did not say so.
	// +required
	Stale int32 `json:"stale"`

	// unreachable is how many of the stale pods could not be asked.
	// +optional
	Unreachable int32 `json:"unreachable,omitempty"`

	// mismatched is how many of the stale pods have the generation with other digests.
	// +optional
	Mismatched int32 `json:"mismatched,omitempty"`

	// overridden is how many of the stale pods have what is published and were told to ignore the split.
	// +optional
	Overridden int32 `json:"overridden,omitempty"`

	// stalePods are the stale pods in the order of their names, the first 10 of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	StalePods []StalePod `json:"stalePods,omitempty"`

	// datacenters are the same figures by where the pods say that they run, in the order of the names: at most 1024, those
	// with the most pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Datacenters []DatacenterConsumers `json:"datacenters,omitempty"`
}

// DatacenterConsumers counts the consumers in one datacenter.
type DatacenterConsumers struct {
	// name is the name of the datacenter; absent for the pods that were not told one, or have never answered.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// total is how many pods there are.
	// +required
	Total int32 `json:"total"`

	// current is how many of them are current.
	// +required
	Current int32 `json:"current"`

	// stable is how many of them have the published stable ring, of whichever generation.
	// +required
	Stable int32 `json:"stable"`

	// candidate is how many of them have the published candidate, of whichever generation.
	// +optional
	Candidate int32 `json:"candidate,omitempty"`
}

// StaleReason says why a pod is not current. Where several apply it is the first of this order, but for a pod without a ring: it is
// LoadError where it could not take the files that it has, else NotReady.
//
// +kubebuilder:validation:Enum=NotReady;Unreachable;OtherRing;DigestMismatch;LoadError;OldGeneration;NewerGeneration;NotApplied;Overridden
type StaleReason string

const (
	// StaleNotReady is a pod that has no address yet, has not been asked yet, or has no ring yet.
	StaleNotReady StaleReason = "NotReady"

	// StaleUnreachable is a pod that could not be asked, or did not answer as an agent does.
	StaleUnreachable StaleReason = "Unreachable"

	// StaleOtherRing is a pod that reads another HashRing, or an earlier one of the same name.
	StaleOtherRing StaleReason = "OtherRing"

	// StaleDigestMismatch is a pod that has the routing generation with another snapshot than what is published with it.
	StaleDigestMismatch StaleReason = "DigestMismatch"

	// StaleLoadError is a pod that could not take the files that it has, and keeps the ring that it had, or has none.
	StaleLoadError StaleReason = "LoadError"

	// StaleOldGeneration is a pod that has an older routing generation.
	StaleOldGeneration StaleReason = "OldGeneration"

	// StaleNewerGeneration is a pod that has a newer routing generation than what is published, and will not go back: the
	// cluster was restored to an earlier state, or two operators publish the ring.
	StaleNewerGeneration StaleReason = "NewerGeneration"

	// StaleNotApplied is a pod whose agent has what is published while the program beside it, such as NGINX, does not run it.
	StaleNotApplied StaleReason = "NotApplied"

	// StaleOverridden is a pod that has what is published and was told to ignore the split.
	StaleOverridden StaleReason = "Overridden"
)

// StalePod is a pod that is not current.
type StalePod struct {
	// name is the name of the pod.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// datacenter is where it said last that it runs; absent where it did not.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Datacenter string `json:"datacenter,omitempty"`

	// reason is why it is not current.
	// +required
	Reason StaleReason `json:"reason"`

	// generation is the routing generation that it said last that it has; absent where it has none, or that of another ring.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// message says more, in at most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}
