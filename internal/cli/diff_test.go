// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// diffOf returns what "diff" prints, and whether keys move.
func diffOf(t *testing.T, live liveRing, from, to string, features ...string) (string, bool) {
	t.Helper()
	var out bytes.Buffer
	o := &diffOptions{streams: genericiooptions.IOStreams{Out: &out}, from: from, to: to}
	o.show = movementFlags{features: features, pairs: 10, backends: 20, output: &formatFlag{value: formatTable}, past: true}
	moves, err := o.run(t.Context(), live)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), moves
}

func TestDiff(t *testing.T) {
	live := liveOf(t, append(history(t), recordOf(t, 5, trimmedV3))...)
	for name, test := range map[string]struct {
		from, to string
		features []string
		moves    bool
	}{
		"diff-published": {from: "2", to: "published", moves: true},
		"diff-back":      {from: "published", to: "2", moves: true},
		"diff-version":   {from: "3", to: "5", moves: true},
		"diff-same":      {from: "3", to: "4"},
		"diff-features":  {from: "2", to: "4", features: []string{"eu"}, moves: true},
	} {
		t.Run(name, func(t *testing.T) {
			out, moves := diffOf(t, live, test.from, test.to, test.features...)
			if moves != test.moves {
				t.Errorf("moves: %v, want %v", moves, test.moves)
			}
			assertGolden(t, name, out)
		})
	}
}

// TestDiffOfNamesComparesNoAddresses: a revision has none, so the published ones are not compared with nothing.
func TestDiffOfNamesComparesNoAddresses(t *testing.T) {
	live := liveOf(t, append(publishedAs(t, 2, shardsOfEdge), recordOf(t, 1, shardsOfEdge))...)
	for _, ends := range [][2]string{{"1", "published"}, {"published", "1"}} {
		out, moves := diffOf(t, live, ends[0], ends[1])
		if moves {
			t.Errorf("%v: keys move\n%s", ends, out)
		}
		wantContains(t, out, "Nothing moves: the snapshots are the same.\n")
		if bytes.Contains([]byte(out), []byte("ddress")) {
			t.Errorf("%v: addresses in\n%s", ends, out)
		}
	}
}

// shardsOfEdge is the ring of names, called as the one of addresses.
var shardsOfEdge = string(bytes.Replace([]byte(shardsManifest), []byte("name: shards,"), []byte("name: edge,"), 1))

func TestDiffErrors(t *testing.T) {
	live := liveOf(t, recordOf(t, 2, edgeManifest))
	o := &diffOptions{from: "2", to: "published"}
	_, err := o.run(t.Context(), live)
	wantError(t, err, "HashRing cdn/edge has published nothing")
	o = &diffOptions{from: "3", to: "2"}
	_, err = o.run(t.Context(), live)
	wantError(t, err, "revision 3 of HashRing cdn/edge is not kept: it must be one of 2")
}

func TestCommandLinesOfHistory(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, test := range map[string]struct {
		want string
		args []string
	}{
		"history of nothing":    {"no ring given: name a HashRing", []string{"history"}},
		"history of no name":    {"no ring given: name a HashRing", []string{"history", ""}},
		"history of two":        {`unexpected argument "b"`, []string{"history", "a", "b"}},
		"history as tsv":        {`must be table, json or yaml`, []string{"history", "a", "-o", "tsv"}},
		"diff from nowhere":     {`no revision given: --from is a number that "history" lists, or published`, []string{"diff", "a"}},
		"diff from 0":           {`--from is "0", it must be a revision, at least 1, or published`, []string{"diff", "a", "--from", "0"}},
		"diff from a word":      {`--from is "last", it must be`, []string{"diff", "a", "--from", "last"}},
		"diff to the candidate": {`--to is "candidate", it must be a revision, at least 1, or published`, []string{"diff", "a", "--from", "1", "--to", "candidate"}},
		"diff of -1 pairs":      {"--pairs is -1, it must be at least 0", []string{"diff", "a", "--from", "1", "--pairs", "-1"}},
		"diff of -1 backends":   {"--backends is -1, it must be at least 0", []string{"diff", "a", "--from", "1", "--backends", "-1"}},
		"rollback of nothing":   {"no ring given", []string{"rollback"}},
		"rollback to 0":         {"--to-revision is 0, it must be at least 1", []string{"rollback", "a", "--to-revision", "0"}},
		"rollback and unpin":    {"--to-revision and --unpin cannot be used together", []string{"rollback", "a", "--to-revision", "1", "--unpin"}},
		"unpin by force":        {"--force-conflicts and --unpin cannot be used together", []string{"rollback", "a", "--force-conflicts", "--unpin"}},
		"release of nothing":    {"no ring given", []string{"release"}},
	} {
		t.Run(name, func(t *testing.T) { wantContains(t, fail(t, ExitUsage, test.args...), test.want) })
	}
	for _, command := range []string{"history", "rollback", "release"} {
		wantContains(t, fail(t, ExitFailure, command, "a", "--kubeconfig", "nowhere"), "nowhere")
	}
	wantContains(t, fail(t, ExitPlanFailed, "diff", "a", "--from", "1", "--kubeconfig", "nowhere"), "nowhere")
}
