// SPDX-License-Identifier: Apache-2.0

package ring

import "math/bits"

// node is a point of the view on a closed list in ring order.
type node struct {
	hash       uint32
	pos        uint32 // among all points
	owner      int32
	prev, next int32
	gone       bool
}

// trimmer works on one view. All of it is in integers, so that the result is the same everywhere.
type trimmer struct {
	nodes  []node
	owned  []int32  // the nodes of each backend, one backend behind the other
	first  []uint32 // where those of each backend begin; one more for the end
	alive  []uint32 // how many of them are left
	weight []uint64
	share  []uint64
	limit  []uint64 // the largest share within the limit
	heap   shareHeap
	stuck  []int32
	budget int
}

func newTrimmer(t *table, points []point, members bitmap, sticky []uint32) *trimmer {
	n := len(t.ids)
	tr := &trimmer{
		first: make([]uint32, n+1), alive: make([]uint32, n),
		weight: make([]uint64, n), share: make([]uint64, n), limit: make([]uint64, n),
	}
	total := uint64(0)
	for i, w := range t.weights {
		tr.first[i+1] = tr.first[i]
		if members.has(i) {
			tr.weight[i] = uint64(w)
			total += uint64(w)
			tr.first[i+1] += uint32(t.quota(i))
		}
	}
	if total == 0 {
		return tr
	}
	tr.link(points)
	tr.budget = len(tr.nodes) / trimBudget
	for i := range tr.nodes {
		tr.share[tr.nodes[i].owner] += tr.arc(int32(i))
	}
	for i, w := range tr.weight {
		if w > 0 {
			tr.limit[i] = shareLimit(w, total, t.algorithm.MaxImbalance)
		}
	}
	tr.unlinkSticky(sticky)
	tr.heap = newShareHeap(tr)
	return tr
}

// link makes the list of the members' points.
func (tr *trimmer) link(points []point) {
	count := tr.first[len(tr.alive)]
	tr.nodes, tr.owned = make([]node, 0, count), make([]int32, count)
	for pos, p := range points {
		b := p.backend()
		if tr.weight[b] == 0 {
			continue
		}
		k := int32(len(tr.nodes))
		tr.nodes = append(tr.nodes, node{hash: p.hash(), pos: uint32(pos), owner: int32(b), prev: k - 1, next: k + 1})
		tr.owned[tr.first[b]+tr.alive[b]] = k
		tr.alive[b]++
	}
	last := len(tr.nodes) - 1
	tr.nodes[0].prev, tr.nodes[last].next = int32(last), 0
}

// shareLimit returns 2^32 × w/total × (1 + ppm/10^6), rounded down.
func shareLimit(w, total uint64, ppm uint32) uint64 {
	hi, lo := bits.Mul64(w<<32, million+uint64(ppm))
	q, _ := bits.Div64(hi, lo, total*million)
	return q
}

// unlinkSticky leaves out what was left out before, but nobody's last point.
func (tr *trimmer) unlinkSticky(sticky []uint32) {
	k := 0
	for i := range tr.nodes {
		for k < len(sticky) && sticky[k] < tr.nodes[i].pos {
			k++
		}
		if k < len(sticky) && sticky[k] == tr.nodes[i].pos && tr.alive[tr.nodes[i].owner] > 1 && tr.budget > 0 {
			tr.unlink(int32(i))
		}
	}
}

// arc is the length of what node i owns: from the point before it, which can be one of its own backend. A single point
// owns everything.
func (tr *trimmer) arc(i int32) uint64 {
	n := &tr.nodes[i]
	if n.prev == i {
		return KeySpace
	}
	before := tr.nodes[n.prev].hash
	if before == n.hash && n.prev > i {
		return KeySpace // All points of the view are tied, and this is the first.
	}
	return uint64(n.hash - before)
}

// unlink leaves node i out: its arc goes to the owner of the next one.
func (tr *trimmer) unlink(i int32) {
	n := &tr.nodes[i]
	arc := tr.arc(i)
	tr.share[n.owner] -= arc
	tr.share[tr.nodes[n.next].owner] += arc
	tr.nodes[n.prev].next, tr.nodes[n.next].prev = n.next, n.prev
	n.gone = true
	tr.alive[n.owner]--
	tr.budget--
}

// attempt returns what is to be left out, and whether every share is within its limit then.
//
// Where somebody is stuck, what is left out around him is given up and trimmed again. If that does not help either, what
// was reached first is kept, because from there it would come out the same again.
func (tr *trimmer) attempt() (trims []uint32, reached bool) {
	reached = tr.settle()
	trims = tr.trims()
	if reached {
		return trims, true
	}
	tr.loosen()
	if tr.settle() {
		return tr.trims(), true
	}
	return trims, false
}

// trims returns the positions of the points that are left out, ascending.
func (tr *trimmer) trims() []uint32 {
	var trims []uint32
	for i := range tr.nodes {
		if tr.nodes[i].gone {
			trims = append(trims, tr.nodes[i].pos)
		}
	}
	return trims
}

// loosen takes in again what is left out of the stuck backends, and what was left out in their favour.
func (tr *trimmer) loosen() {
	stuck := newBitmap(len(tr.weight))
	for _, b := range tr.stuck {
		stuck.set(int(b))
	}
	for i := range tr.nodes {
		n := &tr.nodes[i]
		if !n.gone {
			continue
		}
		next := tr.after(int32(i))
		if stuck.has(int(n.owner)) || stuck.has(int(tr.nodes[next].owner)) {
			tr.relink(int32(i), next, tr.arcBefore(int32(i), next))
		}
	}
}

// arcBefore is the arc that node i, which is left out, would take from next.
func (tr *trimmer) arcBefore(i, next int32) uint64 {
	return uint64(tr.nodes[i].hash - tr.nodes[tr.nodes[next].prev].hash)
}

// settle trims and puts back until there is nothing to do, and says whether every share is within its limit. Both lower the
// same sum, so it ends, and in a state from which it would do nothing more: a ring built again from its own trims is the
// same. Without putting back, trims that stick would only ever grow in number.
func (tr *trimmer) settle() bool {
	if len(tr.nodes) == 0 {
		return true
	}
	for {
		reached := tr.run()
		if tr.putBack() == 0 {
			return reached
		}
	}
}

// putBack takes points in again, in ring order, where that lowers the sum of share²/target and keeps the owner within its
// limit, and returns how many.
func (tr *trimmer) putBack() (count int) {
	for i := range tr.nodes {
		n := &tr.nodes[i]
		if !n.gone {
			continue
		}
		next := tr.after(int32(i))
		s := tr.nodes[next].owner
		if s == n.owner {
			continue // It would own what its backend owns anyway.
		}
		a := tr.arcBefore(int32(i), next)
		down := (2*tr.share[s] - a) << fraction / tr.weight[s]
		up := (2*tr.share[n.owner] + a) << fraction / tr.weight[n.owner]
		if down <= up || tr.share[n.owner]+a > tr.limit[n.owner] {
			continue
		}
		tr.relink(int32(i), next, a)
		count++
	}
	return count
}

// after returns the first point behind i, which is left out, that is not.
func (tr *trimmer) after(i int32) int32 {
	for {
		if i++; int(i) == len(tr.nodes) {
			i = 0
		}
		if !tr.nodes[i].gone {
			return i
		}
	}
}

// relink takes node i in again before next; its arc comes from the owner of that.
func (tr *trimmer) relink(i, next int32, arc uint64) {
	n, s := &tr.nodes[i], tr.nodes[next].owner
	n.gone, n.next, n.prev = false, next, tr.nodes[next].prev
	tr.nodes[n.prev].next, tr.nodes[next].prev = i, i
	tr.share[n.owner] += arc
	tr.share[s] -= arc
	tr.alive[n.owner]++
	tr.budget++
	tr.heap.fix(tr, n.owner)
	tr.heap.fix(tr, s)
}

// run trims until every share is within its limit, and says whether that was reached.
func (tr *trimmer) run() bool {
	for {
		// Something has changed, so whoever was stuck may not be any more.
		for _, b := range tr.stuck {
			tr.heap.add(tr, b)
		}
		tr.stuck = tr.stuck[:0]
		removed := tr.runOnce()
		if len(tr.stuck) == 0 {
			return true
		}
		if removed == 0 || tr.budget <= 0 {
			return false
		}
	}
}

// runOnce trims until every backend is within its limit or stuck, and returns how many points it has left out.
func (tr *trimmer) runOnce() (removed int) {
	for len(tr.heap.order) > 0 {
		b := tr.heap.order[0]
		if tr.share[b] <= tr.limit[b] {
			break
		}
		i, ok := int32(0), false
		if tr.budget > 0 {
			i, ok = tr.best(b)
		}
		if !ok {
			tr.heap.removeFirst(tr)
			tr.stuck = append(tr.stuck, b)
			continue
		}
		next := tr.nodes[tr.nodes[i].next].owner
		tr.unlink(i)
		tr.heap.fix(tr, b)
		tr.heap.fix(tr, next)
		removed++
	}
	return removed
}

// fraction is how many bits stand behind the point of share over weight.
const fraction = 16

// best returns the point of backend b whose removal lowers the sum of share²/target most: the lowest of those that do so
// equally. There is none where no removal lowers it, or b has one point.
func (tr *trimmer) best(b int32) (best int32, ok bool) {
	if tr.alive[b] < 2 {
		return 0, false
	}
	var bestHi, bestLo uint64
	for _, i := range tr.owned[tr.first[b]:tr.first[b+1]] {
		n := &tr.nodes[i]
		s := tr.nodes[n.next].owner
		if n.gone || s == b {
			continue
		}
		// The sum falls by a · ((2·share_b - a)/w_b - (2·share_s + a)/w_s), up to a factor that all have in common.
		a := tr.arc(i)
		down := (2*tr.share[b] - a) << fraction / tr.weight[b]
		up := (2*tr.share[s] + a) << fraction / tr.weight[s]
		if down <= up {
			continue
		}
		hi, lo := bits.Mul64(a, down-up)
		if hi > bestHi || hi == bestHi && lo > bestLo {
			best, bestHi, bestLo, ok = i, hi, lo, true
		}
	}
	return best, ok
}
