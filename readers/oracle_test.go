// SPDX-License-Identifier: Apache-2.0

package readers_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// oracle is a program that answers as a reader in another language does.
type oracle struct {
	name    string
	command []string
}

// oracles builds the readers in other languages. Without cargo or python3 the test is skipped, but in CI it fails.
func oracles(t *testing.T) []oracle {
	t.Helper()
	cargo, python := program(t, "cargo"), program(t, "python3")
	build := exec.Command(cargo, "build", "--quiet", "--offline", "--example", "oracle")
	build.Dir = "rust"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the reader in Rust: %v\n%s", err, out)
	}
	target := os.Getenv("CARGO_TARGET_DIR")
	if target == "" {
		target = filepath.Join("rust", "target")
	}
	return []oracle{
		{"Rust", []string{filepath.Join(target, "debug", "examples", "oracle")}},
		{"Python", []string{python, filepath.Join("python", "tests", "oracle.py")}},
	}
}

func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("%s is missing: install it, the readers have to be compared in CI", name)
	default:
		t.Skipf("%s IS MISSING: THE READERS IN OTHER LANGUAGES ARE NOT COMPARED WITH GO", name)
	}
	return path
}

// ask returns the lines that an oracle answers to a question, which is a file.
func (o oracle) ask(t *testing.T, command string, question []byte) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), command)
	if err := os.WriteFile(file, question, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := exec.Command(o.command[0], append(o.command[1:], command, file)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", o.name, command, err, errs.String())
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// agree holds every oracle to the answers of Go. Question i is described by what.
func agree(t *testing.T, command string, question []byte, want []string, what func(i int) string) {
	t.Helper()
	for _, o := range oracles(t) {
		got := o.ask(t, command, question)
		if len(got) != len(want) {
			t.Fatalf("%s: %d answers to %d questions", o.name, len(got), len(want))
		}
		for i := range want {
			if strings.TrimSpace(got[i]) != strings.TrimSpace(want[i]) {
				t.Errorf("%s: %s\n got %s\nwant %s", o.name, what(i), got[i], want[i])
			}
		}
	}
}
