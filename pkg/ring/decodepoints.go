// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"slices"
	"sync"
)

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

// checkPoints checks the directory and then the entries. entriesAt is where the entries lie in the file.
func (d *decoder) checkPoints(entriesAt int) error {
	p := &d.ring.packed
	directoryAt := entriesAt - len(p.overflow) - len(p.directory)
	if err := p.checkDirectory(directoryAt); err != nil {
		return err
	}
	used := p.entryBits()
	if used%8 != 0 && p.entries[used/8]>>(used%8) != 0 {
		return formatErrorf("entries", entriesAt+int(used/8), "bits behind the last entry are set")
	}
	if err := d.checkZero("entries", entriesAt+int((used+7)/8), entriesAt+len(p.entries)); err != nil {
		return err
	}
	if p.points > 0 && p.entry(p.points) != p.entry(0) {
		return formatErrorf("entries", entriesAt+int((used-uint64(p.width))/8), "the last entry does not repeat the first")
	}
	counts, err := d.checkEntries(entriesAt)
	if err != nil {
		return err
	}
	p.setGuide()
	return d.checkQuotas(counts)
}

// checkQuotas checks that every backend has the points that its weight gives it, and notes which have one.
func (d *decoder) checkQuotas(counts []uint32) error {
	d.ring.placed = newBitmap(d.ring.Len())
	for i, n := range counts {
		quota := d.ring.algorithm.quota(d.ring.Weight(i))
		if quota > 1 && slices.Contains(d.fixed, i) {
			quota = 1
		}
		if uint64(n) != quota {
			return formatErrorf("points", atPoints, "backend %q has %d points, its weight of %d gives %d",
				d.ring.ID(i), n, d.ring.Weight(i), quota)
		}
		if n > 0 {
			d.ring.placed.set(i)
		}
	}
	return nil
}

// checkDirectory checks that the directory accounts for every point once, and uses the overflow where it has to. It lies at
// the byte at of the file.
func (p *packed) checkDirectory(at int) error {
	pos, rows := uint32(0), uint64(0)
	for g := range p.groups() {
		base, counts := p.group(uint32(g) * groupBuckets)
		marked, groupAt := base&overflowMark != 0, at+g*groupBytes
		if base&^overflowMark != pos {
			return formatErrorf("directory", groupAt, "group %d starts at point %d, not %d", g, base&^overflowMark, pos)
		}
		if !marked {
			if sum := sumNibbles(counts); sum > p.points-pos {
				return formatErrorf("directory", groupAt, "group %d has %d points, %d of %d are left", g, sum, p.points-pos, p.points)
			}
			pos += sumNibbles(counts)
			continue
		}
		if counts != rows || rows >= uint64(len(p.overflow)/rowBytes) {
			return formatErrorf("directory", groupAt+4, "group %d names overflow row %d, not %d", g, counts, rows)
		}
		rows++
		end, err := p.checkRow(g, groupAt, pos)
		if err != nil {
			return err
		}
		pos = end
	}
	if pos != p.points {
		return formatErrorf("directory", at, "it accounts for %d of %d points", pos, p.points)
	}
	if int(rows)*rowBytes != len(p.overflow) {
		return formatErrorf("overflow", at+len(p.directory), "%d of its rows are used", rows)
	}
	return nil
}

// checkRow checks the overflow row of a group that starts at pos, and returns where the group ends.
func (p *packed) checkRow(group, at int, pos uint32) (uint32, error) {
	fullest := uint32(0)
	for k := range uint32(groupBuckets) {
		start, end := p.bucket(uint32(group)*groupBuckets + k)
		if end < start || end > p.points {
			return 0, formatErrorf("directory", at, "bucket %d of group %d is points %d to %d behind %d of %d", k, group, start, end, pos, p.points)
		}
		fullest, pos = max(fullest, end-start), end
	}
	if fullest <= maxNibble {
		return 0, formatErrorf("directory", at, "group %d: overflow is for buckets of more than %d, the fullest has %d", group, maxNibble, fullest)
	}
	return pos, nil
}

// checkEntries checks that entries ascend and name backends, and counts those of each backend.
func (d *decoder) checkEntries(entriesAt int) (counts []uint32, err error) {
	const piece = 1 << 12 // groups
	p := &d.ring.packed
	pieces := (p.groups() + piece - 1) / piece
	errs := make([]error, pieces)
	var sum sync.Mutex
	counts = make([]uint32, d.ring.Len())
	parallel(pieces, func(k int) {
		w := entryCheck{p: p, counts: make([]uint32, len(counts)), entriesAt: entriesAt, sums: d.ring.sums}
		for g := k * piece; g < min((k+1)*piece, p.groups()) && errs[k] == nil; g++ {
			errs[k] = w.group(uint32(g))
		}
		sum.Lock()
		defer sum.Unlock()
		for i, n := range w.counts {
			counts[i] += n
		}
	})
	for _, err := range errs {
		if err != nil {
			return nil, err // The first in the file, whichever was found first.
		}
	}
	return counts, nil
}

// entryCheck checks one group of buckets after the other.
type entryCheck struct {
	p         *packed
	entriesAt int
	counts    []uint32
	sums      []uint32 // that decide ties; V3 only
}

func (w *entryCheck) group(group uint32) error {
	for k := range uint32(groupBuckets) {
		start, end := w.p.bucket(group*groupBuckets + k)
		if err := w.bucket(group*groupBuckets+k, start, end); err != nil {
			return err
		}
	}
	return nil
}

// bucket checks that the entries of a bucket ascend and name backends, and counts them.
func (w *entryCheck) bucket(b, start, end uint32) error {
	last, owners := uint64(0), w.p.ownerMask
	for i := start; i < end; i++ {
		e := w.p.entry(i)
		owner := int(e & owners)
		if owner >= len(w.counts) {
			return formatErrorf("entries", w.at(i), "point %d belongs to backend %d of %d", i, owner, len(w.counts))
		}
		w.counts[owner]++
		if i > start && !w.ascends(b, last, e) {
			return formatErrorf("entries", w.at(i), "point %d does not come after the one before it", i)
		}
		last = e
	}
	return nil
}

// at returns in which byte of the file entry i begins.
func (w *entryCheck) at(i uint32) int { return w.entriesAt + int(uint64(i)*uint64(w.p.width)/8) }

// ascends says that entry b of a bucket comes after entry a: by hash, and of tied ones by backend or, with V3, by the mix
// of both.
func (w *entryCheck) ascends(bucket uint32, a, b uint64) bool {
	low := a >> w.p.ownerBits
	if w.sums == nil || low != b>>w.p.ownerBits {
		return a < b
	}
	hash, owners := bucket<<w.p.shift|uint32(low), w.p.ownerMask
	return tieRank(hash, w.sums[a&owners]) < tieRank(hash, w.sums[b&owners])
}
