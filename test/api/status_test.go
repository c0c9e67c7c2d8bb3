// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	applyv1alpha1 "github.com/ringwright/ringwright/api/v1alpha1/applyconfiguration/api/v1alpha1"
)

// fullStatus returns a status with every field set.
func fullStatus(name string) *applyv1alpha1.HashRingApplyConfiguration {
	const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	const otherDigest = "sha256:5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9"
	now := metav1.NewTime(time.Unix(1_800_000_000, 0))
	ready := applymetav1.Condition().
		WithType(string(v1alpha1.ConditionReady)).WithStatus(metav1.ConditionTrue).
		WithReason(string(v1alpha1.ReasonRingPublished)).WithMessage("published").
		WithObservedGeneration(1).WithLastTransitionTime(now)
	return applyv1alpha1.HashRing(name, namespace).WithStatus(applyv1alpha1.HashRingStatus().
		WithObservedGeneration(1).
		WithActive(applyv1alpha1.ActiveRing().
			WithRevision(3).
			WithDigest(digest).
			WithSlot(v1alpha1.SlotA).
			WithAlgorithm(applyv1alpha1.ActiveAlgorithm().WithVersion(v1alpha1.AlgorithmV3).WithPointsPerWeight(160).
				WithWeightUnit(1).WithMaxImbalance("0.5%")).
			WithPublishedAt(metav1.NewMicroTime(now.Time))).
		WithCandidate(applyv1alpha1.CandidateRing().
			WithRevision(4).
			WithDigest(otherDigest).
			WithAlgorithm(applyv1alpha1.ActiveAlgorithm().WithVersion(v1alpha1.AlgorithmV2).WithPointsPerWeight(40)).
			WithMovement("7.31%").WithReason(v1alpha1.ReasonAlgorithmChanged).
			WithPoints(80).WithBytes(700).WithMaxOverAverage("1.360")).
		WithPending(applyv1alpha1.PendingChange().WithMovement("0.42%").WithNextAt(now)).
		WithHold(applyv1alpha1.Hold().WithReason(v1alpha1.ReasonSuddenLoss).WithSince(now).WithToken("b1946ac92492d234").
			WithBackends("10.0.0.1:80").WithCount(1)).
		WithMembers(
			applyv1alpha1.MemberTransition().WithID("10.0.0.1:80").WithState(v1alpha1.MemberLeaving).WithSince(metav1.NewMicroTime(now.Time)),
			applyv1alpha1.MemberTransition().WithID("10.0.0.3:80").WithState(v1alpha1.MemberJoining).WithSince(metav1.NewMicroTime(now.Time))).
		WithBackends(applyv1alpha1.BackendCounts().WithTotal(2).WithPlaced(2).WithDrained(0).WithDown(1).WithJoining(1).WithLeaving(1)).
		WithSnapshot(applyv1alpha1.SnapshotSize().WithPoints(320).WithBytes(1536).WithBytesPerPoint("4.80").
			WithEncoding(v1alpha1.EncodingPoints).WithChunks(2).WithBudgetUsed("57%")).
		WithBalance(applyv1alpha1.Balance().
			WithMaxOverAverage("1.004").WithCoefficientOfVariation("0.40%").WithPredicted("5.58%").
			WithWorstView(applyv1alpha1.ViewBalance().WithFeatures("eu", "ssd").WithMaxOverAverage("1.005"))).
		WithRouting(applyv1alpha1.Routing().WithGeneration(7).WithDigest(digest)).
		WithMigration(applyv1alpha1.RingLock().WithName("to-v3").WithUID("0d9c").WithPhase(v1alpha1.LockSplit).
			WithCandidate(otherDigest).WithSeed(4294967295).
			WithSplit(applyv1alpha1.DatacenterShare().WithDatacenter("ams").WithBasisPoints(2500))).
		WithConsumers(fullConsumers()).
		WithWarnings(applyv1alpha1.Warning().WithReason(v1alpha1.WarningTieOrderBias).WithMessage("for the test"),
			applyv1alpha1.Warning().WithReason(v1alpha1.WarningImbalanceOverLimit).WithMessage("for the test"),
			applyv1alpha1.Warning().WithReason(v1alpha1.WarningFieldWithoutEffect).WithMessage("for the test")).
		WithConditions(ready))
}

var _ = Describe("The status", func() {
	It("holds every field and shows in the printer's columns", func(ctx SpecContext) {
		Expect(apply(ctx, hashRing("columns", `
spec:
  backends: [{name: a, address: 10.0.0.1, port: 80}, {name: b, address: 10.0.0.2, port: 80}]`))).To(Succeed())
		Expect(api.Status().Apply(ctx, fullStatus("columns"), client.FieldOwner(v1alpha1.FieldManager))).To(Succeed())

		status := get(ctx, "columns").Status
		Expect(status.Active.Revision).To(BeEquivalentTo(3))
		Expect(status.Warnings).To(HaveLen(3))
		Expect(status.Balance.WorstView.Features).To(Equal([]string{"eu", "ssd"}))

		narrow, wide := printedRow(ctx, "columns")
		Expect(narrow).To(HaveExactElements("Name=columns", "Algorithm=V2", "Placed=2", "Total=2", "Points=320",
			"Max/Avg=1.004", "Revision=3", "Ready=True", "Reason=RingPublished", HavePrefix("Age=")))
		Expect(wide).To(HaveExactElements(HavePrefix("Digest=sha256:e3b0"), HavePrefix("Candidate=sha256:5fec"), "Movement=7.31%",
			"Migration=to-v3", "Consumers=120", "Current=119", "Identity=Address"))
	})

	It("keeps every field of candidate, pending, hold, members and migration as it was written", func(ctx SpecContext) {
		Expect(apply(ctx, hashRing("fields", `{spec: {}}`))).To(Succeed())
		Expect(api.Status().Apply(ctx, fullStatus("fields"), client.FieldOwner(v1alpha1.FieldManager))).To(Succeed())
		status := get(ctx, "fields").Status
		at := time.Unix(1_800_000_000, 0)
		Expect(cmp.Diff(v1alpha1.HashRingStatus{
			Candidate: &v1alpha1.CandidateRing{
				Revision: 4, Digest: "sha256:5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9",
				Algorithm: v1alpha1.ActiveAlgorithm{Version: v1alpha1.AlgorithmV2, PointsPerWeight: 40},
				Movement:  "7.31%", Reason: v1alpha1.ReasonAlgorithmChanged, Points: 80, Bytes: 700, MaxOverAverage: "1.360",
			},
			Pending: &v1alpha1.PendingChange{Movement: "0.42%", NextAt: metav1.NewTime(at)},
			Hold: &v1alpha1.Hold{
				Reason: v1alpha1.ReasonSuddenLoss, Since: metav1.NewTime(at), Token: "b1946ac92492d234", Backends: []string{"10.0.0.1:80"}, Count: 1,
			},
			Members: []v1alpha1.MemberTransition{
				{ID: "10.0.0.1:80", State: v1alpha1.MemberLeaving, Since: metav1.NewMicroTime(at)},
				{ID: "10.0.0.3:80", State: v1alpha1.MemberJoining, Since: metav1.NewMicroTime(at)},
			},
			Backends: &v1alpha1.BackendCounts{Total: 2, Placed: 2, Down: 1, Joining: 1, Leaving: 1},
			Migration: &v1alpha1.RingLock{
				Name: "to-v3", UID: "0d9c", Phase: v1alpha1.LockSplit, Seed: 4294967295,
				Candidate: "sha256:5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9",
				Split:     []v1alpha1.DatacenterShare{{Datacenter: "ams", BasisPoints: 2500}},
			},
		}, v1alpha1.HashRingStatus{
			Candidate: status.Candidate, Pending: status.Pending, Hold: status.Hold, Members: status.Members, Backends: status.Backends,
			Migration: status.Migration,
		})).To(BeEmpty())
	})

	DescribeTable("refuses", func(ctx SpecContext, set func(*applyv1alpha1.HashRingStatusApplyConfiguration), want string) {
		Expect(apply(ctx, hashRing("bad-status", `{spec: {}}`))).To(Succeed())
		status := applyv1alpha1.HashRingStatus()
		set(status)
		ring := applyv1alpha1.HashRing("bad-status", namespace).WithStatus(status)
		Expect(api.Status().Apply(ctx, ring, client.FieldOwner(v1alpha1.FieldManager))).To(MatchError(ContainSubstring(want)))
	},
		Entry("a member in a state that there is not", func(s *applyv1alpha1.HashRingStatusApplyConfiguration) {
			s.WithMembers(applyv1alpha1.MemberTransition().WithID("a").WithState("Sleeping").WithSince(metav1.NowMicro()))
		}, `status.members[0].state: Unsupported value: "Sleeping"`),
		Entry("8,193 members", func(s *applyv1alpha1.HashRingStatusApplyConfiguration) {
			for i := range 8193 {
				s.WithMembers(applyv1alpha1.MemberTransition().WithID(fmt.Sprint(i)).WithState(v1alpha1.MemberJoining).WithSince(metav1.NowMicro()))
			}
		}, "status.members: Too many: 8193: must have at most 8192 items"),
		Entry("17 backends of a hold", func(s *applyv1alpha1.HashRingStatusApplyConfiguration) {
			s.WithHold(applyv1alpha1.Hold().WithReason(v1alpha1.ReasonSuddenLoss).WithSince(metav1.Now()).WithBackends(make([]string, 17)...))
		}, "status.hold.backends: Too many: 17: must have at most 16 items"),
		Entry("a candidate of no digest", func(s *applyv1alpha1.HashRingStatusApplyConfiguration) {
			s.WithCandidate(fullStatus("").Status.Candidate.WithDigest("5fec"))
		}, "status.candidate.digest: Invalid value"),
		Entry("a candidate of revision 0", func(s *applyv1alpha1.HashRingStatusApplyConfiguration) {
			s.WithCandidate(fullStatus("").Status.Candidate.WithRevision(0))
		}, "status.candidate.revision: Invalid value: 0"),
	)

	It("refuses a reason that is not in the list", func(ctx SpecContext) {
		Expect(apply(ctx, hashRing("bad-status", `{spec: {}}`))).To(Succeed())
		status := applyv1alpha1.HashRing("bad-status", namespace).WithStatus(applyv1alpha1.HashRingStatus().
			WithWarnings(applyv1alpha1.Warning().WithReason("Tuesday").WithMessage("it is")))
		Expect(api.Status().Apply(ctx, status, client.FieldOwner(v1alpha1.FieldManager))).
			To(MatchError(ContainSubstring("status.warnings[0].reason: Unsupported value: \"Tuesday\"")))
	})
})

// printedRow returns what kubectl get prints for a HashRing.
func printedRow(ctx context.Context, name string) (narrow, wide []string) {
	return printedRowOf(ctx, "hashrings", name)
}

// printedRowOf returns what kubectl get prints for an object, as Column=value: the usual columns, and those of -o wide.
func printedRowOf(ctx context.Context, resource, name string) (narrow, wide []string) {
	GinkgoHelper()
	tableConfig := rest.CopyConfig(config)
	tableConfig.APIPath = "/apis"
	tableConfig.GroupVersion = &v1alpha1.GroupVersion
	tableConfig.NegotiatedSerializer = serializer.WithoutConversionCodecFactory{CodecFactory: scheme.Codecs}
	rester, err := rest.RESTClientFor(tableConfig)
	Expect(err).NotTo(HaveOccurred())
	body, err := rester.Get().Namespace(namespace).Resource(resource).Name(name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Raw()
	Expect(err).NotTo(HaveOccurred())

	table := &metav1.Table{}
	Expect(json.Unmarshal(body, table)).To(Succeed())
	Expect(table.Rows).To(HaveLen(1))
	for i, column := range table.ColumnDefinitions {
		if entry := fmt.Sprintf("%s=%v", column.Name, table.Rows[0].Cells[i]); column.Priority == 0 {
			narrow = append(narrow, entry)
		} else {
			wide = append(wide, entry)
		}
	}
	return narrow, wide
}
