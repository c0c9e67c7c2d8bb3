// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/ringwright/ringwright/internal/agent"
)

// TestSamplesHaveFlagsOfTheAgent parses the arguments of every agent among the samples as the agent does.
func TestSamplesHaveFlagsOfTheAgent(t *testing.T) {
	paths, err := filepath.Glob("../../config/samples/consumer_*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	agents := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var deployment appsv1.Deployment
			if err := yaml.Unmarshal([]byte(document), &deployment); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			spec := deployment.Spec.Template.Spec
			for _, container := range append(spec.InitContainers, spec.Containers...) {
				if len(container.Command) != 1 || container.Command[0] != "/agent" {
					continue
				}
				agents++
				if err := agent.CheckArgs(expand(container)); err != nil {
					t.Errorf("%s: %v", filepath.Base(path), err)
				}
			}
		}
	}
	if agents < 4 {
		t.Errorf("%d agents were found", agents)
	}
}

// expand puts something in place of $(NAME), as kubelet does with variables that are declared.
func expand(container corev1.Container) []string {
	args := make([]string, len(container.Args))
	for i, arg := range container.Args {
		for _, variable := range container.Env {
			arg = strings.ReplaceAll(arg, "$("+variable.Name+")", "value")
		}
		args[i] = arg
	}
	return args
}
