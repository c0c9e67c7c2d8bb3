// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"slices"
)

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
	var ids []id // V3 only: of the checksums of other versions one is looked for.
	var room []byte
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
			continue
		}
		if room = d.ring.identity.hashInput(room[:0], parsed); Hash(room) == FixedPoint {
			d.fixed = append(d.fixed, i)
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
