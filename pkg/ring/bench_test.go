// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/internal/sixbyte"
	"github.com/ringwright/ringwright/pkg/ring"
)

// benchmarkSizes are the rings of the benchmarks, by points per backend of 2048.
func benchmarkSizes() []uint32 {
	if testing.Short() {
		return []uint32{40, 160}
	}
	return []uint32{40, 160, 10_000}
}

func BenchmarkBuild(b *testing.B) {
	c := fleet(2048, ring.V2, 160)
	b.Run("packed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			mustBuild(b, c)
		}
	})
	b.Run("sixByte", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sixbyte.New(c)
		}
	})
}

func BenchmarkOwner(b *testing.B) {
	for _, k := range benchmarkSizes() {
		c := fleet(2048, ring.V2, k)
		r, x := mustBuild(b, c), uint32(1)
		b.Run(fmt.Sprintf("2048×%d/packed", k), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				owner, _ := r.Owner(x)
				x = sixbyte.Next(x, owner)
			}
			b.ReportMetric(float64(len(r.Snapshot()))/float64(r.PointCount()), "B/point") // Loop resets what comes before it.
		})
		six := sixbyte.New(c)
		b.Run(fmt.Sprintf("2048×%d/sixByte", k), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x = sixbyte.Next(x, six.Owner(x))
			}
		})
	}
}

// fractions are views by the share of backends that they have.
var fractions = []struct {
	name string
	of   func(i int) bool
}{
	{"95%", func(i int) bool { return i%20 != 0 }},
	{"1-2", func(i int) bool { return i%2 == 0 }},
	{"1-8", func(i int) bool { return i%8 == 0 }},
}

// featureFleet is 2048 × 160 with a feature for each of the fractions.
func featureFleet() ring.Config {
	c := fleet(2048, ring.V2, 160)
	for _, f := range fractions {
		c.Features = append(c.Features, f.name)
		for i := range c.Backends {
			if f.of(i) {
				c.Backends[i].Features = append(c.Backends[i].Features, f.name)
			}
		}
	}
	return c
}

func BenchmarkViewOwner(b *testing.B) {
	r := mustBuild(b, featureFleet())
	for _, f := range fractions {
		v, x := mustView(b, r, f.name), uint32(1)
		b.Run(f.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				owner, _ := v.Owner(x)
				x = sixbyte.Next(x, owner)
			}
		})
	}
}

func BenchmarkAppendOwners(b *testing.B) {
	r := mustBuild(b, featureFleet())
	for _, features := range [][]string{nil, {"1-8"}} {
		v, x, buf := mustView(b, r, features...), uint32(1), make([]int, 0, 3)
		b.Run(cmp.Or(strings.Join(features, ","), "whole"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				buf = v.AppendOwners(buf[:0], x, 3, nil)
				x = sixbyte.Next(x, buf[2])
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	snapshot := mustBuild(b, fleet(2048, ring.V2, 160)).Snapshot()
	b.SetBytes(int64(len(snapshot)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ring.Open(snapshot); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkShares(b *testing.B) {
	r := mustBuild(b, fleet(2048, ring.V2, 160))
	b.ReportAllocs()
	for b.Loop() {
		r.Shares()
	}
}

func BenchmarkVerify(b *testing.B) {
	r := mustBuild(b, fleet(2048, ring.V2, 160))
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Verify(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompare(b *testing.B) {
	before := fleet(2048, ring.V2, 160)
	after := before
	after.Backends = before.Backends[1:]
	from, to := mustView(b, mustBuild(b, before)), mustView(b, mustBuild(b, after))
	b.ReportAllocs()
	for b.Loop() {
		ring.Compare(from, to)
	}
}
