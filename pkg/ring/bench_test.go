// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
)

// sixByte is the plainest compact ring, and what the packed one is measured against: 6 bytes for each point, the hash and
// the backend, in a sorted array that is searched by halving. It is the layout of pingora-ketama v2.
type sixByte [][6]byte

// newSixByte builds the points of c, whose backends stand in ring order, one chain after the other.
func newSixByte(c ring.Config) sixByte {
	var points sixByte
	for i, b := range c.Backends {
		input := append(refHashInput(c.Identity, b.ID), 0, 0, 0, 0)
		word := input[len(input)-4:]
		for range b.Weight * c.Algorithm.PointsPerWeight {
			var p [6]byte
			binary.LittleEndian.PutUint32(p[:], crc32.ChecksumIEEE(input))
			binary.LittleEndian.PutUint16(p[4:], uint16(i))
			copy(word, p[:4])
			points = append(points, p)
		}
	}
	slices.SortFunc(points, func(a, b [6]byte) int {
		return cmp.Or(cmp.Compare(sixByteHash(a), sixByteHash(b)), cmp.Compare(sixByteOwner(a), sixByteOwner(b)))
	})
	return points
}

func sixByteHash(p [6]byte) uint32 { return binary.LittleEndian.Uint32(p[:4]) }
func sixByteOwner(p [6]byte) int   { return int(binary.LittleEndian.Uint16(p[4:])) }

func (s sixByte) owner(x uint32) int {
	low, high := 0, len(s)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if sixByteHash(s[middle]) < x {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == len(s) {
		low = 0
	}
	return sixByteOwner(s[low])
}

// nextPosition makes every look-up wait for the one before it, as a request does: a loop whose look-ups overlap measures
// how many misses the processor has in flight, not how long one answer takes.
func nextPosition(x uint32, owner int) uint32 { return x*0x9e3779b1 + uint32(owner) + 0x7f4a7c15 }

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
			newSixByte(c)
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
				x = nextPosition(x, owner)
			}
			b.ReportMetric(float64(len(r.Snapshot()))/float64(r.PointCount()), "B/point") // Loop resets what comes before it.
		})
		six := newSixByte(c)
		b.Run(fmt.Sprintf("2048×%d/sixByte", k), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x = nextPosition(x, six.owner(x))
			}
		})
	}
}

// TestSixByteIsTheSameRing: what the packed ring is measured against gives the same owners.
func TestSixByteIsTheSameRing(t *testing.T) {
	c := fleet(300, ring.V2, 40)
	r, six := mustBuild(t, c), newSixByte(c)
	x := uint32(1)
	for range 10_000 {
		owner, err := r.Owner(x)
		if err != nil || owner != six.owner(x) {
			t.Fatalf("owner of %08x: %d, %v, and %d", x, owner, err, six.owner(x))
		}
		x = nextPosition(x, owner)
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
				x = nextPosition(x, owner)
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
				x = nextPosition(x, buf[2])
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
