// SPDX-License-Identifier: Apache-2.0

package ring

import "math/bits"

// guideGroups is how many groups are between two positions of the guide: few enough that the place between them is guessed
// to within a cache line or two, and so many that the guide stays in the fastest cache.
const guideGroups = 8

// guideEntries is from how many bytes of entries on a ring has a guide.
const guideEntries = 1 << 20

// setGuide makes the guide of points that have been checked, or packed by ourselves.
func (p *packed) setGuide() {
	if len(p.entries) < guideEntries {
		return
	}
	groups := p.groups()
	p.guide = make([]uint32, 0, groups/guideGroups+1)
	for g := 0; g < groups; g += guideGroups {
		base, _ := p.group(uint32(g) * groupBuckets)
		p.guide = append(p.guide, base&^overflowMark)
	}
	p.guide = append(p.guide, p.points)
	p.guideShift = p.shift + uint(bits.TrailingZeros(guideGroups*groupBuckets))
}

// guess returns the 64 bits about where the first point at or behind x is likely to be.
//
// A look-up reads the directory, and what it finds there says which entry to read. In a ring that does not fit into a cache
// these are two waits, one after the other, unless something makes the processor fetch the entry meanwhile: reading it
// where it is guessed to be does. In a ring of 20 million points that makes look-ups half as fast again.
func (p *packed) guess(x uint32) uint64 {
	k, within := x>>(p.guideShift&31), uint64(x&(1<<(p.guideShift&31)-1))
	start, end := p.guide[k], p.guide[k+1]
	return p.load((uint64(start) + uint64(end-start)*within>>(p.guideShift&31)) * uint64(p.width))
}

// noEntries are bits that a guess hardly ever finds: to compare them with those is what keeps the guess from being left out.
const noEntries = ^uint64(0)
