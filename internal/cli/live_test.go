// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// liveOf returns a ring in a store of objects. It stands in for an API server where only reading matters; test/cli has a real
// one.
func liveOf(t *testing.T, objects ...client.Object) liveRing {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return liveRing{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), namespace: "cdn", name: "edge"}
}

// hashRingOf returns the HashRing of a manifest, with its defaults.
func hashRingOf(t *testing.T, manifest string) *v1alpha1.HashRing {
	t.Helper()
	objects, err := parseManifest("manifest", []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := manifestRef{}.admit(t.Context(), objects[0])
	if err != nil {
		t.Fatal(err)
	}
	ring.UID = "5d3c"
	return ring
}

func builtOf(t *testing.T, manifest string) *plan.Desired {
	t.Helper()
	desired, err := plan.Build(hashRingOf(t, manifest).Spec)
	if err != nil {
		t.Fatal(err)
	}
	return desired
}

// recordOf returns the record of a manifest's ring as the operator writes it.
func recordOf(t *testing.T, revision int64, manifest string) *appsv1.ControllerRevision {
	t.Helper()
	built := builtOf(t, manifest).Ring
	data, err := json.Marshal(map[string]any{"digest": built.Digest(), "recipe": built.Recipe()})
	if err != nil {
		t.Fatal(err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "cdn", Name: plan.RecordName("edge", revision),
			Labels: map[string]string{
				v1alpha1.LabelManagedBy: v1alpha1.ManagedByRingwright, v1alpha1.LabelRing: "edge",
			},
			CreationTimestamp: metav1.NewTime(time.Date(2026, 12, 1, 9, int(revision), 0, 0, time.FixedZone("", 3600))),
		},
		Revision: revision, Data: runtime.RawExtension{Raw: data},
	}
}

// publishedAs returns the ConfigMaps of a manifest's ring as those of a revision, and the HashRing itself.
func publishedAs(t *testing.T, revision int64, manifest string) []client.Object {
	t.Helper()
	ring, desired := hashRingOf(t, manifest), builtOf(t, manifest)
	p, err := plan.Render(plan.Ref{Namespace: "cdn", Name: "edge"}, desired, plan.Numbers{Revision: revision, Generation: revision})
	if err != nil {
		t.Fatal(err)
	}
	ring.Status.Active = &v1alpha1.ActiveRing{Revision: revision, Digest: desired.Ring.Digest(), Slot: v1alpha1.SlotA}
	objects := []client.Object{ring}
	for _, cm := range p.ConfigMaps {
		objects = append(objects, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "cdn", Name: cm.Name, Annotations: cm.Annotations}, Data: cm.Data, BinaryData: cm.BinaryData,
		})
	}
	return objects
}

// Manifests of the same ring: without c1, then with V3.
var (
	withoutC1 = withoutLine(edgeManifest, "{name: c1,")
	trimmedV3 = strings.Replace(edgeManifest, "{pointsPerWeight: 16}", "{version: V3, pointsPerWeight: 16}", 1)
)

func withoutLine(text, part string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if !strings.Contains(line, part) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// history returns a ring with revisions 2 and 3, and 4 with the snapshot of 3, which is published.
func history(t *testing.T) []client.Object {
	t.Helper()
	return append(publishedAs(t, 4, edgeManifest), recordOf(t, 4, edgeManifest), recordOf(t, 3, edgeManifest), recordOf(t, 2, withoutC1))
}

// ringIn returns the HashRing among objects.
func ringIn(t *testing.T, objects []client.Object) *v1alpha1.HashRing {
	t.Helper()
	for _, object := range objects {
		if ring, ok := object.(*v1alpha1.HashRing); ok {
			return ring
		}
	}
	t.Fatal("no HashRing")
	return nil
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
