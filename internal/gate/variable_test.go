// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpand(t *testing.T) {
	values := map[string]string{"datacenters": "ams01|fra02", "ring": "candidate", "rings": "edge", "window": "5m"}
	for query, want := range map[string]string{
		`rate(x{dc=~"$datacenters",ring="$ring"}[$window])`: `rate(x{dc=~"ams01|fra02",ring="candidate"}[5m])`,
		`x{a="${ring}_old"}`: `x{a="candidate_old"}`,
		`x{a="$rings"}`:      `x{a="edge"}`,
		`x{a=~"5..$"}`:       `x{a=~"5..$"}`,
		`x{a=~"5..$|4.."}`:   `x{a=~"5..$|4.."}`,
		`label_replace(x, "a", "$1-${2}", "b", "(.)(.)")`:     `label_replace(x, "a", "$1-${2}", "b", "(.)(.)")`,
		`label_replace(x, "a", "$$ring", "b", "(?P<ring>.)")`: `label_replace(x, "a", "$ring", "b", "(?P<ring>.)")`,
		`a$`: `a$`,
		``:   ``,
	} {
		got, err := expand(query, func(name string) (string, error) { return values[name], nil })
		if err != nil || got != want {
			t.Errorf("%s becomes %s (%v), want %s", query, got, err, want)
		}
	}
}

func TestUses(t *testing.T) {
	got, err := uses(`a{b="$ring",c=~"$datacenters"} / a{b="${ring}"} $$window $1`)
	if diff := cmp.Diff([]string{"datacenters", "ring"}, got); diff != "" || err != nil {
		t.Errorf("%v, %s", err, diff)
	}
	for query, want := range map[string]string{
		"$rung":               "there is no variable $rung (there are $datacenters, $migration, $namespace, $ring, $rings, $window); for a dollar write $$",
		"$ring_old":           "there is no variable $ring_old",
		"$__rate_interval":    "$__rate_interval is a variable of Grafana: write $window",
		"${__range}":          "$__range is a variable of Grafana: write $window",
		"$datacenter":         "there is no variable $datacenter: write $datacenters",
		"${datacenters:pipe}": "${datacenters:…} has a format, as in Grafana: write $datacenters",
		"${ring":              "${ring is not closed by }",
	} {
		if _, err := uses(query); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s says %v, want %q", query, err, want)
		}
	}
}

func TestAlternation(t *testing.T) {
	names := []string{"", "ams-01", "a.b", "A_b"}
	pattern, err := alternation(names)
	if err != nil || pattern != "|ams-01|a[.]b|A_b" {
		t.Fatalf("%q, %v", pattern, err)
	}
	matches := regexp.MustCompile("^(?:" + pattern + ")$").MatchString // As Prometheus anchors it.
	for _, name := range names {
		if !matches(name) {
			t.Errorf("%q does not match", name)
		}
	}
	for _, other := range []string{"axb", "ams", "ams-011"} {
		if matches(other) {
			t.Errorf("%q matches", other)
		}
	}
	for _, bad := range []string{`a"b`, `a\`, "a|b", "a b", "ä"} {
		if got, err := alternation([]string{bad}); err == nil {
			t.Errorf("%q becomes %q", bad, got)
		}
	}
}
