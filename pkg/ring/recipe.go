// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"runtime"
)

// Encoding says what a snapshot holds of a ring.
type Encoding uint8

const (
	// EncodingPoints is a snapshot with the packed points, which are searched as they are.
	EncodingPoints Encoding = 1
	// EncodingRecipe is a snapshot without points: who opens it builds them from the backends, and proves by a fingerprint that
	// they are the same.
	EncodingRecipe Encoding = 2
)

// String returns "Points" or "Recipe".
func (e Encoding) String() string {
	if e == EncodingRecipe {
		return "Recipe"
	}
	return "Points"
}

// Encoding returns what the snapshot of the ring holds.
func (r *Ring) Encoding() Encoding { return r.encoding }

// The fingerprint of a ring is the SHA-256 of what is found at fixed probes, which are spread over the key space by the
// golden ratio: for each the position of the first point at or behind it and the backend that has it.
const (
	probes           = 4096
	probeStep        = 0x9e3779b1
	fingerprintBytes = sha256.Size
)

// fingerprint returns that of the points, trimmed ones included: what is trimmed stands beside it.
func (p *packed) fingerprint() []byte {
	h := sha256.New()
	for i := range uint32(probes) {
		if p.points == 0 {
			break
		}
		pos, entry := p.find(i * probeStep)
		addWord(h, pos)
		addWord(h, uint32(entry&p.ownerMask))
	}
	return h.Sum(nil)
}

func addWord(h hash.Hash, x uint32) {
	_, _ = h.Write(binary.LittleEndian.AppendUint32(nil, x)) // A hash never returns an error.
}

// Recipe returns the snapshot of this ring as EncodingRecipe: a few dozen bytes for each backend instead of some for each
// point. It is the same whichever encoding the ring was opened from, so two rings are equal if and only if their recipes
// are. The caller owns it.
func (r *Ring) Recipe() []byte {
	defer runtime.KeepAlive(r) // The snapshot may be a file that is unmapped when the ring goes.
	header := append([]byte(nil), r.snapshot[:headerBytes]...)
	var sections []section
	for k := range int(binary.LittleEndian.Uint32(header[atSections:])) { // Open has checked the table.
		row := r.snapshot[headerBytes+tableEntry*k:]
		kind, flags := binary.LittleEndian.Uint32(row), binary.LittleEndian.Uint32(row[4:])
		offset, length := binary.LittleEndian.Uint64(row[8:]), binary.LittleEndian.Uint64(row[16:])
		content := r.snapshot[offset : offset+length]
		if kind == kindPoints {
			kind, content = kindFingerprint, r.packed.fingerprint()
		}
		s := bytesSection(kind, content)
		s.flags = flags
		sections = append(sections, s)
	}
	return assemble(header, sections)
}

// readRecipe builds the points of a snapshot that has none.
func (d *decoder) readRecipe() error {
	r := d.section(kindFingerprint, "fingerprint")
	at := r.start
	want, err := r.take(fingerprintBytes)
	if err != nil {
		return err
	}
	if err := r.finish(); err != nil {
		return err
	}
	config := d.ring.base()
	config.MaxPoints = d.maxPoints
	t, err := newTable(config)
	var tooMany *TooManyPointsError
	switch {
	case errors.As(err, &tooMany):
		return err
	case err != nil:
		return formatErrorf("backends", d.sections[kindBackends].start, "%v", err)
	case t.points != d.points:
		return formatErrorf("point count", atPoints, "it is %d, the weights give %d", d.points, t.points)
	}
	points := t.place()
	d.ring.packed = pack(points, newLayout(t.points, d.ring.Len()))
	d.ring.packed.entries = make([]byte, d.ring.packed.entryBytes())
	preferHuge(d.ring.packed.entries)
	d.ring.packed.putEntries(d.ring.packed.entries, points)
	d.ring.packed.setGuide()
	d.ring.placed = newBitmap(d.ring.Len())
	for i := range d.ring.Len() {
		if d.ring.Weight(i) > 0 {
			d.ring.placed.set(i)
		}
	}
	if string(d.ring.packed.fingerprint()) != string(want) {
		return formatErrorf("fingerprint", at, "the points that were built are not those of the ring that was written")
	}
	return nil
}
