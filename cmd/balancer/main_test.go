// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/ringwright/ringwright/internal/balancer"
)

// inAPod sets what the manifest does.
func inAPod(t *testing.T) {
	t.Helper()
	t.Setenv("POD_NAME", "balancer-1")
	t.Setenv("POD_NAMESPACE", "system")
	t.Setenv("POD_IP", "10.0.0.7")
}

func TestFlags(t *testing.T) {
	inAPod(t)
	defaults := balancer.Options{
		Roles: []balancer.Role{"gateway", "owner", "xds"}, Name: "balancer-1", Namespace: "system", Listen: ":18000", HTTPListen: ":18001",
		Advertise: "10.0.0.7:18000", Audience: "ringwright-balancer", TokenFile: "/var/run/secrets/ringwright/token",
		MetricsAddress: ":8443", ProbeAddress: ":8081", Concurrency: 8, MaxStreams: 10_000, MaxORCAStreams: 10_000,
	}
	for name, test := range map[string]struct {
		args   []string
		change func(*balancer.Options)
	}{
		"none":  {nil, func(*balancer.Options) {}},
		"roles": {[]string{"--roles", "xds,gateway"}, func(o *balancer.Options) { o.Roles = []balancer.Role{"xds", "gateway"} }},
		"the port that is listened to is advertised": {[]string{"--listen", "0.0.0.0:9000"}, func(o *balancer.Options) { o.Listen, o.Advertise = "0.0.0.0:9000", "10.0.0.7:9000" }},
		"advertise": {[]string{"--advertise", "b:1"}, func(o *balancer.Options) { o.Advertise = "b:1" }},
		"all others": {[]string{
			"--name=n", "--namespace=s", "--namespaces=d,e", "--http-listen=:1", "--cert-dir=c", "--audience=a", "--token-file=t", "--replica-users=u,v", "--anonymous-lrs",
			"--metrics-bind-address=:2", "--metrics-cert-dir=m", "--metrics-insecure", "--health-probe-bind-address=:3", "--concurrency=4", "--max-streams=5", "--max-orca-streams=6",
		}, func(o *balancer.Options) {
			o.Namespaces = []string{"d", "e"}
			o.Name, o.Namespace, o.HTTPListen, o.CertDir, o.Audience, o.TokenFile, o.Replicas, o.AnonymousLRS = "n", "s", ":1", "c", "a", "t", []string{"u", "v"}, true
			o.MetricsAddress, o.MetricsCertDir, o.MetricsInsecure, o.ProbeAddress, o.Concurrency, o.MaxStreams, o.MaxORCAStreams = ":2", "m", true, ":3", 4, 5, 6
		}},
	} {
		want := defaults
		test.change(&want)
		f, err := parse(test.args)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, f.Options); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestErrors(t *testing.T) {
	inAPod(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	const text = `{"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c"}}], "current-context": "c"}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		`unexpected argument "extra"`:                           {"extra"},
		`invalid argument "x" for "--concurrency"`:              {"--concurrency", "x"},
		"unknown flag: --pace":                                  {"--pace", "3"},
		`--log-level: "loud" is not debug, info, warn or error`: {"--log-level", "loud"},
		`--log-format: "xml" is not json or text`:               {"--log-format", "xml"},
		"finding the API server: ":                              {"--kubeconfig", kubeconfig + "-gone"},
		`--roles: "cook" is not one of gateway, owner, xds`:     {"--roles", "cook"},
		"--name: it must be set, or $POD_NAME":                  {"--name", ""},
		"--namespace: it must be set, or $POD_NAMESPACE":        {"--namespace", ""},
		"--namespaces: it has no namespace":                     {"--namespaces", ""},
		"--concurrency: 65 is not within 1 to 64":               {"--concurrency", "65"},
		"--concurrency: 0 is not within 1 to 64":                {"--concurrency", "0"},
		"--max-streams: 100001 is not within 1 to 100000":       {"--max-streams", "100001"},
		"--max-orca-streams: 0 is not within 1 to 100000":       {"--max-orca-streams", "0"},
		`--http-listen: "8080" is not host:port`:                {"--http-listen", "8080"},
		`--advertise: "10.0.0.7" is not host:port`:              {"--advertise", "10.0.0.7"},
	} {
		if err := run(t.Context(), append([]string{"--kubeconfig", kubeconfig}, args...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
	if _, err := parse([]string{"--help"}); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
}

func TestWhatABuildSays(t *testing.T) {
	t.Cleanup(func() { loopback, pace, leaseDuration = "", "", "" })
	var f flags
	if err := f.setBuilt(); err != nil || f.Loopback || f.Pace != 0 || f.LeaseDuration != 0 {
		t.Errorf("%+v, %v", f.Options, err)
	}
	loopback, pace, leaseDuration = "true", "20", "3s"
	if err := f.setBuilt(); err != nil || !f.Loopback || f.Pace != 20 || f.LeaseDuration != 3*time.Second || f.RenewInterval != 600*time.Millisecond {
		t.Errorf("%+v, %v", f.Options, err)
	}
	for _, bad := range [][2]string{{"fast", "3s"}, {"20", "long"}} {
		pace, leaseDuration = bad[0], bad[1]
		if err := f.setBuilt(); err == nil {
			t.Errorf("%v is no error", bad)
		}
	}
}
