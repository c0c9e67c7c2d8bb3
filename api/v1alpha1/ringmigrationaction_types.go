// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RingMigrationAction asks a RingMigration for something at once, without an edit of its spec: approving, pausing, going back. It is
// created and never changed; its status says what became of it. It goes with its RingMigration.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=ringmigrationactions,singular=ringmigrationaction,scope=Namespaced,shortName=rmiga,categories=ringwright
// +kubebuilder:printcolumn:name="Migration",type=string,JSONPath=`.spec.migrationRef.name`,description="RingMigration that it is for"
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`,description="What it asks for"
// +kubebuilder:printcolumn:name="Actor",type=string,JSONPath=`.spec.actor.username`,description="Who asks"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="What became of it"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`,description="Why"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RingMigrationAction struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is asked for. It cannot be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",reason=FieldValueForbidden,message="spec cannot be changed: create another RingMigrationAction"
	Spec RingMigrationActionSpec `json:"spec"`

	// status is what became of it.
	// +optional
	// +default={}
	Status RingMigrationActionStatus `json:"status,omitzero"`
}

// RingMigrationActionList is a list of RingMigrationActions.
//
// +kubebuilder:object:root=true
type RingMigrationActionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RingMigrationAction `json:"items"`
}

// RingMigrationActionSpec is what is asked for.
//
// +kubebuilder:validation:XValidation:rule="self.type in ['Rollback', 'Pause'] || has(self.step)",fieldPath=".step",reason=FieldValueRequired,messageExpression="'step must be set with type %s'.format([self.type])"
type RingMigrationActionSpec struct {
	// migrationRef names the RingMigration.
	// +required
	MigrationRef RingMigrationReference `json:"migrationRef"`

	// type is what is asked for.
	// +required
	Type ActionType `json:"type"`

	// step is the step that the action is for. An action for another step than the present one is rejected, so that a second click
	// reaches nothing that its giver did not see. Rollback and Pause only need the attempt, and none without it.
	// +optional
	Step *ActionStep `json:"step,omitempty"`

	// actor is who asks. The API server checks that it is the user of the request.
	// +required
	Actor ActionActor `json:"actor"`

	// reason is for people, in at most 512 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason,omitempty"`
}

// RingMigrationReference names a RingMigration in the namespace of the action.
type RingMigrationReference struct {
	// name is the name of the RingMigration.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	Name string `json:"name"`
}

// ActionStep is a step of a migration.
type ActionStep struct {
	// name is for people, such as "europe 1/3".
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`

	// token is status.token of the RingMigration.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Token string `json:"token"`
}

// ActionActor is a user.
type ActionActor struct {
	// username is the name of the user, as the API server knows it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Username string `json:"username"`
}

// ActionType is what an action asks for.
//
// +kubebuilder:validation:Enum=Approve;Reject;Pause;Resume;Rollback;Retry;Skip
type ActionType string

const (
	// ActionApprove lets a step that awaits approval go on.
	ActionApprove ActionType = "Approve"

	// ActionReject rolls back a step that awaits approval.
	ActionReject ActionType = "Reject"

	// ActionPause stops advancing until Resume.
	ActionPause ActionType = "Pause"

	// ActionResume ends a pause. It does not end spec.suspend.
	ActionResume ActionType = "Resume"

	// ActionRollback rolls back.
	ActionRollback ActionType = "Rollback"

	// ActionRetry begins another attempt after a rollback.
	ActionRetry ActionType = "Retry"

	// ActionSkip skips what is left of the soak, the gates and the approval of the present step; never an acknowledgement.
	ActionSkip ActionType = "Skip"
)

// RingMigrationActionStatus is what became of an action.
type RingMigrationActionStatus struct {
	// phase is Accepted or Rejected; absent while nobody has decided.
	// +optional
	Phase ActionPhase `json:"phase,omitempty"`

	// reason is why it was rejected; absent where it was accepted.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason ConditionReason `json:"reason,omitempty"`

	// message says more, in at most 1024 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// decidedAt is when that was decided.
	// +optional
	DecidedAt *metav1.MicroTime `json:"decidedAt,omitempty"`

	// migrationUID is the UID of the RingMigration that decided.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	MigrationUID types.UID `json:"migrationUID,omitempty"`
}

// ActionPhase is what became of an action.
//
// +kubebuilder:validation:Enum=Accepted;Rejected
type ActionPhase string

const (
	// ActionAccepted was carried out.
	ActionAccepted ActionPhase = "Accepted"

	// ActionRejected was not.
	ActionRejected ActionPhase = "Rejected"
)
