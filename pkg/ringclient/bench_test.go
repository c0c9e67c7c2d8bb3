// SPDX-License-Identifier: Apache-2.0

package ringclient_test

import (
	"fmt"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// benchKeys are keys of 32 bytes, enough of them that the branch predictor learns none.
func benchKeys() [][]byte {
	keys := make([][]byte, 4096)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "/objects/%023d", i*7919)
	}
	return keys
}

// benchClient opens a ring of 2048 backends with 160 points each, half of which have the feature.
func benchClient(b *testing.B) (*ringclient.Client, *ring.Ring) {
	b.Helper()
	config := ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V1, PointsPerWeight: 160}, Identity: ring.IdentityAddress,
		Features: []string{"half"},
	}
	for i := range 2048 {
		backend := ring.Backend{ID: fmt.Sprintf("10.%d.%d.1:8080", i/256, i%256), Weight: 1, Zone: "a"}
		if i%2 == 0 {
			backend.Features = []string{"half"}
		}
		config.Backends = append(config.Backends, backend)
	}
	r := build(b, config)
	dir := b.TempDir()
	mount(b, dir, published(1, r).files(b))
	return open(b, dir, ringclient.Options{}), r
}

// BenchmarkLookup has the bare ring first, to compare with: the hash of the key and the search.
func BenchmarkLookup(b *testing.B) {
	c, r := benchClient(b)
	keys := benchKeys()
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			if _, err := r.Owner(ring.Hash(keys[i%len(keys)])); err != nil {
				b.Fatal(err)
			}
			i++
		}
	})
	b.Run("pick", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			if _, err := c.Pick(keys[i%len(keys)]); err != nil {
				b.Fatal(err)
			}
			i++
		}
	})
	b.Run("pick, one is down", func(b *testing.B) {
		dir, p := b.TempDir(), published(1, r)
		p.down = []string{r.ID(0)}
		mount(b, dir, p.files(b))
		c := open(b, dir, ringclient.Options{})
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			if _, err := c.Pick(keys[i%len(keys)]); err != nil {
				b.Fatal(err)
			}
			i++
		}
	})
	for _, bench := range []struct {
		name     string
		features []string
		n        int
	}{{"owner", nil, 1}, {"feature", []string{"half"}, 1}, {"three", nil, 3}} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			dst := make([]ringclient.Decision, 0, bench.n)
			i := 0
			for b.Loop() {
				if _, err := c.AppendDecisions(dst, keys[i%len(keys)], bench.features, bench.n); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// BenchmarkLookupParallel shows what the shared counter costs.
func BenchmarkLookupParallel(b *testing.B) {
	c, r := benchClient(b)
	keys := benchKeys()
	b.Run("bare", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				if _, err := r.Owner(ring.Hash(keys[i%len(keys)])); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
	b.Run("pick", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				if _, err := c.Pick(keys[i%len(keys)]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}
