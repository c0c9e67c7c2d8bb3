// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LoadMetric is what is driven to the mean.
//
// +kubebuilder:validation:Enum=CPU;InFlight;Max;Custom
type LoadMetric string

const (
	// MetricCPU is the CPU utilisation. An endpoint that has far more requests in flight for its weight than the others counts as busier:
	// one that waits for a disk uses little CPU.
	MetricCPU LoadMetric = "CPU"

	// MetricInFlight is the number of requests in flight.
	MetricInFlight LoadMetric = "InFlight"

	// MetricMax is the larger of both, each over its own mean.
	MetricMax LoadMetric = "Max"

	// MetricCustom is load.customMetric.
	MetricCustom LoadMetric = "Custom"
)

// LoadMeasurement says what is measured, and where the figures come from.
type LoadMeasurement struct {
	// metric is CPU (the default), InFlight, Max or Custom. With each of them errors count as load, and an endpoint that stalls is found by
	// its requests in flight where they are reported.
	// +optional
	// +default="CPU"
	Metric LoadMetric `json:"metric,omitempty"`

	// customMetric is the name of the figure for metric Custom: a key of utilization or named_metrics of an OrcaLoadReport. At most 128
	// characters. Its value is at least 0.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	CustomMetric string `json:"customMetric,omitempty"`

	// errorPenalty is the load, in means, that an endpoint which fails all its requests is taken to have in addition, "0" to "10" with at
	// most 4 decimals, default "2". What counts is by how much its part of failed requests is above the median.
	// +optional
	// +default="2"
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(10(\.0{1,4})?|[0-9](\.[0-9]{1,4})?)$')`,messageExpression="'errorPenalty must be a number from 0 to 10 with at most 4 decimals, such as 2; got ' + self"
	ErrorPenalty string `json:"errorPenalty,omitempty"`

	// sources are where reports come from, each type once. Of those that have a fresh report of an endpoint the first one counts. Default:
	// LRS, Push, Metrics, which ask for nothing to be configured.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +default=[{"type": "LRS"}, {"type": "Push"}, {"type": "Metrics"}]
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	Sources []LoadSource `json:"sources,omitempty"`
}

// LoadSourceType is a way for reports to come.
//
// +kubebuilder:validation:Enum=LRS;Push;ORCA;Prometheus;Metrics
type LoadSourceType string

const (
	// SourceLRS is the load reporting service of xDS: clients say what they sent to each endpoint, and what it answered about its load.
	SourceLRS LoadSourceType = "LRS"

	// SourcePush is an OrcaLoadReport that a pod sends to the balancer over HTTP or gRPC.
	SourcePush LoadSourceType = "Push"

	// SourceORCA is the out-of-band stream of OrcaLoadReports that the balancer opens to each endpoint.
	SourceORCA LoadSourceType = "ORCA"

	// SourcePrometheus is a query that the balancer sends to a Prometheus.
	SourcePrometheus LoadSourceType = "Prometheus"

	// SourceMetrics is the API metrics.k8s.io: the CPU that each pod uses over what it may use.
	SourceMetrics LoadSourceType = "Metrics"
)

// LoadSource is one source of reports.
//
// +kubebuilder:validation:XValidation:rule="has(self.prometheus) == (self.type == 'Prometheus')",fieldPath=".prometheus",messageExpression="'prometheus must be set with type Prometheus, and with no other; type is ' + self.type"
// +kubebuilder:validation:XValidation:rule="!has(self.orca) || self.type == 'ORCA'",fieldPath=".orca",reason=FieldValueForbidden,messageExpression="'orca is for type ORCA; type is ' + self.type"
// +kubebuilder:validation:XValidation:rule="!has(self.staleAfter) || !has(self.interval) || self.staleAfter >= self.interval",fieldPath=".staleAfter",messageExpression="'staleAfter must be at least interval, %s; got %s'.format([self.interval, self.staleAfter])"
type LoadSource struct {
	// type is LRS, Push, ORCA, Prometheus or Metrics.
	// +required
	Type LoadSourceType `json:"type"`

	// interval is the time between reports: what xDS clients and servers are asked for, how often pods are expected to push, how often
	// Prometheus and metrics.k8s.io are asked. 1s to 10m, default 5s for LRS, Push and ORCA, 15s for the others.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self >= duration('1s') && self <= duration('10m')",messageExpression="'interval must be from 1s to 10m; got %s'.format([self])"
	Interval *metav1.Duration `json:"interval,omitempty"`

	// staleAfter is the age from which a report no longer counts, by the end of the time that it covers: 2s to 1h, default 3 intervals and
	// at least 20s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self >= duration('2s') && self <= duration('1h')",messageExpression="'staleAfter must be from 2s to 1h; got %s'.format([self])"
	StaleAfter *metav1.Duration `json:"staleAfter,omitempty"`

	// prometheus is the query of type Prometheus.
	// +optional
	Prometheus *PrometheusSource `json:"prometheus,omitempty"`

	// orca says where type ORCA finds the server.
	// +optional
	ORCA *ORCASource `json:"orca,omitempty"`
}

// PrometheusSource is an instant query whose vector has one element an endpoint.
type PrometheusSource struct {
	// address is the base URL of the Prometheus, http or https, in at most 512 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",messageExpression="'address must be a URL of http or https with a host; got ' + self"
	Address string `json:"address"`

	// query gives load.metric of each endpoint, at least 0, in at most 4096 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query"`

	// endpointLabel is the label of the result that names the endpoint, by its address and port, its address, or the name of its pod:
	// default "pod".
	// +optional
	// +default="pod"
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-zA-Z_][a-zA-Z0-9_]*$`
	EndpointLabel string `json:"endpointLabel,omitempty"`

	// window is the time that each value covers, such as the range of a rate in the query: 0s to 1h, default 0s.
	// +optional
	// +default="0s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self <= duration('1h')",messageExpression="'window must be at most 1h; got %s'.format([self])"
	Window *metav1.Duration `json:"window,omitempty"`

	// auth names a Secret in the namespace of the policy that says how to authenticate, as with the gates of a RingMigration.
	// +optional
	Auth *GateAuth `json:"auth,omitempty"`
}

// ORCASource says where the out-of-band ORCA service of an endpoint is.
type ORCASource struct {
	// port is the TCP port of the pod, 1 to 65535; absent, it is the port of the endpoint.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}
