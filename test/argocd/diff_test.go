// SPDX-License-Identifier: Apache-2.0

package argocd_test

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/internal/crdschema"
)

// TestClientSideDiff is what docs/operations.md says of Argo CD's comparison of a custom resource without the API server: a three-way
// merge patch of the manifest in Git, which was applied last, and what is stored. Defaults of fields are no difference; in a
// list they are.
func TestClientSideDiff(t *testing.T) {
	for name, test := range map[string]struct{ spec, want string }{
		"every backend has its weight": {`{backends: [{name: a, address: 10.0.0.1, port: 80, weight: 1}]}`, `{}`},
		"one has the default": {
			`{backends: [{name: a, address: 10.0.0.1, port: 80}]}`,
			`{"spec":{"backends":[{"address":"10.0.0.1","name":"a","port":80}]}}`,
		},
		"a source has the defaults": {
			`{backendsFrom: [{service: {name: cache}}]}`, `{"spec":{"backendsFrom":[{"service":{"name":"cache"}}]}}`,
		},
		"a source has its own": {`{backendsFrom: [{service: {name: cache}, preferredIPFamily: IPv4, weight: 1}]}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			git, err := yaml.YAMLToJSON([]byte("{apiVersion: ringwright.dev/v1alpha1, kind: HashRing, metadata: {name: edge, namespace: cdn}, spec: " + test.spec + "}"))
			if err != nil {
				t.Fatal(err)
			}
			stored := &unstructured.Unstructured{}
			if err := stored.UnmarshalJSON(git); err != nil {
				t.Fatal(err)
			}
			schema, err := crdschema.HashRing()
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Admit(t.Context(), stored); err != nil {
				t.Fatal(err)
			}
			live, err := json.Marshal(stored)
			if err != nil {
				t.Fatal(err)
			}
			patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(git, git, live)
			if err != nil || string(patch) != test.want {
				t.Errorf("got %s, %v, want %s", patch, err, test.want)
			}
		})
	}
}
