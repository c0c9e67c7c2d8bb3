// SPDX-License-Identifier: Apache-2.0

// Package sixbyte is the ring that the packed one of pkg/ring is measured against: 6 bytes for each point, the hash and the
// backend, in a sorted array that is searched by halving. It is the layout of pingora-ketama v2, in plain Go.
package sixbyte

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"net/netip"
	"slices"
	"strconv"

	"github.com/ringwright/ringwright/pkg/ring"
)

// Ring is the sorted points.
type Ring [][6]byte

// New builds the points of c, one chain after the other. The identity is the address, and the backends, at most 65,536,
// stand in ring order.
func New(c ring.Config) Ring {
	total := 0
	for _, b := range c.Backends {
		total += int(b.Weight * c.Algorithm.PointsPerWeight)
	}
	points := allocate(total)
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

// Owner returns the backend that owns the position x. The ring must have a point.
func (r Ring) Owner(x uint32) int {
	low, high := 0, len(r)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if hash(r[middle]) < x {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == len(r) {
		low = 0
	}
	return owner(r[low])
}

// Next returns the position to ask for after x was found to be owner's. It makes every look-up wait for the one before
// it, as a request does: look-ups that overlap measure how many cache misses the processor has in flight.
func Next(x uint32, owner int) uint32 { return x*0x9e3779b1 + uint32(owner) + 0x7f4a7c15 }

// Moved returns how many positions have another owner in to than in from, by a plain merge. Both must have points; index
// gives for each owner in to the same backend's number in from, or -1.
func Moved(from, to Ring, index []int) uint64 {
	var moved uint64
	start := uint64(0)
	for i, j := 0, 0; i < len(from) || j < len(to); {
		a, b := from[i%len(from)], to[j%len(to)]
		end := uint64(1) << 32
		if i < len(from) {
			end = uint64(hash(a)) + 1
		}
		if j < len(to) {
			end = min(end, uint64(hash(b))+1)
		}
		if end > start && owner(a) != index[owner(b)] {
			moved += end - start
		}
		start = max(start, end)
		if i < len(from) && uint64(hash(a))+1 == end {
			i++
		}
		if j < len(to) && uint64(hash(b))+1 == end {
			j++
		}
	}
	if owner(from[0]) != index[owner(to[0])] {
		moved += 1<<32 - start
	}
	return moved
}
