// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// printedHistory returns what "history" prints in a format.
func printedHistory(t *testing.T, as format, objects ...client.Object) string {
	t.Helper()
	report, err := liveOf(t, objects...).history(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&formatFlag{value: as}).print(&out, report, func(w io.Writer) { report.print(w) }); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestHistory(t *testing.T) {
	objects := append(history(t), recordOf(t, 11, trimmedV3))
	ringIn(t, objects).Spec.PinnedRevision = ptr.To[int64](3)
	for name, as := range map[string]format{"history-table": formatTable, "history-json": formatJSON, "history-yaml": formatYAML} {
		t.Run(name, func(t *testing.T) { assertGolden(t, name, printedHistory(t, as, objects...)) })
	}
}

// TestHistoryOfWhatIsNotAsItShallBe: what somebody else made is not listed, and what cannot be read is, with the reason.
func TestHistoryOfWhatIsNotAsItShallBe(t *testing.T) {
	objects := publishedAs(t, 4, edgeManifest)
	ringIn(t, objects).Spec.PinnedRevision = ptr.To[int64](9)
	edited, misnamed, foreign := recordOf(t, 2, edgeManifest), recordOf(t, 3, edgeManifest), recordOf(t, 5, edgeManifest)
	edited.Data = runtime.RawExtension{Raw: []byte(`{"digest":"sha256:00","recipe":"AAAA"}`)}
	misnamed.Name = "edge-33"
	foreign.Labels[v1alpha1.LabelManagedBy] = "helm"
	list := printedHistory(t, formatTable, append(objects, edited, misnamed, foreign, recordOf(t, 4, edgeManifest))...)
	assertGolden(t, "history-problems", list)
}

func TestHistoryOfRingsThatAreGone(t *testing.T) {
	if _, err := liveOf(t).history(t.Context()); err == nil {
		t.Error("a ring that never was has a history")
	}
	wantContains(t, printedHistory(t, formatTable, recordOf(t, 2, edgeManifest)), "\nnote: HashRing cdn/edge does not exist: this is what it left\n")
	got := printedHistory(t, formatTable, hashRingOf(t, edgeManifest))
	if got != "No revision of HashRing cdn/edge is kept.\n" {
		t.Errorf("got %q", got)
	}
}

// TestHistoryDoesNotBuildRings: a recipe can be of a thousand times as many points as a reader builds.
func TestHistoryDoesNotBuildRings(t *testing.T) {
	large := strings.Replace(edgeManifest, "{pointsPerWeight: 16}", "{version: V1}", 1) + "  publication: {encoding: Recipe}\n"
	record := recordOf(t, 1, large)
	allocated := testing.AllocsPerRun(5, func() { summarize(record) })
	if kept := summarize(record); kept.problem != nil || kept.points != 6400 || allocated > 300 {
		t.Errorf("%v: %d points, %v allocations", kept.problem, kept.points, allocated)
	}
}

func TestSideRefusesWhatIsNotKept(t *testing.T) {
	live := liveOf(t, history(t)...)
	_, err := live.side(t.Context(), 1)
	wantError(t, err, "revision 1 of HashRing cdn/edge is not kept: it must be one of 2, 3, 4")
	_, err = liveOf(t).side(t.Context(), 1)
	wantError(t, err, "revision 1 of HashRing cdn/edge is not kept, and no other is")

	foreign := recordOf(t, 7, edgeManifest)
	foreign.Labels = nil
	_, err = liveOf(t, foreign).side(t.Context(), 7)
	wantError(t, err, "revision 7 of HashRing cdn/edge is not kept")
	for want, data := range map[string]string{
		"ControllerRevision cdn/edge-7: snapshot: magic at byte 0: not a Ringwright snapshot":                  `{"digest":"sha256:00","recipe":"AAAA"}`,
		"ControllerRevision cdn/edge-7: reading the data of ControllerRevision edge-7: json: cannot unmarshal": `{"digest":7}`,
	} {
		record := recordOf(t, 7, edgeManifest)
		record.Data.Raw = []byte(data)
		_, err := reopenedSide(t, record)
		wantError(t, err, want)
	}
	record := recordOf(t, 7, edgeManifest)
	record.Data.Raw = bytes.Replace(record.Data.Raw, []byte(`"digest":"sha256:`), []byte(`"digest":"sha256:ff`), 1)
	_, err = reopenedSide(t, record)
	wantError(t, err, "its recipe gives the snapshot sha256:")
}

func reopenedSide(t *testing.T, record *appsv1.ControllerRevision) (*planSide, error) {
	t.Helper()
	return liveOf(t, record).side(t.Context(), record.Revision)
}

// TestSideHasThePublishedBytes, of whatever encoding.
func TestSideHasThePublishedBytes(t *testing.T) {
	for name, manifest := range map[string]string{
		"points": edgeManifest, "trimmed": trimmedV3, "recipe": edgeManifest + "  publication: {encoding: Recipe}\n",
	} {
		t.Run(name, func(t *testing.T) {
			side, err := liveOf(t, recordOf(t, 7, manifest)).side(t.Context(), 7)
			if err != nil {
				t.Fatal(err)
			}
			want := builtOf(t, manifest).Ring
			if side.digest != want.Digest() || side.bytes != len(want.Snapshot()) || side.encoding.String() != string(want.Encoding()) {
				t.Errorf("got %s of %d bytes as %s, want %s of %d as %s", side.digest, side.bytes, side.encoding,
					want.Digest(), len(want.Snapshot()), want.Encoding())
			}
		})
	}
}
