// SPDX-License-Identifier: Apache-2.0

package argocd_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/testenv/golden"
)

// actionTypes are the actions by their names in Argo CD.
var actionTypes = []v1alpha1.ActionType{
	v1alpha1.ActionApprove, v1alpha1.ActionReject, v1alpha1.ActionPause, v1alpha1.ActionResume, v1alpha1.ActionRollback,
	v1alpha1.ActionRetry, v1alpha1.ActionSkip,
}

func nameOf(kind v1alpha1.ActionType) string { return strings.ToLower(string(kind)) }

// scriptOf is the script of an action.
func scriptOf(t *testing.T, kind v1alpha1.ActionType) string {
	t.Helper()
	return strings.NewReplacer(`"KIND"`, fmt.Sprintf("%q", kind), `"NAME"`, fmt.Sprintf("%q", nameOf(kind))).Replace(script(t, actionScript))
}

// indented is a text as the block of a YAML document.
func indented(text, by string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if line != "\n" {
			out.WriteString(by)
		}
		out.WriteString(line)
	}
	return out.String()
}

// TestPatchIsTheScripts: what users apply is what is tested.
func TestPatchIsTheScripts(t *testing.T) {
	var actions strings.Builder
	actions.WriteString("discovery.lua: |\n" + indented(script(t, discovery), "  ") + "definitions:\n")
	for _, kind := range actionTypes {
		actions.WriteString("- name: " + nameOf(kind) + "\n  action.lua: |\n" + indented(scriptOf(t, kind), "    "))
	}
	patch := `# Health and actions for Argo CD, to be merged into its ConfigMap argocd-cm. They are the .lua files; a test makes this of them.
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-cm
  namespace: argocd
data:
`
	for _, entry := range []struct{ key, text string }{
		{"health.ringwright.dev_HashRing", script(t, ringHealth)},
		{"health.ringwright.dev_RingMigration", script(t, migrationHealth)},
		{"health.ringwright.dev_RingMigrationAction", script(t, actionHealth)},
		{"health.ringwright.dev_WeightPolicy", script(t, weightsHealth)},
		{"actions.ringwright.dev_RingMigration", actions.String()},
	} {
		patch += "  resource.customizations." + entry.key + ": |\n" + indented(entry.text, "    ")
	}
	golden.Assert(t, "../../config/argocd/argocd-cm.yaml", []byte(patch))

	var read struct {
		Data map[string]string `json:"data"`
	}
	if err := yaml.UnmarshalStrict([]byte(patch), &struct {
		APIVersion, Kind string
		Metadata         map[string]string
		Data             *map[string]string
	}{Data: &read.Data}); err != nil {
		t.Fatal(err)
	}
	if got := read.Data["resource.customizations.health.ringwright.dev_HashRing"]; got != script(t, ringHealth) {
		t.Errorf("the patch has another script:\n%s", got)
	}
	var custom struct {
		Definitions []struct {
			Name   string `json:"name"`
			Action string `json:"action.lua"`
		} `json:"definitions"`
		Discovery string `json:"discovery.lua"`
	}
	if err := yaml.UnmarshalStrict([]byte(read.Data["resource.customizations.actions.ringwright.dev_RingMigration"]), &custom); err != nil {
		t.Fatal(err)
	}
	if len(custom.Definitions) != len(actionTypes) || custom.Discovery != script(t, discovery) || custom.Definitions[6].Action != scriptOf(t, v1alpha1.ActionSkip) {
		t.Errorf("the patch has other actions: %+v", custom)
	}
}
