// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"hash/crc32"
)

// Hash returns the position of a key on the ring: its CRC-32 (IEEE).
func Hash(key []byte) uint32 { return crc32.ChecksumIEEE(key) }

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

// interleave is how many chains are advanced together. A step depends on the one before it, so a single chain leaves the
// processor waiting for four table look-ups; four fill the time.
const interleave = 4

// next4 advances four chains by one point each.
func next4(c *[interleave]chain) (h0, h1, h2, h3 uint32) {
	h0 = ^crcWord(c[0].state ^ c[0].hash)
	h1 = ^crcWord(c[1].state ^ c[1].hash)
	h2 = ^crcWord(c[2].state ^ c[2].hash)
	h3 = ^crcWord(c[3].state ^ c[3].hash)
	c[0].hash, c[1].hash, c[2].hash, c[3].hash = h0, h1, h2, h3
	return h0, h1, h2, h3
}

// slicing holds the tables of a CRC over four bytes at once: slicing[k][b] is byte b followed by k zero bytes.
var slicing = makeSlicing()

func makeSlicing() (t [4][256]uint32) {
	t[0] = *crc32.MakeTable(crc32.IEEE)
	for k := 1; k < len(t); k++ {
		for b := range t[k] {
			v := t[k-1][b]
			t[k][b] = v>>8 ^ t[0][v&0xff]
		}
	}
	return t
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
