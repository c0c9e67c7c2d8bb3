// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"net/netip"
	"slices"
	"strconv"

	"github.com/ringwright/ringwright/pkg/ring"
)

// sixByte is what the packed ring is measured against: 6 bytes for each point, the hash and the backend, in a sorted
// array that is searched by halving. It is the layout of pingora-ketama v2.
type sixByte [][6]byte

// newSixByte builds the points of c, whose backends stand in ring order, one chain after the other.
func newSixByte(c ring.Config) sixByte {
	var points sixByte
	for i, b := range c.Backends {
		ap := netip.MustParseAddrPort(b.ID)
		input := append(ap.Addr().AppendTo(nil), 0)
		input = append(strconv.AppendUint(input, uint64(ap.Port()), 10), 0, 0, 0, 0)
		word := input[len(input)-4:]
		for range b.Weight * c.Algorithm.PointsPerWeight {
			var p [6]byte
			binary.LittleEndian.PutUint32(p[:], crc32.ChecksumIEEE(input))
			binary.LittleEndian.PutUint16(p[4:], uint16(i))
			copy(word, p[:4])
			points = append(points, p)
		}
	}
	slices.SortFunc(points, func(a, b [6]byte) int { return cmp.Or(cmp.Compare(hash(a), hash(b)), cmp.Compare(owner(a), owner(b))) })
	return points
}

func hash(p [6]byte) uint32 { return binary.LittleEndian.Uint32(p[:4]) }
func owner(p [6]byte) int   { return int(binary.LittleEndian.Uint16(p[4:])) }

func (s sixByte) owner(x uint32) int {
	low, high := 0, len(s)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if hash(s[middle]) < x {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == len(s) {
		low = 0
	}
	return owner(s[low])
}
