// SPDX-License-Identifier: Apache-2.0

package readers_test

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
)

// namedRing is a ring of testdata.
type namedRing struct {
	name   string
	config ring.Config
	// recipe asks for the snapshot without points.
	recipe bool
}

func v2(pointsPerWeight uint32, identity ring.Identity, backends ...ring.Backend) ring.Config {
	return ring.Config{Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: pointsPerWeight}, Identity: identity, Backends: backends}
}

// workedExample is the ring that docs/snapshot-format.md shows in hex.
func workedExample() ring.Config {
	c := v2(2, ring.IdentityAddress,
		ring.Backend{ID: "10.0.0.1:8080", Weight: 2, Zone: "a", Features: []string{"eu"}},
		ring.Backend{ID: "10.0.0.2:8080", Weight: 1, Zone: "b"},
		ring.Backend{ID: "[2001:db8::1]:8080", Weight: 0})
	c.Features = []string{"eu"}
	return c
}

// crowded has more than 15 points in one bucket, which takes an overflow row.
func crowded() ring.Config {
	return v2(64, ring.IdentityName, ring.Backend{ID: "crowd-915", Weight: 1})
}

// fixed has a backend whose chain repeats its first point, with a weight that would give many.
func fixed() ring.Config {
	return v2(2, ring.IdentityAddress, ring.Backend{ID: "10.0.87.193:3254", Weight: 3}, ring.Backend{ID: "10.0.0.1:80", Weight: 2})
}

// trimmed is a V3 ring with features, zones, drained backends and declared views that leave points out.
func trimmed(backends int, pointsPerWeight uint32) ring.Config {
	c := ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V3, PointsPerWeight: pointsPerWeight, WeightUnit: 2, MaxImbalance: 10_000},
		Identity:  ring.IdentityName, Features: []string{"gpu", "ssd"}, Views: [][]string{{"gpu"}, {"gpu", "ssd"}},
	}
	for i := range backends {
		b := ring.Backend{ID: fmt.Sprintf("cache-%d", i), Weight: uint32(i%5) * 2, Zone: []string{"", "east", "west"}[i%3]}
		for f, name := range c.Features {
			if (i>>f)%3 != 0 {
				b.Features = append(b.Features, name)
			}
		}
		c.Backends = append(c.Backends, b)
	}
	return c
}

// nginx has every kind of host: addresses in several spellings, with and without ports, and names.
func nginx() ring.Config {
	c := ring.Config{Algorithm: ring.Algorithm{Version: ring.V1, PointsPerWeight: 160}, Identity: ring.IdentityNGINX}
	for i, id := range []string{"cache-1:8080", "cache-1", "Cache-1:80", "10.0.0.1", "10.0.0.1:80", "[::1]:80", "[0::1]:80", "[::1]", "[::ffff:1.2.3.4]", "10.0.0.256:1"} {
		c.Backends = append(c.Backends, ring.Backend{ID: id, Weight: uint32(i % 3)})
	}
	return c
}

// fleet has more than 256 backends and one that is heavy, so that columns are wider than a byte.
func fleet(backends int, pointsPerWeight uint32) ring.Config {
	c := v2(pointsPerWeight, ring.IdentityAddress)
	c.Features = []string{"a", "b", "c"}
	for i := range backends {
		b := ring.Backend{ID: fmt.Sprintf("10.%d.%d.%d:8080", i>>16&255, i>>8&255, i&255), Weight: 1, Zone: fmt.Sprintf("zone-%d", i%7)}
		if i == 3 {
			b.Weight = 300
		}
		if i%2 == 0 {
			b.Features = append(b.Features, "a")
		}
		if i%31 == 0 {
			b.Features = append(b.Features, "b")
		}
		c.Backends = append(c.Backends, b)
	}
	return c
}

func drained() ring.Config {
	return v2(5, ring.IdentityName, ring.Backend{ID: "a", Weight: 0}, ring.Backend{ID: "b", Weight: 0})
}

// rings returns the rings of testdata.
func rings() []namedRing {
	return []namedRing{
		{"worked", workedExample(), false},
		{"worked-recipe", workedExample(), true},
		{"empty", v2(1, ring.IdentityName), false},
		{"empty-recipe", v2(1, ring.IdentityName), true},
		{"one", v2(3, ring.IdentityName, ring.Backend{ID: "only", Weight: 1}), false},
		{"drained", drained(), false},
		{"crowded", crowded(), false},
		{"fixed-point", fixed(), false},
		{"fixed-point-recipe", fixed(), true},
		{"small-v3", trimmed(6, 8), false},
		{"small-v3-recipe", trimmed(6, 8), true},
		{"v3", trimmed(40, 20), false},
		{"nginx-v1", nginx(), false},
		{"nginx-v1-recipe", nginx(), true},
		{"fleet", fleet(300, 5), false},
		{"fleet-recipe", fleet(300, 5), true},
	}
}

func (n namedRing) build(t testing.TB) []byte {
	t.Helper()
	r, err := ring.Build(n.config)
	if err != nil {
		t.Fatalf("%s: %v", n.name, err)
	}
	if n.recipe {
		return r.Recipe()
	}
	return r.Snapshot()
}

const vectors = "../pkg/ring/testdata"

// vectorConfig returns the ring of a file of vectors. The format is that of pkg/ring/testdata/README.md.
func vectorConfig(t testing.TB, path string) ring.Config {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := ring.Config{Identity: ring.IdentityAddress}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for lines.Scan() {
		if err := addVectorLine(t, &c, filepath.Dir(path), strings.Fields(lines.Text())); err != nil {
			t.Fatalf("%s: %q: %v", path, lines.Text(), err)
		}
	}
	if c.Algorithm.Version != ring.V3 {
		c.Views = nil // They are those of keys, not declared.
	}
	return c
}

func addVectorLine(t testing.TB, c *ring.Config, dir string, fields []string) error {
	t.Helper()
	list := func(text string) []string {
		return slices.DeleteFunc(strings.Split(text, ","), func(s string) bool { return s == "-" })
	}
	a := &c.Algorithm
	switch fields[0] {
	case "algorithm":
		a.Version = map[string]ring.Version{"v1": ring.V1, "v2": ring.V2, "v3": ring.V3, "nginx": ring.V1}[fields[1]]
		if fields[1] == "nginx" {
			c.Identity = ring.IdentityNGINX
		}
		numbers := []any{&a.PointsPerWeight, &a.WeightUnit, &a.MaxImbalance}[:len(fields)-2]
		_, err := fmt.Sscan(strings.Join(fields[2:], " "), numbers...)
		return err
	case "identity":
		c.Identity = map[string]ring.Identity{"address": ring.IdentityAddress, "name": ring.IdentityName}[fields[1]]
	case "previous":
		r, err := ring.Build(vectorConfig(t, filepath.Join(dir, fields[1]+".txt")))
		c.Previous = r
		return err
	case "backend", "server":
		b := ring.Backend{ID: fields[1]}
		if len(fields) == 5 {
			b.Zone, b.Features = strings.Trim(fields[3], "-"), list(fields[4])
		}
		c.Backends = append(c.Backends, b)
		for _, f := range b.Features {
			if at, found := slices.BinarySearchFunc(c.Features, f, cmp.Compare[string]); !found {
				c.Features = slices.Insert(c.Features, at, f)
			}
		}
		_, err := fmt.Sscan(fields[2], &c.Backends[len(c.Backends)-1].Weight)
		return err
	case "view":
		if set := list(fields[1]); len(set) > 0 {
			c.Views = append(c.Views, set)
		}
	}
	return nil
}
