// SPDX-License-Identifier: Apache-2.0

package ring

// shareHeap keeps the backends by share over weight, the largest first and of equals the first in ring order.
type shareHeap struct {
	order []int32
	at    []int32 // where each backend is in order, -1 where it is not
}

func newShareHeap(tr *trimmer) shareHeap {
	h := shareHeap{at: make([]int32, len(tr.weight))}
	for i, w := range tr.weight {
		h.at[i] = -1
		if w > 0 {
			h.at[i] = int32(len(h.order))
			h.order = append(h.order, int32(i))
		}
	}
	for k := len(h.order)/2 - 1; k >= 0; k-- {
		h.down(tr, k)
	}
	return h
}

// before compares fractions by their cross products: 33 and 20 bits.
func (tr *trimmer) before(a, b int32) bool {
	x, y := tr.share[a]*tr.weight[b], tr.share[b]*tr.weight[a]
	return x > y || x == y && a < b
}

func (h *shareHeap) swap(i, j int) {
	h.order[i], h.order[j] = h.order[j], h.order[i]
	h.at[h.order[i]], h.at[h.order[j]] = int32(i), int32(j)
}

func (h *shareHeap) up(tr *trimmer, k int) {
	for k > 0 && tr.before(h.order[k], h.order[(k-1)/2]) {
		h.swap(k, (k-1)/2)
		k = (k - 1) / 2
	}
}

func (h *shareHeap) down(tr *trimmer, k int) {
	for {
		child := 2*k + 1
		if child >= len(h.order) {
			return
		}
		if child+1 < len(h.order) && tr.before(h.order[child+1], h.order[child]) {
			child++
		}
		if !tr.before(h.order[child], h.order[k]) {
			return
		}
		h.swap(k, child)
		k = child
	}
}

// fix puts a backend whose share has changed where it belongs.
func (h *shareHeap) fix(tr *trimmer, b int32) {
	if k := h.at[b]; k >= 0 {
		h.up(tr, int(k))
		h.down(tr, int(h.at[b]))
	}
}

func (h *shareHeap) removeFirst(tr *trimmer) {
	last := len(h.order) - 1
	h.swap(0, last)
	h.at[h.order[last]] = -1
	h.order = h.order[:last]
	h.down(tr, 0)
}

func (h *shareHeap) add(tr *trimmer, b int32) {
	h.at[b] = int32(len(h.order))
	h.order = append(h.order, b)
	h.up(tr, len(h.order)-1)
}
