// SPDX-License-Identifier: Apache-2.0

package ring

import "math/bits"

// bitmap is a set of backends by their position in ring order, 64 to a word, the lowest bit first.
type bitmap []uint64

func newBitmap(n int) bitmap { return make(bitmap, (n+63)/64) }

func (b bitmap) set(i int)      { b[uint(i)/64] |= 1 << (uint(i) % 64) }
func (b bitmap) has(i int) bool { return b[uint(i)/64]>>(uint(i)%64)&1 != 0 }

// bit returns 1 for an element and 0 for others.
func (b bitmap) bit(i int) uint64 { return b[uint(i)/64] >> (uint(i) % 64) & 1 }

func (b bitmap) count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// and keeps in b what is also in other.
func (b bitmap) and(other bitmap) {
	for i := range b {
		b[i] &= other[i]
	}
}
