// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
)

// TestLint: helm lint has nothing to say, not even information, but that there is no icon.
func TestLint(t *testing.T) {
	version, err := kubeVersion()
	if err != nil {
		t.Fatal(err)
	}
	result := lint.RunAll(chartDir, nil, namespace, lint.WithKubeVersion(&version))
	for _, message := range result.Messages {
		if !strings.Contains(message.Error(), "icon is recommended") {
			t.Error(message)
		}
	}
	if len(result.Messages) == 0 {
		t.Error("helm lint said nothing at all: did it find the chart?")
	}
}

// TestSchema: values that are wrong are refused with an error that says where and why.
func TestSchema(t *testing.T) {
	for name, test := range map[string]struct{ values, want string }{
		"an unknown value":       {"replicas: 2", "additional properties 'replicas' not allowed"},
		"an unknown value deep":  {"manager: {serviceAccount: {name: x}}", "at '/manager/serviceAccount': additional properties 'name' not allowed"},
		"a typing error":         {"balancer: {enable: false}", "at '/balancer': additional properties 'enable' not allowed"},
		"text for a switch":      {`crds: {install: "false"}`, "at '/crds/install': got string, want boolean"},
		"fewer than no replicas": {"manager: {replicas: -1}", "at '/manager/replicas': minimum: got -1, want 0"},
		"half a replica":         {"manager: {replicas: 1.5}", "at '/manager/replicas': got number, want integer"},
		"a policy of no kind":    {"image: {pullPolicy: Sometimes}", "at '/image/pullPolicy': value must be one of '', 'Always', 'IfNotPresent', 'Never'"},
		"no tag":                 {`image: {tag: ""}`, "at '/image/tag': '' does not match pattern"},
		"no repository":          {`image: {repository: ""}`, "at '/image/repository': minLength: got 0, want 1"},
		"half a digest":          {"image: {digest: sha256:0}", "at '/image/digest': 'sha256:0' does not match pattern"},
		"a namespace twice":      {"watchNamespaces: [a, a]", "at '/watchNamespaces': items at 0 and 1 are equal"},
		"all namespaces":         {`watchNamespaces: ["*"]`, "at '/watchNamespaces/0': '*' does not match pattern"},
		"a long namespace":       {"watchNamespaces: [" + strings.Repeat("a", 64) + "]", "at '/watchNamespaces/0': maxLength: got 64, want 63"},
		"what is no flag":        {"manager: {extraArgs: [-v]}", "at '/manager/extraArgs/0': '-v' does not match pattern"},
		"a list for a map":       {"manager: {nodeSelector: [a]}", "at '/manager/nodeSelector': got array, want object"},
		"a number for a label":   {"manager: {podAnnotations: {a: 1}}", "at '/manager/podAnnotations/a': got number, want string"},
		"resources at the top":   {"manager: {resources: {memory: 1Gi}}", "at '/manager/resources': additional properties 'memory' not allowed"},
		"a pull secret as text":  {"imagePullSecrets: [registry]", "at '/imagePullSecrets/0': got string, want object"},
		"a Secret's bad name":    {"balancer: {tls: {secret: A}}", "at '/balancer/tls/secret': 'A' does not match pattern"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := try(t, parse(t, test.values)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
}

// TestTaken: limits that are reached are not passed.
func TestTaken(t *testing.T) {
	for name, text := range map[string]string{
		"no replicas":             "manager: {replicas: 0}\nbalancer: {replicas: 0}",
		"the longest namespace":   "watchNamespaces: [" + strings.Repeat("a", 63) + "]",
		"the longest tag":         "image: {tag: " + strings.Repeat("a", 128) + "}",
		"a registry with a port":  "image: {repository: \"registry.example:5000/a/b\"}",
		"as part of another":      "global: {imageRegistry: x}",
		"the longest Secret name": "metrics: {certSecret: " + strings.Repeat("a", 253) + "}",
		"numbers as quantities":   "manager: {resources: {requests: {cpu: 0.5}}}",
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := try(t, parse(t, text)); err != nil {
				t.Error(err)
			}
		})
	}
}
