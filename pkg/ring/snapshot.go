// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// The snapshot format; docs/snapshot-format.md describes it for readers in other languages.
const (
	// magic starts with a byte outside ASCII and ends with a line feed, so that a file that went through a text
	// conversion is told from one that was cut.
	magic         = "\x89RWRING\n"
	formatVersion = 1
	headerBytes   = 64
	tableEntry    = 24
	trailerBytes  = 8
	sectionAlign  = 8
	// maxSections bounds the section table: more than this format will ever have.
	maxSections = 64
	// backendsHeader is the fixed part of the backends section.
	backendsHeader = 16
	// pointsHeader is the fixed part of the points section.
	pointsHeader = 16
)

// The kinds of sections, in the order in which they stand. A snapshot has points or the fingerprint of them.
const (
	kindBackends    uint32 = 1
	kindFeatures    uint32 = 2
	kindViews       uint32 = 3
	kindPoints      uint32 = 4
	kindFingerprint uint32 = 5
)

// flagOptional marks a section that a reader which does not know its kind may pass over.
const flagOptional = 1

// Positions in the header.
const (
	atFormat          = 8  // u16
	atFlags           = 10 // u16
	atVersion         = 12 // u8
	atIdentity        = 13 // u8
	atPointsPerWeight = 16 // u32
	atWeightUnit      = 20 // u32, 0 but with V3
	atMaxImbalance    = 24 // u32, 0 but with V3
	atBackends        = 28 // u32
	atPoints          = 32 // u32
	atSections        = 36 // u32
	atLength          = 40 // u64
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// EmptySlot returns the content of a slot that holds no snapshot. [Open] answers it with [ErrEmptySlot].
func EmptySlot() []byte { return []byte("\x89RWNONE\n") }

// section is one row of the section table with its content.
type section struct {
	kind   uint32
	flags  uint32
	length int
	// write puts the content into dst, which is zero and has its length.
	write func(dst []byte)
}

func bytesSection(kind uint32, content []byte) section {
	return section{kind: kind, length: len(content), write: func(dst []byte) { copy(dst, content) }}
}

// encode writes the snapshot of a placed table.
func (t *table) encode(points []point, views []declaredView) []byte {
	sections := []section{bytesSection(kindBackends, t.encodeBackends())}
	if len(t.features) > 0 {
		sections = append(sections, bytesSection(kindFeatures, t.encodeFeatures()))
	}
	if t.algorithm.Version == V3 {
		sections = append(sections, bytesSection(kindViews, encodeViews(views)))
	}
	sections = append(sections, pointsSection(points, newLayout(uint32(len(points)), len(t.ids))))

	header := make([]byte, headerBytes)
	copy(header, magic)
	binary.LittleEndian.PutUint16(header[atFormat:], formatVersion)
	header[atVersion] = byte(t.algorithm.Version)
	header[atIdentity] = byte(t.identity)
	binary.LittleEndian.PutUint32(header[atPointsPerWeight:], t.algorithm.PointsPerWeight)
	binary.LittleEndian.PutUint32(header[atWeightUnit:], t.algorithm.WeightUnit)
	binary.LittleEndian.PutUint32(header[atMaxImbalance:], t.algorithm.MaxImbalance)
	binary.LittleEndian.PutUint32(header[atBackends:], uint32(len(t.ids)))
	binary.LittleEndian.PutUint32(header[atPoints:], uint32(len(points)))
	return assemble(header, sections)
}

// assemble puts a file together: header, table, sections, checksum.
func assemble(header []byte, sections []section) []byte {
	offset := headerBytes + tableEntry*len(sections)
	length := offset + trailerBytes
	for _, s := range sections {
		length += align(s.length)
	}
	binary.LittleEndian.PutUint32(header[atSections:], uint32(len(sections)))
	binary.LittleEndian.PutUint64(header[atLength:], uint64(length))
	out := make([]byte, length)
	preferHuge(out)
	copy(out, header)
	for k, s := range sections {
		row := out[headerBytes+tableEntry*k:]
		binary.LittleEndian.PutUint32(row, s.kind)
		binary.LittleEndian.PutUint32(row[4:], s.flags)
		binary.LittleEndian.PutUint64(row[8:], uint64(offset))
		binary.LittleEndian.PutUint64(row[16:], uint64(s.length))
		s.write(out[offset : offset+s.length])
		offset += align(s.length)
	}
	binary.LittleEndian.PutUint32(out[length-4:], crc32.Checksum(out[:length-4], castagnoli))
	return out
}

func align(n int) int { return (n + sectionAlign - 1) &^ (sectionAlign - 1) }

func (t *table) encodeBackends() []byte {
	names := make([]string, len(t.ids))
	for i, id := range t.ids {
		names[i] = id.text
	}
	zones := slices.Compact(slices.Sorted(slices.Values(t.zones)))
	zones = slices.DeleteFunc(zones, func(z string) bool { return z == "" })
	zoneOf := make([]uint32, len(t.zones))
	for i, z := range t.zones {
		if k, ok := slices.BinarySearch(zones, z); ok {
			zoneOf[i] = uint32(k) + 1
		}
	}
	idEnds, idBlob := textEnds(names)
	zoneEnds, zoneBlob := textEnds(zones)
	weightWidth, idWidth := columnWidth(slices.Max(append(t.weights, 0))), columnWidth(uint32(len(idBlob)))
	zoneWidth, zoneEndWidth := uint8(0), uint8(0)
	if len(zones) > 0 {
		zoneWidth, zoneEndWidth = columnWidth(uint32(len(zones))), columnWidth(uint32(len(zoneBlob)))
	}

	out := binary.LittleEndian.AppendUint32(nil, uint32(len(idBlob)))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(zones)))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(zoneBlob)))
	out = append(out, weightWidth, idWidth, zoneWidth, zoneEndWidth)
	out = appendColumn(out, weightWidth, t.weights)
	out = appendColumn(out, idWidth, idEnds)
	out = append(out, idBlob...)
	out = appendColumn(out, zoneWidth, zoneOf)
	out = appendColumn(out, zoneEndWidth, zoneEnds)
	return append(out, zoneBlob...)
}

func (t *table) encodeFeatures() []byte {
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(t.features)))
	for f, name := range t.features {
		out = append(out, byte(len(name)))
		out = append(out, name...)
		for b := range (len(t.ids) + 7) / 8 {
			out = append(out, byte(t.members[f][b/8]>>(b%8*8)))
		}
	}
	return out
}

// encodeViews writes the declared views: for each the set of its features, and the trims as the distance from each to the
// one before it, less one, in bytes of seven bits, the lowest first.
func encodeViews(views []declaredView) []byte {
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(views)))
	for _, v := range views {
		var trims []byte
		next := uint32(0)
		for _, pos := range v.trims {
			trims = binary.AppendUvarint(trims, uint64(pos-next))
			next = pos + 1
		}
		out = binary.LittleEndian.AppendUint64(out, v.features)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(v.trims)))
		out = binary.LittleEndian.AppendUint32(out, uint32(len(trims)))
		out = append(out, trims...)
	}
	return out
}

// pointsSection packs points, which are in ring order.
func pointsSection(points []point, l layout) section {
	p := pack(points, l)
	length := pointsHeader + len(p.directory) + len(p.overflow) + int(l.entryBytes())
	return section{kind: kindPoints, length: length, write: func(dst []byte) {
		dst[0], dst[1] = byte(32-l.shift), byte(l.ownerBits)
		binary.LittleEndian.PutUint32(dst[4:], uint32(len(p.overflow)/rowBytes))
		binary.LittleEndian.PutUint64(dst[8:], l.entryBytes())
		dst = dst[pointsHeader:]
		dst = dst[copy(dst, p.directory):]
		dst = dst[copy(dst, p.overflow):]
		l.putEntries(dst, points)
	}}
}
