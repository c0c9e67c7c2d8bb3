// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

var weighedAt = metav1.NewTime(time.Unix(1_800_000_000, 0))

// policyStatus is a status with every field, full to its bounds.
func policyStatus() v1alpha1.WeightPolicyStatus {
	number := strings.Repeat("1", 32)
	s := v1alpha1.WeightPolicyStatus{
		ObservedGeneration: 7, UpdatedAt: &weighedAt, Utilization: number, MaxOverAverage: number, P95OverAverage: number, NoiseFloor: number,
		PredictedMaxOverAverage: number, Endpoints: &v1alpha1.EndpointCounts{Total: 9, Ready: 8, Reporting: 7, Cold: 1, Clamped: 2, Guarded: 3},
		Rollout: &v1alpha1.RolloutStatus{
			Percent: "25.5%", Step: 1, Since: weighedAt, Generation: 7, BadSince: &weighedAt, Aborted: strings.Repeat("a", 1024), Digest: "sha256:" + strings.Repeat("0", 64),
		},
		Weights: &v1alpha1.PublishedWeights{Version: 41, PublishedAt: weighedAt, Sets: 2, Pinned: 3},
		Shard:   &v1alpha1.ShardStatus{Holder: strings.Repeat("h", 253), Epoch: 4},
		Conditions: items(16, func(i int) metav1.Condition {
			kinds := []string{"Ready", "Effective", "Converged", "Reporting"}
			kind := string(rune('A' + i))
			if i < len(kinds) {
				kind = kinds[i]
			}
			return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Reason" + kind, LastTransitionTime: weighedAt}
		}),
	}
	for _, source := range []v1alpha1.LoadSourceType{v1alpha1.SourceLRS, v1alpha1.SourcePush, v1alpha1.SourceORCA, v1alpha1.SourcePrometheus, v1alpha1.SourceMetrics} {
		s.Sources = append(s.Sources, v1alpha1.SourceStatus{Type: source, Endpoints: 5, Message: strings.Repeat("m", 1024)})
	}
	return s
}

// policyWithStatus returns a WeightPolicy with that status.
func policyWithStatus(ctx context.Context, name string) *v1alpha1.WeightPolicy {
	GinkgoHelper()
	object := ofKind("WeightPolicy", name, "spec: {"+toService+"}")
	Expect(apply(ctx, object)).To(Succeed())
	policy := &v1alpha1.WeightPolicy{}
	Expect(api.Get(ctx, keyOf(object), policy)).To(Succeed())
	policy.Status = policyStatus()
	Expect(api.Status().Update(ctx, policy)).To(Succeed())
	return policy
}

var _ = Describe("A WeightPolicy", func() {
	It("has what the documentation says by default", func(ctx SpecContext) {
		object := ofKind("WeightPolicy", "defaults", "spec: {"+toService+"}")
		Expect(apply(ctx, object)).To(Succeed())
		policy := &v1alpha1.WeightPolicy{}
		Expect(api.Get(ctx, keyOf(object), policy)).To(Succeed())
		want := v1alpha1.WeightPolicySpec{
			TargetRef: v1alpha1.WeightTarget{Kind: v1alpha1.TargetService, Name: "checkout"},
			Load: v1alpha1.LoadMeasurement{
				Metric: v1alpha1.MetricCPU, ErrorPenalty: "2",
				Sources: []v1alpha1.LoadSource{{Type: v1alpha1.SourceLRS}, {Type: v1alpha1.SourcePush}, {Type: v1alpha1.SourceMetrics}},
			},
			Strategy: v1alpha1.WeightStrategy{Type: v1alpha1.StrategyPID},
			Rollout:  v1alpha1.WeightRollout{From: v1alpha1.RolloutFrom{Type: v1alpha1.StrategyEqual}, Percent: ptr.To(int32(100))},
			Limits:   v1alpha1.WeightLimits{MinWeight: "0.1", MaxWeight: "8", MaxStep: "50%", ColdStartWeight: "0.1", MinReporting: "50%"},
			Publish:  v1alpha1.WeightPublication{EDS: v1alpha1.EDSPublication{Mode: v1alpha1.EDSAuto}},
			Deletion: v1alpha1.WeightDeletion{Tombstone: &metav1.Duration{Duration: 72 * time.Hour}},
		}
		Expect(cmp.Diff(want, policy.Spec)).To(BeEmpty())
		Expect(policy.Status.ObservedGeneration).To(BeEquivalentTo(-1), "kstatus would take it for current")
	})

	It("keeps its status as it is written, and prints what matters of it", func(ctx SpecContext) {
		policy := policyWithStatus(ctx, "reported")
		read := &v1alpha1.WeightPolicy{}
		Expect(api.Get(ctx, keyOf(policy), read)).To(Succeed())
		Expect(cmp.Diff(policyStatus(), read.Status)).To(BeEmpty())
		narrow, wide := printedRowOf(ctx, "weightpolicies", "reported")
		Expect(narrow[:8]).To(Equal([]string{
			"Name=reported", "Target=checkout", "Max/Avg=" + strings.Repeat("1", 32), "Reporting=7", "Endpoints=9", "Rollout=25.5%", "Ready=True", "Reason=ReasonReady",
		}))
		Expect(wide).To(Equal([]string{"Kind=Service", "Effective=ReasonEffective", "Holder=" + strings.Repeat("h", 253)}))
	})
})

var _ = DescribeTable("The status of a WeightPolicy is refused with", func(ctx SpecContext, set func(*v1alpha1.WeightPolicyStatus), want string) {
	policy := policyWithStatus(ctx, "bounds")
	set(&policy.Status)
	Expect(api.Status().Update(ctx, policy)).To(MatchError(ContainSubstring("status." + want)))
},
	Entry("33 characters of a utilisation", func(s *v1alpha1.WeightPolicyStatus) { s.Utilization += "1" }, "utilization: Too long: may not be more than 32"),
	Entry("33 characters of a ratio", func(s *v1alpha1.WeightPolicyStatus) { s.MaxOverAverage += "1" }, "maxOverAverage: Too long: may not be more than 32"),
	Entry("33 characters of the 95th percentile", func(s *v1alpha1.WeightPolicyStatus) { s.P95OverAverage += "1" }, "p95OverAverage: Too long: may not be more than 32"),
	Entry("33 characters of the noise floor", func(s *v1alpha1.WeightPolicyStatus) { s.NoiseFloor += "1" }, "noiseFloor: Too long: may not be more than 32"),
	Entry("33 characters of the prediction", func(s *v1alpha1.WeightPolicyStatus) { s.PredictedMaxOverAverage += "1" }, "predictedMaxOverAverage: Too long: may not be more than 32"),
	Entry("six sources", func(s *v1alpha1.WeightPolicyStatus) { s.Sources = append(s.Sources, s.Sources[0]) }, "sources: Too many: 6: must have at most 5 items"),
	Entry("a source that there is not", func(s *v1alpha1.WeightPolicyStatus) { s.Sources[0].Type = "SNMP" }, `sources[0].type: Unsupported value: "SNMP"`),
	Entry("1,025 characters of a source", func(s *v1alpha1.WeightPolicyStatus) { s.Sources[0].Message += "m" }, "sources[0].message: Too long: may not be more than 1024"),
	Entry("a percentage of 9 characters", func(s *v1alpha1.WeightPolicyStatus) { s.Rollout.Percent = "25.55555%" }, "rollout.percent: Too long: may not be more than 8"),
	Entry("1,025 characters of an abort", func(s *v1alpha1.WeightPolicyStatus) { s.Rollout.Aborted += "a" }, "rollout.aborted: Too long: may not be more than 1024"),
	Entry("a digest of 72 characters", func(s *v1alpha1.WeightPolicyStatus) { s.Rollout.Digest += "0" }, "rollout.digest: Too long: may not be more than 71"),
	Entry("a holder of 254 characters", func(s *v1alpha1.WeightPolicyStatus) { s.Shard.Holder += "h" }, "shard.holder: Too long: may not be more than 253"),
	Entry("17 conditions", func(s *v1alpha1.WeightPolicyStatus) { s.Conditions = make([]metav1.Condition, 17) }, "conditions: Too many: 17: must have at most 16 items"),
)
