// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"cmp"
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
	gained, lost := make([]uint64, none+1), make([]uint64, none+1)
	var m Movement
	eachArc(from, to, func(a, b int, length uint64) {
		i, j := a, none
		if i < 0 {
			i = none
		}
		if b >= 0 {
			j = toIndex[b]
		}
		if i == j {
			return
		}
		m.Total += length
		lost[i] += length
		gained[j] += length
	})
	for i, id := range ids {
		if gained[i]+lost[i] > 0 {
			m.Backends = append(m.Backends, BackendMovement{ID: id, Gained: gained[i], Lost: lost[i]})
		}
	}
	return m
}

// ComparePairs returns what moves from whom to whom, the largest first, then by the identities. Linear in the number of
// points, and in memory in the number of pairs between which something moves.
func ComparePairs(from, to *View) []PairMovement {
	ids, toIndex := joinIDs(from.ring, to.ring)
	none := len(ids)
	moved := map[[2]int]uint64{}
	eachArc(from, to, func(a, b int, length uint64) {
		i, j := a, none
		if i < 0 {
			i = none
		}
		if b >= 0 {
			j = toIndex[b]
		}
		if i != j {
			moved[[2]int{i, j}] += length
		}
	})
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

// eachArc cuts the key space at every point of both views and yields each arc with its owners, -1 for none.
func eachArc(from, to *View, yield func(fromOwner, toOwner int, length uint64)) {
	a, b := newArcWalk(from), newArcWalk(to)
	for start := uint64(0); start < KeySpace; {
		end := min(a.end, b.end)
		yield(a.owner, b.owner, end-start)
		start = end
		a.advance(start)
		b.advance(start)
	}
}

// arcWalk walks over the arcs of a view from position 0 on.
type arcWalk struct {
	view   *View
	cursor cursor
	left   uint32
	// owner owns the positions below end that the arc before did not; -1 in an empty view.
	owner int
	end   uint64
	// first owns what lies behind the last point.
	first int
}

func newArcWalk(v *View) *arcWalk {
	w := &arcWalk{view: v, owner: -1, end: KeySpace, first: -1}
	if v.size == 0 {
		return w
	}
	w.cursor, w.left, w.end = v.ring.packed.cursorAt(0, 0), v.ring.packed.points, 0
	w.advance(0)
	w.first = w.owner
	return w
}

// advance moves on to the arc that position start belongs to.
func (w *arcWalk) advance(start uint64) {
	for w.end <= start {
		if w.left == 0 {
			w.owner, w.end = w.first, KeySpace
			return
		}
		pos := w.cursor.position()
		p := w.cursor.next()
		w.left--
		// Of tied points the first wins: the others end where it has ended.
		if w.view.holds(pos, p.backend()) && uint64(p.hash())+1 > w.end {
			w.owner, w.end = p.backend(), uint64(p.hash())+1
		}
	}
}
