// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// The conditions of a WeightPolicy. ConditionReady, ConditionConverged, ConditionReconciling and ConditionStalled are there as well.
//
// Ready says whether weights are computed and served. Reasons for True: ReasonWeightsServed, ReasonSuspended, ReasonPinned,
// ReasonShadow. Reasons for False: ReasonServiceNotFound, ReasonPortNotFound, ReasonRingNotFound, ReasonNoEndpoints, ReasonInvalidSpec,
// ReasonNameConflict, ReasonPublishFailed, ReasonTargetTaken, ReasonTooManyEndpoints, ReasonRolloutAborted, ReasonRevisionNotFound. Stalled is True with those that somebody has to
// mend.
//
// Converged says whether maxOverAverage is within 2 % of the mean, or within 1 % of the noise floor. Reasons for True: ReasonConverged. Reasons for False: ReasonConverging.
// Reasons for Unknown: ReasonNotMeasured.
const (
	// ConditionReporting says whether enough endpoints report for weights to change.
	//
	// Reasons for True: ReasonReportsFresh.
	// Reasons for False: ReasonNoReports, ReasonFewReports.
	ConditionReporting ConditionType = "Reporting"

	// ConditionEffective says whether weights can help, and do.
	//
	// Reasons for True: ReasonBalancing.
	// Reasons for False: ReasonLowTraffic, ReasonClamped, ReasonWeightsIgnored, ReasonCoarseWeights.
	// Reasons for Unknown: ReasonNotMeasured.
	ConditionEffective ConditionType = "Effective"
)

// The reasons of a WeightPolicy's conditions.
const (
	// ReasonWeightsServed means that the weights are computed and served.
	ReasonWeightsServed ConditionReason = "WeightsServed"

	// ReasonShadow means that the weights are computed and not served: the rollout is at 0 %.
	ReasonShadow ConditionReason = "Shadow"

	// ReasonSuspended means that spec.suspend keeps the weights as they are.
	ReasonSuspended ConditionReason = "Suspended"

	// ReasonRingNotFound means that the HashRing that targetRef names is not there, or has no ring yet.
	ReasonRingNotFound ConditionReason = "RingNotFound"

	// ReasonNoEndpoints means that the target has no endpoint. The last good weights are kept.
	ReasonNoEndpoints ConditionReason = "NoEndpoints"

	// ReasonTargetTaken means that an older WeightPolicy balances the same port of the same Service, or the same HashRing; the message names it.
	ReasonTargetTaken ConditionReason = "TargetTaken"

	// ReasonTooManyEndpoints means that the target has more than 100000 endpoints.
	ReasonTooManyEndpoints ConditionReason = "TooManyEndpoints"

	// ReasonRolloutAborted means that spec.rollout.abort was met. What is served is spec.rollout.from until spec is changed.
	ReasonRolloutAborted ConditionReason = "RolloutAborted"

	// ReasonReportsFresh means that at least limits.minReporting of the endpoints that are ready have a fresh report.
	ReasonReportsFresh ConditionReason = "ReportsFresh"

	// ReasonNoReports means that no endpoint has a fresh report. The weights stay.
	ReasonNoReports ConditionReason = "NoReports"

	// ReasonFewReports means that fewer do than limits.minReporting asks for, or one alone. The weights stay.
	ReasonFewReports ConditionReason = "FewReports"

	// ReasonNotMeasured means that there is no measurement yet.
	ReasonNotMeasured ConditionReason = "NotMeasured"

	// ReasonBalancing means that the load follows the weights.
	ReasonBalancing ConditionReason = "Balancing"

	// ReasonLowTraffic means that there is too little load for its differences to mean anything. The weights stay.
	ReasonLowTraffic ConditionReason = "LowTraffic"

	// ReasonClamped means that endpoints have the least or the largest weight and their load is still not at the mean.
	ReasonClamped ConditionReason = "Clamped"

	// ReasonWeightsIgnored means that the load does not follow the weights: clients do not use them.
	ReasonWeightsIgnored ConditionReason = "WeightsIgnored"

	// ReasonCoarseWeights means that the weights of the HashRing's backends are too small for factors to change them by less than 5 %.
	ReasonCoarseWeights ConditionReason = "CoarseWeights"
)
