// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"os/exec"
	"strings"
	"testing"
)

// A program that uses the types must not get a client library, or the ring engine, with them. The check sees what the
// linter of direct imports does not: what an import brings along.
func TestDependsOnAPIMachineryOnly(t *testing.T) {
	const format = `{{if not .Standard}}{{.ImportPath}}{{end}}`
	out, err := exec.Command("go", "list", "-deps", "-f", format, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("listing dependencies: %v\n%s", err, out)
	}
	forbidden := []string{
		"github.com/ringwright/ringwright/",
		"sigs.k8s.io/controller-runtime",
		"k8s.io/api/",
		"k8s.io/apiextensions-apiserver",
		"k8s.io/apiserver",
		"k8s.io/client-go",
	}
	for _, path := range strings.Fields(string(out)) {
		if path == "github.com/ringwright/ringwright/api/v1alpha1" {
			continue
		}
		for _, prefix := range forbidden {
			if strings.HasPrefix(path+"/", prefix) || strings.HasPrefix(path, prefix) {
				t.Errorf("api/v1alpha1 depends on %s", path)
			}
		}
	}
}
