// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// FixedPoint is the CRC-32 of a hash input whose chain stays where it starts: such a backend has one point at any weight
// under V1 and V2.
const FixedPoint uint32 = 0x6dd90a9d

// chain produces the points of one backend: h(1) = crc32(p ‖ LE32(0)), h(i+1) = crc32(p ‖ LE32(h(i))).
type chain struct {
	// state is the raw CRC register behind the hash input p.
	state uint32
	// hash is the point before the next one; 0 at the start.
	hash uint32
}

// startChain returns the chain of a backend whose hash input has the checksum sum.
func startChain(sum uint32) chain { return chain{state: ^sum} }

// next advances the chain by one point.
func (c *chain) next() uint32 {
	c.hash = ^crcWord(c.state ^ c.hash)
	return c.hash
}

// chainAt returns the chain of such a backend behind its first n points. A step is affine, h → T·h ⊕ c with T the
// multiplication by x^32, so n steps are T^n·h ⊕ (T^(n-1) ⊕ … ⊕ T ⊕ 1)·c, and that is found by doubling.
func chainAt(sum, n uint32) chain {
	c := startChain(sum)
	step := c.next()
	power, sums := one, uint32(0) // T^k, and the sum of the powers below it times c, for the k that the bits so far make.
	for bit := bits.Len32(n) - 1; bit >= 0; bit-- {
		sums ^= multiply(power, sums)
		power = multiply(power, power)
		if n>>bit&1 != 0 {
			sums = crcWord(sums) ^ step
			power = crcWord(power)
		}
	}
	c.hash = sums
	return c
}

// one is the polynomial 1: the highest bit is the constant term.
const one uint32 = 1 << 31

// multiply returns the product of two polynomials over GF(2) modulo that of the CRC.
func multiply(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		product ^= b & -(a >> 31)
		b = b>>1 ^ crc32.IEEE&-(b&1)
	}
	return product
}

// interleave is how many chains are advanced together. A step depends on the one before it, so a single chain leaves the
// processor waiting for four table look-ups; four fill the time.
const interleave = 4

// blockPoints is how many points of a chain are computed at a time.
const blockPoints = 64

// run is a piece of the chain of one backend.
type run struct {
	backend       int
	first, points uint32
}

// lane is a run that is being computed.
type lane struct {
	chain
	backend int
	left    uint32
	hashes  [blockPoints]uint32
}

// eachBlock computes the runs and calls yield with blocks of consecutive points of one backend, which are valid until it
// returns. The order of the blocks is of no use, and the same each time.
func (t *table) eachBlock(runs []run, yield func(backend int, hashes []uint32)) {
	var lanes [interleave]lane
	for {
		n := uint32(blockPoints)
		for k := range lanes {
			if l := &lanes[k]; l.left == 0 && len(runs) > 0 {
				l.chain, l.backend, l.left = chainAt(t.sums[runs[0].backend], runs[0].first), runs[0].backend, runs[0].points
				runs = runs[1:]
			}
			n = min(n, lanes[k].left)
		}
		if n == 0 {
			break
		}
		advance4(&lanes, n)
		for k := range lanes {
			lanes[k].left -= n
			yield(lanes[k].backend, lanes[k].hashes[:n])
		}
	}
	for k := range lanes {
		for l := &lanes[k]; l.left > 0; {
			n := min(blockPoints, l.left)
			for i := range n {
				l.hashes[i] = l.next()
			}
			l.left -= n
			yield(l.backend, l.hashes[:n])
		}
	}
}

// advance4 computes the next n points of four chains.
func advance4(l *[interleave]lane, n uint32) {
	h0, h1, h2, h3 := l[0].hash, l[1].hash, l[2].hash, l[3].hash
	for i := range n % (blockPoints + 1) {
		h0 = ^crcWord(l[0].state ^ h0)
		h1 = ^crcWord(l[1].state ^ h1)
		h2 = ^crcWord(l[2].state ^ h2)
		h3 = ^crcWord(l[3].state ^ h3)
		l[0].hashes[i], l[1].hashes[i], l[2].hashes[i], l[3].hashes[i] = h0, h1, h2, h3
	}
	l[0].hash, l[1].hash, l[2].hash, l[3].hash = h0, h1, h2, h3
}

// crcWord passes the word x, already combined with the register, through the register.
func crcWord(x uint32) uint32 {
	return slicing[3][x&0xff] ^ slicing[2][x>>8&0xff] ^ slicing[1][x>>16&0xff] ^ slicing[0][x>>24]
}

// chainSums returns for each backend in ring order the CRC-32 that starts its chain: that of its hash input. V3 gives a
// backend whose sum is the fixed point, or that of a backend before it, the sum of its hash input behind which stand two
// zero bytes and the number of the attempt in four bytes, from 1 on.
func chainSums(version Version, identity Identity, ids []id) []uint32 {
	sums := make([]uint32, len(ids))
	taken := make(map[uint32]bool, len(ids))
	buf := make([]byte, 0, MaxNameBytes+16)
	for i, id := range ids {
		buf = identity.hashInput(buf[:0], id)
		sums[i] = crc32.ChecksumIEEE(buf)
		if version != V3 {
			continue
		}
		for attempt := uint32(1); taken[sums[i]] || sums[i] == FixedPoint; attempt++ {
			sums[i] = crc32.ChecksumIEEE(binary.LittleEndian.AppendUint32(append(buf, 0, 0), attempt))
		}
		taken[sums[i]] = true
	}
	return sums
}

// tieRank orders backends that have the point hash in common, by the checksums that start their chains: the finaliser of
// MurmurHash3, which maps different inputs to different outputs.
func tieRank(hash, sum uint32) uint32 {
	x := hash ^ sum
	x ^= x >> 16
	x *= 0x85ebca6b
	x ^= x >> 13
	x *= 0xc2b2ae35
	return x ^ x>>16
}
