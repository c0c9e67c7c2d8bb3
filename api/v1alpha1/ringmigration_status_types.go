// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RingMigrationStatus is where a migration is, and all that it remembers: the operator can be restarted at any moment.
type RingMigrationStatus struct {
	// observedGeneration is the generation of spec that the status was computed from; -1 before the first time.
	// +optional
	// +default=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is where the migration is.
	// +optional
	Phase MigrationPhase `json:"phase,omitempty"`

	// stepPhase is where it is within a step, or within the soak before the old ring is retired; absent outside of those.
	// +optional
	StepPhase StepPhase `json:"stepPhase,omitempty"`

	// summary is the same in words for people and columns.
	// +optional
	Summary *MigrationSummary `json:"summary,omitempty"`

	// token names the present step: an action has to carry it. It changes with every attempt, step and split.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Token string `json:"token,omitempty"`

	// attempt counts the attempts, from 1 on.
	// +optional
	Attempt int64 `json:"attempt,omitempty"`

	// observedAttempt is the spec.attempt that the last attempt began with, or that was there when it went back.
	// +optional
	ObservedAttempt int64 `json:"observedAttempt,omitempty"`

	// position is which step of plan it is at; absent before the first step.
	// +optional
	Position *MigrationPosition `json:"position,omitempty"`

	// plan are the stages that are followed. They differ from spec where that was made bolder in what has begun.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Plan []MigrationStage `json:"plan,omitempty"`

	// remainder are the datacenters of the stage that takes the remainder, from when it begins, and those that were taken along
	// later, sorted, at most 1024.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=63
	Remainder []string `json:"remainder,omitempty"`

	// rings are the HashRings that are migrated, in the order of their names, at most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Rings []MigrationRing `json:"rings,omitempty"`

	// seed is the seed of the split. It never changes, so that the same keys move again after a rollback.
	// +optional
	Seed int64 `json:"seed,omitempty"`

	// split is the share that is asked for now, by datacenter, in the order of their names, at most 1024. One that is not in it has 0.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Split []DatacenterShare `json:"split,omitempty"`

	// dispatch is the present split: which it is, and who has it.
	// +optional
	Dispatch *MigrationDispatch `json:"dispatch,omitempty"`

	// soak is the account of clean time of the present step; absent outside of a step.
	// +optional
	Soak *SoakAccount `json:"soak,omitempty"`

	// gates are the results of the gates, in the order of spec.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Gates []GateStatus `json:"gates,omitempty"`

	// datacenters are what the consumers say, by datacenter, in the order of the names, at most 1024.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Datacenters []MigrationDatacenter `json:"datacenters,omitempty"`

	// holds are everything that keeps the migration from going forward, at most 32. Nothing keeps it from going back.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Holds []MigrationHold `json:"holds,omitempty"`

	// paused says who paused it; absent while nobody has.
	// +optional
	Paused *MigrationPause `json:"paused,omitempty"`

	// retirementAnnouncedAt is when it was announced that the old ring is going to be retired, which is when the last step was complete.
	// +optional
	RetirementAnnouncedAt *metav1.MicroTime `json:"retirementAnnouncedAt,omitempty"`

	// rollback is the rollback that is under way, or the last one; absent where there was none.
	// +optional
	Rollback *MigrationRollback `json:"rollback,omitempty"`

	// history are the last 50 actions and what became of them, the oldest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	History []ActionRecord `json:"history,omitempty"`

	// lastTransition is the last change of phase or stepPhase.
	// +optional
	LastTransition *MigrationTransition `json:"lastTransition,omitempty"`

	// conditions are Accepted, Prepared, Progressing, Converged, GatesPassing, Held, RollbackAvailable and Succeeded always, and
	// Reconciling and Stalled while they hold.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MigrationPhase is where a migration is.
//
// +kubebuilder:validation:Enum=Pending;Queued;Preparing;Shifting;Soaking;Retiring;Succeeded;RollingBack;RolledBack
type MigrationPhase string

const (
	// MigrationPending waits for a valid plan, and for HashRings that have a candidate.
	MigrationPending MigrationPhase = "Pending"

	// MigrationQueued waits for the lock of its HashRings.
	MigrationQueued MigrationPhase = "Queued"

	// MigrationPreparing waits until both rings are with all consumers, no key on the candidate, and each gate has returned data.
	MigrationPreparing MigrationPhase = "Preparing"

	// MigrationShifting goes through the steps.
	MigrationShifting MigrationPhase = "Shifting"

	// MigrationSoaking has all keys on the candidate and soaks before the old ring is retired.
	MigrationSoaking MigrationPhase = "Soaking"

	// MigrationRetiring takes the old ring away. There is no way back.
	MigrationRetiring MigrationPhase = "Retiring"

	// MigrationSucceeded is done.
	MigrationSucceeded MigrationPhase = "Succeeded"

	// MigrationRollingBack takes all keys back to the stable ring.
	MigrationRollingBack MigrationPhase = "RollingBack"

	// MigrationRolledBack has them there, and stays so until a higher spec.attempt or an action Retry.
	MigrationRolledBack MigrationPhase = "RolledBack"
)

// StepPhase is where a migration is within a step.
//
// +kubebuilder:validation:Enum=Dispatching;Converging;Soaking;AwaitingApproval;Complete
type StepPhase string

const (
	// StepDispatching waits until the split is published.
	StepDispatching StepPhase = "Dispatching"

	// StepConverging waits until the consumers have it.
	StepConverging StepPhase = "Converging"

	// StepSoaking credits clean time.
	StepSoaking StepPhase = "Soaking"

	// StepAwaitingApproval waits for a person, where the step asks for one.
	StepAwaitingApproval StepPhase = "AwaitingApproval"

	// StepComplete is about to go on.
	StepComplete StepPhase = "Complete"
)

// MigrationSummary says in words where a migration is.
type MigrationSummary struct {
	// stage is the stage and its number, such as "europe (2/3)".
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Stage string `json:"stage,omitempty"`

	// step is the number of the step and where that is, such as "1/3 Converging".
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Step string `json:"step,omitempty"`

	// traffic is the share that the step asks for, such as "5%".
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Traffic string `json:"traffic,omitempty"`

	// soak is the clean time that is credited, of that which the step asks for, such as "12m/1h".
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Soak string `json:"soak,omitempty"`

	// hold is the first hold, and how many more there are, such as "GateUnknown +1".
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Hold string `json:"hold,omitempty"`
}

// MigrationPosition is a step of the plan.
type MigrationPosition struct {
	// stage counts the stages from 0 on; the number of stages is the soak before the old ring is retired.
	// +required
	Stage int32 `json:"stage"`

	// stageName is the name of the stage; absent at that soak.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	StageName string `json:"stageName,omitempty"`

	// step counts the steps of the stage from 0 on.
	// +required
	Step int32 `json:"step"`
}

// MigrationRing is a HashRing that is migrated.
type MigrationRing struct {
	// name is the name of the HashRing.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// candidate is the digest of the ring that it goes to.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	Candidate string `json:"candidate,omitempty"`

	// generation and leaderEpoch are those of the routing file in which the present split was first seen; absent while it is not
	// published.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// leaderEpoch is as in status.routing of the HashRing.
	// +optional
	LeaderEpoch int64 `json:"leaderEpoch,omitempty"`
}

// MigrationDispatch is one split and who has it.
type MigrationDispatch struct {
	// number counts the splits of the migration.
	// +required
	Number int64 `json:"number"`

	// at is when it was decided; absent where a retry has not come to a split yet.
	// +optional
	At *metav1.MicroTime `json:"at,omitempty"`

	// published says that the routing files of all rings have it; rings says of which generation they are.
	// +optional
	Published bool `json:"published,omitempty"`

	// unconvergedSince is since when consumers lack it; absent while they have it.
	// +optional
	UnconvergedSince *metav1.MicroTime `json:"unconvergedSince,omitempty"`

	// effectiveAt is when they all had it for the first time; absent before.
	// +optional
	EffectiveAt *metav1.MicroTime `json:"effectiveAt,omitempty"`

	// approved says that somebody has approved it, skipped that somebody has skipped what is left of its soak.
	// +optional
	Approved bool `json:"approved,omitempty"`
	// skipped says that somebody has skipped what is left of its soak, its gates and its approval.
	// +optional
	Skipped bool `json:"skipped,omitempty"`
}

// SoakAccount is an account of clean time.
type SoakAccount struct {
	// required is how much the step asks for.
	// +required
	// +kubebuilder:validation:Type=string
	Required metav1.Duration `json:"required"`

	// credited is how much there was.
	// +required
	// +kubebuilder:validation:Type=string
	Credited metav1.Duration `json:"credited"`

	// cleanAt is when it was clean last; absent where the last look found it not to be.
	// +optional
	CleanAt *metav1.MicroTime `json:"cleanAt,omitempty"`
}

// GateStatus is what a gate has said.
type GateStatus struct {
	// name is the name of the gate.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// result is what it said last; absent where it was not measured yet.
	// +optional
	Result GateResult `json:"result,omitempty"`

	// detail says more, with value and limit, in at most 512 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Detail string `json:"detail,omitempty"`

	// at is of when the data is.
	// +optional
	At *metav1.MicroTime `json:"at,omitempty"`

	// answered says that it has returned data in this attempt.
	// +optional
	Answered bool `json:"answered,omitempty"`

	// failures are when it failed, the last ones within its failureWindow, at most failureThreshold.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Failures []metav1.MicroTime `json:"failures,omitempty"`

	// value, baseline and samples are the figures behind the last result, as text; absent where there are none.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Value string `json:"value,omitempty"`
	// baseline is as value.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Baseline string `json:"baseline,omitempty"`
	// samples is as value.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Samples string `json:"samples,omitempty"`
}

// GateResult is what a gate says.
//
// +kubebuilder:validation:Enum=Pass;Fail;NoData;Error;Inconclusive
type GateResult string

const (
	// GatePass means that all is well.
	GatePass GateResult = "Pass"

	// GateFail means that the candidate does harm.
	GateFail GateResult = "Fail"

	// GateNoData means that there was an answer and no number in it.
	GateNoData GateResult = "NoData"

	// GateError means that there was no answer.
	GateError GateResult = "Error"

	// GateInconclusive means that the number says neither.
	GateInconclusive GateResult = "Inconclusive"
)

// MigrationDatacenter is what the consumers of a datacenter say.
type MigrationDatacenter struct {
	// name is the name of the datacenter; absent for consumers that were not told one.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// basisPoints is the share that is published for it, of 10000.
	// +required
	BasisPoints int32 `json:"basisPoints"`

	// total is how many consumers there are, of all rings together.
	// +required
	Total int32 `json:"total"`

	// reachable is how many of them answer.
	// +required
	Reachable int32 `json:"reachable"`

	// current is how many of them have the present split and both rings.
	// +required
	Current int32 `json:"current"`
}
