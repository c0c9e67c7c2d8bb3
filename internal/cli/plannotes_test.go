// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
)

// recipeManifest is edge.yaml published as a recipe.
func recipeManifest(t *testing.T) string {
	t.Helper()
	return edited(t, edgeManifest, "spec:\n", "spec:\n  publication: {encoding: Recipe}\n")
}

// TestPlanSaysWhatARecipeMeans: a row shows both encodings, and a note is there where the ring turns into a recipe, not where it
// is one already or turns back.
func TestPlanSaysWhatARecipeMeans(t *testing.T) {
	workdir(t, map[string]string{"recipe.yaml": recipeManifest(t)})
	got := run(t, "", "plan", "-f", "recipe.yaml", "--from", "edge")
	assertGolden(t, "plan-recipe", got.out)
	if got.code != ExitOK {
		t.Errorf("exit code %d", got.code)
	}
	if notes := planOf(t, "-f", "edge.yaml", "--from", "recipe.yaml").Notes; notes != nil {
		t.Errorf("back to points: %q", notes)
	}
	if notes := planOf(t, "-f", "recipe.yaml", "--from", "recipe.yaml").Notes; notes != nil {
		t.Errorf("a recipe as before: %q", notes)
	}
	if note := recipeNote(ring.DefaultMaxPoints); strings.Contains(note, "refuses") {
		t.Errorf("readers take it: %s", note)
	}
	wantContains(t, recipeNote(ring.DefaultMaxPoints+1), "builds 67,108,865 points in memory, and refuses more than 67,108,864 unless --max-points of the agent")
}

// TestPlanMeasuresAgainstTheChunks that the manifest allows; before the change the ones that are in use count.
func TestPlanMeasuresAgainstTheChunks(t *testing.T) {
	const chunks, few = "spec:\n  publication: {chunks: 4}\n", "pointsPerWeight: 16"
	large := edited(t, edited(t, edgeManifest, "spec:\n", chunks), few, "pointsPerWeight: 20000")
	workdir(t, map[string]string{"four.yaml": large, "one.yaml": edited(t, edgeManifest, "spec:\n", chunks)})
	report := planOf(t, "-f", "four.yaml", "--from", "edge")
	bytes := report.After.Snapshot.Bytes
	if a := report.After; bytes <= 1<<20 || bytes > 2<<20 || a.Chunks != 4 || a.ChunksInUse != 2 || a.PartOfChunks != round(float64(bytes)/(4<<20), 6) {
		t.Errorf("after: %d bytes, %d of %d chunks, part %f", bytes, a.ChunksInUse, a.Chunks, a.PartOfChunks)
	}
	if b := report.Before; b.Chunks != 0 || b.ChunksInUse != 1 || b.PartOfChunks != 0 {
		t.Errorf("before: %+v", b)
	}
	part := percent(float64(bytes)/(4<<20), 1)
	wantContains(t, run(t, "", "plan", "-f", "four.yaml", "--from", "edge").out, fmt.Sprintf("%d, %s of 4 chunks, 2 in use\n", bytes, part))
	wantContains(t, run(t, "", "plan", "-f", "edge.yaml", "--from", "four.yaml").out, fmt.Sprintf("bytes       %d, in 2 chunks", bytes))
	wantContains(t, run(t, "", "plan", "-f", "one.yaml", "--from", "edge").out, "2592, 0.1% of 4 chunks, 1 in use\n")
}
