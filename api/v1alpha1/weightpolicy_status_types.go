// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WeightPolicyStatus is what was measured and decided. It is written when a condition changes, and otherwise at most once in 30 seconds.
type WeightPolicyStatus struct {
	// observedGeneration is the generation of spec that the rest is about; -1 before the first time.
	// +optional
	// +default=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// updatedAt is when the load was last measured.
	// +optional
	UpdatedAt *metav1.Time `json:"updatedAt,omitempty"`

	// utilization is the mean of the endpoints that report, in the unit of load.metric, as a decimal with 4 digits.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Utilization string `json:"utilization,omitempty"`

	// maxOverAverage is the utilisation of the busiest endpoint over the mean, with 3 digits: 1.000 is perfect. With locality it is that of
	// the worst zone.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	MaxOverAverage string `json:"maxOverAverage,omitempty"`

	// p95OverAverage is the 95th percentile of the utilisation over the mean, with 3 digits.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	P95OverAverage string `json:"p95OverAverage,omitempty"`

	// noiseFloor is what maxOverAverage would be with perfect weights, since requests come by chance, with 3 digits; absent where the
	// number of requests is not reported.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	NoiseFloor string `json:"noiseFloor,omitempty"`

	// predictedMaxOverAverage is what maxOverAverage would be with the computed weights at 100 %, with 3 digits. In shadow it says what the
	// strategy is worth.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	PredictedMaxOverAverage string `json:"predictedMaxOverAverage,omitempty"`

	// endpoints counts the endpoints of the target.
	// +optional
	Endpoints *EndpointCounts `json:"endpoints,omitempty"`

	// sources says what came from each of load.sources, in that order.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=5
	Sources []SourceStatus `json:"sources,omitempty"`

	// rollout says what part of the computed weights is served.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`

	// weights says what is served.
	// +optional
	Weights *PublishedWeights `json:"weights,omitempty"`

	// shard says which replica of the balancer has the policy.
	// +optional
	Shard *ShardStatus `json:"shard,omitempty"`

	// conditions are Ready, Reporting, Converged and Effective, and Reconciling and Stalled while they are True.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// EndpointCounts counts the endpoints of a target.
type EndpointCounts struct {
	// total is how many there are.
	// +required
	Total int32 `json:"total"`

	// ready is how many of them are ready.
	// +required
	Ready int32 `json:"ready"`

	// reporting is how many of those have a fresh report.
	// +required
	Reporting int32 `json:"reporting"`

	// cold is how many are new and have not reported yet.
	// +required
	Cold int32 `json:"cold"`

	// clamped is how many have the least or the largest weight.
	// +required
	Clamped int32 `json:"clamped"`

	// guarded is how many count as busier than they say, because they fail or stall.
	// +required
	Guarded int32 `json:"guarded"`
}

// SourceStatus says what came from a source.
type SourceStatus struct {
	// type is that of the source.
	// +required
	Type LoadSourceType `json:"type"`

	// endpoints is how many endpoints it has fresh reports of, whether they count or those of an earlier source do.
	// +required
	Endpoints int32 `json:"endpoints"`

	// message says what is wrong with it; absent where nothing is.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// RolloutStatus says what part of the computed weights is served.
type RolloutStatus struct {
	// percent is that part, as "25%".
	// +required
	// +kubebuilder:validation:MaxLength=8
	Percent string `json:"percent"`

	// step is the index of the step of spec.rollout.steps, or their number after the last one.
	// +required
	Step int32 `json:"step"`

	// since is when the step began.
	// +required
	Since metav1.Time `json:"since"`

	// generation is the generation of spec that the rollout is of.
	// +required
	Generation int64 `json:"generation"`

	// badSince is when abort was first met without a break since.
	// +optional
	BadSince *metav1.Time `json:"badSince,omitempty"`

	// aborted says why the rollout went back; it stays so until spec.rollout or spec.strategy changes.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Aborted string `json:"aborted,omitempty"`

	// digest tells the spec.rollout and spec.strategy that the rollout is of from others.
	// +required
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest"`
}

// PublishedWeights says what is served.
type PublishedWeights struct {
	// version grows with every change of the weights; readers see it in the WeightSets and in weights.json.
	// +required
	Version int64 `json:"version"`

	// publishedAt is when they last changed.
	// +required
	PublishedAt metav1.Time `json:"publishedAt"`

	// sets is how many WeightSets hold them.
	// +required
	Sets int32 `json:"sets"`

	// pinned is the revision of an earlier time that they are pinned to by the annotation ringwright.dev/pinned-weights.
	// +optional
	Pinned int64 `json:"pinned,omitempty"`
}

// ShardStatus says which replica of the balancer has a policy.
type ShardStatus struct {
	// holder is the name of the replica's pod.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Holder string `json:"holder"`

	// epoch grows with every change of the holder. What a holder with a lower epoch writes or sends is refused.
	// +required
	Epoch int64 `json:"epoch"`
}
