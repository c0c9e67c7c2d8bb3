// SPDX-License-Identifier: Apache-2.0

package ringclient_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestImportsAreFew keeps what every program links in that reads a ring: this module, fsnotify, and what that needs.
func TestImportsAreFew(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Fields(string(out))
	for _, path := range list {
		allowed := false
		for _, prefix := range []string{
			"github.com/ringwright/ringwright/pkg/", "github.com/fsnotify/fsnotify", "golang.org/x/sys/",
		} {
			allowed = allowed || strings.HasPrefix(path, prefix)
		}
		if !allowed {
			t.Errorf("it imports %s", path)
		}
	}
	if len(list) < 4 {
		t.Errorf("only %q were looked at", list)
	}
}
