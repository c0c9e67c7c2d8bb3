// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"cmp"
	"math/bits"
	"runtime"
	"slices"
	"unsafe"
)

const (
	// partitionPoints is about how many points a partition has: few enough to be sorted within the fastest cache.
	partitionPoints = 1 << 11
	// maxPartitionBits keeps the places that are written to in turn within the processor's reach.
	maxPartitionBits = 11
	// serialPoints is up to how many points one processor is faster alone.
	serialPoints = 1 << 15
	// runPoints is how long a piece of a chain is at most, so that heavy backends can be shared between processors.
	runPoints = 1 << 16
)

// place returns every point of the table in ring order. No pair of hash and backend occurs twice: a chain repeats itself
// after 2^32 - 1 points at the earliest, save on the fixed point.
//
// Points of a CRC are spread evenly, so one pass throws them into partitions by their top bits, and each partition is then
// sorted in the cache. The chains are cheap enough to be run twice, once to count and once to place, instead of being kept.
func (t *table) place() []point {
	workers := 1
	if t.points > serialPoints {
		workers = runtime.GOMAXPROCS(0)
	}
	shift := 32 - min(uint(bits.Len32(t.points/partitionPoints)), maxPartitionBits)
	shares := t.shares(workers)
	next := make([][]uint32, len(shares)) // for each worker and partition, how many points, then where the next one goes
	parallel(len(shares), func(w int) {
		counts := make([]uint32, 1<<(32-shift))
		t.eachBlock(shares[w], func(_ int, hashes []uint32) {
			for _, h := range hashes {
				counts[h>>shift]++
			}
		})
		next[w] = counts
	})
	ends := startPartitions(next)
	points := hugePoints(int(t.points))
	parallel(len(shares), func(w int) {
		next := next[w]
		t.eachBlock(shares[w], func(backend int, hashes []uint32) {
			for _, h := range hashes {
				at := &next[h>>shift]
				points[*at] = newPoint(h, backend)
				*at++
			}
		})
	})
	t.sortPartitions(points, ends, shift)
	return points
}

// shares cuts the chains into runs and deals them out to workers, about as many points to each.
func (t *table) shares(workers int) [][]run {
	shares := make([][]run, workers)
	limit := uint64(t.points)/uint64(workers) + 1
	w, points := 0, uint64(0)
	for i := range t.ids {
		total := t.chainPoints(i)
		for first := uint32(0); first < total; first += runPoints {
			r := run{backend: i, first: first, points: min(runPoints, total-first)}
			if points >= limit {
				w, points = w+1, 0
			}
			shares[w] = append(shares[w], r)
			points += uint64(r.points)
		}
	}
	return shares
}

// startPartitions turns counts into where each worker begins to write in each partition, and returns where partitions end.
func startPartitions(counts [][]uint32) (ends []uint32) {
	ends = make([]uint32, len(counts[0]))
	sum := uint32(0)
	for partition := range ends {
		for w := range counts {
			n := counts[w][partition]
			counts[w][partition] = sum
			sum += n
		}
		ends[partition] = sum
	}
	return ends
}

// sortPartitions sorts the points of every partition, which are those with the same bits from shift on.
func (t *table) sortPartitions(points []point, ends []uint32, shift uint) {
	parallelWith(len(ends), func() func(int) {
		var s sorter
		return func(k int) {
			start := uint32(0)
			if k > 0 {
				start = ends[k-1]
			}
			s.sort(points[start:ends[k]], shift)
			if t.algorithm.Version == V3 {
				t.mixTies(points[start:ends[k]])
			}
		}
	})
}

// sorter sorts points whose hashes are spread evenly below shift.
type sorter struct {
	next   []uint32
	sorted []point
}

// crowded is how many points there can be in a bucket that is sorted by insertion.
const crowded = 32

func (s *sorter) sort(points []point, shift uint) {
	fine := min(uint(bits.Len(uint(len(points)))), shift)
	down := shift - fine
	s.next = append(s.next[:0], make([]uint32, 1<<fine+1)...)
	for _, p := range points {
		s.next[p.hash()>>down&(1<<fine-1)+1]++
	}
	if slices.Max(s.next) > crowded { // Somebody has made this ring on purpose.
		slices.Sort(points)
		return
	}
	for b := range 1 << fine {
		s.next[b+1] += s.next[b]
	}
	s.sorted = slices.Grow(s.sorted[:0], len(points))[:len(points)]
	for _, p := range points {
		at := &s.next[p.hash()>>down&(1<<fine-1)]
		s.sorted[*at] = p
		*at++
	}
	// Each bucket holds about one point, so hardly any has to go far.
	for i, p := range s.sorted {
		j := i
		for ; j > 0 && points[j-1] > p; j-- {
			points[j] = points[j-1]
		}
		points[j] = p
	}
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

// hugePoints returns n points on huge pages, if there can be such.
func hugePoints(n int) []point {
	points := make([]point, n)
	if n > 0 {
		preferHuge(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(points))), n*int(unsafe.Sizeof(point(0)))))
	}
	return points
}
