// SPDX-License-Identifier: Apache-2.0

package nginxconf_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/ringwright/ringwright/internal/nginxconf"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

var plain = nginxconf.Config{Output: "ring.conf", Upstream: "ring", Hash: "$request_uri", Features: []string{"eu,ssd", "none"}}

func TestRender(t *testing.T) {
	c := configOf(ring.IdentityNGINX, "10.0.0.2:80", "10.0.0.1", "cache.example:8080", "[::1]:80", "10.0.0.9:80")
	c.Backends[4].Weight = 0
	c.Features = []string{"eu", "none", "ssd"}
	for _, i := range []int{0, 2, 3} {
		c.Backends[i].Features = []string{"eu", "ssd"}
	}
	c.Backends[1].Features = []string{"eu"}
	r := build(t, c)
	content, lag, err := plain.Render(moment(t, r, "10.0.0.2:80"))
	if err != nil || lag != "" {
		t.Fatal(lag, err)
	}
	want := `# Written by the agent of Ringwright, which overwrites changes.
# ring "cdn/edge", generation 7, stable revision 3, ` + r.Digest() + `
upstream ring {
    hash "$request_uri" consistent;
    server 10.0.0.1 weight=2;
    server 10.0.0.2:80 weight=1 down;
    # server 10.0.0.9:80; is drained
    server [::1]:80 weight=4;
    server cache.example:8080 weight=3;
}
upstream ring.eu.ssd {
    hash "$request_uri" consistent;
    server 10.0.0.2:80 weight=1 down;
    # server 10.0.0.9:80; is drained
    server [::1]:80 weight=4;
    server cache.example:8080 weight=3;
}
upstream ring.none {
    hash "$request_uri" consistent;
    # server 10.0.0.9:80; is drained
    server 127.0.0.1:1 down; # nobody: no backend has the features and a weight
}
`
	if diff := cmp.Diff(want, string(content)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
	all, _, err := plain.Render(moment(t, r, "10.0.0.2:80", "10.0.0.1", "[::1]:80", "cache.example:8080"))
	if err != nil || strings.Contains(strings.ReplaceAll(string(all), "127.0.0.1:1 down", ""), "down") {
		t.Errorf("all down: %v\n%s", err, all)
	}
}

// TestRenderQuotesTheRing: a line feed in a name does not end the comment, whoever let it through.
func TestRenderQuotesTheRing(t *testing.T) {
	config, m := plain, moment(t, build(t, configOf(ring.IdentityNGINX, "a:1")))
	config.Features = nil
	m.Ring = "a/b\nserver { listen 9999; }\n#"
	content, _, err := config.Render(m)
	if err != nil || strings.Contains(string(content), "\nserver") {
		t.Errorf("error %v, file:\n%s", err, content)
	}
}

func TestRenderRefuses(t *testing.T) {
	v2 := configOf(ring.IdentityNGINX, "a:1", "b:1")
	v2.Algorithm = ring.Algorithm{Version: ring.V2, PointsPerWeight: 160}
	v3 := configOf(ring.IdentityNGINX, "a:1", "b:1")
	v3.Algorithm = ring.Algorithm{Version: ring.V3, PointsPerWeight: 160, WeightUnit: 1, MaxImbalance: 1e4}
	features := configOf(ring.IdentityNGINX, "a:1")
	features.Features = []string{"eu", "none", "ssd"}
	dialled := momentWith(t, build(t, features), func(f *routing.File) { f.Addresses = map[string]string{"a:1": "10.0.0.1:1"} })
	for name, row := range map[string]struct {
		moment nginxconf.Moment
		want   string
	}{
		"V2":      {moment(t, build(t, v2)), "the algorithm is V2"},
		"V3":      {moment(t, build(t, v3)), "the algorithm is V3"},
		"names":   {moment(t, build(t, configOf(ring.IdentityName, "a", "b"))), "the identity is Name"},
		"IPv6":    {moment(t, build(t, configOf(ring.IdentityAddress, "10.0.0.1:80", "[::1]:80"))), "backend [::1]:80 has an IPv6 address"},
		"dialled": {dialled, "backend a:1 is dialled at 10.0.0.1:1"},
		"feature": {moment(t, build(t, configOf(ring.IdentityNGINX, "a:1"))), `unknown feature "eu"`},
	} {
		t.Run(name, func(t *testing.T) {
			if content, _, err := plain.Render(row.moment); err == nil || !strings.HasPrefix(err.Error(), row.want) {
				t.Errorf("error %v, want %q; file:\n%s", err, row.want, content)
			}
		})
	}
}

// TestRenderSplit: NGINX has one ring, so it goes over when all keys do.
func TestRenderSplit(t *testing.T) {
	stable, candidate := build(t, configOf(ring.IdentityNGINX, "a:1", "b:1")), build(t, configOf(ring.IdentityNGINX, "a:1", "c:1"))
	v2 := configOf(ring.IdentityNGINX, "a:1", "d:1")
	v2.Algorithm = ring.Algorithm{Version: ring.V2, PointsPerWeight: 160}
	config := plain
	config.Features = nil
	for name, row := range map[string]struct {
		candidate   *ring.Ring
		basisPoints int
		server, lag string
		refused     bool
	}{
		"not yet":        {candidate, 0, "b:1", "", false},
		"some":           {candidate, 50, "b:1", "50 of 10000 keys", false},
		"nearly all":     {candidate, 9999, "b:1", "9999 of 10000 keys", false},
		"all":            {candidate, 10000, "c:1", "", false},
		"not yet to V2":  {build(t, v2), 0, "b:1", "", false},
		"all go over V2": {build(t, v2), 10000, "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			m := moment(t, stable)
			m.Candidate, m.BasisPoints = candidateOf(t, row.candidate), row.basisPoints
			content, lag, err := config.Render(m)
			if (err != nil) != row.refused || !strings.HasPrefix(lag, row.lag) || (lag == "") != (row.lag == "") {
				t.Fatalf("lag %q, error %v", lag, err)
			}
			if !row.refused && !strings.Contains(string(content), "server "+row.server+" ") {
				t.Errorf("no %s in\n%s", row.server, content)
			}
		})
	}
}

// TestRenderSplitOfAView: a view that the candidate does not have is that of the stable ring, as for every reader.
func TestRenderSplitOfAView(t *testing.T) {
	c := configOf(ring.IdentityNGINX, "a:1", "b:1")
	c.Features = []string{"eu"}
	c.Backends[0].Features = []string{"eu"}
	stable, candidate := build(t, c), build(t, configOf(ring.IdentityNGINX, "c:1"))
	config := plain
	config.Features = []string{"eu"}
	m := moment(t, stable)
	m.Candidate, m.BasisPoints = candidateOf(t, candidate), 10000
	content, _, err := config.Render(m)
	if err != nil {
		t.Fatal(err)
	}
	_, view, _ := strings.Cut(string(content), "upstream ring.eu {")
	if !strings.Contains(view, "server a:1 weight=1;") || strings.Contains(view, "b:1") || strings.Contains(view, "c:1") {
		t.Errorf("file:\n%s", content)
	}
}

// TestRenderTies takes a backend down that shares a point with another, and compares whom NGINX would go on to from there, and
// from 1,000 other positions, with whom readers go on to. It reads the file as NGINX does; see model.
func TestRenderTies(t *testing.T) {
	// Of 1,200 backends with 160 points some share one.
	rnd := rand.New(rand.NewPCG(1, 2))
	servers := make([]string, 1200)
	for i := range servers {
		servers[i] = randomAddress(rnd)
	}
	c := configOf(ring.IdentityAddress, servers...)
	for i := range c.Backends {
		c.Backends[i].Weight = 1
	}
	r := build(t, c)
	config := plain
	config.Features = nil
	content, _, err := config.Render(moment(t, r))
	if err != nil {
		t.Fatal(err)
	}
	whole := readModel(t, content)
	if len(whole.tied) == 0 {
		t.Fatal("no backends share a point, so nothing is tested")
	}
	for _, tied := range whole.tied[:1] {
		content, _, err := config.Render(moment(t, r, tied.server))
		if err != nil {
			t.Fatal(err)
		}
		nginx := readModel(t, content)
		view, err := r.View()
		if err != nil {
			t.Fatal(err)
		}
		down, _ := r.Find(tied.server)
		for i := range 1000 {
			hash := tied.hash
			if i > 0 {
				hash = rnd.Uint32()
			}
			want := view.AppendOwners(nil, hash, 1, func(backend int) bool { return backend == down })
			if got := nginx.owner(hash); got != r.ID(want[0]) {
				t.Fatalf("with %s down, position %d goes to %s in NGINX and to %s elsewhere", tied.server, hash, got, r.ID(want[0]))
			}
		}
	}
}

// TestAddressPlacesAsNGINX: with IPv4 the text that is hashed is the same under both identities, so all owners are.
func TestAddressPlacesAsNGINX(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var servers []string
	for range 50 {
		servers = append(servers, randomAddress(rnd))
	}
	a, n := build(t, configOf(ring.IdentityAddress, servers...)), build(t, configOf(ring.IdentityNGINX, servers...))
	for range 20_000 {
		hash := rnd.Uint32()
		x, _ := a.Owner(hash)
		y, _ := n.Owner(hash)
		if a.ID(x) != n.ID(y) {
			t.Fatalf("position %d belongs to %s and to %s", hash, a.ID(x), n.ID(y))
		}
	}
}

// numbered returns n names of features.
func numbered(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("f", i)
	}
	return strings.Join(names, ",")
}

func TestConfigCheck(t *testing.T) {
	for name, row := range map[string]struct{ args, want string }{
		"good":             {"--nginx-output=f --nginx-features=eu,ssd --nginx-features=eu", ""},
		"no output":        {"", "--nginx-output is missing"},
		"two ways":         {"--nginx-output=f --nginx-pid=p --nginx-reload-command=c", "--nginx-pid and --nginx-reload-command are both given"},
		"upstream":         {"--nginx-output=f --nginx-upstream=a;b", `--nginx-upstream is "a;b"`},
		"longest upstream": {"--nginx-output=f --nginx-upstream=" + strings.Repeat("a", 63), ""},
		"long upstream":    {"--nginx-output=f --nginx-upstream=" + strings.Repeat("a", 64), "--nginx-upstream is"},
		"quote":            {`--nginx-output=f --nginx-hash=$a"`, "--nginx-hash is"},
		"no variable":      {"--nginx-output=f --nginx-hash=request_uri", `--nginx-hash is "request_uri", without a variable`},
		"longest key":      {"--nginx-output=f --nginx-hash=$" + strings.Repeat("a", 1023), ""},
		"long key":         {"--nginx-output=f --nginx-hash=$" + strings.Repeat("a", 1024), "--nginx-hash has 1025 bytes, the limit is 1024"},
		"nameless":         {"--nginx-output=f --nginx-features=eu,,ssd", `--nginx-features is "eu,,ssd": a feature has no name`},
		"feature twice":    {"--nginx-output=f --nginx-features=eu,eu", `--nginx-features is "eu,eu": it is given more than once`},
		"set twice":        {"--nginx-output=f --nginx-features=a,b --nginx-features=b,a", `--nginx-features is "b,a": it is given more than once`},
		"most features":    {"--nginx-output=f --nginx-features=" + numbered(ring.MaxFeatures), ""},
		"many features":    {"--nginx-output=f --nginx-features=" + numbered(ring.MaxFeatures+1), "--nginx-features is"},
		"least interval":   {"--nginx-output=f --nginx-min-interval=100ms", ""},
		"short interval":   {"--nginx-output=f --nginx-min-interval=99ms", "--nginx-min-interval is 99ms, not at least 100ms"},
	} {
		t.Run(name, func(t *testing.T) {
			var config nginxconf.Config
			flags := pflag.NewFlagSet("agent", pflag.ContinueOnError)
			config.AddFlags(flags)
			if err := flags.Parse(strings.Fields(row.args)); err != nil {
				t.Fatal(err)
			}
			err := config.Check()
			if (err != nil) != (row.want != "") || err != nil && !strings.HasPrefix(err.Error(), row.want) {
				t.Errorf("error %v, want %q", err, row.want)
			}
		})
	}
}
