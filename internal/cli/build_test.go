// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/internal/materialize"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/routing"
)

// buildOf runs build and returns what it says as JSON.
func buildOf(t *testing.T, args ...string) BuildReport {
	t.Helper()
	var report BuildReport
	out := succeed(t, "", append([]string{"build", "--format", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	return report
}

func written(r BuildReport) []string {
	var names []string
	for _, f := range r.Files {
		if f.Written {
			names = append(names, f.Name)
		}
	}
	return names
}

func TestBuildOutput(t *testing.T) {
	workdir(t, nil)
	for name, args := range map[string][]string{
		"build-table": {"-f", "edge.yaml", "-o", "out-table"},
		"build-json":  {"-f", "edge.yaml", "-o", "out-json", "--format", "json"},
		"build-yaml":  {"-f", "shards.yaml", "-o", "out-yaml", "--format", "yaml"},
		"build-again": {"-f", "edge.yaml", "-o", "edge"},
	} {
		t.Run(name, func(t *testing.T) {
			assertGolden(t, name, succeed(t, "", append([]string{"build"}, args...)...))
		})
	}
}

func TestBuildWritesWhatTheOperatorPublishes(t *testing.T) {
	workdir(t, nil)
	ring, err := manifestRef{file: "shards.yaml"}.load(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	desired, err := plan.Build(ring.Spec)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Render(plan.Ref{Namespace: "cdn", Name: "shards"}, desired, plan.Numbers{Revision: 1, Generation: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range p.Files() {
		if got := read(t, filepath.Join("shards", name)); got != string(want) {
			t.Errorf("%s: %d bytes, want %d", name, len(got), len(want))
		}
	}
	entries, err := os.ReadDir("shards")
	if err != nil || len(entries) != len(p.FileNames()) {
		t.Errorf("the directory has %v, %v", entries, err)
	}
}

// TestBuildAgain builds into a directory that has been built into before.
func TestBuildAgain(t *testing.T) {
	all := []string{"ring-a.snap", "ring-b.snap", "routing.json"}
	for name, test := range map[string]struct {
		change     func(t *testing.T)
		args       []string
		outcome    BuildOutcome
		generation int64
		written    []string
	}{
		"the same manifest": {func(*testing.T) {}, nil, BuildUnchanged, 1, nil},
		"a drained backend": {func(t *testing.T) {
			replace(t, "edge.yaml", "  - {name: c1", "  - {name: c0, address: 10.9.9.9, port: 1, weight: 0}\n  - {name: c1")
		}, nil, BuildUpdated, 2, []string{"ring-a.snap", "routing.json"}},
		"in another order":       {func(t *testing.T) { reverseBackends(t, "edge.yaml") }, nil, BuildUnchanged, 1, nil},
		"another weight":         {func(t *testing.T) { replace(t, "edge.yaml", "weight: 20", "weight: 21") }, nil, BuildUpdated, 2, []string{"ring-a.snap", "routing.json"}},
		"another minInterval":    {func(t *testing.T) { replace(t, "edge.yaml", "spec:", "spec:\n  publication: {minInterval: 1m}") }, nil, BuildUnchanged, 1, nil},
		"a damaged snapshot":     {func(t *testing.T) { damage(t, "edge/ring-a.snap") }, nil, BuildRestored, 1, []string{"ring-a.snap"}},
		"a lost marker":          {func(t *testing.T) { remove(t, "edge/ring-b.snap") }, nil, BuildRestored, 1, []string{"ring-b.snap"}},
		"an edited generation":   {func(t *testing.T) { replace(t, "edge/routing.json", `"generation":1`, `"generation":41`) }, nil, BuildUnchanged, 41, nil},
		"an edited address":      {func(t *testing.T) { replace(t, "edge/routing.json", `"V2"}`, `"V2"},"addresses":{"a":"b:1"}`) }, nil, BuildUpdated, 2, []string{"routing.json"}},
		"an interrupted build":   {func(t *testing.T) { remove(t, "edge/routing.json") }, nil, BuildCreated, 1, []string{"routing.json"}},
		"of another ring, force": {func(t *testing.T) { write(t, "edge.yaml", shardsManifest) }, []string{"--force"}, BuildCreated, 1, []string{"ring-a.snap", "routing.json"}},
		"unreadable, force":      {func(t *testing.T) { write(t, "edge/routing.json", "{") }, []string{"--force"}, BuildCreated, 1, []string{"routing.json"}},
		"nothing left":           {func(t *testing.T) { removeAll(t, "edge") }, nil, BuildCreated, 1, all},
	} {
		t.Run(name, func(t *testing.T) {
			workdir(t, nil)
			test.change(t)
			got := buildOf(t, append(test.args, "-f", "edge.yaml", "-o", "edge")...)
			if got.Outcome != test.outcome || got.Generation != test.generation {
				t.Errorf("%s, generation %d; want %s, %d", got.Outcome, got.Generation, test.outcome, test.generation)
			}
			if diff := cmp.Diff(test.written, written(got)); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
			succeed(t, "", "verify", "--dir", "edge", "-f", "edge.yaml")
			if next := buildOf(t, "-f", "edge.yaml", "-o", "edge"); next.Outcome != BuildUnchanged {
				t.Errorf("building once more: %s", next.Outcome)
			}
		})
	}
}

// reverseBackends writes the backends of a manifest, one a line, the other way round.
func reverseBackends(t *testing.T, path string) {
	t.Helper()
	head, backends, found := strings.Cut(read(t, path), "  backends:\n")
	if !found {
		t.Fatal("no backends")
	}
	lines := strings.SplitAfter(strings.TrimSuffix(backends, "\n"), "\n")
	lines[len(lines)-1] += "\n"
	slices.Reverse(lines)
	write(t, path, head+"  backends:\n"+strings.Join(lines, ""))
}

func removeAll(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// TestBuildRefusesADirectory: nothing in it is changed then.
func TestBuildRefusesADirectory(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T)
		want   string
	}{
		"of another ring": {
			func(t *testing.T) { replace(t, "edge.yaml", "name: edge", "name: other") },
			"edge/routing.json is of ring cdn/edge, not cdn/other; --force replaces it",
		},
		"of a cluster": {
			func(t *testing.T) { replace(t, "edge/routing.json", `"generation"`, `"uid":"4711","generation"`) },
			"edge/routing.json was published by a cluster, for the HashRing of UID 4711",
		},
		"with a routing file that cannot be read": {
			func(t *testing.T) { write(t, "edge/routing.json", "[]") },
			"edge/routing.json cannot be read, so it may be of another ring",
		},
		"with a snapshot of nobody": {
			func(t *testing.T) {
				remove(t, "edge/routing.json")
				write(t, "edge/ring-a.snap", read(t, "shards/ring-a.snap"))
			},
			"edge/ring-a.snap is there without a routing.json",
		},
		"that is a volume": {
			func(t *testing.T) {
				removeAll(t, "edge")
				if err := materialize.Write("edge", map[string][]byte{routing.FileName: []byte("x")}); err != nil {
					t.Fatal(err)
				}
			},
			"edge is a mounted volume",
		},
		"that is a file": {
			func(t *testing.T) { removeAll(t, "edge"); write(t, "edge", "x") }, "edge is not a directory",
		},
		"with a directory for a file": {
			func(t *testing.T) { remove(t, "edge/ring-a.snap"); write(t, "edge/ring-a.snap/x", "x") },
			"edge/ring-a.snap: not a regular file",
		},
	} {
		t.Run(name, func(t *testing.T) {
			workdir(t, nil)
			test.change(t)
			before := snapshotOf(t, "edge")
			wantContains(t, fail(t, ExitFailure, "build", "-f", "edge.yaml", "-o", "edge"), test.want)
			if diff := cmp.Diff(before, snapshotOf(t, "edge")); diff != "" {
				t.Errorf("changed (-before +after):\n%s", diff)
			}
		})
	}
}

// snapshotOf returns the names and contents of all files below path.
func snapshotOf(t *testing.T, path string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(path, func(name string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			files[name] = read(t, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestBuildPutsBackWhatItReplaced: the rename of routing.json fails here, after that of the snapshot.
func TestBuildPutsBackWhatItReplaced(t *testing.T) {
	for name, held := range map[string]string{"a replaced snapshot": "something else", "a new snapshot": ""} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write(t, "out/routing.json/in-the-way", "x")
			d := &outputDir{path: "out", held: map[string][]byte{}}
			if held != "" {
				write(t, "out/ring-a.snap", held)
				d.held["ring-a.snap"] = []byte(held)
			}
			before := snapshotOf(t, "out")
			err := d.write(&plan.Publication{ConfigMaps: []plan.ConfigMap{
				{BinaryData: map[string][]byte{"ring-b.snap": []byte("b")}}, {BinaryData: map[string][]byte{"ring-a.snap": []byte("a")}},
				{Data: map[string]string{"routing.json": "{}"}},
			}})
			if err == nil || !strings.Contains(err.Error(), "routing.json") {
				t.Errorf("got %v, want an error of routing.json", err)
			}
			if diff := cmp.Diff(before, snapshotOf(t, "out")); diff != "" {
				t.Errorf("changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestBuildRefusesAManifest(t *testing.T) {
	const head = "apiVersion: ringwright.dev/v1alpha1\nkind: HashRing\nmetadata: {name: x}\n"
	for name, test := range map[string]struct{ manifest, want string }{
		"that is empty":         {"# nothing\n", "m.yaml is empty: a manifest of a HashRing is needed"},
		"of something else":     {"kind: Service\n---\nkind: ConfigMap\n---\nkind: Service", "m.yaml has no HashRing, only ConfigMap, Service"},
		"that is text":          {"hello", "m.yaml: document 1: it is not an object"},
		"without a kind":        {"a: b", "m.yaml: document 1: kind is missing"},
		"with a field twice":    {head + "spec: {identity: Name, identity: NGINX}", "m.yaml: document 1: "},
		"that is no YAML":       {head + "---\n{", "m.yaml: document 2: "},
		"of two HashRings":      {edgeManifest + "---\n" + shardsManifest, "m.yaml has 2 HashRings: choose one by --name: edge, shards"},
		"of another version":    {"apiVersion: ringwright.dev/v2\nkind: HashRing\nmetadata: {name: x}", "the object is a HashRing of ringwright.dev/v2, not a HashRing of ringwright.dev/v1alpha1"},
		"with an unknown field": {head + "spec: {backend: []}", "HashRing default/x is invalid:\n  spec.backend: unknown field\n"},
		"against a CEL rule":    {head + "spec: {algorithm: {version: V1, pointsPerWeight: 40}}", "\n  spec.algorithm.pointsPerWeight: Invalid value: pointsPerWeight must be 160 with version V1, as in NGINX; got 40\n"},
		"against the schema":    {head + "spec: {backends: [{name: a}]}", "\n  spec.backends[0].address: Required value\nNot every rule could be checked: correct these first.\n"},
		"without a backend":     {head + "spec: {}", "HashRing default/x: spec.backends: none of 0 backends has a weight above 0"},
		"with an odd selector":  {head + "spec:\n  features: [{name: a, selector: {matchExpressions: [{key: a, operator: Is}]}}]", "HashRing default/x: spec.features[0].selector of feature \"a\": "},
		"that is too large":     {head + "spec: {publication: {encoding: Points}, backends: [{name: a, address: 10.0.0.1, port: 1, weight: 100000}]}", "or spec.algorithm.pointsPerWeight "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write(t, "m.yaml", test.manifest)
			wantContains(t, fail(t, ExitFailure, "build", "-f", "m.yaml", "-o", "out"), test.want)
			if _, err := os.Stat("out"); !os.IsNotExist(err) {
				t.Error("the directory was made")
			}
		})
	}
}

func TestBuildChoosesAHashRing(t *testing.T) {
	workdir(t, nil)
	both := "kind: Service\napiVersion: v1\n---\n" + edgeManifest + "---\n" + shardsManifest
	list := "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(shardsManifest), "\n", "\n  ")
	for name, test := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"the only one":            {shardsManifest, nil, "cdn/shards"},
		"by name":                 {both, []string{"--name", "shards"}, "cdn/shards"},
		"of a list":               {list, nil, "cdn/shards"},
		"in JSON":                 {`{"apiVersion":"ringwright.dev/v1alpha1","kind":"HashRing","metadata":{"name":"j"},"spec":{"backends":[{"name":"a","address":"::1","port":1}]}}`, nil, "default/j"},
		"in another namespace":    {strings.Replace(shardsManifest, ", namespace: cdn", "", 1), []string{"-n", "eu"}, "eu/shards"},
		"in the namespace itself": {shardsManifest, []string{"-n", "cdn"}, "cdn/shards"},
	} {
		t.Run(name, func(t *testing.T) {
			var report BuildReport
			out := succeed(t, test.stdin, append([]string{"build", "-f", "-", "-o", t.TempDir(), "--format", "json"}, test.args...)...)
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatal(err)
			}
			if report.Ring != test.want {
				t.Errorf("got %s, want %s", report.Ring, test.want)
			}
		})
	}
	wantContains(t, failWith(t, ExitFailure, both, "build", "-f", "-", "-o", "x", "--name", "y"), `- has no HashRing of the name "y", only edge, shards`)
	wantContains(t, failWith(t, ExitFailure, both+"---\n"+shardsManifest, "build", "-f", "-", "-o", "x", "--name", "shards"), `- has 2 HashRings of the name "shards"`)
	wantContains(t, failWith(t, ExitFailure, shardsManifest, "build", "-f", "-", "-o", "x", "-n", "eu"), `metadata.namespace of HashRing shards is "cdn", not "eu" as asked for`)
}

func TestBuildUsage(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no manifest":      {[]string{"-o", "x"}, "no manifest given"},
		"no directory":     {[]string{"-f", "x"}, "no directory given"},
		"an argument":      {[]string{"-f", "x", "-o", "y", "z"}, `unexpected argument "z"`},
		"a format for -o":  {[]string{"-f", "x", "-o", "json"}, `-o is the directory here, and "json" a format: use --format json, or -o ./json for a directory`},
		"another format":   {[]string{"-f", "x", "-o", "y", "--format", "tsv"}, "must be table, json or yaml"},
		"a cluster's flag": {[]string{"-f", "x", "-o", "y", "--context", "z"}, "unknown flag: --context"},
	} {
		t.Run(name, func(t *testing.T) {
			wantContains(t, fail(t, ExitUsage, append([]string{"build"}, test.args...)...), test.want)
		})
	}
	wantContains(t, fail(t, ExitFailure, "build", "-f", "nope.yaml", "-o", "x"), "reading the manifest: open nope.yaml: no such file or directory")
}

// TestBuildOrder: routing.json never names a snapshot that is not there yet.
func TestBuildOrder(t *testing.T) {
	names := publicationOf(t, chunkedManifest(3)).FileNames()
	want := []string{"ring-b.snap", "ring-b.snap.1", "ring-b.snap.2", "ring-a.snap", "ring-a.snap.1", "ring-a.snap.2", "routing.json"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
