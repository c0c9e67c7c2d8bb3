// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/internal/testenv/golden"
)

// TestGolden renders the chart with the values in testdata, each twice. CustomResourceDefinitions are left out: TestEqualsKustomize
// compares them.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d files of values, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".values.yaml")
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			first := manifest(t, string(content))
			if second := manifest(t, string(content)); first != second {
				t.Error("two renderings differ")
			}
			golden.Assert(t, filepath.Join("testdata", name+".golden.yaml"), []byte(first))
		})
	}
}

func manifest(t *testing.T, content string) string {
	t.Helper()
	documents, notes, err := try(t, parse(t, content))
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, document := range documents {
		if !strings.Contains(document, "\nkind: CustomResourceDefinition\n") {
			kept = append(kept, document)
		}
	}
	return "# " + strings.ReplaceAll(strings.TrimSpace(notes), "\n", "\n# ") + "\n---\n" + strings.Join(kept, "---\n")
}
