// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/loadreport"
)

// ratio writes a ratio as status has it.
func ratio(value float64) string { return decimal(value, 3) }

// decimal writes a figure, "" where there is none.
func decimal(value float64, digits int) string {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return ""
	}
	return strconv.FormatFloat(value, 'f', digits, 64)
}

// sourced is what the store says of the sources of a policy.
type sourced struct {
	fresh  map[v1alpha1.LoadSourceType]int
	errors map[v1alpha1.LoadSourceType]loadreport.SourceError
}

// status returns the status of a policy that is looked after.
func (h *holding) status(policy *v1alpha1.WeightPolicy, holder string, from sourced, now time.Time) v1alpha1.WeightPolicyStatus {
	o := h.overview()
	s := *policy.Status.DeepCopy()
	s.ObservedGeneration, s.UpdatedAt = policy.Generation, ptr.To(secondsOf(now))
	s.Utilization, s.MaxOverAverage, s.P95OverAverage = decimal(o.mean, 4), ratio(o.maxOverAverage), ratio(o.p95OverAverage)
	s.NoiseFloor, s.PredictedMaxOverAverage = ratio(o.noiseFloor), ratio(o.predicted)
	s.Endpoints, s.Rollout = &o.counts, rolloutStatus(h.rollout)
	s.Sources = nil
	for _, source := range policy.Spec.Load.Sources {
		s.Sources = append(s.Sources, v1alpha1.SourceStatus{
			Type: source.Type, Endpoints: int32(from.fresh[source.Type]), Message: cut(from.errors[source.Type].Message, 1024),
		})
	}
	s.Weights = &v1alpha1.PublishedWeights{
		Version: h.version, PublishedAt: secondsOf(h.changedAt), Sets: int32(max(1, len(h.stored.versions))), Pinned: h.pin.revision,
	}
	s.Shard = &v1alpha1.ShardStatus{Holder: holder, Epoch: h.epoch}
	setConditions(&s, policy.Generation, h.verdicts(policy, o), now)
	return s
}

// rolloutStatus is a rollout as the API server keeps it: with a part of a second it would differ from what was read whenever it is compared.
func rolloutStatus(rollout *v1alpha1.RolloutStatus) *v1alpha1.RolloutStatus {
	s := rollout.DeepCopy()
	s.Since = secondsOf(s.Since.Time)
	if s.BadSince != nil {
		s.BadSince = ptr.To(secondsOf(s.BadSince.Time))
	}
	return s
}

// failedStatus returns the status of a policy that cannot be looked after: what was measured stays.
func failedStatus(policy *v1alpha1.WeightPolicy, problem *targetError, now time.Time) v1alpha1.WeightPolicyStatus {
	s := *policy.Status.DeepCopy()
	s.ObservedGeneration = policy.Generation
	setConditions(&s, policy.Generation, []verdict{{v1alpha1.ConditionReady, metav1.ConditionFalse, problem.reason, problem.message}}, now)
	return s
}

// setConditions writes verdicts, and with them the signs of kstatus: Stalled while somebody has to do something, Reconciling while the
// balancer is on its way.
func setConditions(s *v1alpha1.WeightPolicyStatus, generation int64, verdicts []verdict, now time.Time) {
	ready := verdicts[0]
	for _, v := range verdicts {
		meta.SetStatusCondition(&s.Conditions, v.condition(generation, now))
	}
	present := map[v1alpha1.ConditionType]bool{
		v1alpha1.ConditionStalled:     ready.stalled(),
		v1alpha1.ConditionReconciling: ready.status == metav1.ConditionFalse && !ready.stalled(),
	}
	for _, kind := range []v1alpha1.ConditionType{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		if !present[kind] {
			meta.RemoveStatusCondition(&s.Conditions, string(kind))
			continue
		}
		v := verdict{kind, metav1.ConditionTrue, ready.reason, ready.message}
		meta.SetStatusCondition(&s.Conditions, v.condition(generation, now))
	}
}

func (v verdict) condition(generation int64, now time.Time) metav1.Condition {
	return metav1.Condition{
		Type: string(v.kind), Status: v.status, Reason: string(v.reason), Message: cut(v.message, 32768), ObservedGeneration: generation,
		LastTransitionTime: secondsOf(now),
	}
}

// cut returns at most n bytes of a text, without a part of a character at the end.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}

// urgent says whether a status must be written at once: a condition, the rollout, the holder or the generation is another one.
func urgent(before, after *v1alpha1.WeightPolicyStatus) bool {
	if before.ObservedGeneration != after.ObservedGeneration || len(before.Conditions) != len(after.Conditions) ||
		!equality.Semantic.DeepEqual(before.Shard, after.Shard) || !equality.Semantic.DeepEqual(before.Rollout, after.Rollout) {
		return true
	}
	for _, c := range after.Conditions {
		old := meta.FindStatusCondition(before.Conditions, c.Type)
		if old == nil || old.Status != c.Status || old.Reason != c.Reason {
			return true
		}
	}
	return false
}
