// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/internal/testenv"
	"github.com/ringwright/ringwright/internal/testenv/golden"
	"github.com/ringwright/ringwright/pkg/routing"
)

// docsNamespace is that of the examples in docs/migration-cli.md.
const docsNamespace = "edge"

// The page is its own golden file, as docs/cli.md. Its statuses are written by the test: no operator runs.
var _ = Describe("docs/migration-cli.md", func() {
	It("shows what its examples print", func(ctx SpecContext) {
		root, err := testenv.ModuleRoot()
		Expect(err).NotTo(HaveOccurred())
		path := filepath.Join(root, "docs", "migration-cli.md")
		page, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		manifests := blocks(string(page), "yaml")
		Expect(manifests).To(HaveLen(2))
		base := fixtureStatus()
		GinkgoT().Chdir(GinkgoT().TempDir())
		GinkgoT().Setenv("KUBECONFIG", kubeconfig)
		Expect(os.WriteFile("migration.yaml", []byte(manifests[0]), 0o600)).To(Succeed())
		Expect(os.WriteFile("bold.yaml", []byte(manifests[1]), 0o600)).To(Succeed())
		Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: docsNamespace}})).To(Succeed())
		base.Rings[0].Candidate = publishPair(ctx)
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(manifests[0]), &object.Object)).To(Succeed())
		Expect(admin.Create(ctx, object)).To(Succeed())
		setMigration(ctx, docsNamespace, object.GetName(), func(s *v1alpha1.RingMigrationStatus) { *s = documented(base) })
		golden.Assert(GinkgoTB(), path, []byte(runExamples(ctx, string(page))))
	})
})

// documented is a status that waits for approval, and where somebody has paused. Its times are 20 seconds off the full ones, so that
// the ages on the page do not depend on how long the examples take.
func documented(s v1alpha1.RingMigrationStatus) v1alpha1.RingMigrationStatus {
	ago := func(d time.Duration) metav1.MicroTime {
		return metav1.NewMicroTime(time.Now().Add(-d - 20*time.Second))
	}
	s.Position = &v1alpha1.MigrationPosition{Stage: 0, StageName: "validation", Step: 1}
	s.StepPhase, s.Token = v1alpha1.StepAwaitingApproval, "1.1.2-6"
	s.Soak = &v1alpha1.SoakAccount{Required: metav1.Duration{Duration: 24 * time.Hour}, Credited: metav1.Duration{Duration: 24 * time.Hour}}
	s.Split = s.Split[2:]
	for i := range s.Datacenters[:2] {
		s.Datacenters[i].BasisPoints = 0
	}
	s.LastTransition = &v1alpha1.MigrationTransition{From: "Soaking", To: "AwaitingApproval", Event: "Done", At: ago(4 * time.Hour)}
	s.Gates[1] = v1alpha1.GateStatus{Name: "agents", Result: v1alpha1.GatePass, Value: "0", Samples: "2210", Answered: true}
	for i := range s.Gates {
		at := ago(10 * time.Minute)
		s.Gates[i].At = &at
	}
	s.Holds = []v1alpha1.MigrationHold{
		{Type: "Paused", Since: ago(3 * time.Hour), Detail: "by bob@example.com"},
		{Type: "AwaitingApproval", Since: ago(4 * time.Hour), Detail: "token 1.1.2-6"},
	}
	s.Paused = &v1alpha1.MigrationPause{By: "bob@example.com", At: ago(3 * time.Hour)}
	s.History = []v1alpha1.ActionRecord{
		{UID: "a", Type: v1alpha1.ActionPause, Actor: "bob@example.com", Reason: "network maintenance in lab02", At: ago(3 * time.Hour)},
		{UID: "b", Type: v1alpha1.ActionApprove, Token: "1.1.1-3", Actor: "ann@example.com", At: ago(2 * time.Hour), Refusal: "StaleStep"},
	}
	return s
}

// publishPair publishes a ring and its candidate, as in a migration, and a HashRing whose status says so. It returns the digest of the candidate.
func publishPair(ctx context.Context) string {
	GinkgoHelper()
	ring := &v1alpha1.HashRing{ObjectMeta: metav1.ObjectMeta{Namespace: docsNamespace, Name: "edge-cache"}}
	for _, n := range []string{"1", "2", "3"} {
		ring.Spec.Backends = append(ring.Spec.Backends, v1alpha1.Backend{Name: "c0" + n, Address: "10.0.0." + n, Port: ptr.To[int32](8080)})
	}
	Expect(admin.Create(ctx, ring)).To(Succeed())
	spec := *ring.Spec.DeepCopy()
	spec.Algorithm = v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV1, PointsPerWeight: 160}
	stable, err := plan.Build(spec)
	Expect(err).NotTo(HaveOccurred())
	candidate, err := plan.Build(ring.Spec)
	Expect(err).NotTo(HaveOccurred())
	to := routing.NewReference(routing.SlotB, candidate.Ring.Digest(), "V2", 1)
	text, err := routing.File{
		APIVersion: routing.APIVersion, Ring: docsNamespace + "/edge-cache", Generation: 7, Stable: routing.NewReference(routing.SlotA, stable.Ring.Digest(), "V1", 1),
		Candidate: &to, Split: &routing.Split{Seed: 2654435769, BasisPoints: map[string]int{"lab01": 10000, "lab02": 10000}},
	}.Encode()
	Expect(err).NotTo(HaveOccurred())
	for _, cm := range []*corev1.ConfigMap{
		{ObjectMeta: metav1.ObjectMeta{Name: "edge-cache-routing"}, Data: map[string]string{routing.FileName: string(text)}},
		{ObjectMeta: metav1.ObjectMeta{Name: "edge-cache-a"}, BinaryData: map[string][]byte{"ring-a.snap": stable.Ring.Snapshot()}},
		{ObjectMeta: metav1.ObjectMeta{Name: "edge-cache-b"}, BinaryData: map[string][]byte{"ring-b.snap": candidate.Ring.Snapshot()}},
	} {
		cm.Namespace = docsNamespace
		Expect(admin.Create(ctx, cm)).To(Succeed())
	}
	status := &ring.Status
	status.Snapshot = &v1alpha1.SnapshotSize{Points: 480, Bytes: int64(len(stable.Ring.Snapshot())), BytesPerPoint: "4.00"}
	status.Candidate = &v1alpha1.CandidateRing{
		Revision: 2, Digest: candidate.Ring.Digest(), Movement: "66.67%", Reason: v1alpha1.ReasonAlgorithmChanged, Points: 480,
		Algorithm: v1alpha1.ActiveAlgorithm{Version: v1alpha1.AlgorithmV2, PointsPerWeight: 160},
		Bytes:     int64(len(candidate.Ring.Snapshot())), MaxOverAverage: "1.050",
	}
	status.Consumers = &v1alpha1.ConsumerStatus{Generation: 7, Total: 82, Current: 82}
	for name, n := range map[string]int32{"ams01": 40, "fra02": 38, "lab01": 2, "lab02": 1, "sin01": 1} {
		status.Consumers.Datacenters = append(status.Consumers.Datacenters, v1alpha1.DatacenterConsumers{Name: name, Total: n, Current: n, Stable: n, Candidate: n})
	}
	Expect(admin.Status().Update(ctx, ring)).To(Succeed())
	return status.Candidate.Digest
}
