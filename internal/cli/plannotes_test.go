// SPDX-License-Identifier: Apache-2.0

package cli

import (
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
