// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"math/bits"
	"runtime"
	"unsafe"
)

// The points of a ring are packed in two arrays that are searched as they are.
//
// Entries. The space of hashes is cut into 2^b buckets by the top b bits. An entry is what the bucket does not say: the
// low r = 32-b bits of the hash, above the backend in as few bits as count needs. Entries stand back to back in ring
// order, so within a bucket they ascend as numbers. Behind the last one the first is repeated: it closes the ring.
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
	// window is how many entries of a bucket are compared without a branch.
	window = 4
	// pairWidth is up to what width one load has two entries: of its 64 bits up to 7 belong to the entry before.
	pairWidth = (64 - 7) / 2
	// entrySlack lies behind the last entry, so that a window can be read from any entry on with loads of 8 bytes.
	entrySlack    = 32
	minBucketBits = 4
)

// bucketBits returns b for a ring of n points: the smallest, at least 4, with n / 2^b <= 4. More points a bucket make the scan
// longer, fewer the directory larger; the total size hardly changes.
func bucketBits(n uint32) uint {
	const mean = 4
	b := uint(minBucketBits)
	for uint64(n) > mean<<b {
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
	// entryMask and ownerMask keep an entry, and the owner in it.
	entryMask, ownerMask uint64
}

func newLayout(points uint32, backends int) layout {
	l := layout{points: points, shift: 32 - bucketBits(points)}
	if backends > 0 {
		l.ownerBits = uint(bits.Len(uint(backends - 1)))
	}
	l.width = l.shift + l.ownerBits
	l.entryMask, l.ownerMask = 1<<l.width-1, 1<<l.ownerBits-1
	return l
}

func (l layout) groups() int         { return 1 << (32 - l.shift) / groupBuckets }
func (l layout) directoryBytes() int { return l.groups() * groupBytes }

// entryBytes is 64 bits wide on every machine, so that a decoder can compare it before it believes the counts.
func (l layout) entryBytes() uint64 { return (l.entryBits()+7)/8 + entrySlack }

// entryBits counts the repeated entry, which a ring without points does not have.
func (l layout) entryBits() uint64 {
	if l.points == 0 {
		return 0
	}
	return (uint64(l.points) + 1) * uint64(l.width)
}

// packed is a view of packed points in a snapshot.
type packed struct {
	layout
	directory []byte
	overflow  []byte
	entries   []byte
	// guide holds the position of the first point of every eighth group and, at the end, the number of points. It is not part of
	// a snapshot; nil in a ring that fits into a cache.
	guide []uint32
	// guideShift takes a hash to its place in guide.
	guideShift uint
}

// heldBytes returns how many bytes the arrays take.
func (p *packed) heldBytes() int {
	return len(p.directory) + len(p.overflow) + len(p.entries) + 4*len(p.guide)
}

// load returns the 64 bits from bit on, of which the highest bit%8 are zero. It is the one place where bounds are not
// checked, which makes a look-up a fifth faster: what Open has checked keeps every position below points, and behind the last
// entry lies the slack.
func (p *packed) load(bit uint64) uint64 {
	word := (*[8]byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(p.entries)), bit>>3))
	x := binary.LittleEndian.Uint64(word[:]) >> (bit & 7)
	runtime.KeepAlive(p) // The bytes may be those of a file, which is unmapped when the ring goes.
	return x
}

// entry returns the entry at position i: the low hash bits above the owner.
func (p *packed) entry(i uint32) uint64 {
	return p.load(uint64(i)*uint64(p.width)) & p.entryMask
}

// owner returns the backend of the point at position i.
func (p *packed) owner(i uint32) int {
	return int(p.load(uint64(i)*uint64(p.width)) & p.ownerMask)
}

// group returns what the directory says of the group of bucket b.
func (p *packed) group(b uint32) (base uint32, counts uint64) {
	group := (*[groupBytes]byte)(p.directory[uint(b/groupBuckets)*groupBytes:])
	base, counts = binary.LittleEndian.Uint32(group[:]), binary.LittleEndian.Uint64(group[4:])
	runtime.KeepAlive(p)
	return base, counts
}

// nibbles returns the sum of the nibbles of counts below that of bucket b, and that nibble.
func nibbles(counts uint64, b uint32) (below, count uint32) {
	at := b % groupBuckets * 4
	// Fold pairs into bytes, then let a multiplication add the bytes up.
	bits := counts & (1<<at - 1)
	pairs := bits&0x0f0f0f0f0f0f0f0f + bits>>4&0x0f0f0f0f0f0f0f0f
	return uint32(pairs * 0x0101010101010101 >> 56), uint32(counts>>at) & maxNibble
}

// bucket returns where the entries of bucket b begin and end.
func (p *packed) bucket(b uint32) (start, end uint32) {
	base, counts := p.group(b)
	if base&overflowMark != 0 {
		return p.overflowBucket(base&^overflowMark, counts, b%groupBuckets)
	}
	below, count := nibbles(counts, b)
	return base + below, base + below + count
}

func (p *packed) overflowBucket(base uint32, row uint64, b uint32) (start, end uint32) {
	ends := p.overflow[row*rowBytes:][:rowBytes]
	start, end = base, binary.LittleEndian.Uint32(ends[b*4:])
	if b > 0 {
		start = binary.LittleEndian.Uint32(ends[b*4-4:])
	}
	runtime.KeepAlive(p)
	return start, end
}

// find returns the position of the first point with hash >= x, which is 0 where there is none, because the ring is closed,
// and its entry. The ring must have a point.
func (p *packed) find(x uint32) (pos uint32, entry uint64) {
	b, low := x>>(p.shift&31), uint64(x&(1<<(p.shift&31)-1))<<(p.ownerBits&63)
	if p.guide != nil && p.guess(x) == noEntries {
		return p.findInLong(b, low) // All bits are set there, which is rare, and right all the same.
	}
	base, counts := p.group(b)
	below, count := nibbles(counts, b)
	if base&overflowMark != 0 || count > window {
		return p.findInLong(b, low)
	}
	// How many entries a bucket has and which is the first above low cannot be predicted, so there is no branch on either: a
	// window of four is compared, what stands behind the bucket is masked, and each that is passed replaces the entry by the
	// next one.
	start, n := base+below, uint64(count)
	width, mask := uint64(p.width), p.entryMask
	bit := uint64(start) * width
	first, second := p.load(bit), p.load(bit+2*width)
	e0, e2, e4 := first&mask, second&mask, p.load(bit+4*width)&mask
	var e1, e3 uint64
	if width <= pairWidth {
		e1, e3 = first>>(width&63)&mask, second>>(width&63)&mask
	} else {
		e1, e3 = p.load(bit+width)&mask, p.load(bit+3*width)&mask
	}
	pass0, pass1, pass2, pass3 := below64(e0, low)&below64(0, n), below64(e1, low)&below64(1, n), below64(e2, low)&below64(2, n), below64(e3, low)&below64(3, n)
	entry = e0 ^ -pass0&(e0^e1) ^ -pass1&(e1^e2) ^ -pass2&(e2^e3) ^ -pass3&(e3^e4)
	return p.closed(start + uint32(pass0+pass1+pass2+pass3)), entry
}

// below64 returns 1 if x < y and 0 if not, without a branch.
func below64(x, y uint64) uint64 {
	_, less := bits.Sub64(x, y, 0)
	return less
}

// closed returns the position pos of the closed ring.
func (p *packed) closed(pos uint32) uint32 {
	if pos == p.points {
		return 0
	}
	return pos
}

// findInLong is find for a bucket of more entries than a window has.
func (p *packed) findInLong(b uint32, low uint64) (pos uint32, entry uint64) {
	start, end := p.bucket(b)
	for end-start > 2*maxNibble { // An unusually full bucket is halved until few are left to count.
		middle := start + (end-start)/2
		if p.entry(middle) < low {
			start = middle + 1
		} else {
			end = middle
		}
	}
	bit := uint64(start) * uint64(p.width)
	for range end - start {
		start += uint32(below64(p.load(bit)&p.entryMask, low))
		bit += uint64(p.width)
	}
	return p.closed(start), p.entry(start)
}
