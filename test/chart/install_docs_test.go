// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestInstallPage: what docs/install.md gives the chart is taken by it, and has an effect.
func TestInstallPage(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(content)
	plain := strings.Join(must(t, nil), "")
	applications := 0
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page, -1) {
		for _, o := range decode(t, strings.Split(block[1], "---\n")) {
			given, ok := at(o, "spec", "source", "helm", "valuesObject").(object)
			if !ok {
				continue
			}
			applications++
			if strings.Join(must(t, given), "") == plain {
				t.Errorf("the values of Application %s change nothing", text(o, "metadata", "name"))
			}
		}
	}
	known := leaves("", load(t).Values, schemaOf(t))
	names := regexp.MustCompile("(?:--set '?|`)([a-z]+(?:[A-Z][a-z]+)*(?:\\.[a-zA-Z]+)*)=").FindAllStringSubmatch(page, -1)
	for _, name := range names {
		if known[name[1]] == nil {
			t.Errorf("the chart has no value %s", name[1])
		}
	}
	if applications != 1 || len(names) < 8 {
		t.Errorf("the page has %d Applications with values, and %d values: the test does not find them", applications, len(names))
	}
}

// TestManifest: dist/install.yaml is config/default.
func TestManifest(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "dist", "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	got, want := byName(t, decode(t, strings.Split(string(content), "\n---\n"))), byName(t, build(t, "default"))
	if len(got) != len(want) || len(got) < 30 {
		t.Errorf("%d objects, want %d", len(got), len(want))
	}
	for name, o := range want {
		a, errA := yaml.Marshal(o)
		b, errB := yaml.Marshal(got[name])
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Errorf("%s differs; run make dist", name)
		}
	}
}
