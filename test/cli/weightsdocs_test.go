// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/testenv"
	"github.com/ringwright/ringwright/internal/testenv/golden"
	"github.com/ringwright/ringwright/internal/weighthistory"
)

// secondsAgo are the ages of reports, which depend on how long the examples take; the page has the same always.
var secondsAgo = regexp.MustCompile(`\b\ds ago`)

// The page is its own golden file, as docs/cli.md. Its statuses are written by the test: no balancer runs.
var _ = Describe("docs/weights-cli.md", func() {
	It("shows what its examples print", func(ctx SpecContext) {
		root, err := testenv.ModuleRoot()
		Expect(err).NotTo(HaveOccurred())
		path := filepath.Join(root, "docs", "weights-cli.md")
		page, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		manifests := blocks(string(page), "yaml")
		Expect(manifests).To(HaveLen(1))
		GinkgoT().Setenv("KUBECONFIG", kubeconfig)
		policy := &v1alpha1.WeightPolicy{}
		Expect(yaml.UnmarshalStrict([]byte(manifests[0]), policy)).To(Succeed())
		Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: policy.Namespace}})).To(Succeed())
		Expect(admin.Create(ctx, policy)).To(Succeed())
		for revision, version := range []int64{12, 20} {
			Expect(admin.Create(ctx, recordOf(policy, int64(revision+1), version))).To(Succeed())
		}
		balanced(ctx, policy)
		golden.Assert(GinkgoTB(), path, []byte(secondsAgo.ReplaceAllString(runExamples(ctx, string(page)), "4s ago")))
	})
})

// recordOf returns a record of the policy; the last one has the weights that are served.
func recordOf(policy *v1alpha1.WeightPolicy, revision, version int64) *appsv1.ControllerRevision {
	GinkgoHelper()
	weights := map[string]int32{"uid-a": 10000, "uid-b": 10000, "uid-c": 10000}
	if version == 20 {
		weights = map[string]int32{"uid-a": 11200, "uid-b": 8300, "uid-c": 10500}
	}
	data, err := weighthistory.Encode(weighthistory.Record{
		Version: version, At: time.Now(), Holder: "ringwright-balancer-0", Reason: "Rollout", MaxOverAverage: "1.120", Weights: weights,
	})
	Expect(err).NotTo(HaveOccurred())
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: policy.Namespace, Name: weighthistory.Name(policy.Name, revision), Labels: map[string]string{v1alpha1.LabelWeightPolicy: policy.Name},
		},
		Revision: revision, Data: data,
	}
}

// balanced writes what a balancer writes. Its times are 20 seconds off the full minutes, so that ages do not depend on how long the examples
// take, or now.
func balanced(ctx context.Context, policy *v1alpha1.WeightPolicy) {
	GinkgoHelper()
	since, now := metav1.NewTime(time.Now().Add(-20*time.Minute-20*time.Second)), metav1.Now()
	endpoint := func(name string, state v1alpha1.EndpointState, weight, computed int32, utilization int64) v1alpha1.WeightedEndpoint {
		return v1alpha1.WeightedEndpoint{
			ID: "uid-" + name, Name: "checkout-" + name, Address: "10.0.0.1", Port: 8080, Zone: "zone-a", State: state, Weight: weight, Computed: computed,
			Utilization: utilization, ReportedAt: &now, Source: v1alpha1.SourceLRS,
		}
	}
	Expect(admin.Create(ctx, &v1alpha1.WeightSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: policy.Namespace, Name: "checkout-0", Labels: map[string]string{v1alpha1.LabelWeightPolicy: "checkout"}},
		Policy:     v1alpha1.PolicyIdentity{Name: "checkout", UID: string(policy.UID)}, Version: 20, Sets: 1, Epoch: 2, Holder: "ringwright-balancer-0", UpdatedAt: now,
		Endpoints: []v1alpha1.WeightedEndpoint{
			endpoint("a", v1alpha1.EndpointBalanced, 11200, 14800, 4700), endpoint("b", v1alpha1.EndpointGuarded, 8300, 3200, 6200),
			endpoint("c", v1alpha1.EndpointBalanced, 10500, 12000, 4850),
		},
	})).To(Succeed())
	condition := func(kind v1alpha1.ConditionType, status metav1.ConditionStatus, reason v1alpha1.ConditionReason, message string) metav1.Condition {
		return metav1.Condition{
			Type: string(kind), Status: status, Reason: string(reason), Message: message, LastTransitionTime: since, ObservedGeneration: policy.Generation,
		}
	}
	policy.Status = v1alpha1.WeightPolicyStatus{
		ObservedGeneration: policy.Generation, UpdatedAt: &now, Utilization: "0.5250", MaxOverAverage: "1.181", P95OverAverage: "1.181", NoiseFloor: "1.010",
		PredictedMaxOverAverage: "1.015", Endpoints: &v1alpha1.EndpointCounts{Total: 3, Ready: 3, Reporting: 3, Guarded: 1},
		Sources: []v1alpha1.SourceStatus{
			{Type: v1alpha1.SourceLRS, Endpoints: 3}, {Type: v1alpha1.SourcePush}, {Type: v1alpha1.SourceMetrics, Message: "metrics.k8s.io is not served"},
		},
		Rollout: &v1alpha1.RolloutStatus{Percent: "25%", Since: since, Generation: policy.Generation, Digest: "sha256:1"},
		Weights: &v1alpha1.PublishedWeights{Version: 20, PublishedAt: since, Sets: 1},
		Shard:   &v1alpha1.ShardStatus{Holder: "ringwright-balancer-0", Epoch: 2},
		Conditions: []metav1.Condition{
			condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonWeightsServed, "version 20 is served"),
			condition(v1alpha1.ConditionReporting, metav1.ConditionTrue, v1alpha1.ReasonReportsFresh, "3 of 3 endpoints report"),
			condition(v1alpha1.ConditionConverged, metav1.ConditionFalse, v1alpha1.ReasonConverging, "max/avg is 1.181, the noise floor 1.010"),
			condition(v1alpha1.ConditionEffective, metav1.ConditionTrue, v1alpha1.ReasonBalancing, "the load follows the weights"),
		},
	}
	Expect(admin.Status().Update(ctx, policy)).To(Succeed())
	Expect(ptr.Deref(policy.Spec.Rollout.Percent, 0)).To(BeEquivalentTo(25))
}
