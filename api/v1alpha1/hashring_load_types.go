// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LoadWeights are the factors that a WeightPolicy gives the weights of a HashRing's backends: a backend with a weight of its own above 0
// gets that times its factor, rounded, and at least 1.
//
// They stay as they are while a RingMigration has the ring or a candidate is published, so that its candidate stays the same.
type LoadWeights struct {
	// policy is the name of the WeightPolicy.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Policy string `json:"policy"`

	// version is that of the WeightSets that the factors are from.
	// +required
	// +kubebuilder:validation:Minimum=0
	Version int64 `json:"version"`

	// applied says that the published ring has these factors. It has not while a hold, a pinned revision or minInterval keeps it from
	// following.
	// +optional
	Applied bool `json:"applied,omitempty"`

	// tombstoneUntil is when the factors end, because the WeightPolicy is gone; absent while it is there.
	// +optional
	TombstoneUntil *metav1.Time `json:"tombstoneUntil,omitempty"`

	// factors are those that differ from 1, in the order of their IDs, at most 4096.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Factors []LoadFactor `json:"factors,omitempty"`
}

// LoadFactor is the factor of one backend.
type LoadFactor struct {
	// id is the identity of the backend: its address and port, or its name with identity Name.
	// +required
	// +kubebuilder:validation:MaxLength=320
	ID string `json:"id"`

	// factor is what the weight is multiplied by, in ten-thousandths: 1000 to 80000, whatever the WeightSet says.
	// +required
	// +kubebuilder:validation:Minimum=1000
	// +kubebuilder:validation:Maximum=80000
	Factor int32 `json:"factor"`
}
