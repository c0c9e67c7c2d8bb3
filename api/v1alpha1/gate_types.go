// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MigrationGate is a measurement that judges the candidate. Its result is Pass, Fail, NoData, Error or Inconclusive: only Pass lets a
// soak go on, only Fail rolls back, and the others hold.
//
// +kubebuilder:validation:XValidation:rule="(has(self.prometheus) ? 1 : 0) + (has(self.consumers) ? 1 : 0) + (has(self.object) ? 1 : 0) == 1",reason=FieldValueRequired,messageExpression="'gate %s: exactly one of prometheus, consumers and object must be set; got %d'.format([self.name, (has(self.prometheus) ? 1 : 0) + (has(self.consumers) ? 1 : 0) + (has(self.object) ? 1 : 0)])"
// +kubebuilder:validation:XValidation:rule="has(self.prometheus) == (has(self.failWhen) || has(self.passWhen))",messageExpression="'gate %s: failWhen and passWhen go with prometheus, which needs at least one of them'.format([self.name])"
// +kubebuilder:validation:XValidation:rule="!has(self.minSamples) || self.minSamples == 0 || has(self.consumers) || (has(self.prometheus) && has(self.prometheus.samplesQuery))",fieldPath=".minSamples",messageExpression="'gate %s: minSamples must be 0 without prometheus.samplesQuery or consumers, which count the samples; got %d'.format([self.name, self.minSamples])"
// +kubebuilder:validation:XValidation:rule="self.mode == 'Observe' || self.interval.getSeconds() * (self.failureThreshold - 1) <= self.failureWindow.getSeconds()",fieldPath=".failureWindow",messageExpression="'gate %s: failureWindow must be at least %ds, so that %d failures at interval %s fall within it; got %s'.format([self.name, self.interval.getSeconds() * (self.failureThreshold - 1), self.failureThreshold, self.interval, self.failureWindow])"
type MigrationGate struct {
	// name identifies the gate: 1 to 63 lower-case letters, digits and dashes, starting and ending with a letter or digit.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name"`

	// mode is Enforce (the default), or Observe for a gate that is measured and shown and judges nothing.
	// +optional
	// +default="Enforce"
	Mode GateMode `json:"mode,omitempty"`

	// prometheus measures by queries to a Prometheus.
	// +optional
	Prometheus *PrometheusGate `json:"prometheus,omitempty"`

	// consumers measures by the counters that the consumers give at /v1/status; no Prometheus is needed.
	// +optional
	Consumers *ConsumersGate `json:"consumers,omitempty"`

	// object measures by a condition of an object.
	// +optional
	Object *ObjectGate `json:"object,omitempty"`

	// failWhen is a CEL expression over value, baseline and samples, all doubles, that says that the candidate does harm, in at most 1024
	// characters. Absent, the gate never fails.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	FailWhen string `json:"failWhen,omitempty"`

	// passWhen is one that says that all is well. Where neither is true the result is Inconclusive. Absent, all is well where
	// failWhen is false.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	PassWhen string `json:"passWhen,omitempty"`

	// minSamples is how many samples the result needs, of prometheus.samplesQuery or of the consumers' selections on the candidate: 0 to
	// 1000000000000, default 0, and 0 without either. With fewer it is Inconclusive.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000000
	MinSamples int64 `json:"minSamples,omitempty"`

	// interval is how often it is measured, 1s to 1h, default 1m. A result is worth nothing once it is older than twice that.
	// +optional
	// +default="1m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self >= duration('1s') && self <= duration('1h')",messageExpression="'interval must be from 1s to 1h; got %s'.format([self])"
	Interval *metav1.Duration `json:"interval,omitempty"`

	// failureThreshold is how many Fails within failureWindow roll back, 1 to 100, default 3.
	// +optional
	// +default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	FailureThreshold int32 `json:"failureThreshold,omitempty"`

	// failureWindow is the time within which they count, 1s to 24h, default 10m. With mode Enforce failureThreshold measurements have to
	// fit into it: it is at least interval × (failureThreshold - 1).
	// +optional
	// +default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self >= duration('1s') && self <= duration('24h')",messageExpression="'failureWindow must be from 1s to 24h; got %s'.format([self])"
	FailureWindow *metav1.Duration `json:"failureWindow,omitempty"`
}

// GateMode says whether a gate judges.
//
// +kubebuilder:validation:Enum=Enforce;Observe
type GateMode string

const (
	// GateEnforce judges.
	GateEnforce GateMode = "Enforce"

	// GateObserve only shows.
	GateObserve GateMode = "Observe"
)

// PrometheusGate measures by instant queries. In the queries $datacenters is a regular expression of the datacenters of the step,
// $ring the ring that is measured, candidate or stable, $rings a regular expression of the HashRings, $namespace and $migration name
// the RingMigration, and $window is a duration that does not reach back before the step took effect.
type PrometheusGate struct {
	// address is the base URL of the Prometheus, http or https, in at most 512 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",messageExpression="'address must be a URL of http or https with a host; got ' + self"
	Address string `json:"address"`

	// query gives value, one number: a scalar or a vector of one element. At most 4096 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query"`

	// baselineQuery gives baseline. Absent, it is query with $ring as the stable ring, where query has $ring; where it has not there is no
	// baseline, and an expression that uses it is refused.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	BaselineQuery string `json:"baselineQuery,omitempty"`

	// samplesQuery gives samples. Absent, there are none: an expression that uses them is refused, and minSamples must be 0.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	SamplesQuery string `json:"samplesQuery,omitempty"`

	// window is the longest that $window is, 1s to 24h, default 5m.
	// +optional
	// +default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self >= duration('1s') && self <= duration('24h')",messageExpression="'window must be from 1s to 24h; got %s'.format([self])"
	Window *metav1.Duration `json:"window,omitempty"`

	// timeout is how long a query may take, 100ms to 1m, default 10s.
	// +optional
	// +default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self >= duration('100ms') && self <= duration('1m')",messageExpression="'timeout must be from 100ms to 1m; got %s'.format([self])"
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// auth names a Secret that says how to authenticate; absent, nobody does.
	// +optional
	Auth *GateAuth `json:"auth,omitempty"`
}

// GateAuth names a Secret in the namespace of the RingMigration: with key token for a bearer token, or with username and password
// for basic authentication; and, with either or alone, ca.crt for the certificates that the server is checked by.
type GateAuth struct {
	// secretName is the name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`
}

// ConsumersGate judges the requests that consumers sent to the candidate in the datacenters of the step: those of the last 5 minutes, or
// of as long as minSamples needs, and never those from before the step took effect.
//
// +kubebuilder:validation:XValidation:rule="has(self.maxErrorRatio) || has(self.maxFailoverRatio)",reason=FieldValueRequired,message="at least one of maxErrorRatio and maxFailoverRatio must be set"
type ConsumersGate struct {
	// maxErrorRatio is the part of the selections that may end in an error, "0%" to "100%" with at most 4 decimals. More is Fail.
	// +optional
	// +kubebuilder:validation:MaxLength=9
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(100(\.0{1,4})?|[0-9]{1,2}(\.[0-9]{1,4})?)%$')`,messageExpression="'maxErrorRatio must be a percentage from 0% to 100% with at most 4 decimals, such as 0.1%; got ' + self"
	MaxErrorRatio string `json:"maxErrorRatio,omitempty"`

	// maxFailoverRatio is the part of the selections that may go to another backend than the owner, in the same form. More is Fail.
	// +optional
	// +kubebuilder:validation:MaxLength=9
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(100(\.0{1,4})?|[0-9]{1,2}(\.[0-9]{1,4})?)%$')`,messageExpression="'maxFailoverRatio must be a percentage from 0% to 100% with at most 4 decimals, such as 1%; got ' + self"
	MaxFailoverRatio string `json:"maxFailoverRatio,omitempty"`
}

// ObjectGate is Pass while a condition of an object in the namespace of the RingMigration is True, and Inconclusive while it is not or is
// about an earlier generation: it holds, and never rolls back.
type ObjectGate struct {
	// apiVersion is the group and version of the object, such as "apps/v1".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[a-z0-9]+$`
	APIVersion string `json:"apiVersion"`

	// kind is its kind.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
	Kind string `json:"kind"`

	// name is its name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// condition is the type of the condition in its status.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Condition string `json:"condition"`
}
