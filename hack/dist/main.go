// SPDX-License-Identifier: Apache-2.0

// Dist writes what is installed from: dist/install.yaml, which is config/default with the name of an image, and the files of the chart in
// dist/chart/files, which are parts of config that have nothing to be templated.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// builtImage is what config/default has for the image.
const builtImage = "ringwright:latest"

func main() {
	image := flag.String("image", builtImage, "the image that dist/install.yaml names")
	root := flag.String("root", ".", "root of the repository")
	flag.Parse()
	if err := run(*root, *image); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(root, image string) error {
	installed, err := build(root, "default")
	if err != nil {
		return err
	}
	manifest, err := install(installed, image)
	if err != nil {
		return err
	}
	files, err := chartFiles(root, installed)
	if err != nil {
		return err
	}
	dist := filepath.Join(root, "dist")
	if err := os.RemoveAll(filepath.Join(dist, "chart", "files")); err != nil {
		return err
	}
	files[filepath.Join("..", "..", "install.yaml")] = manifest
	for name, content := range files {
		path := filepath.Join(dist, "chart", "files", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// build returns the objects of a folder of config, in its order.
func build(root, dir string) ([]*resource.Resource, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // The kustomization says it.
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "config", dir))
	if err != nil {
		return nil, fmt.Errorf("building config/%s: %w", dir, err)
	}
	return built.Resources(), nil
}

// install returns all objects as one file, with an image in place of that of config/default.
func install(objects []*resource.Resource, image string) ([]byte, error) {
	if image == "" || strings.ContainsAny(image, " \t\n\"'#{}") {
		return nil, fmt.Errorf("-image: %q is no name of an image", image)
	}
	text, err := join(objects)
	if err != nil {
		return nil, err
	}
	from, to := []byte(" image: "+builtImage+"\n"), []byte(" image: "+image+"\n")
	if n := bytes.Count(text, from); n != 2 {
		return nil, fmt.Errorf("config/default has image %s in %d containers, want the manager's and the balancer's", builtImage, n)
	}
	return append([]byte("# Made by make dist of config/default: kubectl apply --server-side -f dist/install.yaml\n"), bytes.ReplaceAll(text, from, to)...), nil
}

// chartFiles returns the files of the chart by their paths in dist/chart/files. The templates take them as they are, as Helm would interpret
// what is in the braces of descriptions, of alerts and of CEL.
func chartFiles(root string, installed []*resource.Resource) (map[string][]byte, error) {
	monitoring, err := build(root, "prometheus")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, list := range map[string][]*resource.Resource{
		"policy.yaml": pick(installed, func(r *resource.Resource) bool { return strings.HasPrefix(r.GetKind(), "ValidatingAdmissionPolicy") }),
		"roles.yaml":  pick(installed, forPeople),
		"alerts.yaml": pick(monitoring, func(r *resource.Resource) bool { return r.GetKind() == "PrometheusRule" }),
	} {
		if len(list) == 0 {
			return nil, fmt.Errorf("config has nothing for %s of the chart", name)
		}
		if files[name], err = join(list); err != nil {
			return nil, err
		}
	}
	for _, crd := range pick(installed, func(r *resource.Resource) bool { return r.GetKind() == "CustomResourceDefinition" }) {
		if files[filepath.Join("crds", crd.GetName()+".yaml")], err = join([]*resource.Resource{crd}); err != nil {
			return nil, err
		}
	}
	for name, role := range map[string]string{"manager-rules.yaml": "ringwright-manager-role", "balancer-rules.yaml": "ringwright-balancer-role"} {
		if files[name], err = rulesOf(installed, role); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// forPeople says that a role is for those who use rings, not for the programs and whoever scrapes them.
func forPeople(r *resource.Resource) bool {
	return r.GetKind() == "ClusterRole" && slices.ContainsFunc([]string{"-viewer-role", "-editor-role", "-admin-role", "-oncall-role"}, func(suffix string) bool {
		return strings.HasSuffix(r.GetName(), suffix)
	})
}

// rulesOf returns the rules of a ClusterRole: the chart has them in Roles, too.
func rulesOf(objects []*resource.Resource, name string) ([]byte, error) {
	found := pick(objects, func(r *resource.Resource) bool { return r.GetKind() == "ClusterRole" && r.GetName() == name })
	if len(found) != 1 {
		return nil, fmt.Errorf("config/default has %d ClusterRoles %s", len(found), name)
	}
	object, err := found[0].Map()
	if err != nil {
		return nil, err
	}
	rules, ok := object["rules"].([]any)
	if !ok || len(rules) == 0 {
		return nil, errors.New("ClusterRole " + name + " has no rules")
	}
	return yaml.Marshal(rules)
}

func pick(objects []*resource.Resource, is func(*resource.Resource) bool) []*resource.Resource {
	var picked []*resource.Resource
	for _, object := range objects {
		if is(object) {
			picked = append(picked, object)
		}
	}
	return picked
}

// join returns objects as the documents of one file.
func join(objects []*resource.Resource) ([]byte, error) {
	var texts [][]byte
	for _, object := range objects {
		text, err := object.AsYAML()
		if err != nil {
			return nil, fmt.Errorf("writing %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		texts = append(texts, text)
	}
	return bytes.Join(texts, []byte("---\n")), nil
}
