// SPDX-License-Identifier: Apache-2.0

package apisource_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/ringwright/ringwright/internal/apisource"
)

func TestConfigCheck(t *testing.T) {
	for name, row := range map[string]struct {
		args []string
		dir  string
		want string
	}{
		"good":         {[]string{"--hashring=cdn/edge"}, "/ring", ""},
		"no ring":      {nil, "/ring", "--hashring is missing"},
		"no namespace": {[]string{"--hashring=edge"}, "/ring", `--hashring is "edge", not namespace/name`},
		"empty name":   {[]string{"--hashring=cdn/"}, "/ring", `--hashring is "cdn/", not namespace/name`},
		"three parts":  {[]string{"--hashring=a/b/c"}, "/ring", `--hashring is "a/b/c", whose name is not`},
		"no directory": {[]string{"--hashring=cdn/edge"}, "", "--dir is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			config := apisource.Config{Dir: row.dir}
			flags := pflag.NewFlagSet("agent", pflag.ContinueOnError)
			config.AddFlags(flags)
			if err := flags.Parse(row.args); err != nil {
				t.Fatal(err)
			}
			_, err := apisource.NewFor(config, &rest.Config{Host: "https://127.0.0.1:1"})
			if (err != nil) != (row.want != "") || err != nil && !strings.HasPrefix(err.Error(), row.want) {
				t.Errorf("error %v, want %q", err, row.want)
			}
		})
	}
}

// TestNewOutsideACluster: without a kubeconfig and outside a pod there is nothing to connect to, and the error says for what.
func TestNewOutsideACluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := apisource.New(apisource.Config{HashRing: "cdn/edge", Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "--source=api") {
		t.Errorf("error %v", err)
	}
	_, err = apisource.New(apisource.Config{HashRing: "cdn/edge", Dir: t.TempDir(), Kubeconfig: "/nonexistent"})
	if err == nil || !strings.Contains(err.Error(), "/nonexistent") {
		t.Errorf("error %v", err)
	}
}
