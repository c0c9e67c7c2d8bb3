// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// WeightPolicy balances the load of the endpoints of a Service, or of the backends of a HashRing, by weights that follow what the
// endpoints report: each one's utilisation is driven to the mean of all. The weights are kept in WeightSets and served to Envoy and gRPC
// clients by xDS, to others by a ConfigMap, and to a HashRing as factors of the backends' weights.
//
// With targetRef alone it works. The operator never writes spec.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=weightpolicies,singular=weightpolicy,scope=Namespaced,shortName=wpol,categories=ringwright
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.targetRef.name`,description="Service or HashRing whose load is balanced"
// +kubebuilder:printcolumn:name="Max/Avg",type=string,JSONPath=`.status.maxOverAverage`,description="Utilisation of the busiest endpoint over the mean"
// +kubebuilder:printcolumn:name="Reporting",type=integer,JSONPath=`.status.endpoints.reporting`,description="Endpoints that report"
// +kubebuilder:printcolumn:name="Endpoints",type=integer,JSONPath=`.status.endpoints.total`,description="Endpoints of the target"
// +kubebuilder:printcolumn:name="Rollout",type=string,JSONPath=`.status.rollout.percent`,description="Part of the computed weights that is served"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Kind",type=string,priority=1,JSONPath=`.spec.targetRef.kind`,description="Kind of the target"
// +kubebuilder:printcolumn:name="Effective",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Effective")].reason`,description="Whether weights can help"
// +kubebuilder:printcolumn:name="Holder",type=string,priority=1,JSONPath=`.status.shard.holder`,description="Replica of the balancer that has the policy"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",messageExpression="'metadata.name must have at most 63 characters; got %d'.format([self.metadata.name.size()])"
type WeightPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is balanced and how. The operator never writes it.
	// +required
	Spec WeightPolicySpec `json:"spec"`

	// status is what was measured and decided.
	// +optional
	// +default={}
	Status WeightPolicyStatus `json:"status,omitzero"`
}

// WeightPolicyList is a list of WeightPolicies.
//
// +kubebuilder:object:root=true
type WeightPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WeightPolicy `json:"items"`
}

// WeightPolicySpec says what is balanced and how.
//
// +kubebuilder:validation:XValidation:rule="!has(self.strategy.profile) || self.strategy.profile != 'Ring' || self.targetRef.kind == 'HashRing'",fieldPath=".strategy.profile",messageExpression="'profile Ring is for a target of kind HashRing; targetRef.kind is ' + self.targetRef.kind"
// +kubebuilder:validation:XValidation:rule="self.targetRef.kind != 'HashRing' || !has(self.strategy.profile) || self.strategy.profile in ['Ring', 'Custom']",fieldPath=".strategy.profile",messageExpression="'profile must be Ring or Custom for a target of kind HashRing, where a change of weights moves keys; got ' + self.strategy.profile"
// +kubebuilder:validation:XValidation:rule="self.targetRef.kind != 'HashRing' || (!has(self.publish.configMap) && (!has(self.locality) || self.locality.size() == 0))",messageExpression="'locality and publish.configMap are for a target of kind Service; targetRef.kind is HashRing'"
// +kubebuilder:validation:XValidation:rule="self.load.metric != 'Custom' || has(self.load.customMetric)",fieldPath=".load.customMetric",reason=FieldValueRequired,message="customMetric must be set with metric Custom"
type WeightPolicySpec struct {
	// targetRef names what is balanced. It cannot be changed: make another policy.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",reason=FieldValueForbidden,messageExpression="'targetRef cannot be changed; it is %s %s: make another WeightPolicy'.format([oldSelf.kind, oldSelf.name])"
	TargetRef WeightTarget `json:"targetRef"`

	// load says what is measured, and where the figures come from.
	// +optional
	// +default={}
	Load LoadMeasurement `json:"load,omitzero"`

	// strategy says how weights follow from the load.
	// +optional
	// +default={"type": "PID"}
	Strategy WeightStrategy `json:"strategy,omitzero"`

	// rollout brings the strategy in bit by bit, from shadow to all.
	// +optional
	// +default={}
	Rollout WeightRollout `json:"rollout,omitzero"`

	// limits bound the weights.
	// +optional
	// +default={"minWeight": "0.1", "maxWeight": "8", "maxStep": "50%", "coldStartWeight": "0.1", "minReporting": "50%"}
	Limits WeightLimits `json:"limits,omitzero"`

	// locality says which zones the clients of a zone go to, by the zone of the client, at most 64. With locality an endpoint is driven to
	// the mean of its own zone. Without, all endpoints balance each other.
	// +optional
	// +listType=map
	// +listMapKey=from
	// +kubebuilder:validation:MaxItems=64
	Locality []LocalityRule `json:"locality,omitempty"`

	// publish says how the weights reach those who use them.
	// +optional
	// +default={}
	Publish WeightPublication `json:"publish,omitzero"`

	// deletion says what becomes of the weights when the policy is deleted.
	// +optional
	// +default={}
	Deletion WeightDeletion `json:"deletion,omitzero"`

	// suspend keeps the weights as they are. They go on to be served, endpoints that leave are taken out, and those that come get
	// limits.coldStartWeight. Default false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// TargetKind is the kind of what a WeightPolicy balances.
//
// +kubebuilder:validation:Enum=Service;HashRing
type TargetKind string

const (
	// TargetService is a Service, whose endpoints get weights.
	TargetService TargetKind = "Service"

	// TargetHashRing is a HashRing, whose backends' weights get factors.
	TargetHashRing TargetKind = "HashRing"
)

// WeightTarget names what is balanced, in the namespace of the policy.
//
// +kubebuilder:validation:XValidation:rule="self.kind == 'Service' || !has(self.port)",fieldPath=".port",reason=FieldValueForbidden,message="port is for kind Service; a HashRing has the ports of its backends"
type WeightTarget struct {
	// kind is Service (the default) or HashRing.
	// +optional
	// +default="Service"
	Kind TargetKind `json:"kind,omitempty"`

	// name is the name of the Service or HashRing.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	Name string `json:"name"`

	// port is the name or number of the Service's port, 1 to 65535; it can be absent where the Service has one port.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? (int(self) >= 1 && int(self) <= 65535) : string(self).matches('^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')",message="port must be a number from 1 to 65535 or the name of a port of the Service"
	Port *intstr.IntOrString `json:"port,omitempty"`
}

// StrategyType says where weights come from.
//
// +kubebuilder:validation:Enum=PID;Equal;Static
type StrategyType string

const (
	// StrategyPID drives every endpoint's utilisation to the mean.
	StrategyPID StrategyType = "PID"

	// StrategyEqual gives all endpoints the weight 1.
	StrategyEqual StrategyType = "Equal"

	// StrategyStatic gives the weights of staticWeights.
	StrategyStatic StrategyType = "Static"
)

// WeightProfile names a set of gains.
//
// +kubebuilder:validation:Enum=Balanced;Cautious;Fast;Ring;Custom
type WeightProfile string

const (
	// ProfileBalanced settles within a few updates of 10 s.
	ProfileBalanced WeightProfile = "Balanced"

	// ProfileCautious takes smaller steps, for reports that are noisy or late.
	ProfileCautious WeightProfile = "Cautious"

	// ProfileFast takes larger steps, for reports that are fresh and even.
	ProfileFast WeightProfile = "Fast"

	// ProfileRing moves few keys: an update a minute, and none for less than 3 %.
	ProfileRing WeightProfile = "Ring"

	// ProfileCustom is the literal PID with the gains of pid.
	ProfileCustom WeightProfile = "Custom"
)

// WeightStrategy says how weights follow from the load.
//
// +kubebuilder:validation:XValidation:rule="!has(self.profile) || self.type == 'PID'",fieldPath=".profile",reason=FieldValueForbidden,messageExpression="'profile is for type PID; type is ' + self.type"
// +kubebuilder:validation:XValidation:rule="has(self.pid) == (has(self.profile) && self.profile == 'Custom')",fieldPath=".pid",message="pid must be set with profile Custom, and with no other"
// +kubebuilder:validation:XValidation:rule="has(self.staticWeights) == (self.type == 'Static')",fieldPath=".staticWeights",message="staticWeights must be set with type Static, and with no other"
type WeightStrategy struct {
	// type is PID (the default), Equal or Static.
	// +optional
	// +default="PID"
	Type StrategyType `json:"type,omitempty"`

	// profile is the set of gains of type PID: Balanced (the default for a Service), Cautious, Fast, Ring (the default for a HashRing)
	// or Custom.
	// +optional
	Profile WeightProfile `json:"profile,omitempty"`

	// pid has the gains of profile Custom.
	// +optional
	PID *PIDGains `json:"pid,omitempty"`

	// staticWeights are the weights of type Static.
	// +optional
	StaticWeights *StaticWeights `json:"staticWeights,omitempty"`
}

// PIDGains are the gains of the literal PID controller: each update adds kp·e + ki·∫e + kd·Δe to a weight of mean 1, where e is the mean
// utilisation less that of the endpoint.
type PIDGains struct {
	// kp is the proportional gain, "0" to "10" with at most 6 decimals, default "0.5".
	// +optional
	// +default="0.5"
	// +kubebuilder:validation:MaxLength=9
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(10(\.0{1,6})?|[0-9](\.[0-9]{1,6})?)$')`,messageExpression="'kp must be a number from 0 to 10 with at most 6 decimals, such as 0.5; got ' + self"
	Kp string `json:"kp,omitempty"`

	// ki is the integral gain in the same form, default "0".
	// +optional
	// +default="0"
	// +kubebuilder:validation:MaxLength=9
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(10(\.0{1,6})?|[0-9](\.[0-9]{1,6})?)$')`,messageExpression="'ki must be a number from 0 to 10 with at most 6 decimals, such as 0.05; got ' + self"
	Ki string `json:"ki,omitempty"`

	// kd is the derivative gain in the same form, default "0".
	// +optional
	// +default="0"
	// +kubebuilder:validation:MaxLength=9
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(10(\.0{1,6})?|[0-9](\.[0-9]{1,6})?)$')`,messageExpression="'kd must be a number from 0 to 10 with at most 6 decimals, such as 0.1; got ' + self"
	Kd string `json:"kd,omitempty"`

	// interval is the time between updates, 1s to 10m, default 10s.
	// +optional
	// +default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self >= duration('1s') && self <= duration('10m')",messageExpression="'interval must be from 1s to 10m; got %s'.format([self])"
	Interval *metav1.Duration `json:"interval,omitempty"`
}

// StaticWeights give weights by name. An endpoint that is not named has weight 1.
type StaticWeights struct {
	// endpoints are the weights by name, 1 to 1000.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	Endpoints []StaticWeight `json:"endpoints"`
}

// StaticWeight is the weight of one endpoint.
type StaticWeight struct {
	// name is the name of the pod, or "address:port" where there is no pod, or the ID of the backend of a HashRing.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// weight is "0.01" to "100" with at most 4 decimals. Only the ratios of the weights count.
	// +required
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(100(\.0{1,4})?|[0-9]{1,2}(\.[0-9]{1,4})?)$') && double(self) >= 0.01`,messageExpression="'weight must be a number from 0.01 to 100 with at most 4 decimals, such as 1.5; got ' + self"
	Weight string `json:"weight"`
}

// WeightLimits bound the weights, whose mean is 1.
//
// +kubebuilder:validation:XValidation:rule="double(self.minWeight) <= double(self.coldStartWeight) && double(self.coldStartWeight) <= double(self.maxWeight)",messageExpression="'minWeight <= coldStartWeight <= maxWeight must hold; got %s, %s and %s'.format([self.minWeight, self.coldStartWeight, self.maxWeight])"
type WeightLimits struct {
	// minWeight is the least weight, "0.01" to "1" with at most 4 decimals, default "0.1". An endpoint that fails or stalls can get a tenth of it.
	// +optional
	// +default="0.1"
	// +kubebuilder:validation:MaxLength=6
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(1(\.0{1,4})?|0\.[0-9]{1,4})$') && double(self) >= 0.01`,messageExpression="'minWeight must be a number from 0.01 to 1 with at most 4 decimals, such as 0.1; got ' + self"
	MinWeight string `json:"minWeight,omitempty"`

	// maxWeight is the largest weight, "1" to "100" with at most 4 decimals, default "8".
	// +optional
	// +default="8"
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(100(\.0{1,4})?|[1-9][0-9]?(\.[0-9]{1,4})?)$')`,messageExpression="'maxWeight must be a number from 1 to 100 with at most 4 decimals, such as 8; got ' + self"
	MaxWeight string `json:"maxWeight,omitempty"`

	// maxStep is the most that a weight grows in an update, "1%" to "100%" with at most 2 decimals, default "50%"; it shrinks by as large a factor.
	// A profile may take smaller steps.
	// +optional
	// +default="50%"
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(100(\.0{1,2})?|[0-9]{1,2}(\.[0-9]{1,2})?)%$') && double(self.replace('%', '')) >= 1.0`,messageExpression="'maxStep must be a percentage from 1% to 100% with at most 2 decimals, such as 50%; got ' + self"
	MaxStep string `json:"maxStep,omitempty"`

	// coldStartWeight is the weight of an endpoint that is new, "0.01" to "1" with at most 4 decimals, default "0.1".
	// +optional
	// +default="0.1"
	// +kubebuilder:validation:MaxLength=6
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(1(\.0{1,4})?|0\.[0-9]{1,4})$') && double(self) >= 0.01`,messageExpression="'coldStartWeight must be a number from 0.01 to 1 with at most 4 decimals, such as 0.1; got ' + self"
	ColdStartWeight string `json:"coldStartWeight,omitempty"`

	// minReporting is the part of the endpoints that have to report before weights change, "10%" to "100%" with at most 2 decimals,
	// default "50%".
	// +optional
	// +default="50%"
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(100(\.0{1,2})?|[0-9]{1,2}(\.[0-9]{1,2})?)%$') && double(self.replace('%', '')) >= 10.0`,messageExpression="'minReporting must be a percentage from 10% to 100% with at most 2 decimals, such as 50%; got ' + self"
	MinReporting string `json:"minReporting,omitempty"`
}
