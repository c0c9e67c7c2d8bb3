// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"math/bits"
)

// The points of a ring are packed in two arrays that are searched as they are.
//
// Entries. The space of hashes is cut into 2^b buckets by the top b bits. An entry is what the bucket does not say: the
// low r = 32-b bits of the hash, above the backend in as few bits as count needs. Entries stand back to back in ring
// order, so within a bucket they ascend as numbers.
//
// Directory. Sixteen buckets are a group of 12 bytes: the position of the group's first entry in 31 bits, and the number
// of entries in each bucket in 4 bits. A group in which a bucket holds more than 15 is marked in the top bit; its counts
// are then the number of a row in the overflow array, with the end of each bucket in 32 bits.
const (
	groupBuckets = 16
	groupBytes   = 12
	rowBytes     = groupBuckets * 4
	maxNibble    = 15
	overflowMark = 1 << 31
	// entrySlack lies behind the last entry, so that each one can be read with one load of 8 bytes.
	entrySlack = 8
	// maxBucketMean is how many points a bucket holds on average at most. More make the scan longer, fewer the directory
	// larger; the total size hardly changes.
	maxBucketMean = 6
	minBucketBits = 4
)

// bucketBits returns b for a ring of n points: the smallest, at least 4, with n / 2^b <= 6.
func bucketBits(n uint32) uint {
	b := uint(minBucketBits)
	for uint64(n) > maxBucketMean<<b {
		b++
	}
	return b
}

// layout is the shape of packed points; the two counts decide all of it.
type layout struct {
	points    uint32
	shift     uint // r: the bits of the hash that an entry keeps
	ownerBits uint
	width     uint // of an entry, in bits: at most 28 + 16
}

func newLayout(points uint32, backends int) layout {
	l := layout{points: points, shift: 32 - bucketBits(points)}
	if backends > 0 {
		l.ownerBits = uint(bits.Len(uint(backends - 1)))
	}
	l.width = l.shift + l.ownerBits
	return l
}

func (l layout) groups() int         { return 1 << (32 - l.shift) / groupBuckets }
func (l layout) directoryBytes() int { return l.groups() * groupBytes }

// entryBytes is 64 bits wide on every machine, so that a decoder can compare it before it believes the counts.
func (l layout) entryBytes() uint64 {
	return (uint64(l.points)*uint64(l.width)+7)/8 + entrySlack
}

// packed is a view of packed points in a snapshot.
type packed struct {
	layout
	directory []byte
	overflow  []byte
	entries   []byte
}

// entry returns what stands at bit: the low hash bits above the owner. The bits above width are those of the next entry.
func (p *packed) entry(bit uint64) uint64 {
	return binary.LittleEndian.Uint64(p.entries[bit>>3:]) >> (bit & 7)
}

// owner returns the backend of the point at position i.
func (p *packed) owner(i uint32) int {
	return int(p.entry(uint64(i)*uint64(p.width)) & (1<<p.ownerBits - 1))
}

// low returns the low hash bits of the point at position i.
func (p *packed) low(i uint32) uint32 {
	return uint32(p.entry(uint64(i)*uint64(p.width)) >> p.ownerBits & (1<<p.shift - 1))
}

// bucket returns where the entries of bucket b begin and end.
func (p *packed) bucket(b uint32) (start, end uint32) {
	group := p.directory[uint(b/groupBuckets)*groupBytes:]
	base := binary.LittleEndian.Uint32(group)
	counts := binary.LittleEndian.Uint64(group[4:groupBytes])
	if base&overflowMark != 0 {
		return p.overflowBucket(base&^overflowMark, counts, b%groupBuckets)
	}
	at := b % groupBuckets * 4
	// The sum of the nibbles below at: fold pairs into bytes, then let a multiplication add the bytes up.
	below := counts & (1<<at - 1)
	pairs := below&0x0f0f0f0f0f0f0f0f + below>>4&0x0f0f0f0f0f0f0f0f
	start = base + uint32(pairs*0x0101010101010101>>56)
	return start, start + uint32(counts>>at&maxNibble)
}

func (p *packed) overflowBucket(base uint32, row uint64, b uint32) (start, end uint32) {
	ends := p.overflow[row*rowBytes:][:rowBytes]
	if b == 0 {
		return base, binary.LittleEndian.Uint32(ends)
	}
	return binary.LittleEndian.Uint32(ends[b*4-4:]), binary.LittleEndian.Uint32(ends[b*4:])
}

// find returns the position of the first point with hash >= x, which is 0 where there is none: the ring is closed.
// The ring must have a point.
func (p *packed) find(x uint32) uint32 {
	start, end := p.bucket(x >> p.shift)
	low := uint64(x&(1<<p.shift-1)) << p.ownerBits
	if end-start > 2*maxNibble {
		start, end = p.narrow(low, start, end)
	}
	// Counting without a branch on the comparison: which entry is the first above low cannot be predicted.
	mask, width := uint64(1)<<p.width-1, uint64(p.width)
	bit := uint64(start) * width
	for i := start; i < end; i++ {
		_, less := bits.Sub64(p.entry(bit)&mask, low, 0)
		start += uint32(less)
		bit += width
	}
	if start == p.points {
		return 0
	}
	return start
}

// narrow halves the range of an unusually full bucket until few entries are left to count.
func (p *packed) narrow(low uint64, start, end uint32) (uint32, uint32) {
	mask := uint64(1)<<p.width - 1
	for end-start > maxNibble {
		middle := start + (end-start)/2
		if p.entry(uint64(middle)*uint64(p.width))&mask < low {
			start = middle + 1
		} else {
			end = middle
		}
	}
	return start, end
}

// cursor walks over points in ring order and knows their hashes.
type cursor struct {
	p         *packed
	pos       uint32 // of the point after the current one
	bucket    uint32 // of the current point
	bucketEnd uint32
}

// cursorFrom returns a cursor before the first point with hash >= x. The ring must have a point.
func (p *packed) cursorFrom(x uint32) cursor {
	pos := p.find(x)
	if pos == 0 {
		return p.cursorAt(0, 0) // The search may have wrapped, and then the point is in none of the buckets behind x.
	}
	return p.cursorAt(pos, x>>p.shift)
}

// cursorAt returns a cursor before the point at pos, which lies in bucket b or behind it.
func (p *packed) cursorAt(pos, b uint32) cursor {
	_, end := p.bucket(b)
	return cursor{p: p, pos: pos, bucket: b, bucketEnd: end}
}

// position returns where the point is that next returns.
func (c *cursor) position() uint32 {
	if c.pos == c.p.points {
		return 0
	}
	return c.pos
}

// next returns the next point; the caller counts them and stops in time.
func (c *cursor) next() point {
	if c.pos == c.p.points {
		c.pos, c.bucket = 0, 0
		_, c.bucketEnd = c.p.bucket(0)
	}
	for c.pos >= c.bucketEnd {
		c.bucket++
		_, c.bucketEnd = c.p.bucket(c.bucket)
	}
	hash := c.bucket<<c.p.shift | c.p.low(c.pos)
	owner := c.p.owner(c.pos)
	c.pos++
	return newPoint(hash, owner)
}

// pack writes points, which are in ring order, as a directory, overflow rows and entries.
func pack(points []point, l layout) packed {
	p := packed{layout: l, directory: make([]byte, l.directoryBytes()), entries: make([]byte, l.entryBytes())}
	i := 0
	for group := range l.groups() {
		base := i
		var ends [groupBuckets]uint32
		for k := range ends {
			bucket := uint32(group*groupBuckets + k)
			for i < len(points) && points[i].hash()>>l.shift == bucket {
				i++
			}
			ends[k] = uint32(i)
		}
		p.packGroup(p.directory[group*groupBytes:], uint32(base), &ends)
	}
	for i, q := range points {
		low := uint64(q.hash()) & (1<<l.shift - 1)
		p.putEntry(uint32(i), low<<l.ownerBits|uint64(q.backend()))
	}
	return p
}

// packGroup writes one group of the directory and, where a bucket is too full for 4 bits, a row of the overflow.
func (p *packed) packGroup(group []byte, base uint32, ends *[groupBuckets]uint32) {
	counts, start := uint64(0), base
	for k, end := range ends {
		if end-start > maxNibble {
			counts = uint64(len(p.overflow) / rowBytes)
			base |= overflowMark
			for _, e := range ends {
				p.overflow = binary.LittleEndian.AppendUint32(p.overflow, e)
			}
			break
		}
		counts |= uint64(end-start) << (4 * k)
		start = end
	}
	binary.LittleEndian.PutUint32(group, base)
	binary.LittleEndian.PutUint64(group[4:], counts)
}

func (p *packed) putEntry(i uint32, value uint64) {
	bit := uint64(i) * uint64(p.width)
	word := p.entries[bit>>3:]
	binary.LittleEndian.PutUint64(word, binary.LittleEndian.Uint64(word)|value<<(bit&7))
}

// PackedBytes returns how many bytes the points of a ring take in a snapshot. It leaves out the rows of overfull buckets,
// which are less than one percent for addresses and names that nobody made up to collide.
func PackedBytes(points uint32, backends int) uint64 {
	l := newLayout(points, backends)
	return pointsHeader + uint64(l.directoryBytes()) + l.entryBytes()
}
