// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"fmt"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/balance"
)

// convergedWithin is how far above 1 the ratio of the busiest endpoint to the mean may be, and aboveFloor how far above the noise floor.
const (
	convergedWithin = 0.02
	aboveFloor      = 0.01
)

// verdict is a condition before it has a time.
type verdict struct {
	kind    v1alpha1.ConditionType
	status  metav1.ConditionStatus
	reason  v1alpha1.ConditionReason
	message string
}

func (v verdict) stalled() bool {
	if v.status != metav1.ConditionFalse {
		return false
	}
	switch v.reason {
	case v1alpha1.ReasonInvalidSpec, v1alpha1.ReasonNameConflict, v1alpha1.ReasonTargetTaken, v1alpha1.ReasonTooManyEndpoints,
		v1alpha1.ReasonRolloutAborted, v1alpha1.ReasonRevisionNotFound, v1alpha1.ReasonServiceNotFound, v1alpha1.ReasonPortNotFound,
		v1alpha1.ReasonRingNotFound, v1alpha1.ReasonPublishFailed:
		return true
	}
	return false
}

// overview is what the groups of a policy come to together: the worst of each figure.
type overview struct {
	maxOverAverage, p95OverAverage, noiseFloor, predicted, mean float64
	counts                                                      v1alpha1.EndpointCounts
	skipped                                                     balance.SkipReason
	ignored                                                     bool
	unconverged                                                 bool
}

// overview sums up. A figure that no group has is NaN.
func (h *holding) overview() overview {
	o := overview{maxOverAverage: math.NaN(), p95OverAverage: math.NaN(), noiseFloor: math.NaN(), predicted: math.NaN(), mean: math.NaN()}
	if !h.empty {
		o.counts.Total = int32(len(h.endpoints))
	}
	sum, reporting := 0.0, 0
	for _, r := range h.results {
		o.counts.Ready += int32(r.Ready)
		o.counts.Reporting += int32(r.Reporting)
		o.counts.Cold += int32(r.Cold)
		o.counts.Clamped += int32(r.Clamped)
		o.counts.Guarded += int32(r.Guarded)
		o.skipped = worse(o.skipped, r.Skipped)
		o.ignored = o.ignored || r.Ignored
		o.maxOverAverage, o.p95OverAverage = larger(o.maxOverAverage, r.MaxOverAverage), larger(o.p95OverAverage, r.P95OverAverage)
		o.noiseFloor, o.predicted = larger(o.noiseFloor, r.NoiseFloor), larger(o.predicted, r.PredictedMaxOverAverage)
		if limit := larger(1+convergedWithin, r.NoiseFloor+aboveFloor); r.MaxOverAverage > limit {
			o.unconverged = true
		}
		if r.Reporting > 0 && !math.IsNaN(r.Mean) {
			sum, reporting = sum+r.Mean*float64(r.Reporting), reporting+r.Reporting
		}
	}
	if reporting > 0 {
		o.mean = sum / float64(reporting)
	}
	return o
}

// larger returns the larger of two figures, of which NaN is none.
func larger(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

// worse returns the reason that hinders more. With several groups one that has no endpoint says nothing.
func worse(a, b balance.SkipReason) balance.SkipReason {
	rank := map[balance.SkipReason]int{balance.SkipNothingNew: 1, balance.SkipNoEndpoints: 2, balance.SkipLowTraffic: 3, balance.SkipFewReports: 4}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

// verdicts are the conditions of a policy that is looked after.
func (h *holding) verdicts(policy *v1alpha1.WeightPolicy, o overview) []verdict {
	return []verdict{h.ready(policy, o), reporting(o, policy.Spec.Limits.MinReporting), converged(o), effective(o, h.coarse)}
}

func (h *holding) ready(policy *v1alpha1.WeightPolicy, o overview) verdict {
	v := verdict{kind: v1alpha1.ConditionReady, status: metav1.ConditionTrue}
	switch {
	case o.counts.Total == 0:
		v.status, v.reason, v.message = metav1.ConditionFalse, v1alpha1.ReasonNoEndpoints, "The target has no endpoint"
	case h.unpublished != nil:
		v.status, v.reason, v.message = metav1.ConditionFalse, h.unpublished.reason, h.unpublished.message
	case h.pin.weight != nil:
		v.reason, v.message = v1alpha1.ReasonPinned, fmt.Sprintf("The weights of revision %d are served until annotation %s is removed", h.pin.revision, v1alpha1.AnnotationPinnedWeights)
	case h.rollout.Aborted != "":
		v.status, v.reason, v.message = metav1.ConditionFalse, v1alpha1.ReasonRolloutAborted, "The rollout went back: "+h.rollout.Aborted
	case policy.Spec.Suspend:
		v.reason, v.message = v1alpha1.ReasonSuspended, "spec.suspend keeps the weights as they are"
	case percentOf(policy.Spec.Rollout, *h.rollout) == 0:
		v.reason, v.message = v1alpha1.ReasonShadow, "The weights are computed and not served"
	default:
		v.reason, v.message = v1alpha1.ReasonWeightsServed, fmt.Sprintf("Version %d is served for %d endpoints", h.version, o.counts.Total)
	}
	return v
}

func reporting(o overview, wanted string) verdict {
	v := verdict{kind: v1alpha1.ConditionReporting, status: metav1.ConditionFalse, message: fmt.Sprintf("%d of %d ready endpoints report", o.counts.Reporting, o.counts.Ready)}
	switch {
	case o.counts.Reporting == 0:
		v.reason = v1alpha1.ReasonNoReports
		v.message += "; the weights stay"
	case o.skipped == balance.SkipFewReports:
		v.reason = v1alpha1.ReasonFewReports
		v.message += fmt.Sprintf(", %s and at least 2 have to; the weights stay", wanted)
	default:
		v.status, v.reason = metav1.ConditionTrue, v1alpha1.ReasonReportsFresh
	}
	return v
}

func converged(o overview) verdict {
	v := verdict{kind: v1alpha1.ConditionConverged}
	switch {
	case math.IsNaN(o.maxOverAverage):
		v.status, v.reason, v.message = metav1.ConditionUnknown, v1alpha1.ReasonNotMeasured, "Nothing was measured yet"
	case o.unconverged:
		v.status, v.reason, v.message = metav1.ConditionFalse, v1alpha1.ReasonConverging, "The busiest endpoint is"+above(o)
	default:
		v.status, v.reason, v.message = metav1.ConditionTrue, v1alpha1.ReasonConverged, "The busiest endpoint is"+above(o)
	}
	return v
}

func above(o overview) string {
	text := fmt.Sprintf(" at %.3f of the mean", o.maxOverAverage)
	if !math.IsNaN(o.noiseFloor) {
		text += fmt.Sprintf("; chance alone makes it %.3f", o.noiseFloor)
	}
	return text
}

func effective(o overview, coarse string) verdict {
	v := verdict{kind: v1alpha1.ConditionEffective, status: metav1.ConditionFalse}
	switch {
	case o.skipped == balance.SkipLowTraffic:
		v.reason, v.message = v1alpha1.ReasonLowTraffic, "There is too little load for its differences to mean anything; the weights stay"
	case math.IsNaN(o.maxOverAverage):
		v.status, v.reason, v.message = metav1.ConditionUnknown, v1alpha1.ReasonNotMeasured, "Nothing was measured yet"
	case coarse != "": // Which looks as if clients ignored the weights.
		v.reason, v.message = v1alpha1.ReasonCoarseWeights, coarse
	case o.ignored:
		v.reason, v.message = v1alpha1.ReasonWeightsIgnored, "The load does not follow the weights: clients do not use them"
	case o.counts.Clamped > 0 && o.unconverged:
		v.reason, v.message = v1alpha1.ReasonClamped, fmt.Sprintf("%d endpoints have the least or the largest weight, and the busiest endpoint is%s", o.counts.Clamped, above(o))
	default:
		v.status, v.reason, v.message = metav1.ConditionTrue, v1alpha1.ReasonBalancing, "The load follows the weights"
	}
	return v
}
