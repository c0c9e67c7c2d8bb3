// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func options(change func(*Options)) Options {
	o := Options{
		Roles: Roles, Name: "a", Namespace: "system", Listen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Concurrency: 8, MaxStreams: 10, MaxORCAStreams: 10,
		MetricsAddress: "0", ProbeAddress: "0", SkipNameValidation: true,
	}
	change(&o)
	return o
}

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"well":                   {func(*Options) {}, ""},
		"the least":              {func(o *Options) { o.Concurrency, o.MaxStreams, o.MaxORCAStreams = 1, 1, 1 }, ""},
		"the most":               {func(o *Options) { o.Concurrency, o.MaxStreams, o.MaxORCAStreams = 64, 100_000, 100_000 }, ""},
		"an advertised address":  {func(o *Options) { o.Advertise = "10.0.0.1:18000" }, ""},
		"an advertised name":     {func(o *Options) { o.Advertise = "balancer-0.balancer:18000" }, ""},
		"no role":                {func(o *Options) { o.Roles = nil }, "--roles: at least one of gateway, owner, xds is needed"},
		"another role":           {func(o *Options) { o.Roles = []Role{RoleXDS, "cook"} }, `--roles: "cook" is not one of gateway, owner, xds`},
		"no name":                {func(o *Options) { o.Name = "" }, "--name: it must be set, or $POD_NAME"},
		"no namespace":           {func(o *Options) { o.Namespace = "" }, "--namespace: it must be set, or $POD_NAMESPACE"},
		"no port, both":          {func(o *Options) { o.Listen, o.HTTPListen = "x", "y" }, `--listen: "x" is not host:port`},
		"no http port":           {func(o *Options) { o.HTTPListen = "localhost" }, `--http-listen: "localhost" is not host:port`},
		"advertised without":     {func(o *Options) { o.Advertise = "10.0.0.1" }, `--advertise: "10.0.0.1" is not host:port`},
		"advertised port 0":      {func(o *Options) { o.Advertise = "10.0.0.1:0" }, `--advertise: "10.0.0.1:0" is no address that other replicas reach`},
		"advertised port 65536":  {func(o *Options) { o.Advertise = "10.0.0.1:65536" }, `--advertise: "10.0.0.1:65536" is no address`},
		"advertised everything":  {func(o *Options) { o.Advertise = ":18000" }, `--advertise: ":18000" is no address`},
		"advertised everything6": {func(o *Options) { o.Advertise = "[::]:18000" }, `--advertise: "[::]:18000" is no address`},
		"concurrency 0":          {func(o *Options) { o.Concurrency = 0 }, "--concurrency: 0 is not within 1 to 64"},
		"concurrency 65":         {func(o *Options) { o.Concurrency = 65 }, "--concurrency: 65 is not within 1 to 64"},
		"streams 0":              {func(o *Options) { o.MaxStreams = 0 }, "--max-streams: 0 is not within 1 to 100000"},
		"streams 100001":         {func(o *Options) { o.MaxStreams = 100_001 }, "--max-streams: 100001 is not within 1 to 100000"},
		"ORCA streams -1":        {func(o *Options) { o.MaxORCAStreams = -1 }, "--max-orca-streams: -1 is not within 1 to 100000"},
		"ORCA streams 100001":    {func(o *Options) { o.MaxORCAStreams = 100_001 }, "--max-orca-streams: 100001 is not within 1 to 100000"},
	} {
		o := options(test.change)
		err := o.Validate()
		if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestSameUser(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct {
		token string
		want  []string
		err   string
	}{
		"a service account": {"e30.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6c3lzdGVtOmJhbGFuY2VyIn0.c2ln\n", []string{"system:serviceaccount:system:balancer"}, ""},
		"no token":          {"hello", nil, "has no token of a service account"},
		"nothing":           {"", nil, "has no token of a service account"},
		"no base64":         {"a.!.c", nil, "illegal base64 data"},
		"no JSON":           {"a.aGVsbG8.c", nil, "invalid character"},
		"no subject":        {"a.e30.c", nil, "it names no subject"},
	} {
		file := filepath.Join(dir, "token")
		if err := os.WriteFile(file, []byte(test.token), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := sameUser(file)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if (err == nil) != (test.err == "") || err != nil && (!strings.Contains(err.Error(), test.err) || !strings.HasPrefix(err.Error(), "--token-file: ")) {
			t.Errorf("%s: %v, want %q", name, err, test.err)
		}
	}
	for _, missing := range []string{"", filepath.Join(dir, "gone")} {
		if got, err := sameUser(missing); got != nil || err != nil {
			t.Errorf("%q: %v, %v", missing, got, err)
		}
	}
	if _, err := sameUser(dir); err == nil {
		t.Error("a directory is no error")
	}
}
