// SPDX-License-Identifier: Apache-2.0

package ring

import "encoding/binary"

// readPoints checks the packed points: they ascend, and the directory, which follows from them, says the same.
func (d *decoder) readPoints() error {
	if d.ring.encoding == EncodingRecipe {
		return d.readRecipe()
	}
	r := d.section(kindPoints, "points")
	at := r.start
	head, err := r.take(pointsHeader)
	if err != nil {
		return err
	}
	l := newLayout(d.points, d.ring.Len())
	rows, entryBytes := binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint64(head[8:])
	switch {
	case d.points > 0 && d.ring.Len() == 0:
		return formatErrorf("point count", atPoints, "%d points of no backend", d.points)
	case uint(head[0]) != 32-l.shift || uint(head[1]) != l.ownerBits:
		return formatErrorf("bucket and owner bits", at, "they are %d and %d, not %d and %d", head[0], head[1], 32-l.shift, l.ownerBits)
	case head[2] != 0 || head[3] != 0:
		return formatErrorf("points padding", at+2, "it is not zero")
	case entryBytes != l.entryBytes():
		return formatErrorf("entry bytes", at+8, "%d, not %d", entryBytes, l.entryBytes())
	}
	p := &d.ring.packed
	p.layout = l
	if p.directory, err = r.take(uint64(l.directoryBytes())); err != nil {
		return err
	}
	if p.overflow, err = r.take(uint64(rows) * rowBytes); err != nil {
		return err
	}
	if p.entries, err = r.take(entryBytes); err != nil {
		return err
	}
	if err := r.finish(); err != nil {
		return err
	}
	return d.checkPoints(r.end - int(entryBytes))
}

// checkPoints walks over the directory and the entries once. entriesAt is where the entries lie in the file.
func (d *decoder) checkPoints(entriesAt int) error {
	p := &d.ring.packed
	d.ring.placed = newBitmap(d.ring.Len())
	w := pointWalk{p: p, counts: make([]uint32, d.ring.Len()), directoryAt: entriesAt - len(p.overflow) - len(p.directory), entriesAt: entriesAt, sums: d.ring.sums}
	for group := range p.groups() {
		if err := w.group(group); err != nil {
			return err
		}
	}
	if w.pos != p.points {
		return formatErrorf("directory", w.directoryAt, "it accounts for %d of %d points", w.pos, p.points)
	}
	if int(w.rows)*rowBytes != len(p.overflow) {
		return formatErrorf("overflow", w.directoryAt+len(p.directory), "%d of its rows are used", w.rows)
	}
	used := uint64(p.points) * uint64(p.width)
	if used%8 != 0 && p.entries[used/8]>>(used%8) != 0 {
		return formatErrorf("entries", entriesAt+int(used/8), "bits behind the last entry are set")
	}
	if err := d.checkZero("entries", entriesAt+int((used+7)/8), entriesAt+len(p.entries)); err != nil {
		return err
	}
	return d.checkQuotas(w.counts)
}

// checkQuotas checks that every backend has the points that its weight gives it, and notes which have one.
func (d *decoder) checkQuotas(counts []uint32) error {
	for i, n := range counts {
		quota := d.ring.algorithm.quota(d.ring.Weight(i))
		if uint64(n) != quota && (n != 1 || quota == 0 || d.ring.checksum(i) != FixedPoint) {
			return formatErrorf("points", atPoints, "backend %q has %d points, its weight of %d gives %d",
				d.ring.ID(i), n, d.ring.Weight(i), quota)
		}
		if n > 0 {
			d.ring.placed.set(i)
		}
	}
	return nil
}

// pointWalk checks one group of buckets after the other.
type pointWalk struct {
	p           *packed
	directoryAt int
	entriesAt   int
	pos         uint32 // of the first entry that no bucket before had
	rows        uint32 // of the overflow used so far
	counts      []uint32
	sums        []uint32 // that decide ties; V3 only
}

// ascends says that entry b of a bucket comes after entry a: by hash, and of tied ones by backend or, with V3, by the mix
// of both.
func (w *pointWalk) ascends(bucket uint32, a, b uint64) bool {
	low := a >> w.p.ownerBits
	if w.sums == nil || low != b>>w.p.ownerBits {
		return a < b
	}
	hash, owners := bucket<<w.p.shift|uint32(low), uint64(1)<<w.p.ownerBits-1
	return tieRank(hash, w.sums[a&owners]) < tieRank(hash, w.sums[b&owners])
}

func (w *pointWalk) group(group int) error {
	at := w.directoryAt + group*groupBytes
	bytes := w.p.directory[group*groupBytes:][:groupBytes]
	base, counts := binary.LittleEndian.Uint32(bytes), binary.LittleEndian.Uint64(bytes[4:])
	marked := base&overflowMark != 0
	if base&^overflowMark != w.pos {
		return formatErrorf("directory", at, "group %d starts at point %d, not %d", group, base&^overflowMark, w.pos)
	}
	if marked {
		if counts != uint64(w.rows) || int(w.rows) >= len(w.p.overflow)/rowBytes {
			return formatErrorf("directory", at+4, "group %d names overflow row %d, not %d", group, counts, w.rows)
		}
		w.rows++
	}
	fullest := uint32(0)
	for k := range uint32(groupBuckets) {
		start, end := w.p.bucket(uint32(group)*groupBuckets + k)
		if start != w.pos || end < start || end > w.p.points {
			return formatErrorf("directory", at, "bucket %d of group %d is points %d to %d behind %d of %d",
				k, group, start, end, w.pos, w.p.points)
		}
		if err := w.bucket(uint32(group)*groupBuckets+k, start, end); err != nil {
			return err
		}
		fullest = max(fullest, end-start)
	}
	if marked != (fullest > maxNibble) {
		return formatErrorf("directory", at, "group %d: overflow is for buckets of more than %d, the fullest has %d", group, maxNibble, fullest)
	}
	return nil
}

// bucket checks that the entries of a bucket ascend and name backends, and counts them.
func (w *pointWalk) bucket(b, start, end uint32) error {
	last := uint64(0)
	for i := start; i < end; i++ {
		bit := uint64(i) * uint64(w.p.width)
		e := w.p.entry(bit) & (1<<w.p.width - 1)
		owner := w.p.owner(i)
		if owner >= len(w.counts) {
			return formatErrorf("entries", w.entriesAt+int(bit/8), "point %d belongs to backend %d of %d", i, owner, len(w.counts))
		}
		w.counts[owner]++
		if i > start && !w.ascends(b, last, e) {
			return formatErrorf("entries", w.entriesAt+int(bit/8), "point %d does not come after the one before it", i)
		}
		last = e
	}
	w.pos = end
	return nil
}
