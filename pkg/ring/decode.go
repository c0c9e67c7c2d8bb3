// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
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
	// Digest is that of the snapshot that is wanted; "" takes any. Another one is a [DigestError], whatever else is wrong with it,
	// and is found out before anything is read.
	Digest string
}

// OpenWith is [Open] with options. The error can also be a [ConfigError], where they are out of their limits, or a [DigestError].
func OpenWith(snapshot []byte, o OpenOptions) (*Ring, error) {
	if o.MaxPoints > HardMaxPoints {
		return nil, &ConfigError{"maxPoints", fmt.Sprint(o.MaxPoints), fmt.Sprintf("the limit is %d", HardMaxPoints)}
	}
	if bytes.Equal(snapshot, EmptySlot()) {
		return nil, ErrEmptySlot
	}
	if o.Digest != "" {
		if digest := Digest(snapshot); digest != o.Digest {
			return nil, &DigestError{Digest: digest, Want: o.Digest}
		}
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

// ReadConfig returns what a snapshot says of its ring beside the points, without building or checking those: algorithm,
// identity, backends in ring order with their weights, zones and features, and the declared views. Previous is nil. It takes time
// and memory for the backends alone. Errors: as of [Open] but for what only the points show.
func ReadConfig(snapshot []byte) (Config, error) {
	if bytes.Equal(snapshot, EmptySlot()) {
		return Config{}, ErrEmptySlot
	}
	d := decoder{data: snapshot, ring: &Ring{snapshot: snapshot, encoding: EncodingPoints, copied: new(atomic.Int64)}}
	for _, step := range []func() error{
		d.checkFrame, d.readHeader, d.readSectionTable, d.readBackends, d.readFeatures, d.readDeclaredViews,
	} {
		if err := step(); err != nil {
			return Config{}, err
		}
	}
	config := d.ring.base()
	config.MaxPoints = 0
	if declared := d.ring.Views(); len(declared) > 0 {
		config.Views = declared[1:] // The first is that of all backends, which need not be declared.
	}
	return config, nil
}

// decoder reads one snapshot. The steps run in the order in which their results are needed.
type decoder struct {
	data     []byte
	ring     *Ring
	points   uint32
	sections map[uint32]span
	// maxPoints limits what is built for a recipe.
	maxPoints uint64
	// fixed are the backends on the fixed point, of which hardly any ring has one.
	fixed []int
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
