// SPDX-License-Identifier: Apache-2.0

package ring

import "slices"

// scan decodes the points from position 0 on, one group of buckets at a time: that is three times as fast as a cursor,
// which can start anywhere and stop after any point.
type scan struct {
	p     *packed
	group uint32 // the next one
	end   uint32 // the position of its first point
	// points are those of the group that next has reached, valid until it is called again; the first stands at position first.
	points []point
	first  uint32
}

func (p *packed) scan() *scan { return &scan{p: p} }

// scanFrom returns a scan of the groups from one on.
func (p *packed) scanFrom(group uint32) *scan {
	base, _ := p.group(group * groupBuckets)
	return &scan{p: p, group: group, end: base &^ overflowMark}
}

// next goes on to the next group that has a point, and says whether there is one.
func (s *scan) next() bool {
	s.points = s.points[:0]
	for len(s.points) == 0 {
		if s.end == s.p.points {
			return false
		}
		s.first = s.end
		s.decode()
		s.group++
	}
	return true
}

// decode fills points with those of the group: first the bucket of each, then the rest from its entry. How many a bucket
// has cannot be predicted, so each is written as if it had four, and the next one overwrites what was too much.
func (s *scan) decode() {
	const guess = 4
	p := s.p
	base, counts := p.group(s.group * groupBuckets)
	n := sumNibbles(counts)
	if base&overflowMark != 0 {
		_, end := p.bucket(s.group*groupBuckets + groupBuckets - 1)
		n = end - s.first
	}
	points := slices.Grow(s.points, int(n)+guess)[:n+guess]
	pos := uint32(0)
	for k := range uint32(groupBuckets) {
		bucket := s.group*groupBuckets + k
		count := uint32(counts >> (4 * k) & maxNibble)
		if base&overflowMark != 0 {
			start, end := p.bucket(bucket)
			count = end - start
		}
		hash := newPoint(bucket<<(p.shift&31), 0)
		*(*[guess]point)(points[pos:]) = [guess]point{hash, hash, hash, hash}
		for i := uint32(guess); i < count; i++ {
			points[pos+i] = hash
		}
		pos += count
	}
	s.points = points[:n]
	s.end = s.first + n
	width, shift, entryMask, ownerMask := uint64(p.width), p.ownerBits&31, p.entryMask, p.ownerMask
	bit := uint64(s.first) * width
	for i := range s.points {
		entry := p.load(bit) & entryMask
		s.points[i] += point(entry>>shift<<32 | entry&ownerMask)
		bit += width
	}
}
