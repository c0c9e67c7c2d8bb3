// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// RingLock says which RingMigration has a HashRing, and what it wants published for it. Only the migration controller writes it, and
// only after it has stored in the RingMigration's status why. While another RingMigration has the lock, nobody else takes it.
type RingLock struct {
	// name is the name of the RingMigration, which is in the namespace of the HashRing.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// uid is its UID.
	// +required
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid"`

	// phase says which snapshots are published: Locked, Split, Promoted or Retired.
	// +required
	Phase LockPhase `json:"phase"`

	// candidate is the digest of the ring that the migration goes to; absent in phase Locked.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Candidate string `json:"candidate,omitempty"`

	// seed is the seed of the split, 0 to 4294967295; absent for 0, and in phase Locked.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	Seed int64 `json:"seed,omitempty"`

	// split is the share of the keys that goes to the candidate, by datacenter, at most 1024 in the order of their names. One that is
	// not in it has 0. It counts in phase Split.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Split []DatacenterShare `json:"split,omitempty"`
}

// LockPhase says which snapshots of a locked HashRing are published.
//
// +kubebuilder:validation:Enum=Locked;Split;Promoted;Retired
type LockPhase string

const (
	// LockLocked is the stable ring alone: the migration has not begun to prepare, or has gone back.
	LockLocked LockPhase = "Locked"

	// LockSplit is both rings and the split.
	LockSplit LockPhase = "Split"

	// LockPromoted is the candidate as the stable ring, without a split. The old ring stays in its slot for readers that have not
	// switched.
	LockPromoted LockPhase = "Promoted"

	// LockRetired is the same with the old slot emptied.
	LockRetired LockPhase = "Retired"
)

// DatacenterShare is the share of the keys that goes to the candidate in a datacenter.
type DatacenterShare struct {
	// datacenter is the name of the datacenter.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Datacenter string `json:"datacenter"`

	// basisPoints is how many of 10000 buckets of keys the candidate answers.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	BasisPoints int32 `json:"basisPoints"`
}
