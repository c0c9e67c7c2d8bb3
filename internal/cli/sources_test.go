// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"
	"testing"
)

// TestManifestsOfServicesAreRefused: no command may show a ring, or a movement, of the backends that happen to be in spec.
func TestManifestsOfServicesAreRefused(t *testing.T) {
	const one = "  backendsFrom: [{service: {name: cache}}]\n"
	workdir(t, map[string]string{
		"some.yaml": edgeManifest + one,
		"all.yaml":  edgeManifest[:strings.Index(edgeManifest, "  features:")] + "  backendsFrom: [{service: {name: a}}, {service: {name: b}}, {service: {name: c}}]\n",
		"none.yaml": edgeManifest + "  backendsFrom: []\n",
	})
	const some = "HashRing cdn/edge: spec.backendsFrom takes backends from Service cache: only the cluster knows which, so the ring cannot be built from the manifest"
	const all = "HashRing cdn/edge: spec.backendsFrom takes backends from Service a and 2 other Services: only the cluster knows which"
	for name, test := range map[string]struct {
		code int
		want string
		args []string
	}{
		"build, also backends":     {ExitFailure, some, []string{"build", "-f", "some.yaml", "-o", "out"}},
		"build":                    {ExitFailure, all, []string{"build", "-f", "all.yaml", "-o", "out"}},
		"plan":                     {ExitPlanFailed, some, []string{"plan", "-f", "some.yaml", "--from", "edge.yaml"}},
		"plan from such a ring":    {ExitPlanFailed, "--from: " + some, []string{"plan", "-f", "edge.yaml", "--from", "some.yaml"}},
		"size":                     {ExitFailure, some, []string{"size", "-f", "some.yaml"}},
		"verify against its files": {ExitFailure, some, []string{"verify", "--dir", "edge", "-f", "some.yaml"}},
	} {
		t.Run(name, func(t *testing.T) { wantContains(t, fail(t, test.code, test.args...), test.want) })
	}
	if _, err := os.Stat("out"); !os.IsNotExist(err) {
		t.Errorf("out: %v, want no such directory", err)
	}
	succeed(t, "", "plan", "-f", "none.yaml", "--from", "edge.yaml")
}
