// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	root      = "../.."
	namespace = "ringwright-system"
)

var chartDir = filepath.Join(root, "dist", "chart")

type (
	// object is one of Kubernetes, values are those of a chart.
	object = map[string]any
	values = map[string]any
)

// parse returns values that a test has as YAML.
func parse(t *testing.T, text string) values {
	t.Helper()
	var v values
	if err := yaml.UnmarshalStrict([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func load(t *testing.T) *chartv2.Chart {
	t.Helper()
	c, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// try renders the chart as helm install does, and returns the documents of each template and the notes.
func try(t *testing.T, v values) (documents []string, notes string, err error) {
	t.Helper()
	c := load(t)
	capabilities := common.DefaultCapabilities.Copy()
	if capabilities.KubeVersion, err = kubeVersion(); err != nil {
		return nil, "", err
	}
	composed, err := util.ToRenderValues(c, v, common.ReleaseOptions{Name: "ringwright", Namespace: namespace, Revision: 1, IsInstall: true}, capabilities)
	if err != nil {
		return nil, "", err
	}
	files, err := engine.Render(c, composed)
	if err != nil {
		return nil, "", err
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		switch name := path.Base(file); {
		case name == "NOTES.txt":
			notes = files[file]
		case !strings.HasPrefix(name, "_"):
			manifests := releaseutil.SplitManifests(files[file])
			keys := slices.Collect(maps.Keys(manifests))
			slices.SortFunc(keys, byNumber)
			for _, key := range keys {
				documents = append(documents, strings.TrimSpace(manifests[key])+"\n")
			}
		}
	}
	return documents, notes, nil
}

func kubeVersion() (common.KubeVersion, error) {
	version, err := common.ParseKubeVersion("v1.37.0")
	if err != nil {
		return common.KubeVersion{}, err
	}
	return *version, nil
}

// byNumber compares the keys that Helm gives manifests: manifest-2 is before manifest-10.
func byNumber(a, b string) int {
	if d := len(a) - len(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

// render returns the objects of the chart.
func render(t *testing.T, v values) []object {
	t.Helper()
	documents, _, err := try(t, v)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, documents)
}

func decode(t *testing.T, documents []string) []object {
	t.Helper()
	var objects []object
	for _, document := range documents {
		var o object
		if err := yaml.UnmarshalStrict([]byte(document), &o); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if len(o) > 0 {
			objects = append(objects, o)
		}
	}
	return objects
}

// build returns the objects of a folder of config.
func build(t *testing.T, dir string) []object {
	t.Helper()
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "config", dir))
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(text))
	}
	return decode(t, documents)
}

// at returns what is at a path of fields, nil where there is nothing.
func at(o object, fields ...string) any {
	for _, field := range fields[:len(fields)-1] {
		o, _ = o[field].(object)
	}
	return o[fields[len(fields)-1]]
}

// text is a field that has a string.
func text(o object, fields ...string) string {
	s, _ := at(o, fields...).(string)
	return s
}

// nameOf is unique among objects.
func nameOf(o object) string {
	return strings.TrimPrefix(text(o, "metadata", "namespace")+"/", "/") + text(o, "kind") + " " + text(o, "metadata", "name")
}

func named(t *testing.T, objects []object, name string) object {
	t.Helper()
	for _, o := range objects {
		if nameOf(o) == name {
			return o
		}
	}
	t.Fatalf("there is no %s", name)
	return nil
}
