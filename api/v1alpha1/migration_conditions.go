// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// The conditions of a RingMigration. All of them are there from the first time on that the operator looks at it. Where a reason is a
// phase or a stepPhase it is not listed here: that says where the migration is.
const (
	// ConditionAccepted says whether the plan can be followed.
	//
	// Reasons for True: ReasonValid.
	// Reasons for False: ReasonInvalidPlan.
	ConditionAccepted ConditionType = "Accepted"

	// ConditionPrepared says whether both rings are with all consumers and every enforced gate has returned data, so that keys can move.
	//
	// Reasons for True: ReasonPrepared.
	// Reasons for False: ReasonPreparing, ReasonNotPrepared.
	ConditionPrepared ConditionType = "Prepared"

	// ConditionProgressing says whether the migration is on its way, forward or back.
	//
	// Reasons for True: the phase or stepPhase.
	// Reasons for False: ReasonHeld, and the phases Succeeded and RolledBack.
	ConditionProgressing ConditionType = "Progressing"

	// ConditionConverged says whether the consumers that have to have the present split have it.
	//
	// Reasons for True: ReasonConverged.
	// Reasons for False: ReasonConverging, and after the deadline hold NotConverged.
	// Reasons for Unknown: ReasonNotPrepared.
	ConditionConverged ConditionType = "Converged"

	// ConditionGatesPassing says whether all enforced gates say that all is well with the present step.
	//
	// Reasons for True: ReasonGatesPassed, ReasonNoGates.
	// Reasons for False: hold GateFailed.
	// Reasons for Unknown: ReasonGatesNotJudging, and hold GateUnknown.
	ConditionGatesPassing ConditionType = "GatesPassing"

	// ConditionRollbackAvailable says whether there is a way back. Its reason is the phase or stepPhase.
	ConditionRollbackAvailable ConditionType = "RollbackAvailable"

	// ConditionSucceeded says whether the candidate is the stable ring and the old one is gone.
	//
	// Reasons for True: the phase Succeeded.
	// Reasons for False: ReasonInProgress, and the phase RolledBack.
	ConditionSucceeded ConditionType = "Succeeded"
)

// The reasons of a RingMigration's conditions. ConditionHeld has the type of the first hold, or ReasonNotHeld.
const (
	// ReasonValid means that nothing is wrong with the plan.
	ReasonValid ConditionReason = "Valid"

	// ReasonInvalidPlan means that the plan cannot be followed; the message names the field.
	ReasonInvalidPlan ConditionReason = "InvalidPlan"

	// ReasonPrepared means that keys can move.
	ReasonPrepared ConditionReason = "Prepared"

	// ReasonPreparing means that both rings are on their way to the consumers.
	ReasonPreparing ConditionReason = "Preparing"

	// ReasonNotPrepared means that it has not come so far, or has gone back.
	ReasonNotPrepared ConditionReason = "NotPrepared"

	// ReasonHeld means that something holds; the message lists everything that does.
	ReasonHeld ConditionReason = "Held"

	// ReasonConverged means that nobody lacks the split.
	ReasonConverged ConditionReason = "Converged"

	// ReasonConverging means that the split is on its way.
	ReasonConverging ConditionReason = "Converging"

	// ReasonGatesPassed means that all enforced gates pass.
	ReasonGatesPassed ConditionReason = "GatesPassed"

	// ReasonNoGates means that no gate is enforced.
	ReasonNoGates ConditionReason = "NoGates"

	// ReasonGatesNotJudging means that some gates have not judged the present step yet.
	ReasonGatesNotJudging ConditionReason = "GatesNotJudging"

	// ReasonInProgress means that the migration is on its way.
	ReasonInProgress ConditionReason = "InProgress"
)
