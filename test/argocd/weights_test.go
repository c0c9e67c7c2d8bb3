// SPDX-License-Identifier: Apache-2.0

package argocd_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// newPolicy returns a WeightPolicy as an API server stores it.
func newPolicy() *v1alpha1.WeightPolicy {
	return &v1alpha1.WeightPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout", Generation: 3},
		Spec:       v1alpha1.WeightPolicySpec{TargetRef: v1alpha1.WeightTarget{Kind: v1alpha1.TargetService, Name: "checkout"}},
		Status:     v1alpha1.WeightPolicyStatus{ObservedGeneration: -1},
	}
}

// policyWith returns one that the balancer has looked at, with conditions.
func policyWith(conditions ...metav1.Condition) *v1alpha1.WeightPolicy {
	p := newPolicy()
	p.Status.ObservedGeneration = p.Generation
	for _, c := range conditions {
		c.Message = "why"
		meta.SetStatusCondition(&p.Status.Conditions, c)
	}
	return p
}

func conditionOf(kind v1alpha1.ConditionType, truth metav1.ConditionStatus, reason v1alpha1.ConditionReason) metav1.Condition {
	return metav1.Condition{Type: string(kind), Status: truth, Reason: string(reason)}
}

// TestHealthOfWeightPolicies: what the documentation of the conditions says of each reason of Ready.
func TestHealthOfWeightPolicies(t *testing.T) {
	check := func(name string, p *v1alpha1.WeightPolicy, argo, current, message string) {
		t.Helper()
		object := objectOf(t, "WeightPolicy", p)
		code, text := healthOf(t, weightsHealth, object)
		if code != argo || !strings.Contains(text, message) {
			t.Errorf("%s: Argo CD says %s, %q, want %s, %q", name, code, text, argo, message)
		}
		if result, err := status.Compute(object); err != nil || string(result.Status) != current {
			t.Errorf("%s: kstatus says %+v, %v, want %s", name, result, err, current)
		}
	}
	const unseen = "the balancer has not looked at this generation yet"
	check("made just now", newPolicy(), "Progressing", "InProgress", unseen)
	stale := policyWith(conditionOf(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonWeightsServed))
	stale.Generation++
	check("spec has changed since", stale, "Progressing", "InProgress", unseen)
	for reason, argo := range map[v1alpha1.ConditionReason]string{
		v1alpha1.ReasonWeightsServed: "Healthy", v1alpha1.ReasonShadow: "Healthy", v1alpha1.ReasonSuspended: "Suspended", v1alpha1.ReasonPinned: "Suspended",
	} {
		check(string(reason), policyWith(conditionOf(v1alpha1.ConditionReady, metav1.ConditionTrue, reason)), argo, "Current", string(reason)+": why")
	}
	for _, reason := range []v1alpha1.ConditionReason{
		v1alpha1.ReasonServiceNotFound, v1alpha1.ReasonPortNotFound, v1alpha1.ReasonRingNotFound, v1alpha1.ReasonNoEndpoints, v1alpha1.ReasonInvalidSpec,
		v1alpha1.ReasonNameConflict, v1alpha1.ReasonPublishFailed, v1alpha1.ReasonTargetTaken, v1alpha1.ReasonTooManyEndpoints,
		v1alpha1.ReasonRolloutAborted, v1alpha1.ReasonRevisionNotFound,
	} {
		ready := conditionOf(v1alpha1.ConditionReady, metav1.ConditionFalse, reason)
		check(string(reason)+" that waits", policyWith(ready, conditionOf(v1alpha1.ConditionReconciling, metav1.ConditionTrue, reason)),
			"Progressing", "InProgress", string(reason)+": why")
		check(string(reason)+" to be mended", policyWith(ready, conditionOf(v1alpha1.ConditionStalled, metav1.ConditionTrue, reason)),
			"Degraded", "Failed", string(reason)+": why")
		check(string(reason), policyWith(ready), "Progressing", "InProgress", string(reason)+": why")
	}
	check("ignored", policyWith(conditionOf(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonWeightsServed),
		conditionOf(v1alpha1.ConditionReporting, metav1.ConditionTrue, v1alpha1.ReasonReportsFresh),
		conditionOf(v1alpha1.ConditionEffective, metav1.ConditionFalse, v1alpha1.ReasonWeightsIgnored)),
		"Healthy", "Current", "WeightsServed: why; WeightsIgnored: why")
}

// TestWeightsHealthAgreesWithKstatus in general, whatever the conditions are: Suspended is the only word that kstatus does not have.
func TestWeightsHealthAgreesWithKstatus(t *testing.T) {
	want := map[string][]string{"Current": {"Healthy", "Suspended"}, "InProgress": {"Progressing"}, "Failed": {"Degraded"}}
	kinds := []v1alpha1.ConditionType{
		v1alpha1.ConditionReady, v1alpha1.ConditionReporting, v1alpha1.ConditionConverged, v1alpha1.ConditionEffective, v1alpha1.ConditionStalled,
		v1alpha1.ConditionReconciling,
	}
	for set := range 1 << len(kinds) {
		if set>>4 == 3 {
			continue // Never both: then kstatus takes the first.
		}
		p := policyWith()
		for i, kind := range kinds {
			truth := metav1.ConditionFalse
			if set>>i&1 == 1 {
				truth = metav1.ConditionTrue
			}
			meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: string(kind), Status: truth, Reason: "Pinned", Message: "m"})
		}
		object := objectOf(t, "WeightPolicy", p)
		code, _ := healthOf(t, weightsHealth, object)
		result, err := status.Compute(object)
		if err != nil || !slices.Contains(want[string(result.Status)], code) {
			t.Errorf("set %06b: Argo CD says %s, kstatus %+v, %v", set, code, result, err)
		}
	}
}

// TestWeightSetsNeedNoHealth: kstatus takes them for current, as Argo CD takes what has no script.
func TestWeightSetsNeedNoHealth(t *testing.T) {
	set := &v1alpha1.WeightSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout-0", Generation: 9}, Version: 3, Sets: 1}
	if result, err := status.Compute(objectOf(t, "WeightSet", set)); err != nil || result.Status != status.CurrentStatus {
		t.Errorf("kstatus says %+v, %v", result, err)
	}
}
