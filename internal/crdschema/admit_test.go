// SPDX-License-Identifier: Apache-2.0

package crdschema

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// manifest returns a HashRing whose spec is the given YAML.
func manifest(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	indented := "  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")
	return parse(t, "apiVersion: ringwright.dev/v1alpha1\nkind: HashRing\nmetadata: {name: edge, namespace: cdn}\nspec:\n"+indented+"\n")
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

func admit(t *testing.T, obj *unstructured.Unstructured) error {
	t.Helper()
	schema, err := HashRing()
	if err != nil {
		t.Fatal(err)
	}
	return schema.Admit(t.Context(), obj)
}

func TestAdmitFillsInDefaults(t *testing.T) {
	obj := manifest(t, `backends: [{name: c01, address: 10.0.0.1, port: 8080}]`)
	obj.Object["status"] = map[string]any{"active": map[string]any{"revision": "not a number"}}
	if err := admit(t, obj); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "ringwright.dev/v1alpha1",
		"kind":       "HashRing",
		"metadata":   map[string]any{"name": "edge", "namespace": "cdn", "generation": int64(1)},
		"spec": map[string]any{
			"algorithm": map[string]any{"version": "V2", "pointsPerWeight": int64(160), "weightUnit": int64(1)},
			"identity":  "Address",
			"backends":  []any{map[string]any{"name": "c01", "address": "10.0.0.1", "port": int64(8080), "weight": int64(1)}},
			"membership": map[string]any{
				"minBackends": int64(1), "joinDelay": "0s", "leaveDelay": "5m", "maxRemoved": "50%",
			},
			"changePolicy": "Migrate",
			"historyLimit": int64(10),
			"publication":  map[string]any{"minInterval": "5s", "chunks": int64(1), "encoding": "Auto"},
			"deletion":     map[string]any{"tombstone": "72h"},
		},
	}
	if diff := cmp.Diff(want, obj.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAdmitAccepts(t *testing.T) {
	for name, spec := range map[string]string{
		"no backends yet":          `{}`,
		"V1 with 160 points":       "algorithm: {version: V1, pointsPerWeight: 160}\nbackends: [{name: a, address: 10.0.0.1, port: 1}]",
		"V1 by default 160":        "algorithm: {version: V1}\nbackends: [{name: a, address: 10.0.0.1, port: 1}]",
		"IPv6 under Address":       `backends: [{name: a, address: "2001:db8::1", port: 1}]`,
		"brackets under NGINX":     "identity: NGINX\nbackends: [{name: a, address: '[2001:db8::1]'}, {name: b, address: cache.example, port: 80}]",
		"DNS name under Name":      "identity: Name\nbackends: [{name: a, address: cache.example, port: 80}]",
		"a drained backend":        `backends: [{name: a, address: 10.0.0.1, port: 1, weight: 0}]`,
		"null for a default":       "algorithm: null\nbackends: [{name: a, address: 10.0.0.1, port: 1, weight: null}]",
		"features and an hour":     "features: [{name: eu, selector: {matchLabels: {eu: 'true'}}}]\npublication: {minInterval: 1h}",
		"V3 and all its fields":    "algorithm: {version: V3, weightUnit: 625, maxImbalance: 0.5%}\nfeatures: [{name: eu, selector: {matchLabels: {a: b}}}]\nviews: Listed\nviewList: [[eu]]",
		"a Service and its port":   "identity: Name\nbackendsFrom: [{service: {name: cache, port: http}, identity: Hostname}, {service: {name: cache, port: 80}}]",
		"membership and a pin":     "membership: {minBackends: 3, joinDelay: 24h, leaveDelay: 168h, maxRemoved: 0%, maxMovement: 100%}\npinnedRevision: 1\nchangePolicy: Immediate",
		"4096 backends, all rules": backends(4096),
	} {
		t.Run(name, func(t *testing.T) {
			if err := admit(t, manifest(t, spec)); err != nil {
				t.Error(err)
			}
		})
	}
}

// backends returns a spec of n backends with labels and features.
func backends(n int) string {
	var out strings.Builder
	out.WriteString("features: [{name: eu, selector: {matchLabels: {eu: 'true'}}}]\nbackends:\n")
	for i := range n {
		fmt.Fprintf(&out, "- {name: cache-%d, address: 10.1.%d.%d, port: 8080, zone: a, labels: {eu: 'true', tier: ssd}}\n", i, i/256, i%256)
	}
	return out.String()
}

func TestAdmitRefuses(t *testing.T) {
	const one = "\nbackends: [{name: a, address: 10.0.0.1, port: 1}]"
	for name, test := range map[string]struct{ spec, want string }{
		"unknown field":            {"algoritm: {version: V1}" + one, "spec.algoritm: unknown field"},
		"unknown field in a list":  {`backends: [{name: a, address: 10.0.0.1, port: 1, wieght: 2}]`, "spec.backends[0].wieght: unknown field"},
		"V1 with 40 points":        {"algorithm: {version: V1, pointsPerWeight: 40}" + one, "pointsPerWeight must be 160 with version V1, as in NGINX; got 40"},
		"V2 with a unit":           {"algorithm: {weightUnit: 625}" + one, "weightUnit must be 1 with version V2, whose points it would not divide; got 625"},
		"no imbalance":             {"algorithm: {version: V3, maxImbalance: 0%}" + one, "maxImbalance must be a percentage from 0.0001% to 100% with at most 4 decimals, such as 0.5%; got 0%"},
		"an undeclared view":       {"views: Listed\nviewList: [[eu]]" + one, "viewList[0] names eu, which is not among features"},
		"a view twice in a list":   {"features: [{name: a, selector: {matchLabels: {a: b}}}, {name: b, selector: {matchLabels: {a: c}}}]\nviews: Listed\nviewList: [[a, b], [b, a]]" + one, "viewList[0] is a set of features that is there twice: a, b"},
		"a feature twice":          {"features: [{name: a, selector: {matchLabels: {a: b}}}]\nviews: Listed\nviewList: [[a, a]]" + one, `spec.viewList[0][1]: Duplicate value: "a"`},
		"unknown version":          {"algorithm: {version: V9}" + one, `spec.algorithm.version: Unsupported value: "V9"`},
		"brackets under Address":   {`backends: [{name: a, address: "[2001:db8::1]", port: 1}]`, "with identity Address, backends[0].address must be an IP address without brackets; backend a has [2001:db8::1]"},
		"bare IPv6 under NGINX":    {"identity: NGINX\nbackends: [{name: a, address: '2001:db8::1'}]", "with identity NGINX, backends[0].address must be"},
		"no port under Address":    {`backends: [{name: a, address: 10.0.0.1}]`, "with identity Address, backends[0].port must be set; backend a has none"},
		"duplicate names":          {`backends: [{name: a, address: 10.0.0.1, port: 1}, {name: a, address: 10.0.0.2, port: 1}]`, "the names of backends must be unique"},
		"duplicate features":       {"features: [{name: eu, selector: {matchLabels: {a: b}}}, {name: eu, selector: {matchLabels: {a: c}}}]" + one, `spec.features[1]: Duplicate value: {"name":"eu"}`},
		"empty selector":           {"features: [{name: eu, selector: {}}]" + one, "an empty one would select every backend"},
		"weight over the limit":    {`backends: [{name: a, address: 10.0.0.1, port: 1, weight: 1000001}]`, "spec.backends[0].weight: Invalid value: 1000001"},
		"too many backends":        {backends(4097), "spec.backends: Too many: 4097: must have at most 4096 items"},
		"not an address":           {`backends: [{name: a, address: "10.0.0.1:80", port: 1}]`, "address must be an IP address without port and zone, or a DNS name; got 10.0.0.1:80"},
		"an interval of two hours": {"publication: {minInterval: 2h}" + one, "minInterval must be at most 1h"},
		"an interval of a day":     {"publication: {minInterval: 1d}" + one, "spec.publication.minInterval: Invalid value"},
		"a source by hostname":     {"backendsFrom: [{service: {name: cache}, identity: Hostname}]", "backendsFrom[0].identity must be Address; got Hostname: set identity of the HashRing to Name"},
		"port 0 of a Service":      {"backendsFrom: [{service: {name: cache, port: 0}}]", "a number from 1 to 65535 without quotes, or the name of a port of the Service: lower-case letters, digits and dashes with at least one letter; got 0"},
		"a quoted port":            {"backendsFrom: [{service: {name: cache, port: '80'}}]", `with at least one letter; got "80"`},
		"a leaveDelay of 8 days":   {"membership: {leaveDelay: 192h}" + one, "leaveDelay must be at most 168h; got 691200s"},
		"all and more removed":     {"membership: {maxRemoved: 101%}" + one, "maxRemoved must be a percentage from 0% to 100% with at most 4 decimals, such as 50%; got 101%"},
		"revision 0":               {"pinnedRevision: 0" + one, "spec.pinnedRevision: Invalid value: 0"},
		"text for a number":        {`backends: [{name: a, address: 10.0.0.1, port: "1"}]`, "spec.backends[0].port: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			err := admit(t, manifest(t, test.spec))
			var rejection *Rejection
			if !errors.As(err, &rejection) {
				t.Fatalf("got %v, want a Rejection", err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %s\nwant %s", err, test.want)
			}
		})
	}
}

func TestAdmitRefusesMetadataAndType(t *testing.T) {
	const head = "apiVersion: ringwright.dev/v1alpha1\nkind: HashRing\n"
	for name, test := range map[string]struct{ text, want string }{
		"another version":     {"apiVersion: ringwright.dev/v9\nkind: HashRing\nmetadata: {name: a, namespace: b}", "not a HashRing of ringwright.dev/v1alpha1"},
		"another kind":        {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}", "the object is a ConfigMap of v1"},
		"no name":             {head + "metadata: {namespace: b}\nspec: {}", "metadata.name: Required value"},
		"a name in capitals":  {head + "metadata: {name: Edge, namespace: b}\nspec: {}", `metadata.name: Invalid value: "Edge"`},
		"a name of 64":        {head + "metadata: {namespace: b, name: " + strings.Repeat("a", 64) + "}\nspec: {}", "metadata.name must have at most 63 characters"},
		"unknown metadata":    {head + "metadata: {name: a, namespace: b, lables: {}}\nspec: {}", "metadata.lables: unknown field"},
		"labels of numbers":   {head + "metadata: {name: a, namespace: b, labels: {x: 1}}\nspec: {}", "labels"},
		"no spec":             {head + "metadata: {name: a, namespace: b}", "spec: Required value"},
		"a field beside spec": {head + "metadata: {name: a, namespace: b}\nspec: {}\nspce: {}", "spce: unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			err := admit(t, parse(t, test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestAdmitListsEveryViolation(t *testing.T) {
	err := admit(t, manifest(t, `
algorithm: {version: V9, pointsPerWeight: 0}
backends: [{name: a}]`))
	var rejection *Rejection
	if !errors.As(err, &rejection) {
		t.Fatalf("got %v, want a Rejection", err)
	}
	if len(rejection.Violations) != 3 || !rejection.Incomplete {
		t.Errorf("got %d violations, incomplete %v: %q", len(rejection.Violations), rejection.Incomplete, rejection.Violations)
	}
}

// TestRingMigration: its schema is that of its own CRD, with defaults and rules.
func TestRingMigration(t *testing.T) {
	schema, err := RingMigration()
	if err != nil {
		t.Fatal(err)
	}
	const head = "apiVersion: ringwright.dev/v1alpha1\nkind: RingMigration\nmetadata: {name: m, namespace: cdn}\nspec: "
	const stages = `stages: [{name: all, datacenters: {remainder: true}, steps: [{traffic: "100%"}]}]`
	object := parse(t, head+"{ringRef: {name: edge}, "+stages+"}")
	if err := schema.Admit(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	spec := object.Object["spec"].(map[string]any)
	if spec["direction"] != "Forward" || spec["attempt"] != int64(1) || spec["onDelete"] != "Rollback" {
		t.Errorf("its defaults are not filled in: %v", spec)
	}
	for want, text := range map[string]string{
		"exactly one of ringRef and ringSelector must be set": head + "{" + stages + "}",
		"spec.stage: unknown field":                           head + "{ringRef: {name: edge}, stage: []}",
		"the object is a HashRing":                            strings.Replace(head, "RingMigration", "HashRing", 1) + "{}",
	} {
		if err := schema.Admit(t.Context(), parse(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
