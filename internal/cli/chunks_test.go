// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/internal/materialize"
)

// chunkedManifest is the manifest of a ring whose points take two chunks, and may take as many as it is given.
func chunkedManifest(chunks int) string { return largeManifest(fmt.Sprintf("{chunks: %d}", chunks)) }

// largeManifest is the manifest of a ring of 480,000 points: as points it takes two chunks.
func largeManifest(publication string) string {
	return `apiVersion: ringwright.dev/v1alpha1
kind: HashRing
metadata: {name: edge, namespace: cdn}
spec:
  publication: ` + publication + `
  backends:
  - {name: c1, address: 10.0.0.1, port: 8080, weight: 1000}
  - {name: c2, address: 10.0.0.2, port: 8080, weight: 1000}
  - {name: c3, address: 10.0.0.3, port: 8080, weight: 1000}
`
}

func TestBuildInChunks(t *testing.T) {
	workdir(t, map[string]string{"large.yaml": chunkedManifest(3)})
	assertGolden(t, "build-chunks", succeed(t, "", "build", "-f", "large.yaml", "-o", "out"))
	for name, bytes := range map[string]int64{"ring-a.snap": 1 << 20, "ring-a.snap.2": 0, "ring-b.snap.2": 0} {
		if info, err := os.Stat(filepath.Join("out", name)); err != nil || info.Size() != bytes {
			t.Errorf("%s: %v, %v, want %d bytes", name, info, err, bytes)
		}
	}
	assertGolden(t, "verify-chunks", succeed(t, "", "verify", "--dir", "out", "-f", "large.yaml"))
	wantContains(t, succeed(t, "", "inspect", "--dir", "out"), "points      480000\n")

	whole := read(t, "out/ring-a.snap") + read(t, "out/ring-a.snap.1") + read(t, "out/ring-a.snap.2")
	write(t, "whole.snap", whole)
	want := succeed(t, "", "lookup", "--snapshot", "whole.snap", "a", "b", "c")
	if diff := cmp.Diff(want, succeed(t, "", "lookup", "--dir", "out", "a", "b", "c")); diff != "" {
		t.Errorf("chunks answer otherwise than the whole:\n%s", diff)
	}
	mounted := map[string][]byte{}
	for _, name := range []string{"ring-a.snap", "ring-a.snap.1", "routing.json"} {
		mounted[name] = []byte(read(t, filepath.Join("out", name)))
	}
	if err := materialize.Write("mount", mounted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, succeed(t, "", "lookup", "--dir", "mount", "a", "b", "c")); diff != "" {
		t.Errorf("a mount answers otherwise than the whole:\n%s", diff)
	}
}

// TestBuildWithOtherChunks crosses between one and several chunks, in both directions.
func TestBuildWithOtherChunks(t *testing.T) {
	workdir(t, map[string]string{"one.yaml": edgeManifest, "two.yaml": chunkedManifest(2), "more.yaml": chunkedManifest(4)})
	for _, step := range []struct {
		manifest   string
		outcome    BuildOutcome
		generation int64
		files      int
	}{
		{"two.yaml", BuildUpdated, 2, 5}, {"more.yaml", BuildUpdated, 2, 9}, {"more.yaml", BuildUnchanged, 2, 9},
		{"two.yaml", BuildUpdated, 2, 5}, {"one.yaml", BuildUpdated, 3, 3}, {"one.yaml", BuildUnchanged, 3, 3},
	} {
		got := buildOf(t, "-f", step.manifest, "-o", "edge")
		entries, err := os.ReadDir("edge")
		if err != nil || got.Outcome != step.outcome || got.Generation != step.generation || len(entries) != step.files {
			t.Errorf("%s: %s, generation %d, %d files, %v; want %+v", step.manifest, got.Outcome, got.Generation, len(entries), err, step)
		}
		succeed(t, "", "verify", "--dir", "edge", "-f", step.manifest)
	}
}

func TestBrokenChunks(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(t *testing.T)
		want   string
	}{
		"missing": {func(t *testing.T) { remove(t, "out/ring-a.snap.1") }, "out/ring-a.snap.1: no such file or directory"},
		"empty": {func(t *testing.T) { write(t, "out/ring-a.snap.1", "") },
			"out/ring-a.snap.1: it is empty: it is of another moment than routing.json"},
		"edited": {func(t *testing.T) { damage(t, "out/ring-a.snap.1") },
			"out/ring-a.snap to ring-a.snap.1 together have the digest sha256:"},
	} {
		t.Run(name, func(t *testing.T) {
			workdir(t, map[string]string{"large.yaml": chunkedManifest(2)})
			succeed(t, "", "build", "-f", "large.yaml", "-o", "out")
			test.damage(t)
			wantContains(t, fail(t, ExitFailure, "lookup", "--dir", "out", "a"), test.want)
			wantContains(t, run(t, "", "verify", "--dir", "out").out, test.want)
			if got := buildOf(t, "-f", "large.yaml", "-o", "out"); got.Outcome != BuildRestored {
				t.Errorf("building again: %s", got.Outcome)
			}
			succeed(t, "", "verify", "--dir", "out")
		})
	}
	workdir(t, map[string]string{"large.yaml": chunkedManifest(3)})
	succeed(t, "", "build", "-f", "large.yaml", "-o", "out")
	write(t, "out/ring-a.snap.2", "x")
	wantContains(t, run(t, "", "verify", "--dir", "out").out,
		"FAIL  out/ring-a.snap.2: is empty, as it is not needed: it has 1 bytes, and no snapshot that needs them")
	succeed(t, "", "lookup", "--dir", "out", "a")
}

func TestTooLargeForItsChunks(t *testing.T) {
	workdir(t, map[string]string{"large.yaml": largeManifest("{encoding: Points}")})
	message := fail(t, ExitFailure, "build", "-f", "large.yaml", "-o", "out")
	wantContains(t, message, "the snapshot of 3 backends has 480000 points in 1118")
	wantContains(t, message, "a ConfigMap takes 1048576: spec.publication.chunks 2, or spec.publication.encoding Recipe or Auto, or "+
		"spec.algorithm.pointsPerWeight 148 would fit")
}

// TestRecipe: a ring that does not fit as points is written as a recipe, and answers as the points do.
func TestRecipe(t *testing.T) {
	workdir(t, map[string]string{"auto.yaml": largeManifest("{}"), "points.yaml": largeManifest("{chunks: 2, encoding: Points}")})
	succeed(t, "", "build", "-f", "points.yaml", "-o", "points")
	assertGolden(t, "build-recipe", succeed(t, "", "build", "-f", "auto.yaml", "-o", "out"))
	assertGolden(t, "verify-recipe", succeed(t, "", "verify", "--dir", "out", "-f", "auto.yaml"))
	keys := []string{"a", "b", "c", "d", "e", "--owners", "3", "-o", "tsv"}
	want := succeed(t, "", append([]string{"lookup", "--dir", "points"}, keys...)...)
	for _, source := range [][]string{{"--dir", "out"}, {"--snapshot", "out/ring-a.snap"}} {
		if diff := cmp.Diff(want, succeed(t, "", append(append([]string{"lookup"}, source...), keys...)...)); diff != "" {
			t.Errorf("%q answers otherwise than the points:\n%s", source, diff)
		}
	}
	wantContains(t, succeed(t, "", "inspect", "--dir", "out"), "encoding    Recipe\n")
	damage(t, "out/ring-a.snap")
	wantContains(t, fail(t, ExitFailure, "lookup", "--dir", "out", "a"), "out/ring-a.snap has the digest sha256:")

	for _, step := range []struct {
		manifest, encoding string
		outcome            BuildOutcome
		generation         int64
	}{
		{"auto.yaml", "Recipe", BuildRestored, 1}, {"points.yaml", "Points", BuildUpdated, 2}, {"edge.yaml", "Points", BuildUpdated, 3}, {"auto.yaml", "Recipe", BuildUpdated, 4},
	} {
		got := buildOf(t, "-f", step.manifest, "-o", "out")
		if got.Snapshot.Encoding != step.encoding || got.Outcome != step.outcome || got.Generation != step.generation {
			t.Errorf("%s, %s, generation %d; want %+v", got.Snapshot.Encoding, got.Outcome, got.Generation, step)
		}
		succeed(t, "", "verify", "--dir", "out", "-f", step.manifest)
	}
}
