// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
)

// TestLimits has a row for every limit that a doc comment states: at the limit it is taken, beyond it is an error that
// names the field, the value and the limit.
func TestLimits(t *testing.T) {
	long := strings.Repeat("x", ring.MaxNameBytes)
	base := func() ring.Config {
		return ring.Config{
			Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 1}, Identity: ring.IdentityName,
			Backends: []ring.Backend{{ID: "a", Weight: 1}}, Features: []string{"f"},
		}
	}
	rows := map[string]struct {
		edit func(*ring.Config)
		want []string // nil: accepted
	}{
		"as it is":                 {func(*ring.Config) {}, nil},
		"version 0":                {func(c *ring.Config) { c.Algorithm.Version = 0 }, []string{"algorithm.version", "V0", "V1, V2"}},
		"version 4":                {func(c *ring.Config) { c.Algorithm.Version = 4 }, []string{"algorithm.version", "V4"}},
		"V3":                       {func(c *ring.Config) { c.Algorithm = v3(1, 1) }, nil},
		"V3 at its limits":         {func(c *ring.Config) { c.Algorithm = v3(ring.MaxWeight, 1_000_000) }, nil},
		"V3 without a unit":        {func(c *ring.Config) { c.Algorithm = v3(0, 1) }, []string{"algorithm.weightUnit", `"0"`, "1000000"}},
		"V3 with a large unit":     {func(c *ring.Config) { c.Algorithm = v3(ring.MaxWeight+1, 1) }, []string{"algorithm.weightUnit", "1000001", "1000000"}},
		"V3 without imbalance":     {func(c *ring.Config) { c.Algorithm = v3(1, 0) }, []string{"algorithm.maxImbalance", `"0"`, "1000000 millionths"}},
		"V3 with large imbalance":  {func(c *ring.Config) { c.Algorithm = v3(1, 1_000_001) }, []string{"algorithm.maxImbalance", "1000001"}},
		"V3 with a view":           {func(c *ring.Config) { c.Algorithm = v3(1, 1); c.Views = [][]string{{"f"}, {}} }, nil},
		"V3 with a strange view":   {func(c *ring.Config) { c.Algorithm = v3(1, 1); c.Views = [][]string{{"g"}} }, []string{"views[0]", `"g"`, "not a declared feature"}},
		"V3 with most views":       {func(c *ring.Config) { c.Algorithm = v3(1, 1); c.Views = make([][]string, ring.MaxViews) }, nil},
		"V3 with too many views":   {func(c *ring.Config) { c.Algorithm = v3(1, 1); c.Views = make([][]string, ring.MaxViews+1) }, []string{"views", "65", "64"}},
		"V2 with a unit":           {func(c *ring.Config) { c.Algorithm.WeightUnit = 1 }, []string{"algorithm.weightUnit", "only V3"}},
		"V2 with an imbalance":     {func(c *ring.Config) { c.Algorithm.MaxImbalance = 1 }, []string{"algorithm.maxImbalance", "only V3"}},
		"V2 with a view":           {func(c *ring.Config) { c.Views = [][]string{{"f"}} }, []string{"views", "only V3"}},
		"V1 with 160":              {func(c *ring.Config) { c.Algorithm = ring.Algorithm{Version: ring.V1, PointsPerWeight: 160} }, nil},
		"V1 with 40":               {func(c *ring.Config) { c.Algorithm = ring.Algorithm{Version: ring.V1, PointsPerWeight: 40} }, []string{"algorithm.pointsPerWeight", "40", "160"}},
		"no points":                {func(c *ring.Config) { c.Algorithm.PointsPerWeight = 0 }, []string{"algorithm.pointsPerWeight", "0", "100000"}},
		"most points per weight":   {func(c *ring.Config) { c.Algorithm.PointsPerWeight = ring.MaxPointsPerWeight }, nil},
		"too many per weight":      {func(c *ring.Config) { c.Algorithm.PointsPerWeight = ring.MaxPointsPerWeight + 1 }, []string{"100001", "100000"}},
		"heaviest":                 {func(c *ring.Config) { c.Backends[0].Weight = ring.MaxWeight }, nil},
		"too heavy":                {func(c *ring.Config) { c.Backends[0].Weight = ring.MaxWeight + 1 }, []string{"backends[0].weight", "1000001", "1000000"}},
		"most backends":            {func(c *ring.Config) { c.Backends = named(ring.MaxBackends) }, nil},
		"too many backends":        {func(c *ring.Config) { c.Backends = named(ring.MaxBackends + 1) }, []string{"backends", "65537", "65536"}},
		"most features":            {func(c *ring.Config) { c.Features = numbered(ring.MaxFeatures) }, nil},
		"too many features":        {func(c *ring.Config) { c.Features = numbered(ring.MaxFeatures + 1) }, []string{"features", "65", "64"}},
		"feature twice":            {func(c *ring.Config) { c.Features = []string{"f", "f"} }, []string{"features[1]", "twice"}},
		"feature without a name":   {func(c *ring.Config) { c.Features = []string{""} }, []string{"features[0]", "0 bytes"}},
		"feature nobody declared":  {func(c *ring.Config) { c.Backends[0].Features = []string{"g"} }, []string{"backends[0].features", `"g"`}},
		"longest name":             {func(c *ring.Config) { c.Backends[0].ID = long }, nil},
		"name too long":            {func(c *ring.Config) { c.Backends[0].ID = long + "x" }, []string{"backends[0].id", "254", "253"}},
		"name with a space":        {func(c *ring.Config) { c.Backends[0].ID = "a b" }, []string{"backends[0].id", "byte 1"}},
		"name beyond ASCII":        {func(c *ring.Config) { c.Backends[0].ID = "ä" }, []string{"backends[0].id", "ASCII"}},
		"longest zone":             {func(c *ring.Config) { c.Backends[0].Zone = long }, nil},
		"zone too long":            {func(c *ring.Config) { c.Backends[0].Zone = long + "x" }, []string{"backends[0].zone", "253"}},
		"identity 0":               {func(c *ring.Config) { c.Identity = 0 }, []string{"backends[0].id", "Address, NGINX, Name"}},
		"at the limit of points":   {func(c *ring.Config) { c.Backends[0].Weight = 1000; c.MaxPoints = 1000 }, nil},
		"over the limit of points": {func(c *ring.Config) { c.Backends[0].Weight = 1001; c.MaxPoints = 1000 }, []string{"1001", "1000", "0 points for each"}},
		"over the default limit": {func(c *ring.Config) { c.Backends[0].Weight = ring.MaxWeight; c.Algorithm.PointsPerWeight = 68 },
			[]string{"68000000", "67108864", "67 points for each unit of weight would fit"}},
		"limit over the hard one": {func(c *ring.Config) { c.MaxPoints = ring.HardMaxPoints + 1 }, []string{"maxPoints", "2147483648", "2147483647"}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			c := base()
			row.edit(&c)
			_, err := ring.Build(c)
			if row.want == nil {
				if err != nil {
					t.Errorf("error %v, want none", err)
				}
				return
			}
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range row.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}

func v3(unit, imbalance uint32) ring.Algorithm {
	return ring.Algorithm{Version: ring.V3, PointsPerWeight: 8, WeightUnit: unit, MaxImbalance: imbalance}
}

func named(n int) []ring.Backend {
	list := make([]ring.Backend, n)
	for i := range list {
		list[i] = ring.Backend{ID: fmt.Sprintf("n%d", i), Weight: 1}
	}
	return list
}

func numbered(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("f%d", i)
	}
	return list
}

func TestDuplicateIdentity(t *testing.T) {
	c := fleet(3, ring.V2, 1)
	c.Backends[2].ID = c.Backends[0].ID
	_, err := ring.Build(c)
	want := &ring.DuplicateError{ID: "10.0.0.0:8080", First: 0, Second: 2}
	if got := (*ring.DuplicateError)(nil); !errors.As(err, &got) || *got != *want {
		t.Errorf("error %v, want %v", err, want)
	}
}

func TestIdentityForms(t *testing.T) {
	rows := map[ring.Identity]struct{ good, bad []string }{
		ring.IdentityAddress: {
			good: []string{"10.0.0.1:80", "[::1]:80", "[::ffff:10.1.2.3]:65535"},
			bad: []string{"", "10.0.0.1", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:080", "010.0.0.1:80", "::1:80", "[::1]",
				"[fe80::1%eth0]:80", "[2001:DB8::1]:80", "[2001:db8:0::1]:80", "cache:80", " 10.0.0.1:80"},
		},
		ring.IdentityNGINX: {
			good: []string{"10.0.0.1:80", "10.0.0.1", "[::1]:80", "[::1]", "[0:0::1]:8080", "Cache-1.example", "cache:8080"},
			bad: []string{"", ":80", "cache:", "cache:0", "cache:08", "cache:65536", "cache:http", "::1", "[::1", "[10.0.0.1]:80", "[::1%lo]:80", "[::1]:", "[::1]x:80", "unix:/tmp/s", "unix:80", "UNIX:80",
				"a b", "a;b", "a{b", "#a", "a\\b", "a?b"},
		},
		ring.IdentityName: {
			good: []string{"a", "cache-0.cache", "A:b/c"},
			bad:  []string{"", "a b", "a\n", "\x00"},
		},
	}
	for identity, row := range rows {
		build := func(id string) error {
			_, err := ring.Build(ring.Config{
				Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 1}, Identity: identity, Backends: []ring.Backend{{ID: id, Weight: 1}},
			})
			return err
		}
		for _, id := range row.good {
			if err := build(id); err != nil {
				t.Errorf("%s %q: %v", identity, id, err)
			}
		}
		for _, id := range row.bad {
			if err := build(id); err == nil || !strings.Contains(err.Error(), "backends[0].id") {
				t.Errorf("%s %q: error %v, want one that names backends[0].id", identity, id, err)
			}
		}
	}
}

// TestRingOrder pins the order of the backends, which decides ties and so placements.
func TestRingOrder(t *testing.T) {
	rows := map[ring.Identity][]string{
		ring.IdentityAddress: {"9.0.0.1:80", "10.0.0.1:80", "10.0.0.1:8080", "10.0.0.1:9000", "[::1]:1", "[::ffff:9.0.0.1]:80", "[2001:db8::1]:80"},
		ring.IdentityNGINX:   {"9.0.0.1:80", "10.0.0.1", "10.0.0.1:80", "[0:0::1]", "[::1]", "[::1]:80", "A:80", "a", "a:8", "a:80", "b"},
		ring.IdentityName:    {"A", "a", "a-1", "a-10", "a-2"},
	}
	for identity, want := range rows {
		c := ring.Config{Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 1}, Identity: identity}
		for _, id := range slices.Backward(want) {
			c.Backends = append(c.Backends, ring.Backend{ID: id, Weight: 1})
		}
		r := mustBuild(t, c)
		for i, id := range want {
			if r.ID(i) != id {
				t.Errorf("%s: backend %d is %s, want %s", identity, i, r.ID(i), id)
			}
		}
	}
}
