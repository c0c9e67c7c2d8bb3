// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

var noStreams = genericiooptions.NewTestIOStreamsDiscard()

func TestHelp(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"help"}} {
		out := succeed(t, "", args...)
		for _, want := range []string{"kubectl hashring [command]", "size", "build", "plan", "lookup", "inspect", "verify", "version", "completion", "Exit codes: 0 success"} {
			wantContains(t, out, want)
		}
	}
	assertGolden(t, "help-lookup", succeed(t, "", "lookup", "--help"))
	assertGolden(t, "help-build", succeed(t, "", "build", "--help"))
	assertGolden(t, "help-plan", succeed(t, "", "plan", "--help"))
	assertGolden(t, "help-size", succeed(t, "", "size", "--help"))
}

// TestEveryCommandExplainsItself and calls itself what the user calls it.
func TestEveryCommandExplainsItself(t *testing.T) {
	for _, cmd := range New(noStreams).Commands() {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: %q is no summary", cmd.Name(), cmd.Short)
		}
		if cmd.Name() != "version" && !strings.Contains(cmd.Example, "kubectl hashring "+cmd.Name()) {
			t.Errorf("%s has no example", cmd.Name())
		}
		if got := cmd.CommandPath(); got != "kubectl hashring "+cmd.Name() {
			t.Errorf("%s calls itself %q", cmd.Name(), got)
		}
	}
}

func TestUsageErrorsSayWhereHelpIs(t *testing.T) {
	for want, args := range map[string][]string{
		"error: unknown command \"lokup\"\nSee 'kubectl hashring --help'.\n":                                              {"lokup"},
		"error: unknown flag: --x\nSee 'kubectl hashring verify --help'.\n":                                               {"verify", "--x"},
		"error: unexpected argument \"x\": kubectl hashring version takes none\nSee 'kubectl hashring version --help'.\n": {"version", "x"},
	} {
		if got := fail(t, ExitUsage, args...); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestVersion(t *testing.T) {
	var v VersionReport
	if err := json.Unmarshal([]byte(succeed(t, "", "version", "-o", "json")), &v); err != nil {
		t.Fatal(err)
	}
	if v.Version == "" || v.Go != runtime.Version() || v.API != "ringwright.dev/v1alpha1" || v.Routing != "ringwright.dev/v1alpha1" {
		t.Errorf("got %+v", v)
	}
	wantContains(t, succeed(t, "", "version"), "HashRings")
}

func TestCompletion(t *testing.T) {
	wantContains(t, succeed(t, "", "completion", "bash"), "__start_kubectl-hashring")
	got := run(t, "", cobra.ShellCompRequestCmd, "lookup", "--format", "")
	if got.code != ExitOK {
		t.Fatal(got.errOut)
	}
	if want := "table\ntsv\njson\nyaml\n"; !strings.HasPrefix(got.out, want) {
		t.Errorf("got %q", got.out)
	}
}

// full is a writer like a file on a full disk.
type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestOutputThatCannotBeWrittenIsAnError: the exit code must not say that everything was printed.
func TestOutputThatCannotBeWrittenIsAnError(t *testing.T) {
	workdir(t, nil)
	for name, args := range map[string][]string{
		"build":        {"build", "-f", "edge.yaml", "-o", "edge"},
		"build json":   {"build", "-f", "edge.yaml", "-o", "edge", "--format", "json"},
		"lookup":       {"lookup", "--dir", "edge", "a"},
		"lookup tsv":   {"lookup", "--dir", "edge", "-o", "tsv", "a"},
		"lookup json":  {"lookup", "--dir", "edge", "-o", "json", "a"},
		"lookup yaml":  {"lookup", "--dir", "edge", "-o", "yaml", "-"},
		"inspect":      {"inspect", "--dir", "edge"},
		"inspect yaml": {"inspect", "--dir", "edge", "-o", "yaml"},
		"verify":       {"verify", "--dir", "edge"},
		"version":      {"version"},
		"size":         {"size", "--points", "1,2", "--backends", "1"},
		"size csv":     {"size", "--points", "1,2", "--backends", "1", "-o", "csv"},
		"size png":     {"size", "--points", "1,2", "--backends", "2", "-o", "png", "--out", "-"},
		"size to file": {"size", "--points", "1,2", "--backends", "1", "--out", "size.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			var errOut strings.Builder
			code := Main(t.Context(), args, genericiooptions.IOStreams{In: strings.NewReader("a\n"), Out: full{}, ErrOut: &errOut})
			if code != ExitFailure || errOut.String() != "error: no space left on device\n" {
				t.Errorf("exit code %d, %q", code, errOut.String())
			}
		})
	}
}
