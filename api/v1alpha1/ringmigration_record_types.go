// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HoldType is what keeps a migration from going forward.
//
// +kubebuilder:validation:MaxLength=64
type HoldType string

// MigrationHold is one cause. There is at most one of a type.
type MigrationHold struct {
	// type says what it is.
	// +required
	Type HoldType `json:"type"`

	// since is when it began.
	// +required
	Since metav1.MicroTime `json:"since"`

	// detail says more, in at most 1024 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Detail string `json:"detail,omitempty"`

	// endedBy says who can end it, and how.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	EndedBy string `json:"endedBy,omitempty"`

	// command is the command that ends it; absent where none does.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Command string `json:"command,omitempty"`
}

// MigrationPause says who paused a migration.
type MigrationPause struct {
	// by is the user.
	// +required
	// +kubebuilder:validation:MaxLength=512
	By string `json:"by"`

	// at is when.
	// +required
	At metav1.MicroTime `json:"at"`
}

// MigrationRollback says why and since when a migration goes, or went, back.
type MigrationRollback struct {
	// cause is what made it go back: Deleted, Action, Rejected, Backward, GateFailed or Reverted.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Cause string `json:"cause"`

	// detail says more, in at most 1024 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Detail string `json:"detail,omitempty"`

	// since is when it began.
	// +required
	Since metav1.MicroTime `json:"since"`

	// unreached are the datacenters whose consumers have not all said that they know, sorted, at most 1024.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=63
	Unreached []string `json:"unreached,omitempty"`
}

// ActionRecord is an action and what became of it.
type ActionRecord struct {
	// uid and name are those of the RingMigrationAction.
	// +required
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid"`
	// name is the name of the RingMigrationAction.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// type is what it asked for.
	// +required
	Type ActionType `json:"type"`

	// token is what it carried.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Token string `json:"token,omitempty"`

	// actor is the user who gave it.
	// +required
	// +kubebuilder:validation:MaxLength=512
	Actor string `json:"actor"`

	// reason is what that user said about it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason,omitempty"`

	// at is when it was decided on.
	// +required
	At metav1.MicroTime `json:"at"`

	// refusal is why it was rejected; absent where it was accepted.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Refusal ConditionReason `json:"refusal,omitempty"`
}

// MigrationTransition is a change of place.
type MigrationTransition struct {
	// from and to are places: a phase, or a stepPhase.
	// +required
	// +kubebuilder:validation:MaxLength=64
	From string `json:"from"`
	// to is as from.
	// +required
	// +kubebuilder:validation:MaxLength=64
	To string `json:"to"`

	// event is what caused it.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Event string `json:"event"`

	// at is when.
	// +required
	At metav1.MicroTime `json:"at"`
}
