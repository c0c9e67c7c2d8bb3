// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"os/exec"
	"strings"
	"testing"
)

// The controller is a function: what it could wait for, log to or read the time from, it must not have.
func TestDependsOnTheStandardLibraryOnly(t *testing.T) {
	const format = `{{if not .Standard}}{{.ImportPath}}{{end}}`
	out, err := exec.Command("go", "list", "-deps", "-f", format, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("listing dependencies: %v\n%s", err, out)
	}
	for _, path := range strings.Fields(string(out)) {
		if path != "github.com/ringwright/ringwright/internal/balance" {
			t.Errorf("balance depends on %s", path)
		}
	}
	out, err = exec.Command("go", "list", "-f", `{{join .Imports " "}}`, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("listing imports: %v\n%s", err, out)
	}
	for _, path := range strings.Fields(string(out)) {
		switch path {
		case "context", "log", "log/slog", "os", "math/rand", "math/rand/v2", "sync", "net":
			t.Errorf("balance imports %s", path)
		}
	}
}
