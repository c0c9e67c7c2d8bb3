// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"cmp"
	"math"
	"runtime"
	"slices"
)

// Movement says what part of the key space has another owner in one view than in another: exact arc lengths, in
// positions of the key space ([KeySpace]). Backends are the same where their identities are.
type Movement struct {
	// Total is how many positions change owner.
	Total uint64
	// Backends are those that gain or lose, in the order of From, then those that only To has, in the order of To.
	Backends []BackendMovement
}

// BackendMovement is what one backend gains and loses.
type BackendMovement struct {
	ID string
	// Gained are the positions that it owns only afterwards, Lost those that it owned only before.
	Gained, Lost uint64
}

// PairMovement is what moves from one backend to another.
type PairMovement struct {
	// From and To are identities; "" where the view has no backend.
	From, To string
	// Positions is how many positions move.
	Positions uint64
}

// Compare returns what moves when from is replaced by to. A view without a backend owns nothing: everything that the
// other one owns is then gained or lost. Linear in the number of points of both rings.
func Compare(from, to *View) Movement {
	ids, toIndex := joinIDs(from.ring, to.ring)
	none := len(ids)
	sums := make([]moveSums, pieces(from, to))
	parallel(len(sums), func(k int) {
		sum := moveSums{gained: make([]uint64, none+1), lost: make([]uint64, none+1)}
		eachMove(from, to, toIndex, none, piece(k, len(sums)), func(i, j int, length uint64) {
			sum.total += length
			sum.lost[i] += length
			sum.gained[j] += length
		})
		sums[k] = sum
	})
	m, gained, lost := Movement{Total: sums[0].total}, sums[0].gained, sums[0].lost
	for _, sum := range sums[1:] {
		m.Total += sum.total
		for i := range ids {
			gained[i] += sum.gained[i]
			lost[i] += sum.lost[i]
		}
	}
	for i, id := range ids {
		if gained[i]+lost[i] > 0 {
			m.Backends = append(m.Backends, BackendMovement{ID: id, Gained: gained[i], Lost: lost[i]})
		}
	}
	return m
}

// moveSums is what moves within a part of the key space, by backend.
type moveSums struct {
	total        uint64
	gained, lost []uint64
}

// keyRange is a part of the key space: from start to before end.
type keyRange struct{ start, end uint64 }

// pieces returns into how many equal parts the key space is cut for a comparison. It is a power of two, and a part is made of
// whole groups in both rings.
func pieces(from, to *View) int {
	n := 1
	if from.points.points+to.points.points > serialPoints {
		for n < runtime.GOMAXPROCS(0) && n < min(from.points.groups(), to.points.groups()) {
			n *= 2
		}
	}
	return n
}

func piece(k, pieces int) keyRange {
	length := KeySpace / uint64(pieces)
	return keyRange{uint64(k) * length, uint64(k+1) * length}
}

// ComparePairs returns what moves from whom to whom, the largest first, then by the identities. Linear in the number of
// points, and in memory in the number of pairs between which something moves.
func ComparePairs(from, to *View) []PairMovement {
	ids, toIndex := joinIDs(from.ring, to.ring)
	none := len(ids)
	moved := map[[2]int]uint64{}
	eachMove(from, to, toIndex, none, piece(0, 1), func(i, j int, length uint64) { moved[[2]int{i, j}] += length })
	ids = append(ids, "")
	pairs := make([]PairMovement, 0, len(moved))
	for pair, positions := range moved {
		pairs = append(pairs, PairMovement{From: ids[pair[0]], To: ids[pair[1]], Positions: positions})
	}
	slices.SortFunc(pairs, func(a, b PairMovement) int {
		return cmp.Or(cmp.Compare(b.Positions, a.Positions), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return pairs
}

// joinIDs returns the identities of both rings, those of from first, and where in that list each backend of to is.
func joinIDs(from, to *Ring) (ids []string, toIndex []int) {
	known := make(map[string]int, from.Len())
	for i := range from.Len() {
		ids = append(ids, from.ID(i))
		known[from.ID(i)] = i
	}
	toIndex = make([]int, to.Len())
	for i := range toIndex {
		k, ok := known[to.ID(i)]
		if !ok {
			k = len(ids)
			ids = append(ids, to.ID(i))
		}
		toIndex[i] = k
	}
	return ids, toIndex
}

// eachMove cuts a part of the key space at every point of both views and yields each arc that changes owner: from backend i
// of the joined list to backend j of it, none where a view has no backend.
func eachMove(from, to *View, toIndex []int, none int, r keyRange, yield func(i, j int, length uint64)) {
	index := append(slices.Clone(toIndex), none) // An empty view has the owner behind its last backend.
	empty := from.ring.Len()
	a, b := newArcs(from, r.start), newArcs(to, r.start)
	for start := r.start; start < r.end; {
		x, y := a.points[a.at], b.points[b.at]
		end := min(arcEnd(x), arcEnd(y), r.end)
		i, j := x.backend(), index[y.backend()]
		if i == empty {
			i = none
		}
		if i != j && end > start { // Of tied points the first wins: the arcs of the others are empty.
			yield(i, j, end-start)
		}
		if start = end; arcEnd(x) == end {
			a.advance()
		}
		if arcEnd(y) == end {
			b.advance()
		}
	}
}

// arcEnd returns where the arc ends that a point owns.
func arcEnd(p point) uint64 { return uint64(p.hash()) + 1 }

// arcs walks over the arcs of a view from a position on. Each is given as the point that owns it.
type arcs struct {
	view *View
	scan *scan
	// points are those of the view in a group of the directory, at is the present one.
	points []point
	at     int
	// first owns what lies behind the last point.
	first int
}

// newArcs starts at a position with which a group of the directory begins.
func newArcs(v *View, start uint64) *arcs {
	a := &arcs{view: v, first: v.ring.Len()}
	if owner, err := v.Owner(0); err == nil {
		a.first = owner
		a.scan = v.points.scanFrom(uint32(start>>v.points.shift) / groupBuckets)
	}
	a.fill()
	return a
}

// advance goes on to the next arc; behind the last one it stays there.
func (a *arcs) advance() {
	if a.at++; a.at == len(a.points) {
		a.fill()
	}
}

func (a *arcs) fill() {
	a.at = 0
	for a.scan != nil && a.scan.next() {
		a.points = a.scan.points
		if v := a.view; !v.whole || v.trimmed != nil {
			a.points = a.points[:0]
			for k, p := range a.scan.points {
				if v.holds(a.scan.first+uint32(k), p.backend()) {
					a.points = append(a.points, p)
				}
			}
		}
		if len(a.points) > 0 {
			return
		}
	}
	a.points = append(a.points[:0], newPoint(math.MaxUint32, a.first))
}
