// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/internal/materialize"
	"github.com/ringwright/ringwright/internal/routingtest"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// TestLookupFindsTheOwnersOfPingora asks for the keys of the vectors, as a whole program would.
func TestLookupFindsTheOwnersOfPingora(t *testing.T) {
	paths, err := filepath.Glob("../../pkg/ring/testdata/pingora/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			config, keys, want := readVectors(t, path)
			r, err := ring.Build(config)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "ring.snap")
			write(t, file, string(r.Snapshot()))
			got := succeed(t, keys, "lookup", "--snapshot", file, "-o", "tsv", "--hex", "-")
			if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("(-pingora +got):\n%s", diff)
			}
		})
	}
}

// readVectors returns a ring, its keys in hex, one a line, and what lookup shall print for them.
func readVectors(t *testing.T, path string) (config ring.Config, keys, want string) {
	t.Helper()
	config.Identity = ring.IdentityAddress
	var in, out strings.Builder
	for line := range strings.Lines(read(t, path)) {
		fields := strings.Fields(line)
		switch fields[0] {
		case "algorithm":
			config.Algorithm.Version = map[string]ring.Version{"v1": ring.V1, "v2": ring.V2}[fields[1]]
			scan(t, fields[2], &config.Algorithm.PointsPerWeight)
		case "backend":
			b := ring.Backend{ID: fields[1]}
			scan(t, fields[2], &b.Weight)
			config.Backends = append(config.Backends, b)
		case "key":
			key := strings.TrimPrefix(fields[1], "-")
			fmt.Fprintln(&in, key)
			fmt.Fprintf(&out, "%s\t%s\n", key, fields[2])
		}
	}
	return config, in.String(), out.String()
}

func scan(t *testing.T, text string, value *uint32) {
	t.Helper()
	if _, err := fmt.Sscan(text, value); err != nil {
		t.Fatal(err)
	}
}

func TestLookupOutput(t *testing.T) {
	workdir(t, nil)
	for name, args := range map[string][]string{
		"lookup-table":       {"--dir", "edge", "a", "b", "caf\xc3\xa9 1", "esc\x1b[31m"},
		"lookup-table-three": {"--dir", "edge", "--owners", "3", "a", "b"},
		"lookup-table-names": {"--dir", "shards", "a", "b"},
		"lookup-tsv":         {"--dir", "shards", "-o", "tsv", "--owners", "2", "a", "b", ""},
		"lookup-tsv-hex":     {"--dir", "edge", "-o", "tsv", "--hex", "00FF09", "61"},
		"lookup-json":        {"--dir", "edge", "-o", "json", "--owners", "2", "--features", "ssd", "a", "<&>", "\xff"},
		"lookup-yaml":        {"--dir", "shards", "--output", "yaml", "a", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			assertGolden(t, name, succeed(t, "", append([]string{"lookup"}, args...)...))
		})
	}
}

// TestLookupSources checks that a ring gives the same answer wherever it is read from.
func TestLookupSources(t *testing.T) {
	workdir(t, nil)
	files := map[string][]byte{}
	for _, name := range publicationOf(t, edgeManifest).FileNames() {
		files[name] = []byte(read(t, filepath.Join("edge", name)))
	}
	if err := materialize.Write("volume", files); err != nil {
		t.Fatal(err)
	}
	for folder, name := range map[string]string{
		"routing": routing.FileName, "a": routing.SlotA.FileName(), "b": routing.SlotB.FileName(),
	} {
		if err := materialize.Write(filepath.Join("three", folder), map[string][]byte{name: files[name]}); err != nil {
			t.Fatal(err)
		}
	}
	want := succeed(t, "", "lookup", "--dir", "edge", "-o", "tsv", "--owners", "3", "a", "b")
	for name, source := range map[string][]string{
		"a volume":      {"--dir", "volume"},
		"three volumes": {"--dir", "three"},
		"a snapshot":    {"--snapshot", "edge/ring-a.snap"},
	} {
		t.Run(name, func(t *testing.T) {
			got := succeed(t, "", append(append([]string{"lookup"}, source...), "-o", "tsv", "--owners", "3", "a", "b")...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLookupOfASnapshotOfNamesPrintsIdentities(t *testing.T) {
	workdir(t, nil)
	got := succeed(t, "", "lookup", "--snapshot", "shards/ring-a.snap", "-o", "tsv", "--owners", "2", "a")
	if want := "a\tshard-1\tshard-0\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var answers []Answer
	if err := json.Unmarshal([]byte(succeed(t, "", "lookup", "--snapshot", "shards/ring-a.snap", "-o", "json", "a")), &answers); err != nil {
		t.Fatal(err)
	}
	if owner := answers[0].Owners[0]; owner.ID != "shard-1" || owner.Address != "" {
		t.Errorf("got %+v", owner)
	}
}

// TestLookupReadsRawLines: a key is every byte of its line, and an empty line is the empty key.
func TestLookupReadsRawLines(t *testing.T) {
	workdir(t, nil)
	for name, test := range map[string]struct {
		stdin string
		keys  []string
	}{
		"no line":                    {"", nil},
		"line feed at the end":       {"a\nb\n", []string{"a", "b"}},
		"none at the end":            {"a\nb", []string{"a", "b"}},
		"empty lines":                {"\n\na\n", []string{"", "", "a"}},
		"carriage return and spaces": {" a \r\n", []string{" a \r"}},
		"bytes that are not UTF-8":   {"\xff\x00\n", []string{"\xff\x00"}},
		"the longest key":            {strings.Repeat("k", maxKeyBytes) + "\nx", []string{strings.Repeat("k", maxKeyBytes), "x"}},
		"a key of a dash":            {"-\n", []string{"-"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := succeed(t, test.stdin, "lookup", "--dir", "edge", "-o", "tsv", "-")
			var keys []string
			for line := range strings.Lines(got) {
				key, _, _ := strings.Cut(line, "\t")
				keys = append(keys, key)
			}
			if diff := cmp.Diff(test.keys, keys); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLookupWithoutKeysPrintsEmptyLists(t *testing.T) {
	workdir(t, nil)
	for format, want := range map[string]string{"table": "", "tsv": "", "json": "[]\n", "yaml": "[]\n"} {
		if got := succeed(t, "", "lookup", "--dir", "edge", "-o", format, "-"); got != want {
			t.Errorf("%s: got %q, want %q", format, got, want)
		}
	}
}

// TestLookupStreams sends 100,000 keys and compares every answer with the engine's.
func TestLookupStreams(t *testing.T) {
	workdir(t, nil)
	data, err := os.ReadFile("edge/ring-a.snap")
	if err != nil {
		t.Fatal(err)
	}
	r, err := ring.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	const keys = 100_000
	var in, want strings.Builder
	for i := range keys {
		key := fmt.Sprintf("key-%d", i)
		owner, err := r.Owner(ring.Hash([]byte(key)))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&in, key)
		fmt.Fprintf(&want, "%s\t%s\n", key, r.ID(owner))
	}
	if got := succeed(t, in.String(), "lookup", "--dir", "edge", "-o", "tsv", "-"); got != want.String() {
		t.Error("the answers differ from the engine's")
	}
	for format, decode := range map[string]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(data []byte, v any) error { return yaml.Unmarshal(data, v) },
	} {
		n := keys
		if format == "yaml" {
			n = 1000 // Decoding YAML is slow.
		}
		var answers []Answer
		some := strings.Join(strings.SplitAfterN(in.String(), "\n", n+1)[:n], "")
		if err := decode([]byte(succeed(t, some, "lookup", "--dir", "edge", "-o", format, "-")), &answers); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		if len(answers) != n || *answers[n-1].Key != fmt.Sprintf("key-%d", n-1) {
			t.Errorf("%s: %d answers", format, len(answers))
		}
	}
	if lines := strings.Count(succeed(t, in.String(), "lookup", "--dir", "edge", "-"), "\n"); lines != keys+1 {
		t.Errorf("table: %d lines", lines)
	}
}

// TestLookupAnswersBeforeTheNextKey: a program can send a key and wait for its answer.
func TestLookupAnswersBeforeTheNextKey(t *testing.T) {
	workdir(t, nil)
	keys, keyWriter := io.Pipe()
	answerReader, answers := io.Pipe()
	done := make(chan int, 1)
	go func() {
		code := Main(t.Context(), []string{"lookup", "--dir", "edge", "-o", "tsv", "-"},
			genericiooptions.IOStreams{In: keys, Out: answers, ErrOut: io.Discard})
		_ = answers.Close()
		done <- code
	}()
	lines := bufio.NewReader(answerReader)
	for _, key := range []string{"a", "b", "c"} {
		if _, err := fmt.Fprintln(keyWriter, key); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, key+"\t") {
			t.Fatalf("%q, %v", line, err)
		}
	}
	_ = keyWriter.Close()
	if code := <-done; code != ExitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestLookupRefuses(t *testing.T) {
	workdir(t, map[string]string{"broken/routing.json": "{}", "file": ""})
	long := strings.Repeat("k", maxKeyBytes+1)
	for name, test := range map[string]struct {
		args []string
		in   string
		code int
		want string
	}{
		"no source":              {args: nil, code: ExitUsage, want: "no ring given: name a HashRing, or use --dir or --snapshot"},
		"two sources":            {args: []string{"--dir", "edge", "--snapshot", "x", "a"}, code: ExitUsage, want: "--dir and --snapshot cannot be used together"},
		"an empty path":          {args: []string{"--dir", "", "a"}, code: ExitUsage, want: "--dir is empty"},
		"a namespace of a file":  {args: []string{"--snapshot", "x", "-n", "cdn", "a"}, code: ExitUsage, want: "--namespace is for a cluster: it cannot be used with --snapshot"},
		"no key":                 {args: []string{"--dir", "edge"}, code: ExitUsage, want: "no key given"},
		"- beside a key":         {args: []string{"--dir", "edge", "a", "-"}, code: ExitUsage, want: "it cannot stand beside other keys"},
		"no owner":               {args: []string{"--dir", "edge", "--owners", "0", "a"}, code: ExitUsage, want: "--owners is 0, it must be 1 to 64"},
		"too many owners":        {args: []string{"--dir", "edge", "--owners", "65", "a"}, code: ExitUsage, want: "--owners is 65, it must be 1 to 64"},
		"unknown format":         {args: []string{"--dir", "edge", "-o", "xml", "a"}, code: ExitUsage, want: "must be table, tsv, json or yaml"},
		"unknown flag":           {args: []string{"--dri", "edge", "a"}, code: ExitUsage, want: "unknown flag: --dri"},
		"no directory":           {args: []string{"--dir", "nope", "a"}, code: ExitFailure, want: "nope: no such file or directory"},
		"a file as directory":    {args: []string{"--dir", "file", "a"}, code: ExitFailure, want: "file is not a directory; for a snapshot file there is --snapshot"},
		"an empty directory":     {args: []string{"--dir", ".", "a"}, code: ExitFailure, want: "routing.json: no such file or directory"},
		"a broken routing file":  {args: []string{"--dir", "broken", "a"}, code: ExitFailure, want: "broken/routing.json: routing.json: apiVersion"},
		"a directory as file":    {args: []string{"--snapshot", "edge", "a"}, code: ExitFailure, want: "edge: not a regular file"},
		"no snapshot":            {args: []string{"--snapshot", "edge.yaml", "a"}, code: ExitFailure, want: "edge.yaml: snapshot: magic at byte 0: not a Ringwright snapshot"},
		"the marker":             {args: []string{"--snapshot", "edge/ring-b.snap", "a"}, code: ExitFailure, want: "edge/ring-b.snap: the slot is empty"},
		"unknown feature":        {args: []string{"--dir", "edge", "--features", "x", "a"}, code: ExitFailure, want: `--features: unknown feature "x": the ring declares ["eu" "ssd" "tape"]`},
		"no features at all":     {args: []string{"--dir", "shards", "--features", "x", "a"}, code: ExitFailure, want: `unknown feature "x": the ring declares none`},
		"a view without members": {args: []string{"--dir", "edge", "--features", "eu,tape", "a"}, code: ExitFailure, want: "--features eu,tape: no backend with a weight above 0 has all of them"},
		"half a byte":            {args: []string{"--dir", "edge", "--hex", "00", "0"}, code: ExitFailure, want: `key 2: "0" is not hex`},
		"no hex on a line":       {args: []string{"--dir", "edge", "--hex", "-"}, in: "00\nzz\n", code: ExitFailure, want: `standard input, line 2: "zz" is not hex`},
		"a tab in a tsv":         {args: []string{"--dir", "edge", "-o", "tsv", "-"}, in: "a\nb\tc\n", code: ExitFailure, want: `standard input, line 2: "b\tc" has a tab or a line feed`},
		"a line feed in a tsv":   {args: []string{"--dir", "edge", "-o", "tsv", "a\nb"}, code: ExitFailure, want: `key 1: "a\nb" has a tab or a line feed, which a column of -o tsv cannot hold: use --hex`},
		"a long line":            {args: []string{"--dir", "edge", "-"}, in: "a\nb\n" + long + "\n", code: ExitFailure, want: "standard input, line 3: the key has more than 8192 bytes"},
		"a very long line":       {args: []string{"--dir", "edge", "-"}, in: strings.Repeat(long, 20), code: ExitFailure, want: "standard input, line 1: the key has more than 8192 bytes"},
		"a long key in hex":      {args: []string{"--dir", "edge", "--hex", strings.Repeat("00", maxKeyBytes) + "00"}, code: ExitFailure, want: "key 1: the key has more than 8192 bytes"},
		"a long argument":        {args: []string{"--dir", "edge", long}, code: ExitFailure, want: "key 1: the key has more than 8192 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			wantContains(t, failWith(t, test.code, test.in, append([]string{"lookup"}, test.args...)...), test.want)
		})
	}
}

// TestLookupPrintsWhatWasAnsweredBeforeAnError: the answers so far are valid JSON.
func TestLookupPrintsWhatWasAnsweredBeforeAnError(t *testing.T) {
	workdir(t, nil)
	got := run(t, "", "lookup", "--dir", "edge", "-o", "json", "--hex", "61", "zz")
	var answers []Answer
	if err := json.Unmarshal([]byte(got.out), &answers); err != nil || len(answers) != 1 || got.code != ExitFailure {
		t.Errorf("exit code %d, %d answers, %v", got.code, len(answers), err)
	}
}

// TestLookupRefusesFilesThatDisagree changes one file of a publication.
func TestLookupRefusesFilesThatDisagree(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T)
		want   string
	}{
		"a damaged snapshot": {
			func(t *testing.T) { damage(t, "edge/ring-a.snap") }, "edge/ring-a.snap has the digest sha256:",
		},
		"the snapshot of another ring": {
			func(t *testing.T) { write(t, "edge/ring-a.snap", read(t, "shards/ring-a.snap")) }, "edge/ring-a.snap has the digest sha256:",
		},
		"no snapshot": {
			func(t *testing.T) { remove(t, "edge/ring-a.snap") }, "edge/ring-a.snap: no such file or directory",
		},
		"another algorithm": {
			func(t *testing.T) { replace(t, "edge/routing.json", `"V2"`, `"V1"`) }, "the algorithm of the snapshot is V2, routing.json says V1",
		},
		"an address of nobody": {
			func(t *testing.T) { replace(t, "edge/routing.json", `"V2"}`, `"V2"},"addresses":{"x":"y:1"}`) }, "routing.json has 1 addresses",
		},
		"an unknown field": {
			func(t *testing.T) { replace(t, "edge/routing.json", `"V2"}`, `"V2"},"overflow":{}`) }, `unknown field "overflow"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			workdir(t, nil)
			test.change(t)
			wantContains(t, fail(t, ExitFailure, "lookup", "--dir", "edge", "a"), test.want)
		})
	}
}

// damage changes one bit in the middle of a file.
func damage(t *testing.T, path string) {
	t.Helper()
	data := []byte(read(t, path))
	data[len(data)/2] ^= 1
	write(t, path, string(data))
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// replace edits a file. A routing file gets the checksum of what it says then.
func replace(t *testing.T, path, old, new string) {
	t.Helper()
	text := read(t, path)
	if !strings.Contains(text, old) {
		t.Fatalf("%s does not contain %s", path, old)
	}
	write(t, path, routingtest.Reseal(strings.Replace(text, old, new, 1)))
}
