// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ringwright/ringwright/pkg/ring"
)

// planOf runs "plan" and returns its report; the exit code must be that of its outcome.
func planOf(t *testing.T, args ...string) PlanReport {
	t.Helper()
	got := run(t, "", append([]string{"plan", "-o", "json"}, args...)...)
	var report PlanReport
	if err := json.Unmarshal([]byte(got.out), &report); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, got.errOut)
	}
	want := ExitOK
	if report.Outcome == PlanFirst || report.Outcome == PlanMoves {
		want = ExitMoves
	}
	if got.code != want || got.errOut != "" {
		t.Errorf("%q: %s has exit code %d, %q", args, report.Outcome, got.code, got.errOut)
	}
	return report
}

// edited is a manifest with some text replaced.
func edited(t *testing.T, manifest, before, after string) string {
	t.Helper()
	if !strings.Contains(manifest, before) {
		t.Fatalf("%q is not in the manifest", before)
	}
	return strings.Replace(manifest, before, after, 1)
}

const edgeC2 = "  - {name: c2, address: 10.0.0.2, port: 8080, weight: 10, zone: b, labels: {eu: \"true\"}}\n"

func TestPlanOutput(t *testing.T) {
	const grown = "  - {name: c5, address: 10.0.0.5, port: 8080, weight: 20, labels: {eu: \"true\", tier: ssd}}\n"
	workdir(t, map[string]string{
		"smaller.yaml": edited(t, edgeManifest, edgeC2, ""),
		"other.yaml":   edited(t, edited(t, edgeManifest, "weight: 20,", "weight: 30,"), edgeC2, grown),
		"moved.yaml":   edited(t, shardsManifest, "10.0.1.1", "10.0.1.9"),
		"unnamed.yaml": edited(t, edgeManifest, "  - {name: tape, selector: {matchLabels: {tier: tape}}}\n", ""),
	})
	for name, args := range map[string][]string{
		"plan-table":     {"-f", "smaller.yaml", "--from", "edge"},
		"plan-pairs":     {"-f", "other.yaml", "--from", "edge/ring-a.snap", "--pairs", "2"},
		"plan-features":  {"-f", "other.yaml", "--from", "edge.yaml", "--features", "ssd"},
		"plan-unchanged": {"-f", "edge.yaml", "--from", "edge"},
		"plan-addresses": {"-f", "moved.yaml", "--from", "shards"},
		"plan-notes":     {"-f", "unnamed.yaml", "--from", "edge"},
		"plan-json":      {"-f", "other.yaml", "--from", "edge", "-o", "json", "--pairs", "3"},
		"plan-yaml":      {"-f", "moved.yaml", "--from", "shards", "-o", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, "", append([]string{"plan"}, args...)...)
			assertGolden(t, name, got.out+fmt.Sprintf("exit code %d\n", got.code))
			if got.errOut != "" {
				t.Error(got.errOut)
			}
		})
	}
}

func TestPlanOutcomes(t *testing.T) {
	workdir(t, nil)
	for name, test := range map[string]struct {
		before, after string
		want          PlanOutcome
	}{
		"the same": {edgeManifest, edgeManifest, PlanUnchanged},
		"a label that no feature selects": {
			edgeManifest, edited(t, edgeManifest, `zone: b, labels: {eu: "true"}`, `zone: b, labels: {eu: "true", rack: r7}`), PlanUnchanged,
		},
		"a zone":             {edgeManifest, edited(t, edgeManifest, "zone: b", "zone: c"), PlanBytesOnly},
		"V1 to V2 with 160":  {edited(t, shardsManifest, "spec:", "spec:\n  algorithm: {version: V1}"), shardsManifest, PlanBytesOnly},
		"a drained backend":  {edgeManifest, edited(t, edgeManifest, "weight: 10,", "weight: 0,"), PlanMoves},
		"another weight":     {edgeManifest, edited(t, edgeManifest, "weight: 10,", "weight: 11,"), PlanMoves},
		"more points":        {edgeManifest, edited(t, edgeManifest, "pointsPerWeight: 16", "pointsPerWeight: 17"), PlanMoves},
		"an address, hashed": {edgeManifest, edited(t, edgeManifest, "10.0.0.2", "10.0.0.9"), PlanMoves},
		"an address, dialled": {
			shardsManifest, edited(t, shardsManifest, "10.0.1.1", "10.0.1.9"), PlanAddressesOnly,
		},
		"a label that a feature selects": {edgeManifest, edited(t, edgeManifest, `zone: b, labels: {eu: "true"}`, `zone: b, labels: {eu: "true", tier: ssd}`), PlanMoves},
		"a feature that nobody asks for yet": {
			edgeManifest, edited(t, edgeManifest, "  features:\n", "  features:\n  - {name: new, selector: {matchLabels: {rack: r7}}}\n"), PlanBytesOnly,
		},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, "before.yaml", test.before)
			write(t, "after.yaml", test.after)
			report := planOf(t, "-f", "after.yaml", "--from", "before.yaml")
			if report.Outcome != test.want {
				t.Errorf("got %s, want %s", report.Outcome, test.want)
			}
			if report.Outcome != PlanMoves && (report.MovedPositions != 0 || report.Backends != nil || report.Pairs != nil || report.Views != nil) {
				t.Errorf("%s, and yet something moves: %+v", report.Outcome, report)
			}
		})
	}
}

// TestPlanIsWhatLookupsSee: of many keys the planned share has another owner, and each of them moves along a pair.
func TestPlanIsWhatLookupsSee(t *testing.T) {
	workdir(t, map[string]string{"other.yaml": edited(t, edited(t, edgeManifest, "weight: 20,", "weight: 35,"), edgeC2, "")})
	succeed(t, "", "build", "-f", "other.yaml", "-o", "other")
	report := planOf(t, "-f", "other.yaml", "--from", "edge", "--pairs", "1000")
	var keys strings.Builder
	const count = 20_000
	for i := range count {
		fmt.Fprintf(&keys, "key-%d\n", i)
	}
	owners := func(dir string) []string {
		return strings.Split(succeed(t, keys.String(), "lookup", "--dir", dir, "-o", "tsv", "-"), "\n")
	}
	before, after := owners("edge"), owners("other")
	seen, differ := map[PairReport]bool{}, 0
	for i := range count {
		_, from, _ := strings.Cut(before[i], "\t")
		_, to, _ := strings.Cut(after[i], "\t")
		if from != to {
			differ++
			seen[PairReport{From: from, To: to}] = true
		}
	}
	if got := float64(differ) / count; math.Abs(got-report.Moved) > 0.01 {
		t.Errorf("%.4f of the keys have another owner, planned were %.4f", got, report.Moved)
	}
	pairs, gained, lost := 0.0, 0.0, 0.0
	for _, p := range report.Pairs {
		pairs += p.Moved
		delete(seen, PairReport{From: p.From, To: p.To})
	}
	for _, b := range report.Backends {
		gained, lost = gained+b.Gained, lost+b.Lost
		if math.Abs(b.ShareAfter-b.ShareBefore-b.Gained+b.Lost) > 3e-9 {
			t.Errorf("%+v does not add up", b)
		}
	}
	for name, sum := range map[string]float64{"pairs": pairs, "gained": gained, "lost": lost, "positions": float64(report.MovedPositions) / (1 << 32)} {
		if math.Abs(sum-report.Moved) > 1e-8 {
			t.Errorf("%s add up to %.9f, %.9f moves", name, sum, report.Moved)
		}
	}
	if len(seen) > 0 || len(report.Pairs) != report.PairCount {
		t.Errorf("keys moved along pairs that were not planned: %v; %d of %d pairs", seen, len(report.Pairs), report.PairCount)
	}
}

// TestPlanSources: a directory, a snapshot and a manifest of the same ring give the same plan.
func TestPlanSources(t *testing.T) {
	workdir(t, map[string]string{"new.yaml": edited(t, edgeManifest, edgeC2, "")})
	want := planOf(t, "-f", "new.yaml", "--from", "edge")
	for _, from := range []string{"edge/ring-a.snap", "edge.yaml"} {
		got := planOf(t, "-f", "new.yaml", "--from", from)
		if got.From == want.From {
			t.Errorf("%s calls itself %s", from, got.From)
		}
		got.From = want.From
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-directory +got):\n%s", from, diff)
		}
	}
	got := run(t, read(t, "new.yaml"), "plan", "-f", "-", "--from", "edge")
	if got.code != ExitMoves {
		t.Errorf("from the standard input: %d, %s", got.code, got.errOut)
	}
}

func TestPlanOfTheFirstRing(t *testing.T) {
	workdir(t, nil)
	hashRing, err := manifestRef{file: "edge.yaml"}.load(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	after, err := planned(hashRing, &planSide{})
	if err != nil {
		t.Fatal(err)
	}
	report, err := comparison{before: &planSide{origin: "nothing"}, after: after, pairs: 10}.report()
	if err != nil {
		t.Fatal(err)
	}
	if report.Outcome != PlanFirst || !report.moves() || report.Before != nil || report.MovedPositions != ring.KeySpace {
		t.Errorf("got %+v", report)
	}
	var text strings.Builder
	report.print(&text, report.verdict(), 10, 20)
	assertGolden(t, "plan-first", text.String())
}

// TestPlanOfTrimmedRings: the ring before is the previous one of what is built, and the worst view counts.
func TestPlanOfTrimmedRings(t *testing.T) {
	c := ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V3, PointsPerWeight: 40, WeightUnit: 1, MaxImbalance: 10_000}, Identity: ring.IdentityName,
		Features: []string{"a", "b"}, Views: [][]string{{"a", "b"}, {"b"}},
	}
	for i := range 30 {
		c.Backends = append(c.Backends, ring.Backend{
			ID: fmt.Sprintf("cache-%02d", i), Weight: uint32(1 + i%3), Features: [][]string{{"a", "b"}, {"b"}}[i%2],
		})
	}
	build := func(c ring.Config) *planSide {
		r, err := ring.Build(c)
		if err != nil {
			t.Fatal(err)
		}
		return newPlanSide(r, "x")
	}
	before := build(c)
	c.Backends, c.Previous = c.Backends[1:], before.ring
	report, err := comparison{before: before, after: build(c), pairs: 1}.report()
	if err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for _, names := range before.ring.Views() {
		v, err := before.ring.View(names...)
		if err != nil {
			t.Fatal(err)
		}
		worst = max(worst, v.Stats().MaxOverAverage)
	}
	if report.Before.WorstView == nil || math.Abs(report.Before.WorstView.MaxOverAverage-worst) > 1e-6 {
		t.Errorf("worst view %+v, want %.6f", report.Before.WorstView, worst)
	}
	var views []string // Not b: everybody has it.
	for _, v := range report.Views {
		views = append(views, strings.Join(v.Features, ","))
	}
	if diff := cmp.Diff([]string{"a", "a,b"}, views); diff != "" {
		t.Errorf("views (-want +got):\n%s", diff)
	}
	if !slices.ContainsFunc(report.Backends, func(b BackendChange) bool { return b.WeightAfter == nil && b.Lost > 0 }) {
		t.Errorf("nobody is gone: %+v", report.Backends)
	}
}

func TestPlanNotes(t *testing.T) {
	workdir(t, map[string]string{
		"grown.yaml": shardsManifest + "  - {name: shard-2, address: 10.0.1.2, port: 11211}\n",
		"named.yaml": edited(t, edgeManifest, "spec:\n", "spec:\n  identity: NGINX\n"),
	})
	write(t, "named.yaml", strings.Replace(read(t, "named.yaml"), `"2001:db8::3"`, `"[2001:db8::3]"`, 1))
	report := planOf(t, "-f", "named.yaml", "--from", "edge")
	wantContains(t, strings.Join(report.Notes, "\n"), "the identity changes from Address to NGINX: the API server refuses that")
	if report = planOf(t, "-f", "grown.yaml", "--from", "shards"); report.Addresses != nil || report.Notes != nil {
		t.Errorf("a new backend is no change of an address: %+v, %q", report.Addresses, report.Notes)
	}
	report = planOf(t, "-f", "shards.yaml", "--from", "shards/ring-a.snap")
	wantContains(t, strings.Join(report.Notes, "\n"), "file shards/ring-a.snap does not hold addresses: they were not compared")
}

func TestPlanRefuses(t *testing.T) {
	workdir(t, map[string]string{
		"drain.yaml": strings.NewReplacer("11211}", "11211, weight: 0}", "zone: a", "weight: 0").Replace(shardsManifest),
		"bad.yaml":   edited(t, edgeManifest, "pointsPerWeight: 16", "pointsPerWeight: 0"),
		"empty.yaml": "",
	})
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a manifest that is not there":   {[]string{"-f", "nope.yaml", "--from", "edge"}, "nope.yaml: no such file"},
		"a manifest that is invalid":     {[]string{"-f", "bad.yaml", "--from", "edge"}, "HashRing cdn/edge is invalid:\n  spec.algorithm.pointsPerWeight"},
		"a ring of nobody":               {[]string{"-f", "drain.yaml", "--from", "shards"}, "HashRing cdn/shards: spec.backends: none of 2 backends"},
		"no source":                      {[]string{"-f", "edge.yaml", "--from", "nope"}, "--from: stat nope: no such file"},
		"an empty source":                {[]string{"-f", "edge.yaml", "--from", "empty.yaml"}, "--from: empty.yaml is empty"},
		"the manifest of another ring":   {[]string{"-f", "edge.yaml", "--from", "shards.yaml"}, `--from: shards.yaml has no HashRing of the name "edge", only shards`},
		"a source of nobody":             {[]string{"-f", "shards.yaml", "--from", "drain.yaml"}, "--from drain.yaml: HashRing cdn/shards: spec.backends: "},
		"an unknown feature":             {[]string{"-f", "edge.yaml", "--from", "edge", "--features", "x"}, `--features, after the change: unknown feature "x"`},
		"a feature of nobody":            {[]string{"-f", "edge.yaml", "--from", "edge", "--features", "tape"}, "--features tape: no backend with a weight above 0 has all of them, before or after"},
		"another namespace":              {[]string{"-f", "edge.yaml", "--from", "edge", "-n", "eu"}, `is "cdn", not "eu" as asked for`},
		"a cluster that is not answered": {[]string{"-f", "edge.yaml", "--kubeconfig", "nope"}, "reading the kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			wantContains(t, fail(t, ExitPlanFailed, append([]string{"plan"}, test.args...)...), test.want)
		})
	}
	damage(t, "edge/ring-a.snap")
	wantContains(t, fail(t, ExitPlanFailed, "plan", "-f", "edge.yaml", "--from", "edge"), "edge/ring-a.snap has the digest")
	var errOut strings.Builder
	code := Main(t.Context(), []string{"plan", "-f", "shards.yaml", "--from", "shards"},
		genericiooptions.IOStreams{In: strings.NewReader(""), Out: full{}, ErrOut: &errOut})
	if code != ExitPlanFailed || errOut.String() != "error: no space left on device\n" {
		t.Errorf("exit code %d, %q", code, errOut.String())
	}
}

// TestPlanNamespace: that of the manifest, then that of -n, then that of the context.
func TestPlanNamespace(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "config", `apiVersion: v1
kind: Config
current-context: one
contexts: [{name: one, context: {cluster: here, namespace: team}}]
clusters: [{name: here, cluster: {server: "http://127.0.0.1:1"}}]
`)
	write(t, "named.yaml", edgeManifest)
	write(t, "unnamed.yaml", edited(t, edgeManifest, ", namespace: cdn", ""))
	for want, args := range map[string][]string{
		"reading ConfigMap cdn/edge-routing: ":  {"-f", "named.yaml"},
		"reading ConfigMap team/edge-routing: ": {"-f", "unnamed.yaml"},
		"reading ConfigMap eu/edge-routing: ":   {"-f", "unnamed.yaml", "-n", "eu"},
	} {
		wantContains(t, fail(t, ExitPlanFailed, append(args, "plan", "--kubeconfig", "config")...), want)
	}
	write(t, "old.yaml", read(t, "unnamed.yaml"))
	if got := planOf(t, "-f", "unnamed.yaml", "--from", "old.yaml", "-n", "eu").Ring; got != "eu/edge" {
		t.Errorf("offline with -n it is %s", got)
	}
	if got := planOf(t, "-f", "unnamed.yaml", "--from", "old.yaml").Ring; got != "default/edge" {
		t.Errorf("offline it is %s", got)
	}
}

func TestPlanUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"no manifest given":                        {},
		`unexpected argument "x"`:                  {"-f", "x", "x"},
		"--from is empty":                          {"-f", "x", "--from", ""},
		"--pairs is -1, it must be at least 0":     {"-f", "x", "--pairs", "-1"},
		"--backends is -1, it must be at least 0":  {"-f", "x", "--backends", "-1"},
		"--context is for a cluster: it cannot be": {"-f", "x", "--from", "y", "--context", "z"},
		"must be table, json or yaml":              {"-f", "x", "-o", "tsv"},
	} {
		wantContains(t, fail(t, ExitUsage, append([]string{"plan"}, args...)...), want)
	}
}
