// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RingMigration moves the consumers of HashRings from the published ring to the candidate, by datacenter and share of the keys, and
// back. It advances on evidence, holds on doubt, and goes back on harm; until the old ring is retired the way back is open.
//
// The operator never writes spec. What people ask for at the moment they ask with a RingMigrationAction.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=ringmigrations,singular=ringmigration,scope=Namespaced,shortName=rmig,categories=ringwright
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Where the migration is"
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.status.summary.stage`,description="Stage that it is in"
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.status.summary.step`,description="Step of that stage"
// +kubebuilder:printcolumn:name="Traffic",type=string,JSONPath=`.status.summary.traffic`,description="Share of the keys that goes to the candidate in the datacenters of the stage"
// +kubebuilder:printcolumn:name="Soak",type=string,JSONPath=`.status.summary.soak`,description="Clean time that is credited, of that which the step asks for"
// +kubebuilder:printcolumn:name="Hold",type=string,JSONPath=`.status.summary.hold`,description="What keeps it from going forward"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Attempt",type=integer,priority=1,JSONPath=`.status.attempt`,description="How often it has begun"
// +kubebuilder:printcolumn:name="Rollback",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="RollbackAvailable")].status`,description="Whether there is a way back"
// +kubebuilder:printcolumn:name="Token",type=string,priority=1,JSONPath=`.status.token`,description="What an action has to carry to reach this step"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",messageExpression="'metadata.name must have at most 63 characters; got %d'.format([self.metadata.name.size()])"
// +kubebuilder:validation:XValidation:rule="!has(self.status.phase) || !(self.status.phase in ['Shifting', 'Soaking']) || !has(self.status.position) || !has(self.status.plan) || (self.spec.stages == oldSelf.spec.stages && self.spec.stages.map(s, s.name) == oldSelf.spec.stages.map(s, s.name)) || self.status.plan.all(i, p, i > self.status.position.stage || (i < self.spec.stages.size() && self.spec.stages[i].name == p.name && (has(p.datacenters.names) ? has(self.spec.stages[i].datacenters.names) && self.spec.stages[i].datacenters.names == p.datacenters.names : !has(self.spec.stages[i].datacenters.names) || self.spec.stages[i].datacenters.names.size() == 0) && self.spec.stages[i].steps.size() >= (i < self.status.position.stage ? p.steps.size() : self.status.position.step + 1)))",fieldPath=".spec.stages",reason=FieldValueForbidden,messageExpression="self.status.plan.transformList(i, p, i <= self.status.position.stage && !(i < self.spec.stages.size() && self.spec.stages[i].name == p.name && (has(p.datacenters.names) ? has(self.spec.stages[i].datacenters.names) && self.spec.stages[i].datacenters.names == p.datacenters.names : !has(self.spec.stages[i].datacenters.names) || self.spec.stages[i].datacenters.names.size() == 0) && self.spec.stages[i].steps.size() >= (i < self.status.position.stage ? p.steps.size() : self.status.position.step + 1)), 'stages[%d] has begun: its name %s, its datacenters and the first %d of its steps cannot be changed or removed'.format([i, p.name, (i < self.status.position.stage ? p.steps.size() : self.status.position.step + 1)]))[0]"
// +kubebuilder:validation:XValidation:rule="!has(self.status.phase) || !(self.status.phase in ['Shifting', 'Soaking']) || !has(self.status.position) || !has(self.status.plan) || (self.spec.stages == oldSelf.spec.stages && self.spec.stages.map(s, s.name) == oldSelf.spec.stages.map(s, s.name)) || !self.status.plan.exists(i, p, p.steps.exists(j, q, i < self.spec.stages.size() && j < self.spec.stages[i].steps.size() && (i < self.status.position.stage || (i == self.status.position.stage && j <= self.status.position.step)) && (double(self.spec.stages[i].steps[j].traffic.split('%')[0]) > double(q.traffic.split('%')[0]) || self.spec.stages[i].steps[j].soak < q.soak || (q.approval != 'None' && self.spec.stages[i].steps[j].approval == 'None') || (has(self.spec.stages[i].steps[j].gates) && self.spec.stages[i].steps[j].gates.size() > 0 && (!has(q.gates) || q.gates.size() == 0 || !sets.contains(self.spec.stages[i].steps[j].gates, q.gates))))))",fieldPath=".spec.stages",reason=FieldValueForbidden,messageExpression="self.status.plan.transformList(i, p, p.steps.transformList(j, q, i < self.spec.stages.size() && j < self.spec.stages[i].steps.size() && (i < self.status.position.stage || (i == self.status.position.stage && j <= self.status.position.step)) && (double(self.spec.stages[i].steps[j].traffic.split('%')[0]) > double(q.traffic.split('%')[0]) || self.spec.stages[i].steps[j].soak < q.soak || (q.approval != 'None' && self.spec.stages[i].steps[j].approval == 'None') || (has(self.spec.stages[i].steps[j].gates) && self.spec.stages[i].steps[j].gates.size() > 0 && (!has(q.gates) || q.gates.size() == 0 || !sets.contains(self.spec.stages[i].steps[j].gates, q.gates)))), 'stages[%d].steps[%d] has begun with traffic %s, soak %s, approval %s and gates %s: traffic can only fall, soak only grow, approval and gates only be added; got %s, %s, %s and %s'.format([i, j, q.traffic, q.soak, q.approval, has(q.gates) ? q.gates.join(' ') : 'all', self.spec.stages[i].steps[j].traffic, self.spec.stages[i].steps[j].soak, self.spec.stages[i].steps[j].approval, has(self.spec.stages[i].steps[j].gates) ? self.spec.stages[i].steps[j].gates.join(' ') : 'all']))).filter(list, list.size() > 0)[0][0]"
// +kubebuilder:validation:XValidation:rule="!has(self.status.phase) || !(self.status.phase in ['Shifting', 'Soaking']) || !has(self.status.position) || !has(self.status.plan) || (self.spec.stages == oldSelf.spec.stages && self.spec.stages.map(s, s.name) == oldSelf.spec.stages.map(s, s.name)) || self.status.position.stage < self.status.plan.size() || self.spec.stages.size() <= self.status.plan.size()",fieldPath=".spec.stages",reason=FieldValueForbidden,messageExpression="'all %d stages are done; no stage can be added, got %d'.format([self.status.plan.size(), self.spec.stages.size()])"
type RingMigration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the plan. The operator never writes it.
	// +required
	Spec RingMigrationSpec `json:"spec"`

	// status is where the migration is, and all that it remembers.
	// +optional
	// +default={}
	Status RingMigrationStatus `json:"status,omitzero"`
}

// RingMigrationList is a list of RingMigrations.
//
// +kubebuilder:object:root=true
type RingMigrationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RingMigration `json:"items"`
}

// RingMigrationSpec is the plan of a migration. It can be edited at any time; what has begun only becomes more cautious.
//
// +kubebuilder:validation:XValidation:rule="has(self.ringRef) != has(self.ringSelector)",reason=FieldValueRequired,messageExpression="'exactly one of ringRef and ringSelector must be set; got ' + (has(self.ringRef) ? 'both' : 'neither')"
// +kubebuilder:validation:XValidation:rule="has(self.ringRef) == has(oldSelf.ringRef) && (!has(self.ringRef) || self.ringRef == oldSelf.ringRef)",fieldPath=".ringRef",reason=FieldValueForbidden,messageExpression="'ringRef cannot be changed; it is %s, got %s: make another RingMigration'.format([has(oldSelf.ringRef) ? oldSelf.ringRef.name : 'absent', has(self.ringRef) ? self.ringRef.name : 'absent'])"
// +kubebuilder:validation:XValidation:rule="has(self.ringSelector) == has(oldSelf.ringSelector) && (!has(self.ringSelector) || self.ringSelector == oldSelf.ringSelector)",fieldPath=".ringSelector",reason=FieldValueForbidden,message="ringSelector cannot be changed: make another RingMigration"
// +kubebuilder:validation:XValidation:rule="self.stages.all(s, s.steps.all(t, !has(t.gates) || sets.contains(has(self.gates) ? self.gates.map(g, g.name) : [], t.gates)))",fieldPath=".stages",messageExpression="self.stages.transformList(i, s, s.steps.exists(t, has(t.gates) && !sets.contains(has(self.gates) ? self.gates.map(g, g.name) : [], t.gates)), s.steps.transformList(j, t, has(t.gates) && !sets.contains(has(self.gates) ? self.gates.map(g, g.name) : [], t.gates), 'stages[%d].steps[%d].gates must be among the names of gates; got %s'.format([i, j, t.gates.join(', ')]))[0])[0]"
type RingMigrationSpec struct {
	// ringRef names the HashRing, in the namespace of the RingMigration. It cannot be changed.
	// +optional
	RingRef *RingReference `json:"ringRef,omitempty"`

	// ringSelector selects several HashRings by their labels, which move in step: at most 32 matchLabels and 32 matchExpressions, at
	// least one of both. Those that match when it begins are migrated, at most 16. It cannot be changed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",reason=FieldValueRequired,message="ringSelector must have matchLabels or matchExpressions; an empty one would select every HashRing of the namespace"
	// +kubebuilder:validation:XValidation:rule="(!has(self.matchLabels) || self.matchLabels.size() <= 32) && (!has(self.matchExpressions) || self.matchExpressions.size() <= 32)",message="ringSelector must have at most 32 matchLabels and at most 32 matchExpressions"
	RingSelector *metav1.LabelSelector `json:"ringSelector,omitempty"`

	// stages are done one after the other, 1 to 32, each name once. Steps that have begun can only be made more cautious: lower traffic,
	// a longer soak, an approval, more gates. A bolder edit is refused; one that is older than the step's beginning in status does not
	// take effect, which hold PlanDrift says.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(i, s, i == self.size() - 1 || !has(s.datacenters.remainder) || !s.datacenters.remainder)",messageExpression="self.transformList(i, s, i < self.size() - 1 && has(s.datacenters.remainder) && s.datacenters.remainder, 'only the last stage can take the remainder; stages[%d] %s does'.format([i, s.name]))[0]"
	// +kubebuilder:validation:XValidation:rule="self.map(s, has(s.datacenters.names) ? s.datacenters.names.size() : 0).sum() <= 1024",messageExpression="'all stages together must name at most 1024 datacenters; got %d'.format([self.map(s, has(s.datacenters.names) ? s.datacenters.names.size() : 0).sum()])"
	Stages []MigrationStage `json:"stages"`

	// gates are measurements that judge the candidate, at most 16, each name once.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Gates []MigrationGate `json:"gates,omitempty"`

	// limits lie on top of the plan at any time and do not lose its position.
	// +optional
	// +default={}
	Limits MigrationLimits `json:"limits,omitzero"`

	// suspend stops advancing; gates go on to protect what has moved, and the way back stays open. Default false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// direction is where the migration goes: Forward (the default), or Backward, which is a rollback.
	// +optional
	// +default="Forward"
	Direction Direction `json:"direction,omitempty"`

	// attempt makes the migration go forward again after a rollback when it grows; at least 1, the default. It cannot fall.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",messageExpression="'attempt cannot fall; it is %d, got %d'.format([oldSelf, self])"
	Attempt int64 `json:"attempt,omitempty"`

	// acknowledgement says when consumers count as having a split.
	// +optional
	// +default={}
	Acknowledgement Acknowledgement `json:"acknowledgement,omitzero"`

	// rollback says how the migration goes back.
	// +optional
	// +default={}
	Rollback RollbackPolicy `json:"rollback,omitzero"`

	// retirement says what has to come before the old ring goes, after which there is no way back.
	// +optional
	// +default={}
	Retirement RetirementPolicy `json:"retirement,omitzero"`

	// onDelete says what deleting the RingMigration does before the old ring is retired: Rollback (the default), which keeps the
	// object until the rollback is done, or Freeze, which leaves the split as it is.
	// +optional
	// +default="Rollback"
	OnDelete DeletionPolicy `json:"onDelete,omitempty"`
}

// RingReference names a HashRing.
type RingReference struct {
	// name is the name of the HashRing.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	Name string `json:"name"`
}

// MigrationStage is a group of datacenters whose share grows together.
type MigrationStage struct {
	// name identifies the stage: 1 to 63 lower-case letters, digits and dashes, starting and ending with a letter or digit.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name"`

	// datacenters says which datacenters the stage moves.
	// +required
	Datacenters StageDatacenters `json:"datacenters"`

	// steps are done one after the other, 1 to 16, with growing traffic, the last one 100%.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.exists(s, !s.traffic.matches('^[0-9]+([.][0-9]*)?%$')) || self.all(i, s, i == 0 || double(s.traffic.replace('%', '')) > double(self[i - 1].traffic.replace('%', '')))",messageExpression="self.transformList(i, s, i > 0 && double(s.traffic.replace('%', '')) <= double(self[i - 1].traffic.replace('%', '')), 'the traffic of steps must grow; steps[%d] has %s after %s'.format([i, s.traffic, self[i - 1].traffic]))[0]"
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || !self[self.size() - 1].traffic.matches('^[0-9]+([.][0-9]*)?%$') || double(self[self.size() - 1].traffic.replace('%', '')) == 100.0",messageExpression="'the last of steps must have traffic 100%; got ' + self[self.size() - 1].traffic"
	Steps []MigrationStep `json:"steps"`
}

// StageDatacenters says which datacenters a stage moves: those that it names, or all that no stage names.
//
// +kubebuilder:validation:XValidation:rule="(has(self.names) && self.names.size() > 0) != (has(self.remainder) && self.remainder)",reason=FieldValueRequired,messageExpression="'exactly one of names and remainder must be set; got ' + (has(self.names) && self.names.size() > 0 ? 'both' : 'neither')"
type StageDatacenters struct {
	// names are the names of datacenters as consumers give them, at most 1024 in all stages. Each can be in one stage only, which
	// condition Accepted looks at: it costs too much to look at it when the object is written.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`
	Names []string `json:"names,omitempty"`

	// remainder takes the datacenters that have consumers when the stage begins and that no stage names. Only the last stage can.
	// +optional
	Remainder bool `json:"remainder,omitempty"`
}

// MigrationStep is one share of a stage.
type MigrationStep struct {
	// traffic is the share of the keys that goes to the candidate in the datacenters of the stage: "0.01%" to "100%" with at most 2
	// decimals.
	// +required
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(100(\.0{1,2})?|[0-9]{1,2}(\.[0-9]{1,2})?)%$') && double(self.replace('%', '')) > 0.0`,messageExpression="'traffic must be a percentage from 0.01% to 100% with at most 2 decimals, such as 0.5%; got ' + self"
	Traffic string `json:"traffic"`

	// soak is how much clean time has to be credited before the next step: time in which all consumers had the split, all enforced
	// gates passed, and nothing held. 0s to 8760h, default 0s.
	// +optional
	// +default="0s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self <= duration('8760h')",messageExpression="'soak must be at most 8760h; got %s'.format([self])"
	Soak *metav1.Duration `json:"soak,omitempty"`

	// gates are the names of the gates that judge this step, at most 16; without any, all of them do.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	Gates []string `json:"gates,omitempty"`

	// approval says whether a person has to approve before the next step: None (the default) or AfterSoak.
	// +optional
	// +default="None"
	Approval Approval `json:"approval,omitempty"`
}

// Approval says when a person is asked.
//
// +kubebuilder:validation:Enum=None;AfterSoak
type Approval string

const (
	// ApprovalNone asks nobody.
	ApprovalNone Approval = "None"

	// ApprovalAfterSoak waits for an action Approve once the soak is credited.
	ApprovalAfterSoak Approval = "AfterSoak"
)

// MigrationLimits are the dials of a migration. They can be turned at any time; downwards they take effect at once.
type MigrationLimits struct {
	// maxTraffic is the most that goes to the candidate in any datacenter, "0%" to "100%" with at most 2 decimals, default "100%". A
	// step that asks for more has this share, and hold Limited.
	// +optional
	// +default="100%"
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(100(\.0{1,2})?|[0-9]{1,2}(\.[0-9]{1,2})?)%$')`,messageExpression="'maxTraffic must be a percentage from 0% to 100% with at most 2 decimals, such as 50%; got ' + self"
	MaxTraffic string `json:"maxTraffic,omitempty"`

	// excludedDatacenters stay on the stable ring, at most 1024. While one of them has consumers, the old ring is not retired.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`
	ExcludedDatacenters []string `json:"excludedDatacenters,omitempty"`
}

// Direction is where a migration goes.
//
// +kubebuilder:validation:Enum=Forward;Backward
type Direction string

const (
	// DirectionForward goes to the candidate.
	DirectionForward Direction = "Forward"

	// DirectionBackward goes back to the stable ring.
	DirectionBackward Direction = "Backward"
)

// Acknowledgement says when consumers count as having a split.
type Acknowledgement struct {
	// quorum is the part of a datacenter's consumers that has to have it, "0.01%" to "100%" with at most 2 decimals, default "100%".
	// Before the old ring is retired all consumers have to, whatever this says.
	// +optional
	// +default="100%"
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(100(\.0{1,2})?|[0-9]{1,2}(\.[0-9]{1,2})?)%$') && double(self.replace('%', '')) > 0.0`,messageExpression="'quorum must be a percentage from 0.01% to 100% with at most 2 decimals, such as 99%; got ' + self"
	Quorum string `json:"quorum,omitempty"`

	// deadline is how long that may take before hold NotConverged says who does not have it, 1s to 24h, default 10m. A rollback that
	// has not reached everybody by then ends and says whom.
	// +optional
	// +default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self >= duration('1s') && self <= duration('24h')",messageExpression="'deadline must be from 1s to 24h; got %s'.format([self])"
	Deadline *metav1.Duration `json:"deadline,omitempty"`
}

// RollbackPolicy says how a migration goes back.
//
// +kubebuilder:validation:XValidation:rule="has(self.strategy) && self.strategy == 'Staged' ? has(self.steps) && self.steps.size() > 0 : true",fieldPath=".steps",reason=FieldValueRequired,message="steps must be set with strategy Staged"
type RollbackPolicy struct {
	// automatic says whether failed gates roll back: Enabled (the default), or Disabled, which makes their failure a hold.
	// +optional
	// +default="Enabled"
	Automatic AutomaticRollback `json:"automatic,omitempty"`

	// strategy is Immediate (the default), everything back at once, or Staged, by steps, for a stable ring whose caches have grown cold.
	// +optional
	// +default="Immediate"
	Strategy RollbackStrategy `json:"strategy,omitempty"`

	// steps are the shares that a Staged rollback goes through, falling, the last one "0%", at most 16. Immediate ignores them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=7
	// +kubebuilder:validation:XValidation:rule=`self.all(s, s.matches(r'^(100(\.0{1,2})?|[0-9]{1,2}(\.[0-9]{1,2})?)%$'))`,messageExpression="'steps must be percentages from 0%% to 100%% with at most 2 decimals, such as 10%%; got %s'.format([self.filter(s, !s.matches(r'^(100(\\.0{1,2})?|[0-9]{1,2}(\\.[0-9]{1,2})?)%$'))[0]])"
	// +kubebuilder:validation:XValidation:rule="self.exists(s, !s.matches('^[0-9]+([.][0-9]*)?%$')) || self.all(i, s, i == 0 || double(s.replace('%', '')) < double(self[i - 1].replace('%', '')))",messageExpression="self.transformList(i, s, i > 0 && double(s.replace('%', '')) >= double(self[i - 1].replace('%', '')), 'steps must fall; steps[%d] is %s after %s'.format([i, s, self[i - 1]]))[0]"
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || !self[self.size() - 1].matches('^[0-9]+([.][0-9]*)?%$') || double(self[self.size() - 1].replace('%', '')) == 0.0",messageExpression="'the last of steps must be 0%; got ' + self[self.size() - 1]"
	Steps []string `json:"steps,omitempty"`

	// interval is how long each of steps lasts, 1s to 24h, default 5m.
	// +optional
	// +default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self >= duration('1s') && self <= duration('24h')",messageExpression="'interval must be from 1s to 24h; got %s'.format([self])"
	Interval *metav1.Duration `json:"interval,omitempty"`
}

// AutomaticRollback says whether gates roll back.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type AutomaticRollback string

const (
	// AutomaticRollbackEnabled lets failed gates roll back.
	AutomaticRollbackEnabled AutomaticRollback = "Enabled"

	// AutomaticRollbackDisabled makes their failure a hold.
	AutomaticRollbackDisabled AutomaticRollback = "Disabled"
)

// RollbackStrategy says how fast a rollback is.
//
// +kubebuilder:validation:Enum=Immediate;Staged
type RollbackStrategy string

const (
	// RollbackImmediate takes every share to 0 at once.
	RollbackImmediate RollbackStrategy = "Immediate"

	// RollbackStaged goes through rollback.steps.
	RollbackStaged RollbackStrategy = "Staged"
)

// RetirementPolicy says what has to come before the old ring goes.
type RetirementPolicy struct {
	// soak is how much clean time has to be credited with all consumers on the candidate, 0s to 8760h, default 24h.
	// +optional
	// +default="24h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
	// +kubebuilder:validation:XValidation:rule="self <= duration('8760h')",messageExpression="'soak must be at most 8760h; got %s'.format([self])"
	Soak *metav1.Duration `json:"soak,omitempty"`

	// approval says whether a person has to approve after that: None (the default) or AfterSoak.
	// +optional
	// +default="None"
	Approval Approval `json:"approval,omitempty"`
}

// DeletionPolicy says what deleting a RingMigration does before the old ring is retired.
//
// +kubebuilder:validation:Enum=Rollback;Freeze
type DeletionPolicy string

const (
	// DeletionRollback rolls back first.
	DeletionRollback DeletionPolicy = "Rollback"

	// DeletionFreeze leaves the split as it is.
	DeletionFreeze DeletionPolicy = "Freeze"
)
