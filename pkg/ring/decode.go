// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"sync/atomic"
)

// Open returns the ring of a snapshot. The ring is the bytes: they are not copied and must not change while it is used.
//
// Open accepts exactly what [Build] writes and optional sections that it does not know; everything is checked, so a
// reader needs no step of its own. What it cannot see without building the ring again is whether the points are those of
// the backends: [Ring.Verify] can. Errors: [ErrEmptySlot], or a [FormatError] that says which field is wrong and where.
// Beside the ring itself it allocates the identities, the features and some bytes for every backend: two to three times
// its input where a ring is little more than backends, a fraction of it where there are points.
//
// A recipe is built as [Build] does, in the same time and memory, up to DefaultMaxPoints points; beyond that the error is a
// [TooManyPointsError]. [OpenWith] takes another limit.
func Open(snapshot []byte) (*Ring, error) { return OpenWith(snapshot, OpenOptions{}) }

// OpenOptions are the options of [OpenWith].
type OpenOptions struct {
	// MaxPoints limits the points that are built for a recipe; 0 is DefaultMaxPoints. It is at most HardMaxPoints. The points of
	// other snapshots are there already and not limited.
	MaxPoints uint64
}

// OpenWith is [Open] with options. The error is a [ConfigError] where they are out of their limits.
func OpenWith(snapshot []byte, o OpenOptions) (*Ring, error) {
	if o.MaxPoints > HardMaxPoints {
		return nil, &ConfigError{"maxPoints", fmt.Sprint(o.MaxPoints), fmt.Sprintf("the limit is %d", HardMaxPoints)}
	}
	if bytes.Equal(snapshot, EmptySlot()) {
		return nil, ErrEmptySlot
	}
	d := decoder{data: snapshot, ring: &Ring{snapshot: snapshot, encoding: EncodingPoints, copied: new(atomic.Int64)}, maxPoints: o.MaxPoints}
	for _, step := range []func() error{
		d.checkFrame, d.readHeader, d.readSectionTable, d.readBackends, d.readFeatures, d.readPoints, d.readViews,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return d.ring, nil
}

// decoder reads one snapshot. The steps run in the order in which their results are needed.
type decoder struct {
	data     []byte
	ring     *Ring
	points   uint32
	sections map[uint32]span
	// maxPoints limits what is built for a recipe.
	maxPoints uint64
}

// span is where a section lies.
type span struct{ start, end int }

func (d *decoder) u16(at int) uint16 { return binary.LittleEndian.Uint16(d.data[at:]) }
func (d *decoder) u32(at int) uint32 { return binary.LittleEndian.Uint32(d.data[at:]) }
func (d *decoder) u64(at int) uint64 { return binary.LittleEndian.Uint64(d.data[at:]) }

// checkFrame checks magic, format version, length and checksum: the rest is only read from a file that arrived whole.
func (d *decoder) checkFrame() error {
	const smallest = headerBytes + trailerBytes
	switch n := len(d.data); {
	case n < len(magic) || string(d.data[:len(magic)]) != magic:
		return formatErrorf("magic", 0, "not a Ringwright snapshot")
	case n < smallest:
		return formatErrorf("length", n, "the file has %d bytes, the smallest snapshot %d", n, smallest)
	case d.u16(atFormat) != formatVersion:
		return formatErrorf("format version", atFormat, "it is %d, this reader knows %d", d.u16(atFormat), formatVersion)
	case d.u64(atLength) != uint64(n):
		return formatErrorf("length", atLength, "the header says %d bytes, the file has %d", d.u64(atLength), n)
	case n%sectionAlign != 0:
		return formatErrorf("length", atLength, "%d is not a multiple of %d", n, sectionAlign)
	}
	at := len(d.data) - 4
	if sum := crc32.Checksum(d.data[:at], castagnoli); sum != d.u32(at) {
		return formatErrorf("checksum", at, "the content has %08x, the trailer says %08x", sum, d.u32(at))
	}
	return d.checkZero("trailer padding", at-4, at)
}

// checkZero checks bytes that carry nothing.
func (d *decoder) checkZero(field string, start, end int) error {
	for i := start; i < end; i++ {
		if d.data[i] != 0 {
			return formatErrorf(field, i, "it is %#02x, not zero", d.data[i])
		}
	}
	return nil
}

func (d *decoder) readHeader() error {
	r := d.ring
	r.algorithm = Algorithm{Version: Version(d.data[atVersion]), PointsPerWeight: d.u32(atPointsPerWeight)}
	r.identity = Identity(d.data[atIdentity])
	r.backends.n = int(min(d.u32(atBackends), MaxBackends+1))
	d.points = d.u32(atPoints)
	r.algorithm.WeightUnit, r.algorithm.MaxImbalance = d.u32(atWeightUnit), d.u32(atMaxImbalance)
	err := checkLimits(Config{Algorithm: r.algorithm})
	switch {
	case d.u16(atFlags) != 0:
		return formatErrorf("flags", atFlags, "%#04x is unknown to this reader", d.u16(atFlags))
	case err != nil:
		return formatErrorf("algorithm", atVersion, "%v", err)
	case r.identity < IdentityAddress || r.identity > IdentityName:
		return formatErrorf("identity", atIdentity, "%d is not 1, 2 or 3", r.identity)
	case r.backends.n > MaxBackends:
		return formatErrorf("backend count", atBackends, "%d is over the limit of %d", d.u32(atBackends), MaxBackends)
	case d.points > HardMaxPoints:
		return formatErrorf("point count", atPoints, "%d is over the limit of %d", d.points, HardMaxPoints)
	}
	for _, gap := range []span{{14, atPointsPerWeight}, {48, headerBytes}} {
		if err := d.checkZero("reserved header bytes", gap.start, gap.end); err != nil {
			return err
		}
	}
	return nil
}

// readSectionTable finds the sections: in ascending order of kind, one behind the other without a gap but the padding.
func (d *decoder) readSectionTable() error {
	count := d.u32(atSections)
	limit := len(d.data) - trailerBytes
	if count > maxSections || headerBytes+tableEntry*int(count) > limit {
		return formatErrorf("section count", atSections, "%d sections do not fit", count)
	}
	d.sections = make(map[uint32]span, count)
	next, last := headerBytes+tableEntry*int(count), uint32(0)
	for k := range int(count) {
		at := headerBytes + tableEntry*k
		kind, flags, offset, length := d.u32(at), d.u32(at+4), d.u64(at+8), d.u64(at+16)
		switch {
		case kind <= last:
			return formatErrorf("section kind", at, "%d does not come after %d", kind, last)
		case flags > flagOptional:
			return formatErrorf("section flags", at+4, "%#x is unknown to this reader", flags)
		case offset != uint64(next):
			return formatErrorf("section offset", at+8, "section %d starts at %d, not at %d", kind, offset, next)
		case length > uint64(limit-next):
			return formatErrorf("section length", at+16, "section %d has %d bytes, %d are left", kind, length, limit-next)
		}
		s := span{next, next + int(length)}
		if err := d.addSection(kind, flags, at, s); err != nil {
			return err
		}
		next, last = align(s.end), kind
	}
	if next != limit {
		return formatErrorf("section table", headerBytes, "the sections end at %d, the trailer starts at %d", next, limit)
	}
	return d.requireSections()
}

func (d *decoder) addSection(kind, flags uint32, at int, s span) error {
	known := kind >= kindBackends && kind <= kindFingerprint
	switch {
	case known && flags != 0:
		return formatErrorf("section flags", at+4, "section %d is not optional", kind)
	case !known && flags&flagOptional == 0:
		return formatErrorf("section kind", at, "%d is unknown to this reader and not optional", kind)
	}
	d.sections[kind] = s
	return d.checkZero("section padding", s.end, align(s.end))
}

func (d *decoder) requireSections() error {
	if _, ok := d.sections[kindFingerprint]; ok {
		d.ring.encoding = EncodingRecipe
	}
	version, encoding := d.ring.algorithm.Version, d.ring.encoding
	for _, row := range []struct {
		kind uint32
		want bool
	}{{kindBackends, true}, {kindViews, version == V3}, {kindPoints, encoding == EncodingPoints}} {
		if _, ok := d.sections[row.kind]; ok != row.want {
			return formatErrorf("section table", headerBytes, "section %d is there: %v, in a snapshot of %s as %s it is: %v",
				row.kind, ok, version, encoding, row.want)
		}
	}
	return nil
}

// reader takes pieces from the front of a section.
type reader struct {
	d     *decoder
	field string
	span
}

// take returns the next n bytes.
func (r *reader) take(n uint64) ([]byte, error) {
	if n > uint64(r.end-r.start) {
		return nil, formatErrorf(r.field, r.start, "%d bytes are wanted, %d are left", n, r.end-r.start)
	}
	piece := r.d.data[r.start : r.start+int(n) : r.start+int(n)]
	r.start += int(n)
	return piece, nil
}

// column takes n numbers of width bytes.
func (r *reader) column(width uint8, n int) (column, error) {
	data, err := r.take(uint64(width) * uint64(n))
	return column{data: data, width: width}, err
}

// texts takes a column of ends, when it does not stand elsewhere, and the blob.
func (r *reader) texts(ends column, n int, blobBytes uint32) (texts, error) {
	blob, err := r.take(uint64(blobBytes))
	if err != nil {
		return texts{}, err
	}
	last := uint32(0)
	for i := range n {
		if ends.at(i) <= last && (i > 0 || ends.at(i) == 0) {
			return texts{}, formatErrorf(r.field, r.start, "text %d is empty or ends before it starts", i)
		}
		last = ends.at(i)
	}
	if last != blobBytes {
		return texts{}, formatErrorf(r.field, r.start, "the texts end at %d of %d bytes", last, blobBytes)
	}
	return texts{blob: string(blob), ends: ends}, nil
}

func (r *reader) finish() error {
	if r.start != r.end {
		return formatErrorf(r.field, r.start, "%d bytes are left over", r.end-r.start)
	}
	return nil
}

func (d *decoder) section(kind uint32, field string) *reader {
	return &reader{d: d, field: field, span: d.sections[kind]}
}

func (d *decoder) readFeatures() error {
	if _, ok := d.sections[kindFeatures]; !ok {
		return nil
	}
	r := d.section(kindFeatures, "features")
	head, err := r.take(4)
	if err != nil {
		return err
	}
	count := binary.LittleEndian.Uint32(head)
	if count < 1 || count > MaxFeatures {
		return formatErrorf("features", r.start-4, "%d is not within 1 to %d", count, MaxFeatures)
	}
	for range count {
		if err := d.readFeature(r); err != nil {
			return err
		}
	}
	return r.finish()
}

func (d *decoder) readFeature(r *reader) error {
	at := r.start
	length, err := r.take(1)
	if err != nil {
		return err
	}
	name, err := r.take(uint64(length[0]))
	if err != nil {
		return err
	}
	if reason := checkName(string(name)); reason != "" {
		return formatErrorf("feature name", at, "%s", reason)
	}
	f := feature{name: string(name), members: newBitmap(d.ring.Len())}
	if known := d.ring.features; len(known) > 0 && f.name <= known[len(known)-1].name {
		return formatErrorf("feature name", at, "%q does not come after %q", f.name, known[len(known)-1].name)
	}
	set, err := r.take(uint64(d.ring.Len()+7) / 8)
	if err != nil {
		return err
	}
	for b, v := range set {
		f.members[b/8] |= uint64(v) << (b % 8 * 8)
	}
	if n := d.ring.Len(); n%64 != 0 && len(f.members) > 0 && f.members[len(f.members)-1]>>(uint(n)%64) != 0 {
		return formatErrorf("feature members", r.start-1, "a backend beyond the last is a member")
	}
	d.ring.features = append(d.ring.features, f)
	return nil
}

func (d *decoder) readBackends() error {
	r := d.section(kindBackends, "backends")
	at := r.start
	head, err := r.take(backendsHeader)
	if err != nil {
		return err
	}
	idBytes, zoneCount := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:])
	zoneBytes, widths := binary.LittleEndian.Uint32(head[8:]), head[12:16]
	if zoneCount > uint32(d.ring.Len()) {
		return formatErrorf("zone count", at+4, "%d zones for %d backends", zoneCount, d.ring.Len())
	}
	want := [4]byte{widths[0], columnWidth(idBytes), 0, 0}
	if zoneCount > 0 {
		want[2], want[3] = columnWidth(zoneCount), columnWidth(zoneBytes)
	}
	if [4]byte(widths) != want || !slices.Contains([]byte{1, 2, 4}, widths[0]) {
		return formatErrorf("column widths", at+12, "they are %v, not %v", widths, want)
	}
	if err := d.readBackendColumns(r, idBytes, zoneCount, zoneBytes, want); err != nil {
		return err
	}
	if err := r.finish(); err != nil {
		return err
	}
	return d.checkBackends(at)
}

func (d *decoder) readBackendColumns(r *reader, idBytes, zoneCount, zoneBytes uint32, widths [4]byte) error {
	b := &d.ring.backends
	var idEnds, zoneEnds column
	var err error
	if b.weights, err = r.column(widths[0], b.n); err != nil {
		return err
	}
	if idEnds, err = r.column(widths[1], b.n); err != nil {
		return err
	}
	if b.ids, err = r.texts(idEnds, b.n, idBytes); err != nil {
		return err
	}
	if b.zoneOf, err = r.column(widths[2], b.n); err != nil {
		return err
	}
	if zoneEnds, err = r.column(widths[3], int(zoneCount)); err != nil {
		return err
	}
	b.zones, err = r.texts(zoneEnds, int(zoneCount), zoneBytes)
	return err
}

// checkBackends checks that identities are canonical and ascend, that weights are in range, and that every zone is used.
func (d *decoder) checkBackends(at int) error {
	b, last, heaviest := &d.ring.backends, id{}, uint32(0)
	var ids []id // V3 only: other versions need no checksums.
	for i := range b.n {
		parsed, reason := d.ring.identity.parse(b.id(i))
		if reason != "" {
			return formatErrorf("backend identity", at, "backend %d: %.300q: %s", i, b.id(i), reason)
		}
		if i > 0 && last.compare(parsed) >= 0 {
			return formatErrorf("backend identity", at, "%q does not come after %q", parsed.text, last.text)
		}
		if b.weight(i) > MaxWeight {
			return formatErrorf("backend weight", at, "backend %d: %d is over the limit of %d", i, b.weight(i), MaxWeight)
		}
		last, heaviest = parsed, max(heaviest, b.weight(i))
		if d.ring.algorithm.Version == V3 {
			ids = append(ids, parsed)
		}
	}
	if ids != nil {
		d.ring.sums = chainSums(V3, d.ring.identity, ids)
	}
	if b.weights.width != columnWidth(heaviest) {
		return formatErrorf("column widths", at+12, "weights up to %d are not kept in %d bytes", heaviest, b.weights.width)
	}
	return d.checkZones(at)
}

func (d *decoder) checkZones(at int) error {
	b := &d.ring.backends
	count := b.zoneCount()
	used := newBitmap(count + 1)
	for i := range b.n {
		k := b.zoneOf.at(i)
		if k > uint32(count) {
			return formatErrorf("backend zone", at, "backend %d: zone %d of %d", i, k, count)
		}
		used.set(int(k))
	}
	for k := range count {
		zone := b.zones.at(k)
		switch reason := checkName(zone); {
		case reason != "":
			return formatErrorf("zone", at, "%.300q: %s", zone, reason)
		case k > 0 && zone <= b.zones.at(k-1):
			return formatErrorf("zone", at, "%q does not come after %q", zone, b.zones.at(k-1))
		case !used.has(k + 1):
			return formatErrorf("zone", at, "no backend is in %q", zone)
		}
	}
	return nil
}
