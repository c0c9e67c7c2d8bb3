// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WeightRollout brings a strategy in. What is served are shares of both: percent of those of strategy, and the rest of those of from.
// At 0 the strategy is in shadow: computed, compared and not served.
//
// +kubebuilder:validation:XValidation:rule="!has(self.steps) || self.steps.size() == 0 || self.steps[self.steps.size() - 1].percent <= self.percent",fieldPath=".steps",messageExpression="'the last of steps must have at most rollout.percent, %d; got %d'.format([self.percent, self.steps[self.steps.size() - 1].percent])"
type WeightRollout struct {
	// from is the strategy that the new one is mixed with: Equal (the default) or Static.
	// +optional
	// +default={"type": "Equal"}
	From RolloutFrom `json:"from,omitzero"`

	// percent is where the rollout ends, 0 to 100, default 100.
	// +optional
	// +default=100
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent *int32 `json:"percent,omitempty"`

	// steps are gone through before percent, with growing percentages, at most 16. A step begins when the one before has lasted its
	// duration, in which the weights were computed and abort was not met.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(i, s, i == 0 || s.percent > self[i - 1].percent)",messageExpression="self.transformList(i, s, i > 0 && s.percent <= self[i - 1].percent, 'the percent of steps must grow; steps[%d] has %d after %d'.format([i, s.percent, self[i - 1].percent]))[0]"
	Steps []RolloutStep `json:"steps,omitempty"`

	// abort says when the rollout goes back to from, where it stays until spec is changed. Absent, it never does.
	// +optional
	Abort *RolloutAbort `json:"abort,omitempty"`
}

// RolloutFrom is the strategy that a rollout begins with.
//
// +kubebuilder:validation:XValidation:rule="self.type in ['Equal', 'Static']",fieldPath=".type",messageExpression="'from.type must be Equal or Static; got ' + self.type"
// +kubebuilder:validation:XValidation:rule="has(self.staticWeights) == (self.type == 'Static')",fieldPath=".staticWeights",message="staticWeights must be set with type Static, and with no other"
type RolloutFrom struct {
	// type is Equal (the default) or Static.
	// +optional
	// +default="Equal"
	Type StrategyType `json:"type,omitempty"`

	// staticWeights are the weights of type Static.
	// +optional
	StaticWeights *StaticWeights `json:"staticWeights,omitempty"`
}

// RolloutStep is one step of a rollout.
type RolloutStep struct {
	// percent is the part of the new strategy, 0 to 100.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent"`

	// duration is how long the step lasts, 1s to 8760h.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self >= duration('1s') && self <= duration('8760h')",messageExpression="'duration must be from 1s to 8760h; got %s'.format([self])"
	Duration metav1.Duration `json:"duration"`
}

// RolloutAbort says when a rollout goes back.
//
// +kubebuilder:validation:XValidation:rule="has(self.maxOverAverage) || has(self.errorRatio)",reason=FieldValueRequired,message="at least one of maxOverAverage and errorRatio must be set"
type RolloutAbort struct {
	// maxOverAverage is the utilisation of the busiest endpoint over the mean from which it goes back, "1.01" to "100" with at most 3 decimals.
	// +optional
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(100(\.0{1,3})?|[1-9][0-9]?(\.[0-9]{1,3})?)$') && double(self) >= 1.01`,messageExpression="'maxOverAverage must be a number from 1.01 to 100 with at most 3 decimals, such as 1.5; got ' + self"
	MaxOverAverage string `json:"maxOverAverage,omitempty"`

	// errorRatio is the part of all requests that fail from which it goes back, "0.01%" to "100%" with at most 2 decimals.
	// +optional
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(100(\.0{1,2})?|[0-9]{1,2}(\.[0-9]{1,2})?)%$') && double(self.replace('%', '')) > 0.0`,messageExpression="'errorRatio must be a percentage from 0.01% to 100% with at most 2 decimals, such as 1%; got ' + self"
	ErrorRatio string `json:"errorRatio,omitempty"`

	// for is how long one of them has to be so, in every update, 0s to 24h, default 1m.
	// +optional
	// +default="1m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self <= duration('24h')",messageExpression="'for must be at most 24h; got %s'.format([self])"
	For *metav1.Duration `json:"for,omitempty"`
}

// LocalityRule says which zones the clients of a zone go to.
//
// +kubebuilder:validation:XValidation:rule="!has(self.failover) || !self.failover.exists(zone, zone in self.to)",fieldPath=".failover",messageExpression="'failover must not name the zones of to; got %s'.format([self.failover.filter(zone, zone in self.to)[0]])"
type LocalityRule struct {
	// from is the zone of the clients, as they give it in the locality of their xDS node: 1 to 63 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	From string `json:"from"`

	// to splits their requests between zones, as EndpointSlices name them: 1 to 64 zones with parts of any sum, each 1 to 10000.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(zone, zone.size() >= 1 && zone.size() <= 63)",message="the zones of to must have 1 to 63 characters"
	To map[string]ZoneShare `json:"to"`

	// failover are the zones that are used, one after the other, where those of to have too few endpoints that are ready: at most 16, none
	// of them in to.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Failover []string `json:"failover,omitempty"`
}

// ZoneShare is the part of the requests that a zone gets.
//
// +kubebuilder:validation:Minimum=1
// +kubebuilder:validation:Maximum=10000
type ZoneShare int32

// EDSMode says how weights are written for xDS clients.
//
// +kubebuilder:validation:Enum=Auto;EndpointWeight;LocalityPerEndpoint
type EDSMode string

const (
	// EDSAuto is LocalityPerEndpoint for gRPC clients, which their node tells, and EndpointWeight for all others.
	EDSAuto EDSMode = "Auto"

	// EDSEndpointWeight is load_balancing_weight on each endpoint.
	EDSEndpointWeight EDSMode = "EndpointWeight"

	// EDSLocalityPerEndpoint is a locality for each endpoint with the weight on the locality: gRPC's round_robin ignores the weights of
	// endpoints.
	EDSLocalityPerEndpoint EDSMode = "LocalityPerEndpoint"
)

// WeightPublication says how weights reach those who use them. WeightSets always hold them.
type WeightPublication struct {
	// eds says how xDS clients get them.
	// +optional
	// +default={}
	EDS EDSPublication `json:"eds,omitzero"`

	// configMap writes them to a ConfigMap as weights.json, at most once in 30 seconds.
	// +optional
	ConfigMap *ConfigMapPublication `json:"configMap,omitempty"`
}

// EDSPublication says how xDS clients get the weights.
type EDSPublication struct {
	// mode is Auto (the default), EndpointWeight or LocalityPerEndpoint.
	// +optional
	// +default="Auto"
	Mode EDSMode `json:"mode,omitempty"`
}

// ConfigMapPublication names a ConfigMap for the weights.
type ConfigMapPublication struct {
	// name is the name of the ConfigMap in the namespace of the policy. One that is not the balancer's is left alone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	Name string `json:"name"`
}

// WeightDeletion says what becomes of the weights when the policy is deleted.
type WeightDeletion struct {
	// tombstone is how long the weights are served after the policy is deleted, 0s to 720h, default 72h, so that a deletion by mistake takes
	// nothing from those who use them. A policy of the same name that is made within that time goes on with them. 0s deletes them with the
	// policy.
	// +optional
	// +default="72h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self <= duration('720h')",messageExpression="'tombstone must be at most 720h; got %s'.format([self])"
	Tombstone *metav1.Duration `json:"tombstone,omitempty"`
}
