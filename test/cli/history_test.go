// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	applyv1alpha1 "github.com/ringwright/ringwright/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/cli"
	"github.com/ringwright/ringwright/pkg/ring"
)

const kept = `apiVersion: ringwright.dev/v1alpha1
kind: HashRing
metadata: {name: kept}
spec:
  publication: {minInterval: 0s}
  backends:
  - {name: a, address: 10.0.3.1, port: 80}
  - {name: b, address: 10.0.3.2, port: 80}
  - {name: c, address: 10.0.3.3, port: 80}
`

var _ = Describe("The history of a ring", Ordered, func() {
	var first, second *ring.Ring

	BeforeAll(func(ctx SpecContext) {
		stop := startOperator()
		publish(ctx, kept)
		first = publishedRing(ctx, "kept")
		publish(ctx, without(kept, "{name: c,"))
		second = publishedRing(ctx, "kept")
		stop() // What follows changes spec, and looks at that only.
	})

	It("lists the revisions that are kept", func(ctx SpecContext) {
		var report cli.HistoryReport
		Expect(json.Unmarshal([]byte(succeed(ctx, "history", "kept", "-o", "json")), &report)).To(Succeed())
		Expect(report.Published).To(BeEquivalentTo(2))
		Expect(report.Revisions).To(HaveLen(2))
		for i, r := range []*ring.Ring{first, second} {
			got := report.Revisions[i]
			Expect(got.Revision).To(BeEquivalentTo(i + 1))
			Expect(got.Digest).To(Equal(r.Digest()))
			Expect(got.Backends.Placed).To(Equal(r.Len()))
			Expect(got.Points).To(Equal(r.PointCount()))
			Expect(got.Published).To(Equal(i == 1))
			Expect(got.Pinned).To(BeFalse())
		}
	})

	It("is compared exactly, from the rings that were published", func(ctx SpecContext) {
		code, out, errOut := inCluster(ctx, "diff", "kept", "--from", "1", "-o", "json")
		Expect(code).To(Equal(cli.ExitMoves), errOut)
		Expect(errOut).To(BeEmpty())
		var report cli.PlanReport
		Expect(json.Unmarshal([]byte(out), &report)).To(Succeed())
		from, err := first.View()
		Expect(err).NotTo(HaveOccurred())
		to, err := second.View()
		Expect(err).NotTo(HaveOccurred())
		Expect(report.MovedPositions).To(Equal(ring.Compare(from, to).Total))
		Expect(report.Before.Snapshot.Digest).To(Equal(first.Digest()))
		Expect(report.Before.Snapshot.Bytes).To(Equal(len(first.Snapshot())))
		Expect(report.After.Snapshot.Digest).To(Equal(second.Digest()))

		code, _, errOut = inCluster(ctx, "diff", "kept", "--from", "2", "--to", "published")
		Expect(code).To(Equal(cli.ExitOK), errOut)
		code, _, errOut = inCluster(ctx, "diff", "kept", "--from", "7")
		Expect(code).To(Equal(cli.ExitPlanFailed))
		Expect(errOut).To(Equal(fmt.Sprintf("error: revision 7 of HashRing %s/kept is not kept: it must be one of 1, 2\n", namespace)))
	})

	It("is gone back in by a pin, which is all that is written", func(ctx SpecContext) {
		before := hashRingNamed(ctx, "kept")
		out := succeed(ctx, "rollback", "kept", "--dry-run")
		Expect(out).To(ContainSubstring(" of the key space moves.\n"))
		Expect(out).To(HaveSuffix("would be pinned to revision 1: nothing was changed.\n"))
		Expect(hashRingNamed(ctx, "kept").ResourceVersion).To(Equal(before.ResourceVersion))

		out = succeed(ctx, "rollback", "kept")
		Expect(out).To(ContainSubstring(namespace + "/kept, revision 1, compared with revision 2 (published)\n"))
		Expect(out).To(HaveSuffix("note: under GitOps set spec.pinnedRevision in Git as well, where the ring is described\n"))
		after := hashRingNamed(ctx, "kept")
		Expect(after.Spec.PinnedRevision).To(HaveValue(BeEquivalentTo(1)))
		Expect(managedBy(after, "kubectl-hashring")).To(ConsistOf(`Apply {"f:spec":{"f:pinnedRevision":{}}}`))
		after.Spec.PinnedRevision = nil
		Expect(after.Spec).To(Equal(before.Spec))

		Expect(succeed(ctx, "history", "kept")).To(MatchRegexp(`(?m)^1 .* pinned$`))
		Expect(succeed(ctx, "rollback", "kept", "--to-revision", "1")).To(ContainSubstring("is pinned to revision 1 already.\n"))
		code, _, errOut := inCluster(ctx, "rollback", "kept")
		Expect(code).To(Equal(cli.ExitFailure))
		Expect(errOut).To(ContainSubstring("no revision of HashRing " + namespace + "/kept before revision 1 is kept"))
	})

	It("is followed again without the pin", func(ctx SpecContext) {
		Expect(succeed(ctx, "rollback", "kept", "--unpin", "--dry-run")).To(HaveSuffix("would no longer be pinned to revision 1: nothing was changed.\n"))
		Expect(hashRingNamed(ctx, "kept").Spec.PinnedRevision).NotTo(BeNil())
		Expect(succeed(ctx, "rollback", "kept", "--unpin")).To(ContainSubstring("is no longer pinned to revision 1: it follows spec again.\n"))
		Expect(hashRingNamed(ctx, "kept").Spec.PinnedRevision).To(BeNil())
		Expect(succeed(ctx, "rollback", "kept", "--unpin")).To(HaveSuffix("HashRing " + namespace + "/kept is not pinned.\n"))
	})

	It("leaves a pin to whom it belongs, unless it is forced", func(ctx SpecContext) {
		git := applyv1alpha1.HashRing("kept", namespace).WithSpec(applyv1alpha1.HashRingSpec().WithPinnedRevision(2))
		Expect(admin.Apply(ctx, git, client.FieldOwner("argocd-controller"))).To(Succeed())
		code, _, errOut := inCluster(ctx, "rollback", "kept", "--to-revision", "1")
		Expect(code).To(Equal(cli.ExitFailure))
		Expect(errOut).To(And(ContainSubstring(`conflict with "argocd-controller"`), ContainSubstring("or use --force-conflicts")))
		Expect(hashRingNamed(ctx, "kept").Spec.PinnedRevision).To(HaveValue(BeEquivalentTo(2)))
		succeed(ctx, "rollback", "kept", "--to-revision", "1", "--force-conflicts")
		Expect(hashRingNamed(ctx, "kept").Spec.PinnedRevision).To(HaveValue(BeEquivalentTo(1)))
		succeed(ctx, "rollback", "kept", "--unpin")
		Expect(hashRingNamed(ctx, "kept").Spec.PinnedRevision).To(BeNil())
	})

	It("refuses to pin what is not kept", func(ctx SpecContext) {
		code, _, errOut := inCluster(ctx, "rollback", "kept", "--to-revision", "7")
		Expect(code).To(Equal(cli.ExitFailure))
		Expect(errOut).To(ContainSubstring("is not kept: it must be one of 1, 2"))
		code, _, errOut = inCluster(ctx, "rollback", "nope")
		Expect(code).To(Equal(cli.ExitFailure))
		Expect(errOut).To(ContainSubstring(`hashrings.ringwright.dev "nope" not found`))
	})
})

var _ = Describe("A hold", func() {
	It("is released by its token, and a pin is kept thereby", func(ctx SpecContext) {
		held := strings.Replace(kept, "name: kept", "name: held", 1)
		publishLater(ctx, held)
		code, _, errOut := inCluster(ctx, "release", "held")
		Expect(code).To(Equal(cli.ExitFailure))
		Expect(errOut).To(Equal("error: HashRing " + namespace + "/held is not held: there is nothing to release\n"))

		setHold(ctx, "held", applyv1alpha1.Hold().WithReason(v1alpha1.ReasonPinned).WithSince(metav1.Now()))
		code, _, errOut = inCluster(ctx, "release", "held")
		Expect(code).To(Equal(cli.ExitFailure))
		Expect(errOut).To(ContainSubstring("rollback held -n " + namespace + " --unpin"))

		pin := applyv1alpha1.HashRing("held", namespace).WithSpec(applyv1alpha1.HashRingSpec().WithPinnedRevision(1))
		Expect(admin.Apply(ctx, pin, client.FieldOwner("kubectl-hashring"))).To(Succeed())
		setHold(ctx, "held", applyv1alpha1.Hold().WithReason(v1alpha1.ReasonSuddenLoss).WithSince(metav1.Now()).WithToken("b1946ac9").
			WithBackends("10.0.3.1:80", "10.0.3.2:80").WithCount(2))
		Expect(succeed(ctx, "release", "held", "--dry-run")).To(HaveSuffix("would be released: nothing was changed.\n"))
		Expect(hashRingNamed(ctx, "held").Annotations).NotTo(HaveKey(v1alpha1.AnnotationRelease))
		Expect(succeed(ctx, "release", "held")).To(ContainSubstring("  10.0.3.2:80\n"))
		ring := hashRingNamed(ctx, "held")
		Expect(ring.Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationRelease, "b1946ac9"))
		Expect(ring.Spec.PinnedRevision).To(HaveValue(BeEquivalentTo(1)))
		Expect(succeed(ctx, "release", "held")).To(ContainSubstring("has been released already"))

		By("another loss, which has another token")
		setHold(ctx, "held", applyv1alpha1.Hold().WithReason(v1alpha1.ReasonSuddenLoss).WithSince(metav1.Now()).WithToken("cafe"))
		succeed(ctx, "release", "held")
		Expect(hashRingNamed(ctx, "held").Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationRelease, "cafe"))
	})
})

// publishLater creates the HashRing of a manifest where no operator runs.
func publishLater(ctx context.Context, manifest string) {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(manifest), &object.Object)).To(Succeed())
	object.SetNamespace(namespace)
	Expect(controlPlane.Apply(ctx, object)).To(Succeed())
}

func hashRingNamed(ctx context.Context, name string) *v1alpha1.HashRing {
	GinkgoHelper()
	ring := &v1alpha1.HashRing{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, ring)).To(Succeed())
	return ring
}

// setHold writes status.hold as the operator would.
func setHold(ctx context.Context, name string, hold *applyv1alpha1.HoldApplyConfiguration) {
	GinkgoHelper()
	status := applyv1alpha1.HashRing(name, namespace).WithStatus(applyv1alpha1.HashRingStatus().WithHold(hold))
	Expect(admin.Status().Apply(ctx, status, client.FieldOwner(v1alpha1.FieldManager))).To(Succeed())
}

// managedBy returns the fields of a manager, behind the operation that set them.
func managedBy(ring *v1alpha1.HashRing, manager string) []string {
	var list []string
	for _, entry := range ring.ManagedFields {
		if entry.Manager == manager {
			list = append(list, string(entry.Operation)+" "+entry.FieldsV1.GetRawString())
		}
	}
	return list
}
