// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ringwright/ringwright/internal/testenv/golden"
)

// outcome is what a command line did.
type outcome struct {
	code        int
	out, errOut string
}

// run runs a command line with stdin as its standard input.
func run(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	var out, errOut bytes.Buffer
	code := Main(t.Context(), args, genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut})
	return outcome{code, out.String(), errOut.String()}
}

// succeed runs a command line that must succeed, and returns what it printed.
func succeed(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	got := run(t, stdin, args...)
	if got.code != ExitOK || got.errOut != "" {
		t.Fatalf("%q: exit code %d\n%s%s", args, got.code, got.out, got.errOut)
	}
	return got.out
}

// fail runs a command line that must fail with this exit code, and returns its error message.
func fail(t *testing.T, code int, args ...string) string {
	t.Helper()
	return failWith(t, code, "", args...)
}

func failWith(t *testing.T, code int, stdin string, args ...string) string {
	t.Helper()
	got := run(t, stdin, args...)
	if got.code != code || !strings.HasPrefix(got.errOut, "error: ") {
		t.Fatalf("%q: exit code %d, want %d\n%s%s", args, got.code, code, got.out, got.errOut)
	}
	return got.errOut
}

func wantContains(t *testing.T, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// assertGolden compares with testdata/<name>.golden.
func assertGolden(t *testing.T, name, got string) {
	t.Helper()
	golden.Assert(t, filepath.Join(packageDir, "testdata", name+".golden"), []byte(got))
}

// packageDir is absolute: tests that print paths change into a directory of their own, so that those are always the same.
var packageDir = func() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return dir
}()

// Manifests of the tests. Their files lie in the working directory of a test, see workdir.
const (
	edgeManifest = `apiVersion: ringwright.dev/v1alpha1
kind: HashRing
metadata: {name: edge, namespace: cdn}
spec:
  algorithm: {pointsPerWeight: 16}
  features:
  - {name: eu, selector: {matchLabels: {eu: "true"}}}
  - {name: ssd, selector: {matchLabels: {tier: ssd}}}
  - {name: tape, selector: {matchLabels: {tier: tape}}}
  backends:
  - {name: c1, address: 10.0.0.1, port: 8080, weight: 10, zone: a, labels: {eu: "true", tier: ssd}}
  - {name: c2, address: 10.0.0.2, port: 8080, weight: 10, zone: b, labels: {eu: "true"}}
  - {name: c3, address: "2001:db8::3", port: 8080, weight: 20, labels: {tier: ssd}}
  - {name: c4, address: 10.0.0.4, port: 8080, weight: 0, zone: a, labels: {eu: "true", tier: tape}}
`
	shardsManifest = `apiVersion: ringwright.dev/v1alpha1
kind: HashRing
metadata: {name: shards, namespace: cdn}
spec:
  identity: Name
  backends:
  - {name: shard-0, address: shard-0.example.com, port: 11211}
  - {name: shard-1, address: 10.0.1.1, port: 11211, zone: a}
`
)

// workdir changes into a new directory with edge.yaml, shards.yaml and the further files, and with both rings built into
// the directories edge and shards.
func workdir(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	write(t, "edge.yaml", edgeManifest)
	write(t, "shards.yaml", shardsManifest)
	for name, content := range files {
		write(t, name, content)
	}
	succeed(t, "", "build", "-f", "edge.yaml", "-o", "edge")
	succeed(t, "", "build", "-f", "shards.yaml", "-o", "shards")
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
