// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/weighthistory"
)

// weightsNow is the time of the tests.
var weightsNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func weightsAgo(d time.Duration) metav1.Time { return metav1.NewTime(weightsNow.Add(-d)) }

// checkoutPolicy is a policy that serves a quarter of its weights, and does not converge.
func checkoutPolicy() *v1alpha1.WeightPolicy {
	condition := func(kind v1alpha1.ConditionType, status metav1.ConditionStatus, reason v1alpha1.ConditionReason, message string) metav1.Condition {
		return metav1.Condition{Type: string(kind), Status: status, Reason: string(reason), Message: message, LastTransitionTime: weightsAgo(20 * time.Minute)}
	}
	return &v1alpha1.WeightPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout", UID: "uid-c", Generation: 3},
		Spec: v1alpha1.WeightPolicySpec{
			TargetRef: v1alpha1.WeightTarget{Kind: v1alpha1.TargetService, Name: "checkout", Port: ptr.To(intstr.FromString("grpc"))},
			Load: v1alpha1.LoadMeasurement{Sources: []v1alpha1.LoadSource{
				{Type: v1alpha1.SourceLRS}, {Type: v1alpha1.SourcePush, StaleAfter: &metav1.Duration{Duration: 45 * time.Second}},
				{Type: v1alpha1.SourceMetrics, Interval: &metav1.Duration{Duration: 30 * time.Second}},
			}},
			Strategy: v1alpha1.WeightStrategy{Type: v1alpha1.StrategyPID},
			Limits:   v1alpha1.WeightLimits{MinWeight: "0.1", MaxWeight: "8", MaxStep: "50%", ColdStartWeight: "0.1", MinReporting: "50%"},
		},
		Status: v1alpha1.WeightPolicyStatus{
			ObservedGeneration: 3, UpdatedAt: ptr.To(weightsAgo(4 * time.Second)), Utilization: "0.5000", MaxOverAverage: "1.310", P95OverAverage: "1.290",
			NoiseFloor: "1.012", PredictedMaxOverAverage: "1.020",
			Endpoints: &v1alpha1.EndpointCounts{Total: 8, Ready: 7, Reporting: 5, Cold: 1, Clamped: 1, Guarded: 1},
			Sources: []v1alpha1.SourceStatus{
				{Type: v1alpha1.SourceLRS, Endpoints: 4}, {Type: v1alpha1.SourcePush, Endpoints: 1},
				{Type: v1alpha1.SourceMetrics, Message: "metrics.k8s.io is not served"},
			},
			Rollout: &v1alpha1.RolloutStatus{Percent: "25%", Step: 1, Since: weightsAgo(20 * time.Minute), Generation: 3, BadSince: ptr.To(weightsAgo(time.Minute))},
			Weights: &v1alpha1.PublishedWeights{Version: 41, PublishedAt: weightsAgo(90 * time.Second), Sets: 2},
			Shard:   &v1alpha1.ShardStatus{Holder: "ringwright-balancer-1", Epoch: 4},
			Conditions: []metav1.Condition{
				condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonWeightsServed, "version 41 is served"),
				condition(v1alpha1.ConditionReporting, metav1.ConditionTrue, v1alpha1.ReasonReportsFresh, "5 of 7 endpoints report"),
				condition(v1alpha1.ConditionConverged, metav1.ConditionFalse, v1alpha1.ReasonConverging, "max/avg is 1.310"),
				condition(v1alpha1.ConditionEffective, metav1.ConditionFalse, v1alpha1.ReasonClamped, "1 endpoint has the largest weight"),
			},
		},
	}
}

// checkoutSets are its WeightSets.
func checkoutSets() []*v1alpha1.WeightSet {
	endpoint := func(n int, state v1alpha1.EndpointState, weight, computed int32, utilization int64, reported time.Duration, change func(*v1alpha1.WeightedEndpoint)) v1alpha1.WeightedEndpoint {
		e := v1alpha1.WeightedEndpoint{
			ID: fmt.Sprintf("uid-%d", n), Name: fmt.Sprintf("checkout-%d", n), Address: fmt.Sprintf("10.0.0.%d", n), Port: 8080, Zone: "zone-a",
			State: state, Weight: weight, Computed: computed, Utilization: utilization,
		}
		if reported > 0 {
			e.ReportedAt, e.Source = ptr.To(weightsAgo(reported)), v1alpha1.SourceLRS
		}
		if change != nil {
			change(&e)
		}
		return e
	}
	push := func(e *v1alpha1.WeightedEndpoint) {
		e.Source, e.LastError, e.Integral = v1alpha1.SourcePush, -10000, 25000
	}
	set := func(n int, endpoints ...v1alpha1.WeightedEndpoint) *v1alpha1.WeightSet {
		return &v1alpha1.WeightSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("checkout-%d", n), Labels: map[string]string{v1alpha1.LabelWeightPolicy: "checkout"}},
			Policy:     v1alpha1.PolicyIdentity{Name: "checkout", UID: "uid-c"}, Version: 41, Sets: 2, Epoch: 4, Holder: "ringwright-balancer-1", Endpoints: endpoints,
		}
	}
	return []*v1alpha1.WeightSet{
		set(0,
			endpoint(0, v1alpha1.EndpointBalanced, 10000, 0, 5050, 3*time.Second, push),
			endpoint(1, v1alpha1.EndpointGuarded, 8000, 2000, 6550, 3*time.Second, nil),
			endpoint(2, v1alpha1.EndpointClamped, 27500, 80000, 3400, 6*time.Second, nil),
			endpoint(3, v1alpha1.EndpointSilent, 9000, 6000, 7000, 3*time.Minute, nil),
		),
		set(1,
			endpoint(4, v1alpha1.EndpointCold, 7750, 1000, 0, 0, nil),
			endpoint(5, v1alpha1.EndpointNotReady, 10000, 0, 4000, time.Hour, nil),
			endpoint(6, v1alpha1.EndpointBalanced, 9500, 8000, 5000, 5*time.Second, func(e *v1alpha1.WeightedEndpoint) {
				e.Name, e.ID, e.Zone = "", "[fd00::6]:8080", ""
				e.Address = "fd00::6"
			}),
			endpoint(7, v1alpha1.EndpointClamped, 7750, 1000, 5000, 65*time.Second, func(e *v1alpha1.WeightedEndpoint) { e.Source = v1alpha1.SourceMetrics }),
		),
	}
}

// weightRecord records weights of the policy.
func weightRecord(t *testing.T, revision, version int64, reason string, weights map[string]int32) *appsv1.ControllerRevision {
	t.Helper()
	data, err := weighthistory.Encode(weighthistory.Record{
		Version: version, At: weightsNow.Add(-time.Hour * time.Duration(10-revision)), Holder: "ringwright-balancer-0", Reason: reason, MaxOverAverage: "1.015",
		Weights: weights,
	})
	if err != nil {
		t.Fatal(err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: weighthistory.Name("checkout", revision), Labels: map[string]string{v1alpha1.LabelWeightPolicy: "checkout"},
		},
		Revision: revision, Data: data,
	}
}

// checkout returns the policy in a cluster.
func checkout(t *testing.T, objects ...client.Object) livePolicy {
	t.Helper()
	return livePolicy{client: liveOf(t, objects...).client, namespace: "shop", name: "checkout", now: func() time.Time { return weightsNow }}
}

func withSets(objects ...client.Object) []client.Object {
	for _, s := range checkoutSets() {
		objects = append(objects, s)
	}
	return objects
}
