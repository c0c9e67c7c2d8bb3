// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ringwright/ringwright/internal/testenv/golden"
)

const tableHead = "| value | default | what |\n|---|---|---|\n"

// TestTable holds the table in the chart's README to values.yaml and to the descriptions in the schema; -update writes it.
func TestTable(t *testing.T) {
	readme := filepath.Join(chartDir, "README.md")
	page, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, behind, found := strings.Cut(string(page), tableHead)
	if !found {
		t.Fatal("README.md has no table of values")
	}
	_, behind, _ = strings.Cut(behind, "\n\n") // The next rows are those that are compared.
	var rows strings.Builder
	for _, row := range describe(t, "", load(t).Values, schemaOf(t)) {
		rows.WriteString(row)
	}
	golden.Assert(t, readme, []byte(before+tableHead+rows.String()+"\n"+behind))
}

func schemaOf(t *testing.T) object {
	t.Helper()
	var schema object
	if err := json.Unmarshal(load(t).Schema, &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// describe returns a row for each value that has a description: the leaves, which in the schema are those that are described.
func describe(t *testing.T, path string, defaults values, schema object) []string {
	t.Helper()
	properties, _ := schema["properties"].(object)
	known := maps.Clone(properties)
	delete(known, "global") // Helm's own, for charts within charts.
	if diff := cmp.Diff(slices.Sorted(maps.Keys(defaults)), slices.Sorted(maps.Keys(known))); diff != "" {
		t.Errorf("%q: values.yaml and the schema have other names (-values +schema):\n%s", path, diff)
	}
	var rows []string
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		of, _ := properties[name].(object)
		if description := text(of, "description"); description != "" {
			rows = append(rows, fmt.Sprintf("| `%s` | `%s` | %s |\n", path+name, compact(t, defaults[name]), description))
			continue
		}
		inner, _ := defaults[name].(object)
		if len(inner) == 0 || of["additionalProperties"] != false {
			t.Errorf("%s%s has no description, or takes what it does not know", path, name)
		}
		rows = append(rows, describe(t, path+name+".", inner, of)...)
	}
	return rows
}

func compact(t *testing.T, value any) string {
	t.Helper()
	content, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestEverything: testdata/everything.values.yaml and the others that are rendered set every value, so that none is without effect unseen.
func TestEverything(t *testing.T) {
	set := map[string]bool{}
	files, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		given := parse(t, string(content))
		plain := strings.Join(must(t, nil), "")
		for path, value := range leaves("", given, schemaOf(t)) {
			set[path] = true
			if strings.Join(must(t, value), "") == plain {
				t.Errorf("%s of %s changes nothing", path, file)
			}
		}
	}
	for path := range leaves("", load(t).Values, schemaOf(t)) {
		if !set[path] && path != "image.tag" { // A digest takes its place; TestTaken sets it.
			t.Errorf("no file of testdata sets %s", path)
		}
	}
}

// leaves returns the values that the schema describes, each as the values that set nothing else. What has an effect only beside another is
// given with it.
func leaves(path string, given values, schema object) map[string]values {
	found := map[string]values{}
	properties, _ := schema["properties"].(object)
	for name, value := range given {
		of, _ := properties[name].(object)
		inner, isMap := value.(object)
		if text(of, "description") != "" || !isMap {
			one := values{name: value}
			if enabled, ok := given["enabled"]; ok {
				one["enabled"] = enabled
			}
			found[path+name] = one
			continue
		}
		for below, one := range leaves("", inner, of) {
			found[path+name+"."+below] = values{name: one}
		}
	}
	return found
}

func must(t *testing.T, v values) []string {
	t.Helper()
	documents, notes, err := try(t, v)
	if err != nil {
		t.Fatal(err)
	}
	return append(documents, notes)
}
