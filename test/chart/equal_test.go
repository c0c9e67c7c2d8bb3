// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// onlyHelms are the labels and annotations that Helm wants, and kustomize knows nothing of.
var onlyHelms = map[string][]string{
	"labels":      {"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/version", "helm.sh/chart"},
	"annotations": {"helm.sh/resource-policy"},
}

// TestEqualsKustomize: the chart installs what kustomize does, by default and where config has something for a switch.
func TestEqualsKustomize(t *testing.T) {
	for dir, test := range map[string]struct {
		values string
		// also are the objects of the chart beside those of the folder: none for default.
		also []object
	}{
		"default":    {},
		"namespaced": {values: "watchNamespaces: [ringwright-rings]"},
		"prometheus": {
			values: "serviceMonitor: {enabled: true}\npodMonitor: {enabled: true}\nprometheusRule: {enabled: true}", also: render(t, nil),
		},
	} {
		t.Run(dir, func(t *testing.T) {
			want, got := byName(t, build(t, dir)), byName(t, render(t, parse(t, test.values)))
			// Helm installs into a namespace that is there.
			delete(want, "Namespace "+namespace)
			for _, o := range test.also {
				delete(got, nameOf(o))
			}
			if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
				t.Errorf("other objects (-kustomize +chart):\n%s", diff)
			}
			for name, o := range want {
				if diff := cmp.Diff(o, withoutHelms(t, got[name])); got[name] != nil && diff != "" {
					t.Errorf("%s (-kustomize +chart):\n%s", name, diff)
				}
			}
		})
	}
}

func byName(t *testing.T, objects []object) map[string]object {
	t.Helper()
	m := make(map[string]object, len(objects))
	for _, o := range objects {
		if m[nameOf(o)] != nil {
			t.Errorf("%s is there twice", nameOf(o))
		}
		m[nameOf(o)] = o
	}
	return m
}

// withoutHelms takes Helm's labels and annotations away. Each object has all of the labels.
func withoutHelms(t *testing.T, o object) object {
	t.Helper()
	meta, _ := o["metadata"].(object)
	for field, keys := range onlyHelms {
		of, _ := meta[field].(object)
		for _, key := range keys {
			if _, ok := of[key]; !ok && field == "labels" {
				t.Errorf("%s has no label %s", nameOf(o), key)
			}
			delete(of, key)
		}
		if len(of) == 0 {
			delete(meta, field)
		}
	}
	return o
}

// TestKeep: CustomResourceDefinitions are left at helm uninstall unless crds.keep says otherwise.
func TestKeep(t *testing.T) {
	for keep, want := range map[string]any{"true": "keep", "false": nil} {
		crds := 0
		for _, o := range render(t, parse(t, "crds: {keep: "+keep+"}")) {
			got := at(o, "metadata", "annotations", "helm.sh/resource-policy")
			if o["kind"] != "CustomResourceDefinition" {
				if got != nil {
					t.Errorf("%s is kept", nameOf(o))
				}
				continue
			}
			crds++
			if got != want || text(o, "metadata", "annotations", "controller-gen.kubebuilder.io/version") == "" {
				t.Errorf("keep %s: %s has annotations %v", keep, nameOf(o), at(o, "metadata", "annotations"))
			}
		}
		if crds != 5 {
			t.Errorf("there are %d CustomResourceDefinitions", crds)
		}
	}
	if n := len(render(t, nil)) - len(render(t, parse(t, "crds: {install: false}"))); n != 5 {
		t.Errorf("without CustomResourceDefinitions there are %d objects less", n)
	}
}
