// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// pairOf renders the ring of edgeManifest in slot b, and one without c1 as its candidate in slot a.
func pairOf(t *testing.T) (*plan.Publication, *plan.Desired) {
	t.Helper()
	desired := builtOf(t, edgeManifest)
	desired.Slot = routing.SlotB
	desired.Candidate = &plan.Beside{
		Ring: builtOf(t, withoutC1).Ring, Revision: 6, Split: &routing.Split{Seed: 7, BasisPoints: map[string]int{"lab01": 50}},
	}
	p, err := plan.Render(plan.Ref{Namespace: "cdn", Name: "edge", UID: "5d3c"}, desired, plan.Numbers{Revision: 5, Generation: 9})
	if err != nil {
		t.Fatal(err)
	}
	return p, desired
}

// TestVerifyCandidate checks both rings of a migration, in a directory.
func TestVerifyCandidate(t *testing.T) {
	const a, b = "pair/ring-a.snap", "pair/ring-b.snap"
	for name, row := range map[string]struct {
		change func(t *testing.T)
		want   []string
	}{
		"nothing": {func(*testing.T) {}, nil},
		"a damaged candidate": {func(t *testing.T) { damage(t, a) }, []string{
			"failed " + a + ": has the digest that routing.json names for the candidate", "failed " + a + ": is in canonical form",
			"skipped " + a + ": building its backends again gives the same bytes", "skipped " + a + ": has the algorithm that routing.json names",
		}},
		"an empty slot of the candidate": {func(t *testing.T) { write(t, a, string(ring.EmptySlot())) }, []string{
			"failed " + a + ": has the digest that routing.json names for the candidate", "failed " + a + ": is in canonical form",
			"skipped " + a + ": building its backends again gives the same bytes", "skipped " + a + ": has the algorithm that routing.json names",
		}},
		"both the same": {func(t *testing.T) {
			data, err := os.ReadFile(b)
			if err != nil {
				t.Fatal(err)
			}
			write(t, a, string(data))
		}, []string{"failed " + a + ": has the digest that routing.json names for the candidate"}},
	} {
		t.Run(name, func(t *testing.T) {
			workdir(t, nil)
			p, _ := pairOf(t)
			if err := os.Mkdir("pair", 0o755); err != nil {
				t.Fatal(err)
			}
			for file, data := range p.Files() {
				write(t, "pair/"+file, string(data))
			}
			row.change(t)
			report, _ := verifyOf(t, "--dir", "pair")
			if diff := cmp.Diff(row.want, notOK(report)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if out := succeed(t, "", "inspect", "--dir", "pair"); !strings.Contains(out, "10.0.0.1:8080") {
				t.Errorf("inspect shows another ring than the one that answers:\n%s", out)
			}
		})
	}
}

// TestVerifyCandidateOfACluster also compares the status.
func TestVerifyCandidateOfACluster(t *testing.T) {
	skipped := []string{"skipped edge.yaml: gives the published routing.json"}
	for name, row := range map[string]struct {
		change   func(r *v1alpha1.HashRing)
		manifest string
		want     []string
	}{
		"nothing":                     {func(*v1alpha1.HashRing) {}, edgeManifest, skipped},
		"a manifest of the candidate": {func(*v1alpha1.HashRing) {}, withoutC1, skipped},
		"a manifest of neither": {func(*v1alpha1.HashRing) {}, trimmedV3, append(
			[]string{"failed edge.yaml: gives the published snapshot, or the candidate"}, skipped...)},
		"another candidate in the status": {
			func(r *v1alpha1.HashRing) { r.Status.Candidate.Revision = 7 }, edgeManifest,
			append([]string{"failed HashRing cdn/edge: status.candidate is what is published"}, skipped...),
		},
		"none in the status": {
			func(r *v1alpha1.HashRing) { r.Status.Candidate = nil }, edgeManifest,
			append([]string{"skipped HashRing cdn/edge: status.candidate is what is published"}, skipped...),
		},
		"another slot in the status": {
			func(r *v1alpha1.HashRing) { r.Status.Active.Slot = v1alpha1.SlotA }, edgeManifest,
			append([]string{"failed HashRing cdn/edge: status.active is what is published"}, skipped...),
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, desired := pairOf(t)
			r := hashRingOf(t, edgeManifest)
			r.Status = v1alpha1.HashRingStatus{
				Active:     &v1alpha1.ActiveRing{Revision: 5, Digest: desired.Ring.Digest(), Slot: v1alpha1.SlotB},
				Candidate:  &v1alpha1.CandidateRing{Revision: 6, Digest: desired.Candidate.Ring.Digest(), Slot: v1alpha1.SlotA},
				Routing:    &v1alpha1.Routing{Generation: 9, Digest: p.RoutingDigest},
				Conditions: []metav1.Condition{{Type: string(v1alpha1.ConditionPublished), Status: metav1.ConditionTrue}},
			}
			r.Status.ObservedGeneration = r.Generation
			row.change(r)
			objects := []client.Object{r}
			for _, cm := range p.ConfigMaps {
				objects = append(objects, &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: "cdn", Name: cm.Name, Annotations: cm.Annotations}, Data: cm.Data, BinaryData: cm.BinaryData,
				})
			}
			read, err := cluster{reader: liveOf(t, objects...).client, namespace: "cdn", name: "edge", again: publicationTime}.read(t.Context(), everything)
			if err != nil {
				t.Fatal(err)
			}
			v := verify(read)
			v.checkManifest("edge.yaml", hashRingOf(t, row.manifest))
			if diff := cmp.Diff(row.want, notOK(*v.report)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestHistoryShowsTheCandidate, but not one that is built and waits.
func TestHistoryShowsTheCandidate(t *testing.T) {
	for slot, want := range map[v1alpha1.Slot]string{"": "-", v1alpha1.SlotB: "candidate"} {
		objects := append(publishedAs(t, 1, withoutC1), recordOf(t, 1, withoutC1), recordOf(t, 2, edgeManifest))
		ringIn(t, objects).Status.Candidate = &v1alpha1.CandidateRing{Revision: 2, Slot: slot}
		report, err := liveOf(t, objects...).history(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		report.print(&out)
		rows := strings.Split(strings.TrimSpace(out.String()), "\n")
		if got := strings.Fields(rows[2]); got[len(got)-1] != want {
			t.Errorf("candidate in slot %q: %s", slot, rows[2])
		}
	}
}

func TestFrozenBy(t *testing.T) {
	lock := func(phase v1alpha1.LockPhase) *v1alpha1.RingLock {
		return &v1alpha1.RingLock{Name: "move", Phase: phase}
	}
	candidate := &v1alpha1.CandidateRing{Slot: v1alpha1.SlotB}
	for name, row := range map[string]struct {
		status v1alpha1.HashRingStatus
		want   string
	}{
		"nothing":                  {v1alpha1.HashRingStatus{}, ""},
		"a lock":                   {v1alpha1.HashRingStatus{Migration: lock(v1alpha1.LockLocked), Candidate: candidate}, ""},
		"a candidate that waits":   {v1alpha1.HashRingStatus{Candidate: &v1alpha1.CandidateRing{}}, ""},
		"a migration":              {v1alpha1.HashRingStatus{Migration: lock(v1alpha1.LockSplit)}, "RingMigration move has the ring, and"},
		"a candidate that is left": {v1alpha1.HashRingStatus{Candidate: candidate}, "a candidate is published, and"},
	} {
		if got := frozenBy(&v1alpha1.HashRing{Status: row.status}); !strings.HasPrefix(got, row.want) || (got == "") != (row.want == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
