// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/internal/testenv"
)

const crdOfRings = "CustomResourceDefinition hashrings.ringwright.dev"

// cluster is an API server with the namespaces that the files in testdata name.
type cluster struct {
	*testenv.ControlPlane
	admin client.Client
}

func start(t *testing.T) cluster {
	t.Helper()
	cp, err := testenv.Start(context.Background(), testenv.Options{CRDPaths: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin, err := client.New(cp.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{namespace, "team-a", "team-b"} {
		restricted := map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
		if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: restricted}}); err != nil {
			t.Fatal(err)
		}
	}
	return cluster{cp, admin}
}

// install applies what the chart makes, but for the kinds of the Prometheus operator, which is not there.
func (c cluster) install(t *testing.T, objects []object) {
	t.Helper()
	for _, first := range []bool{true, false} { // Helm installs CustomResourceDefinitions first, too.
		for _, o := range objects {
			if (o["kind"] == "CustomResourceDefinition") != first || o["apiVersion"] == "monitoring.coreos.com/v1" {
				continue
			}
			if err := c.Apply(t.Context(), &unstructured.Unstructured{Object: runtime.DeepCopyJSON(toJSON(o))}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// toJSON is the object with the kinds of numbers that unstructured ones have.
func toJSON(o object) object {
	content, err := (&unstructured.Unstructured{Object: o}).MarshalJSON()
	if err != nil {
		panic(err) // It was YAML.
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(content); err != nil {
		panic(err)
	}
	return u.Object
}

// TestInstall installs the chart over CustomResourceDefinitions that are older, with a ring that is there, and then upgrades it to each of
// the other sets of values.
func TestInstall(t *testing.T) {
	c := start(t)
	objects := render(t, nil)
	old := runtime.DeepCopyJSON(toJSON(named(t, objects, crdOfRings)))
	removeProperty(t, old, "consumers")
	c.install(t, []object{old})
	ring := parse(t, `
apiVersion: ringwright.dev/v1alpha1
kind: HashRing
metadata: {namespace: team-a, name: ring}
spec: {backends: [{name: a, address: 10.0.0.1, port: 80}], consumers: {selector: {matchLabels: {app: a}}}}`)
	if err := c.Apply(t.Context(), &unstructured.Unstructured{Object: ring}); err == nil || !strings.Contains(err.Error(), ".spec.consumers: field not declared in schema") {
		t.Fatalf("the old CustomResourceDefinition takes consumers: %v", err)
	}
	consumers := at(ring, "spec", "consumers")
	delete(ring["spec"].(object), "consumers")
	if err := c.Apply(t.Context(), &unstructured.Unstructured{Object: ring}); err != nil {
		t.Fatal(err)
	}
	before := c.get(t, ring)
	c.install(t, objects)
	if after := c.get(t, ring); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Error("the upgrade changed a HashRing")
	}
	ring["spec"].(object)["consumers"] = consumers
	var last error // The API server needs a moment for a schema.
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		last = c.Apply(ctx, &unstructured.Unstructured{Object: ring})
		return last == nil, nil
	}); err != nil {
		t.Errorf("the upgraded CustomResourceDefinition: %v: %v", err, last)
	}
	for _, name := range []string{"default", "everything", "namespaced", "least"} {
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile("testdata/" + name + ".values.yaml")
			if err != nil {
				t.Fatal(err)
			}
			objects := render(t, parse(t, string(content)))
			c.install(t, objects)
			c.admitPods(t, objects)
		})
	}
}

// removeProperty takes a field of spec out of a schema, with the rules that name it.
func removeProperty(t *testing.T, crd object, name string) {
	t.Helper()
	version := at(crd, "spec", "versions").([]any)[0].(object)
	spec := at(version, "schema", "openAPIV3Schema", "properties", "spec").(object)
	properties := spec["properties"].(object)
	if properties[name] == nil {
		t.Fatalf("spec has no %s", name)
	}
	delete(properties, name)
	if rules, ok := spec["x-kubernetes-validations"].([]any); ok {
		spec["x-kubernetes-validations"] = slices.DeleteFunc(rules, func(rule any) bool { return strings.Contains(text(rule.(object), "rule"), name) })
	}
}

func (c cluster) get(t *testing.T, o object) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(text(o, "apiVersion"))
	u.SetKind(text(o, "kind"))
	if err := c.admin.Get(t.Context(), client.ObjectKey{Namespace: text(o, "metadata", "namespace"), Name: text(o, "metadata", "name")}, u); err != nil {
		t.Fatal(err)
	}
	return u
}

// admitPods makes the pods of the Deployments, but for keeping them, in a namespace of the restricted Pod Security level.
func (c cluster) admitPods(t *testing.T, objects []object) {
	t.Helper()
	pods := 0
	for _, o := range objects {
		if o["kind"] != "Deployment" {
			continue
		}
		template := at(o, "spec", "template").(object)
		pod := &unstructured.Unstructured{Object: toJSON(object{
			"apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
			"metadata": object{"namespace": namespace, "name": "pod", "labels": at(template, "metadata", "labels"), "annotations": at(template, "metadata", "annotations")},
		})}
		if err := c.admin.Create(t.Context(), pod, client.DryRunAll); err != nil {
			t.Errorf("a pod of %s: %v", nameOf(o), err)
		}
		pods++
	}
	if pods == 0 {
		t.Error("there is no Deployment")
	}
}
