// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/balance"
	"github.com/ringwright/ringwright/internal/loadreport"
)

var nothing = math.NaN()

func result(change func(*balance.Result)) balance.Result {
	r := balance.Result{
		Mean: 0.4, MaxOverAverage: 1.01, P95OverAverage: 1.005, NoiseFloor: nothing, PredictedMaxOverAverage: 1.008, Ready: 10, Reporting: 10, Response: nothing,
	}
	change(&r)
	return r
}

func TestVerdicts(t *testing.T) {
	none := func(*v1alpha1.WeightPolicy, *holding) {}
	for name, test := range map[string]struct {
		change func(*v1alpha1.WeightPolicy, *holding)
		result func(*balance.Result)
		// want is Ready, Reporting, Converged and Effective.
		want [4]string
	}{
		"well": {none, func(*balance.Result) {}, [4]string{"True WeightsServed", "True ReportsFresh", "True Converged", "True Balancing"}},
		"shadow": {func(p *v1alpha1.WeightPolicy, _ *holding) { p.Spec.Rollout.Percent = ptr.To[int32](0) }, func(*balance.Result) {},
			[4]string{"True Shadow", "True ReportsFresh", "True Converged", "True Balancing"}},
		"suspended": {func(p *v1alpha1.WeightPolicy, _ *holding) { p.Spec.Suspend = true }, func(*balance.Result) {},
			[4]string{"True Suspended", "True ReportsFresh", "True Converged", "True Balancing"}},
		"pinned": {func(_ *v1alpha1.WeightPolicy, h *holding) {
			h.pin.weight = func(string) (int32, bool) { return 1, true }
		}, func(*balance.Result) {},
			[4]string{"True Pinned", "True ReportsFresh", "True Converged", "True Balancing"}},
		"aborted": {func(_ *v1alpha1.WeightPolicy, h *holding) { h.rollout.Aborted = "it is bad" }, func(*balance.Result) {},
			[4]string{"False RolloutAborted", "True ReportsFresh", "True Converged", "True Balancing"}},
		"not published": {func(_ *v1alpha1.WeightPolicy, h *holding) {
			h.unpublished = &targetError{reason: v1alpha1.ReasonPublishFailed, message: "it is too large"}
		}, func(*balance.Result) {}, [4]string{"False PublishFailed", "True ReportsFresh", "True Converged", "True Balancing"}},
		"no endpoints": {func(_ *v1alpha1.WeightPolicy, h *holding) { h.empty, h.results = true, nil }, func(*balance.Result) {},
			[4]string{"False NoEndpoints", "False NoReports", "Unknown NotMeasured", "Unknown NotMeasured"}},
		"no reports": {none, func(r *balance.Result) {
			*r = balance.Result{Skipped: balance.SkipFewReports, Ready: 10, Mean: nothing, MaxOverAverage: nothing, P95OverAverage: nothing, NoiseFloor: nothing, PredictedMaxOverAverage: nothing}
		}, [4]string{"True WeightsServed", "False NoReports", "Unknown NotMeasured", "Unknown NotMeasured"}},
		"few reports": {none, func(r *balance.Result) { r.Skipped, r.Reporting = balance.SkipFewReports, 4 },
			[4]string{"True WeightsServed", "False FewReports", "True Converged", "True Balancing"}},
		"low traffic": {none, func(r *balance.Result) { r.Skipped = balance.SkipLowTraffic },
			[4]string{"True WeightsServed", "True ReportsFresh", "True Converged", "False LowTraffic"}},
		"nothing new": {none, func(r *balance.Result) { r.Skipped = balance.SkipNothingNew },
			[4]string{"True WeightsServed", "True ReportsFresh", "True Converged", "True Balancing"}},
		"ignored": {none, func(r *balance.Result) { r.Ignored, r.MaxOverAverage = true, 1.3 },
			[4]string{"True WeightsServed", "True ReportsFresh", "False Converging", "False WeightsIgnored"}},
		"clamped": {none, func(r *balance.Result) { r.Clamped, r.MaxOverAverage = 2, 1.3 },
			[4]string{"True WeightsServed", "True ReportsFresh", "False Converging", "False Clamped"}},
		"clamped and well": {none, func(r *balance.Result) { r.Clamped = 2 },
			[4]string{"True WeightsServed", "True ReportsFresh", "True Converged", "True Balancing"}},
		"2 % above":        {none, func(r *balance.Result) { r.MaxOverAverage = 1.02 }, [4]string{"True WeightsServed", "True ReportsFresh", "True Converged", "True Balancing"}},
		"more than that":   {none, func(r *balance.Result) { r.MaxOverAverage = 1.021 }, [4]string{"True WeightsServed", "True ReportsFresh", "False Converging", "True Balancing"}},
		"within the noise": {none, func(r *balance.Result) { r.MaxOverAverage, r.NoiseFloor = 1.059, 1.05 }, [4]string{"True WeightsServed", "True ReportsFresh", "True Converged", "True Balancing"}},
		"above the noise":  {none, func(r *balance.Result) { r.MaxOverAverage, r.NoiseFloor = 1.061, 1.05 }, [4]string{"True WeightsServed", "True ReportsFresh", "False Converging", "True Balancing"}},
		"noise below 2 %":  {none, func(r *balance.Result) { r.MaxOverAverage, r.NoiseFloor = 1.019, 1.001 }, [4]string{"True WeightsServed", "True ReportsFresh", "True Converged", "True Balancing"}},
	} {
		t.Run(name, func(t *testing.T) {
			policy := newPolicy()
			h := &holding{rollout: &v1alpha1.RolloutStatus{Percent: "100%"}, endpoints: newEndpoints(10), results: map[string]balance.Result{"": result(test.result)}}
			test.change(policy, h)
			var got [4]string
			for i, v := range h.verdicts(policy, h.overview()) {
				got[i] = fmt.Sprintf("%s %s", v.status, v.reason)
				if v.message == "" {
					t.Errorf("%s has no message", v.kind)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOverviewIsTheWorstOfAllGroups(t *testing.T) {
	h := &holding{endpoints: newEndpoints(20), results: map[string]balance.Result{
		"a": result(func(r *balance.Result) { r.MaxOverAverage, r.Mean, r.Reporting, r.Cold, r.Guarded = 1.2, 0.2, 5, 1, 2 }),
		"b": result(func(r *balance.Result) {
			r.NoiseFloor, r.Mean, r.Skipped, r.Clamped, r.P95OverAverage = 1.1, 0.8, balance.SkipFewReports, 3, 1.3
		}),
		"c": {Skipped: balance.SkipNoEndpoints, Mean: nothing, MaxOverAverage: nothing, P95OverAverage: nothing, NoiseFloor: nothing, PredictedMaxOverAverage: nothing},
	}}
	want := overview{
		maxOverAverage: 1.2, p95OverAverage: 1.3, noiseFloor: 1.1, predicted: 1.008, mean: (0.2*5 + 0.8*10) / 15, skipped: balance.SkipFewReports, unconverged: true,
		counts: v1alpha1.EndpointCounts{Total: 20, Ready: 20, Reporting: 15, Cold: 1, Clamped: 3, Guarded: 2},
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
	if diff := cmp.Diff(want, h.overview(), cmp.AllowUnexported(overview{}), near); diff != "" {
		t.Error(diff)
	}
}

// TestSignsOfKstatus: Stalled while somebody has to do something, Reconciling while the balancer is on its way.
func TestSignsOfKstatus(t *testing.T) {
	for _, test := range []struct {
		reason v1alpha1.ConditionReason
		status metav1.ConditionStatus
		want   string
	}{
		{v1alpha1.ReasonInvalidSpec, "False", "Stalled"}, {v1alpha1.ReasonNameConflict, "False", "Stalled"}, {v1alpha1.ReasonTargetTaken, "False", "Stalled"},
		{v1alpha1.ReasonTooManyEndpoints, "False", "Stalled"}, {v1alpha1.ReasonRolloutAborted, "False", "Stalled"}, {v1alpha1.ReasonRevisionNotFound, "False", "Stalled"},
		{v1alpha1.ReasonServiceNotFound, "False", "Stalled"}, {v1alpha1.ReasonPortNotFound, "False", "Stalled"}, {v1alpha1.ReasonRingNotFound, "False", "Stalled"},
		{v1alpha1.ReasonNoEndpoints, "False", "Reconciling"}, {v1alpha1.ReasonPublishFailed, "False", "Stalled"},
		{v1alpha1.ReasonWeightsServed, "True", ""}, {v1alpha1.ReasonInvalidSpec, "True", ""},
	} {
		s := v1alpha1.WeightPolicyStatus{Conditions: []metav1.Condition{{Type: "Stalled", Status: "True"}, {Type: "Reconciling", Status: "True"}}}
		setConditions(&s, 7, []verdict{{v1alpha1.ConditionReady, test.status, test.reason, "why"}}, epochStart.Add(time.Millisecond))
		got := ""
		for _, kind := range []string{"Stalled", "Reconciling"} {
			if c := meta.FindStatusCondition(s.Conditions, kind); c != nil {
				got += kind
				if c.Status != "True" || c.Reason != string(test.reason) || c.Message != "why" || c.ObservedGeneration != 7 {
					t.Errorf("%+v", c)
				}
			}
		}
		if got != test.want {
			t.Errorf("%s %s: %q, want %q", test.status, test.reason, got, test.want)
		}
	}
}

func TestStatus(t *testing.T) {
	policy := newPolicy()
	h := &holding{
		epoch: 4, version: 9, changedAt: epochStart, endpoints: newEndpoints(10), results: map[string]balance.Result{"": result(func(*balance.Result) {})},
		rollout: &v1alpha1.RolloutStatus{Percent: "100%", Since: metav1.NewTime(epochStart.Add(300 * time.Millisecond))}, stored: storedSets{versions: map[string]string{"checkout-0": "1", "checkout-1": "2"}}, pin: pin{revision: 2},
	}
	from := sourced{
		fresh: map[v1alpha1.LoadSourceType]int{"LRS": 8}, errors: map[v1alpha1.LoadSourceType]loadreport.SourceError{"Push": {Message: "nobody pushes"}, "ORCA": {Message: "gone"}},
	}
	got := h.status(policy, "a", from, epochStart.Add(1500*time.Millisecond))
	got.Conditions = nil
	want := v1alpha1.WeightPolicyStatus{
		ObservedGeneration: 3, UpdatedAt: ptr.To(metav1.NewTime(epochStart.Add(time.Second))), Utilization: "0.4000", MaxOverAverage: "1.010", P95OverAverage: "1.005",
		PredictedMaxOverAverage: "1.008", Endpoints: &v1alpha1.EndpointCounts{Total: 10, Ready: 10, Reporting: 10},
		Sources: []v1alpha1.SourceStatus{{Type: "LRS", Endpoints: 8}, {Type: "Push", Message: "nobody pushes"}}, Rollout: &v1alpha1.RolloutStatus{Percent: "100%", Since: metav1.NewTime(epochStart)},
		Weights: &v1alpha1.PublishedWeights{Version: 9, PublishedAt: metav1.NewTime(epochStart), Sets: 2, Pinned: 2}, Shard: &v1alpha1.ShardStatus{Holder: "a", Epoch: 4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := cut("abcdef", 3); got != "abc" {
		t.Errorf("cut returns %q", got)
	}
	if got := cut("aaü", 3); got != "aa" {
		t.Errorf("cut leaves a part of a character: %q", got)
	}
}

func TestUrgent(t *testing.T) {
	status := func(change func(*v1alpha1.WeightPolicyStatus)) *v1alpha1.WeightPolicyStatus {
		s := &v1alpha1.WeightPolicyStatus{
			ObservedGeneration: 1, Shard: &v1alpha1.ShardStatus{Holder: "a", Epoch: 1}, Rollout: &v1alpha1.RolloutStatus{Step: 1, Since: metav1.NewTime(epochStart)},
			Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "WeightsServed", Message: "Version 1"}},
		}
		change(s)
		return s
	}
	for name, test := range map[string]struct {
		change func(*v1alpha1.WeightPolicyStatus)
		want   bool
	}{
		"the same": {func(*v1alpha1.WeightPolicyStatus) {}, false},
		"figures": {func(s *v1alpha1.WeightPolicyStatus) {
			s.MaxOverAverage = "1.2"
			s.UpdatedAt = ptr.To(metav1.NewTime(epochStart))
		}, false},
		"a message":     {func(s *v1alpha1.WeightPolicyStatus) { s.Conditions[0].Message = "Version 2" }, false},
		"generation":    {func(s *v1alpha1.WeightPolicyStatus) { s.ObservedGeneration = 2 }, true},
		"the holder":    {func(s *v1alpha1.WeightPolicyStatus) { s.Shard.Holder = "b" }, true},
		"the step":      {func(s *v1alpha1.WeightPolicyStatus) { s.Rollout.Step = 2 }, true},
		"a reason":      {func(s *v1alpha1.WeightPolicyStatus) { s.Conditions[0].Reason = "Shadow" }, true},
		"a status":      {func(s *v1alpha1.WeightPolicyStatus) { s.Conditions[0].Status = "False" }, true},
		"another one":   {func(s *v1alpha1.WeightPolicyStatus) { s.Conditions[0].Type = "Stalled" }, true},
		"one that went": {func(s *v1alpha1.WeightPolicyStatus) { s.Conditions = nil }, true},
	} {
		if got := urgent(status(func(*v1alpha1.WeightPolicyStatus) {}), status(test.change)); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
