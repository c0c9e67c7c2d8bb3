// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"sort"
)

// pack writes points, which are in ring order, as a directory and overflow rows. Entries are left to putEntries.
func pack(points []point, l layout) packed {
	p := packed{layout: l, directory: make([]byte, l.directoryBytes())}
	i := 0
	for group := range l.groups() {
		base, counts := uint32(i), uint64(0)
		for ; i < len(points); i++ {
			bucket := points[i].hash() >> (l.shift & 31)
			if bucket/groupBuckets != uint32(group) {
				break
			}
			counts += 1 << (bucket % groupBuckets * 4)
		}
		if sumNibbles(counts) != uint32(i)-base {
			counts = p.addRow(base, points[base:i]) // A bucket had too many, and carried over into its neighbour.
			base |= overflowMark
		}
		binary.LittleEndian.PutUint32(p.directory[group*groupBytes:], base)
		binary.LittleEndian.PutUint64(p.directory[group*groupBytes+4:], counts)
	}
	return p
}

// sumNibbles adds up the sixteen numbers of four bits.
func sumNibbles(counts uint64) uint32 {
	below, last := nibbles(counts, groupBuckets-1)
	return below + last
}

// addRow writes a row of the overflow for a group of these points, of which the first stands at base, and returns its number.
func (p *packed) addRow(base uint32, points []point) (row uint64) {
	row = uint64(len(p.overflow) / rowBytes)
	for k := range uint32(groupBuckets) {
		end := sort.Search(len(points), func(i int) bool { return points[i].hash()>>p.shift%groupBuckets > k })
		p.overflow = binary.LittleEndian.AppendUint32(p.overflow, base+uint32(end))
	}
	return row
}

// putEntries writes the entries of points into dst, which is zero and holds them and the slack.
func (l layout) putEntries(dst []byte, points []point) {
	const piece = 1 << 16 // a multiple of 64: a piece begins and ends between two words
	parallel((len(points)+piece-1)/piece, func(k int) {
		first := k * piece
		l.putPiece(dst[first*int(l.width)/8:], points[first:min(first+piece, len(points))])
	})
	if len(points) > 0 {
		at := uint64(len(points)) * uint64(l.width)
		last := dst[at/8:]
		binary.LittleEndian.PutUint64(last, binary.LittleEndian.Uint64(last)|l.newEntry(points[0])<<(at%8))
	}
}

// newEntry returns the entry of a point.
func (l layout) newEntry(p point) uint64 {
	return uint64(p.hash())&(1<<l.shift-1)<<l.ownerBits | uint64(p.backend())
}

func (l layout) putPiece(dst []byte, points []point) {
	word, filled := uint64(0), uint(0)
	for _, q := range points {
		entry := l.newEntry(q)
		word |= entry << (filled & 63)
		if filled += l.width; filled >= 64 {
			binary.LittleEndian.PutUint64(dst, word)
			dst = dst[8:]
			filled -= 64
			word = entry >> ((l.width - filled) & 63)
		}
	}
	for ; word != 0; word >>= 8 {
		dst[0] = byte(word)
		dst = dst[1:]
	}
}

// PackedBytes returns how many bytes the points of a ring take in a snapshot. It leaves out the rows of overfull buckets,
// which are less than one percent for addresses and names that nobody made up to collide.
func PackedBytes(points uint32, backends int) uint64 {
	l := newLayout(points, backends)
	return pointsHeader + uint64(l.directoryBytes()) + l.entryBytes()
}
