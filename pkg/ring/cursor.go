// SPDX-License-Identifier: Apache-2.0

package ring

// cursor walks over points in ring order and knows their hashes.
type cursor struct {
	p         *packed
	pos       uint32 // of the point after the current one
	bucket    uint32 // of the current point
	bucketEnd uint32
}

// cursorFrom returns a cursor before the first point with hash >= x. The ring must have a point.
func (p *packed) cursorFrom(x uint32) cursor {
	pos, _ := p.find(x)
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
	return c.p.closed(c.pos)
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
	entry := c.p.entry(c.pos)
	c.pos++
	return newPoint(c.bucket<<c.p.shift|uint32(entry>>c.p.ownerBits), int(entry&c.p.ownerMask))
}
