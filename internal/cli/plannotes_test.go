// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// TestPlanListsTheBackendsThatMoveMost, in the order of the report, and counts the others. JSON has all.
func TestPlanListsTheBackendsThatMoveMost(t *testing.T) {
	report := PlanReport{Backends: []BackendChange{{ID: "a", Lost: 0.1}, {ID: "b", Lost: 0.3}, {ID: "c", Gained: 0.2, Lost: 0.15}, {ID: "d", Gained: 0.2}}}
	for i := range report.Backends {
		report.Backends[i].WeightAfter = new(uint32)
	}
	for count, want := range map[int]string{
		0: "BACKEND a b c d", 4: "BACKEND a b c d",
		3: "BACKEND b c d 1 backend that gains and loses less is not shown: --backends 0 shows all",
		2: "BACKEND b c 2 backends that gain and lose less are not shown: --backends 0 shows all",
	} {
		var out strings.Builder
		report.printBackends(&out, count)
		var words []string
		for line := range strings.Lines(out.String()) {
			name, _, _ := strings.Cut(strings.TrimSpace(line), "   ")
			words = append(words, name)
		}
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%d: got %q, want %q", count, got, want)
		}
	}
	workdir(t, map[string]string{"smaller.yaml": edited(t, edgeManifest, edgeC2, "")})
	if all := planOf(t, "-f", "smaller.yaml", "--from", "edge", "--backends", "1").Backends; len(all) != 3 {
		t.Errorf("%d backends in JSON", len(all))
	}
	out := run(t, "", "plan", "-f", "smaller.yaml", "--from", "edge", "--backends", "1").out
	if pairs, views, backends := strings.Index(out, "FROM "), strings.Index(out, "VIEW "), strings.Index(out, "BACKEND "); pairs < 0 || views < pairs || backends < views {
		t.Errorf("pairs, views and backends are at %d, %d, %d", pairs, views, backends)
	}
	wantContains(t, out, "2 backends that gain and lose less are not shown")
}

// TestPlanSaysThatTheOtherIsAnotherRing, of a directory and of a snapshot in one; a lone snapshot does not tell.
func TestPlanSaysThatTheOtherIsAnotherRing(t *testing.T) {
	workdir(t, map[string]string{"eu.yaml": edited(t, edgeManifest, "namespace: cdn", "namespace: eu")})
	for _, from := range []string{"directory edge", "file edge/ring-a.snap"} {
		_, path, _ := strings.Cut(from, " ")
		want := []string{from + " is of another ring, HashRing cdn/edge"}
		if diff := cmp.Diff(want, planOf(t, "-f", "eu.yaml", "--from", path).Notes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", from, diff)
		}
		if notes := planOf(t, "-f", "edge.yaml", "--from", path).Notes; notes != nil {
			t.Errorf("%s is of this ring: %q", from, notes)
		}
	}
	write(t, "alone/ring-a.snap", read(t, "edge/ring-a.snap"))
	write(t, "beside/ring-a.snap", read(t, "edge/ring-a.snap"))
	write(t, "beside/routing.json", read(t, "shards/routing.json"))
	for _, path := range []string{"alone/ring-a.snap", "beside/ring-a.snap"} {
		if notes := planOf(t, "-f", "eu.yaml", "--from", path).Notes; notes != nil {
			t.Errorf("%s: %q", path, notes)
		}
	}
}

// TestPlanDoesNotOpenTheSameRingTwice: neither the same snapshot nor a recipe of the same ring is built again, and both are
// described as they are.
func TestPlanDoesNotOpenTheSameRingTwice(t *testing.T) {
	workdir(t, map[string]string{"recipe.yaml": recipeManifest(t)})
	side := func(file string, previous *planSide) *planSide {
		hashRing, err := manifestRef{file: file}.load(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		side, err := planned(hashRing, previous)
		if err != nil {
			t.Fatal(err)
		}
		return side
	}
	points, recipe := side("edge.yaml", &planSide{}), side("recipe.yaml", &planSide{})
	for name, test := range map[string]struct {
		before *planSide
		file   string
		again  bool
	}{
		"points as before": {points, "edge.yaml", false}, "a recipe as before": {recipe, "recipe.yaml", false},
		"points to a recipe": {points, "recipe.yaml", false}, "a recipe to points": {recipe, "edge.yaml", true},
	} {
		got := side(test.file, test.before)
		if again := got.ring != test.before.ring; again != test.again {
			t.Errorf("%s: opened again: %v", name, again)
		}
		want := describeRing(points.ring)
		if test.file == "recipe.yaml" {
			want = describeRing(recipe.ring)
		}
		if diff := cmp.Diff(want, got.describe()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if !(comparison{before: test.before, after: got}).same() {
			t.Errorf("%s: compared", name)
		}
	}
}

// TestPlanDoesNotCompareTheSameRing: of two snapshots of the same digest nothing is asked, which two different rings show.
func TestPlanDoesNotCompareTheSameRing(t *testing.T) {
	build := func(backends int) *planSide {
		c := numberedFleet(backends, []uint32{1})
		c.Algorithm = ring.Algorithm{Version: ring.V2, PointsPerWeight: 10}
		r, err := ring.Build(c)
		if err != nil {
			t.Fatal(err)
		}
		return newPlanSide(r, "x")
	}
	c := comparison{before: build(2), after: build(3), pairs: 10}
	if report, err := c.report(); err != nil || report.Outcome != PlanMoves || report.MovedPositions == 0 || c.same() {
		t.Errorf("%+v, %v", report, err)
	}
	c.after.digest = c.before.digest
	report, err := c.report()
	if err != nil || report.Outcome != PlanUnchanged || report.MovedPositions != 0 || report.Backends != nil || report.Pairs != nil || report.Views != nil {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestPlanWarnsOfTheSpec as build does.
func TestPlanWarnsOfTheSpec(t *testing.T) {
	workdir(t, map[string]string{
		"old.yaml": strings.Replace(trimmedManifest, "version: V3, pointsPerWeight: 40, weightUnit: 500, maxImbalance: \"0.5%\"", "version: V2, pointsPerWeight: 1", 1),
		"new.yaml": strings.Replace(trimmedManifest, "version: V3, pointsPerWeight: 40, weightUnit: 500", "version: V2, pointsPerWeight: 1", 1),
	})
	out := succeed(t, "", "plan", "-f", "new.yaml", "--from", "old.yaml", "-o", "json")
	wantContains(t, out, "FieldWithoutEffect")
	wantContains(t, out, "spec.algorithm.maxImbalance")
}
