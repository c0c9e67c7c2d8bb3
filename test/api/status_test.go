// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

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
		WithBackends(applyv1alpha1.BackendCounts().WithTotal(2).WithPlaced(2).WithDrained(0)).
		WithSnapshot(applyv1alpha1.SnapshotSize().WithPoints(320).WithBytes(1536).WithBytesPerPoint("4.80").
			WithEncoding(v1alpha1.EncodingPoints).WithChunks(2).WithBudgetUsed("57%")).
		WithBalance(applyv1alpha1.Balance().
			WithMaxOverAverage("1.004").WithCoefficientOfVariation("0.40%").WithPredicted("5.58%").
			WithWorstView(applyv1alpha1.ViewBalance().WithFeatures("eu", "ssd").WithMaxOverAverage("1.005"))).
		WithRouting(applyv1alpha1.Routing().WithGeneration(7).WithDigest(digest)).
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
			"Max/Avg=1.004", "Revision=3", "Ready=True", HavePrefix("Age=")))
		Expect(wide).To(HaveExactElements(HavePrefix("Digest=sha256:e3b0"), "Identity=Address"))
	})

	It("refuses a reason that is not in the list", func(ctx SpecContext) {
		Expect(apply(ctx, hashRing("bad-status", `{spec: {}}`))).To(Succeed())
		status := applyv1alpha1.HashRing("bad-status", namespace).WithStatus(applyv1alpha1.HashRingStatus().
			WithWarnings(applyv1alpha1.Warning().WithReason("Tuesday").WithMessage("it is")))
		Expect(api.Status().Apply(ctx, status, client.FieldOwner(v1alpha1.FieldManager))).
			To(MatchError(ContainSubstring("status.warnings[0].reason: Unsupported value: \"Tuesday\"")))
	})
})

// printedRow returns what kubectl get prints for a HashRing, as Column=value: the usual columns, and those of -o wide.
func printedRow(ctx context.Context, name string) (narrow, wide []string) {
	GinkgoHelper()
	tableConfig := rest.CopyConfig(config)
	tableConfig.APIPath = "/apis"
	tableConfig.GroupVersion = &v1alpha1.GroupVersion
	tableConfig.NegotiatedSerializer = serializer.WithoutConversionCodecFactory{CodecFactory: scheme.Codecs}
	rester, err := rest.RESTClientFor(tableConfig)
	Expect(err).NotTo(HaveOccurred())
	body, err := rester.Get().Namespace(namespace).Resource("hashrings").Name(name).
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
