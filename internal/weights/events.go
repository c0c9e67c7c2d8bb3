// SPDX-License-Identifier: Apache-2.0

package weights

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// tell makes events of the conditions that have changed, once they are written.
func (r *Reconciler) tell(policy *v1alpha1.WeightPolicy, before *v1alpha1.WeightPolicyStatus) {
	r.Metrics.conditionsOf(policy)
	if r.Recorder == nil {
		return
	}
	for _, kind := range []v1alpha1.ConditionType{v1alpha1.ConditionReady, v1alpha1.ConditionReporting, v1alpha1.ConditionEffective} {
		now := meta.FindStatusCondition(policy.Status.Conditions, string(kind))
		old := meta.FindStatusCondition(before.Conditions, string(kind))
		if now == nil || now.Status == metav1.ConditionUnknown || old != nil && old.Status == now.Status && old.Reason == now.Reason {
			continue
		}
		level := corev1.EventTypeNormal
		if now.Status == metav1.ConditionFalse {
			level = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(policy, nil, level, now.Reason, "Balance", "%s", cut(now.Message, 1024))
	}
}
