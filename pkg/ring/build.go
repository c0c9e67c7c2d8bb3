// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"cmp"
	"math"
	"slices"
)

// Build places the backends of c and returns the ring.
//
// The result does not depend on the order of c.Backends or c.Features. Its time is linear in the number of points; while
// it runs it holds up to 20 bytes a point, the result included. V3 takes besides, for each view, 28 bytes a point while it
// is trimmed, as many views at a time as there are processors, and for each trim the time to look at all points of one
// backend. Errors: [ConfigError], [DuplicateError], [TooManyPointsError].
func Build(c Config) (*Ring, error) {
	t, err := newTable(c)
	if err != nil {
		return nil, err
	}
	points := t.place()
	return Open(t.encode(points, t.trim(points, c.Previous)))
}

// point is a hash and, in the low 32 bits, the backend that has it: ordered as the ring is.
type point uint64

func newPoint(hash uint32, backend int) point { return point(hash)<<32 | point(uint32(backend)) }

func (p point) hash() uint32 { return uint32(p >> 32) }
func (p point) backend() int { return int(uint32(p)) }

// place returns every point of the table in ring order. No pair of hash and backend occurs twice: a chain repeats itself
// after 2^32 - 1 points at the earliest, save on the fixed point.
//
// CRC points are spread evenly, so one pass that throws each into the bucket of its top bits leaves a handful to sort in
// every bucket. The chains are cheap enough to be run twice, once to count and once to place, instead of being kept.
func (t *table) place() []point {
	shift := 32 - bucketBits(t.points)
	next := make([]uint32, 1<<(32-shift)+1)
	t.eachPoint(func(hash uint32, _ int) { next[hash>>shift+1]++ })
	for b := 1; b < len(next); b++ {
		next[b] += next[b-1]
	}
	points := make([]point, next[len(next)-1])
	t.eachPoint(func(hash uint32, backend int) {
		b := hash >> shift
		points[next[b]] = newPoint(hash, backend)
		next[b]++
	})
	start := uint32(0)
	for _, end := range next[:len(next)-1] {
		sortBucket(points[start:end])
		start = end
	}
	if t.algorithm.Version == V3 {
		t.mixTies(points)
	}
	return points
}

// mixTies puts tied points of V3 into an order that favours nobody.
func (t *table) mixTies(points []point) {
	for start := 0; start < len(points); {
		end := start + 1
		for end < len(points) && points[end].hash() == points[start].hash() {
			end++
		}
		if tied := points[start:end]; len(tied) > 1 {
			slices.SortFunc(tied, func(a, b point) int {
				return cmp.Compare(tieRank(a.hash(), t.sums[a.backend()]), tieRank(b.hash(), t.sums[b.backend()]))
			})
		}
		start = end
	}
}

// sortBucket sorts in place. Buckets hold about five points, so insertion is fastest; the general sort is for the ring
// that somebody has made on purpose.
func sortBucket(points []point) {
	if len(points) > 32 {
		slices.Sort(points)
		return
	}
	for i := 1; i < len(points); i++ {
		p, j := points[i], i
		for ; j > 0 && points[j-1] > p; j-- {
			points[j] = points[j-1]
		}
		points[j] = p
	}
}

// eachPoint calls yield for every point of every backend, in no useful order, the same each time.
func (t *table) eachPoint(yield func(hash uint32, backend int)) {
	i := 0
	for ; i+interleave <= len(t.ids); i += interleave {
		t.eachPointOf4(i, yield)
	}
	for ; i < len(t.ids); i++ {
		c, points := t.chain(i)
		for range points {
			yield(c.next(), i)
		}
	}
}

// eachPointOf4 runs four chains together as far as the shortest goes, then each to its end.
func (t *table) eachPointOf4(first int, yield func(hash uint32, backend int)) {
	var chains [interleave]chain
	var points [interleave]int
	common := math.MaxInt
	for k := range chains {
		chains[k], points[k] = t.chain(first + k)
		common = min(common, points[k])
	}
	for range common {
		h0, h1, h2, h3 := next4(&chains)
		yield(h0, first)
		yield(h1, first+1)
		yield(h2, first+2)
		yield(h3, first+3)
	}
	for k := range chains {
		for range points[k] - common {
			yield(chains[k].next(), first+k)
		}
	}
}

// chain returns the chain of backend i, and how many points of it the backend gets. A chain on the fixed point repeats
// itself from the first point on, so it is cut there, whatever the weight.
func (t *table) chain(i int) (chain, int) {
	points := t.quota(i)
	if t.sums[i] == FixedPoint {
		points = min(points, 1)
	}
	return startChain(t.sums[i]), points
}
