// SPDX-License-Identifier: Apache-2.0

package readers_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
)

// craftedFile is a file that no mutation makes.
type craftedFile struct {
	name     string
	accepted bool
	data     []byte
}

func crafted(t testing.TB) []craftedFile {
	t.Helper()
	worked := namedRing{"worked", workedExample(), false}.build(t)
	recipe := namedRing{"recipe", workedExample(), true}.build(t)
	list := []craftedFile{
		{"nothing", false, nil},
		{"marker", false, ring.EmptySlot()},
		{"text-conversion", false, bytes.Replace(worked, []byte("\n"), []byte("\r\n"), 1)},
		{"future-version", false, edit(worked, 8, 2)},
		{"eight-bytes-more", false, append(bytes.Clone(worked), make([]byte, 8)...)},
		{"eight-bytes-more-resealed", false, relength(append(bytes.Clone(worked), make([]byte, 8)...))},
		{"optional-section", true, withSection(worked, 77, 1, []byte("hi"))},
		{"optional-section-empty", true, withSection(worked, 6, 1, nil)},
		{"optional-section-in-recipe", true, withSection(recipe, 0xffffffff, 1, []byte("12345678"))},
		{"unknown-section", false, withSection(worked, 77, 0, []byte("hi"))},
		{"unknown-flag", false, withSection(worked, 77, 3, []byte("hi"))},
		{"points-and-fingerprint", false, withSection(worked, 5, 0, make([]byte, 32))},
		{"views-in-v2", false, withSection(recipe, 3, 0, make([]byte, 20))},
		{"no-sections", false, relength(append(edit(worked[:64], 36, 0), make([]byte, 8)...))},
		{"identities-swapped", false, bytes.Replace(worked, []byte("10.0.0.1:808010.0.0.2:8080"), []byte("10.0.0.2:808010.0.0.1:8080"), 1)},
	}
	for i := range list {
		if list[i].name == "identities-swapped" {
			list[i].data = reseal(list[i].data)
		}
	}
	list = append(list, craftedIdentities(t)...)
	list = append(list, craftedPoints(t)...)
	return append(list, craftedTrims(t)...)
}

// edit sets a byte of a snapshot.
func edit(good []byte, at int, value byte) []byte {
	b := bytes.Clone(good)
	b[at] = value
	return reseal(b)
}

// craftedIdentities writes other identities in place of a good one of the same length. It is drained, so that points do not matter.
func craftedIdentities(t testing.TB) []craftedFile {
	t.Helper()
	var list []craftedFile
	for _, row := range []struct {
		identity  ring.Identity
		good, bad string
		accepted  bool
	}{
		{ring.IdentityAddress, "10.0.0.1:80", "10.0.0.2:80", true},
		{ring.IdentityAddress, "10.0.0.1:80", "10.0.0.01:8", false},
		{ring.IdentityAddress, "10.0.0.1:80", "10.0.0.1:08", false},
		{ring.IdentityAddress, "10.0.0.1:80", "10.0.0.1:+8", false},
		{ring.IdentityAddress, "10.0.0.1:8000", "10.0.0.1:0000", false},
		{ring.IdentityAddress, "10.0.0.1:65535", "10.0.0.1:65536", false},
		{ring.IdentityAddress, "10.0.0.100:80", "10.0.0.256:80", false},
		{ring.IdentityAddress, "[2001:db8::1]:80", "[2001:DB8::1]:80", false},
		{ring.IdentityAddress, "[2001:db8::1]:80", "[2001:db8:1]:800", false},
		{ring.IdentityAddress, "[fe80::1111:1]:80", "[fe80::1111%1]:80", false},
		{ring.IdentityAddress, "[1::2:0:0:3]:80", "[1:0:0::2:3]:80", false},
		{ring.IdentityAddress, "[1:0:0:2::3]:80", "[1::2:0:0:3]:80", true},
		{ring.IdentityAddress, "[1:0:0:2::3]:80", "[1::2:0:0:0:3]:", false},
		{ring.IdentityAddress, "[1:2:3:4:5:6:0:8]:80", "[1:2:3:4:5:6::8]:800", false},
		{ring.IdentityAddress, "[1:2:3:4:5:6:7:8]:80", "[1:2:3:4:5:6::7:8]:8", false},
		{ring.IdentityAddress, "[::ffff:1.2.3.4]:80", "[::fffe:1.2.3.4]:80", false},
		{ring.IdentityAddress, "[::ffff:1.2.3.4]:80", "[::ffff:102:304]:80", false},
		{ring.IdentityAddress, "[::102:304]:80", "[::1.2.3.4]:80", false},
		{ring.IdentityNGINX, "[::1]:80", "[0::1]:8", true},
		{ring.IdentityNGINX, "[::1.2.3.4]:80", "[::1.2.03.4]:8", false},
		{ring.IdentityNGINX, "[1::8]", "[1:::8", false},
		{ring.IdentityNGINX, "[::1]:80", "[::%1]:8", false},
		{ring.IdentityNGINX, "unix", "UNIX", true},
		{ring.IdentityNGINX, "unit:80", "Unix:80", false},
		{ring.IdentityNGINX, "unix", "uni:", false},
		{ring.IdentityNGINX, "cache", "a:b:1", false},
		{ring.IdentityNGINX, "cache", "a:1b1", false},
		{ring.IdentityNGINX, "cache", "[::1]", true},
		{ring.IdentityNGINX, "cache", "ca$he", false},
		{ring.IdentityNGINX, "cache", "ca\x7fhe", false},
		{ring.IdentityNGINX, "cache", "ca=he", true},
		{ring.IdentityName, "name", "na e", false},
		{ring.IdentityName, "name", "n\xc3\xa4e", false},
		{ring.IdentityName, "name", "[::]", true},
	} {
		good := namedRing{"", v2(1, row.identity, ring.Backend{ID: row.good}), false}.build(t)
		bad := reseal(bytes.Replace(good, []byte(row.good), []byte(row.bad), 1))
		if bytes.Equal(good, bad) || len(row.good) != len(row.bad) {
			t.Fatalf("%s cannot stand for %s", row.bad, row.good)
		}
		list = append(list, craftedFile{fmt.Sprintf("identity-%d", len(list)), row.accepted, bad})
	}
	return list
}

// craftedPoints writes other directories and entries.
func craftedPoints(t testing.TB) []craftedFile {
	t.Helper()
	tied := ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V3, PointsPerWeight: 64, WeightUnit: 1, MaxImbalance: 1_000_000}, Identity: ring.IdentityName,
		Backends: []ring.Backend{{ID: "base", Weight: 1}, {ID: "tie-1311902", Weight: 1}}, // They have a point in common, and the second comes first.
	}
	good := namedRing{"", tied, false}.build(t)
	other := swapTied(good, 2*12, 28)
	if other == nil {
		t.Error("no two points are tied")
	}
	fifteen := namedRing{"", v2(64, ring.IdentityName, ring.Backend{ID: "tie-7835", Weight: 1}), false}.build(t)
	return []craftedFile{
		{"tied", true, good}, {"tied-in-another-order", false, other},
		{"fifteen-in-a-bucket", true, fifteen}, {"overflow-for-fifteen", false, overflowing(fifteen)},
		{"overflow-for-sixteen", true, namedRing{"", crowded(), false}.build(t)},
	}
}

// swapTied exchanges the owners of two tied points in a ring of two backends, whose directory and entries are so large.
func swapTied(good []byte, directoryBytes, width int) []byte {
	table := good[64+2*24:] // The third section are the points.
	entries := 8 * (int(binary.LittleEndian.Uint64(table[8:])) + 16 + directoryBytes)
	for i := range int(binary.LittleEndian.Uint32(good[32:])) - 1 {
		b := reseal(flip(flip(good, entries+i*width), entries+(i+1)*width))
		if _, err := ring.Open(b); err != nil && strings.Contains(err.Error(), "does not come after") {
			return b
		}
	}
	return nil
}

// overflowing gives the only group of a small ring an overflow row.
func overflowing(good []byte) []byte {
	points := sectionOf(good, 4)
	counts, row, end := binary.LittleEndian.Uint64(points[20:]), []byte(nil), uint32(0)
	for k := range 16 {
		end += uint32(counts >> (4 * k) & 15)
		row = binary.LittleEndian.AppendUint32(row, end)
	}
	b := append(bytes.Clone(points[:28]), append(row, points[28:]...)...)
	b[4], b[19] = 1, b[19]|0x80
	clear(b[20:28])
	return withSection(good, 4, 0, b)
}

// craftedTrims writes other trims into a small ring of V3.
func craftedTrims(t testing.TB) []craftedFile {
	t.Helper()
	config := trimmed(6, 8)
	config.Algorithm.MaxImbalance = 1_000_000 // Which trims nothing.
	r, err := ring.Build(config)
	if err != nil {
		t.Fatal(err)
	}
	var owners []int
	for owner := range r.Points(0) {
		owners = append(owners, owner)
	}
	some := func(n int, want func(owner int) bool) []uint32 {
		var trims []uint32
		for i, owner := range owners {
			if len(trims) < n && want(owner) {
				trims = append(trims, uint32(i))
			}
		}
		return trims
	}
	anybody := func(int) bool { return true }
	first := func(owner int) bool { return owner == owners[0] }
	has := func(owner int) bool { return r.HasFeature(owner, "gpu") }
	quarter, own, members := len(owners)/4, len(some(len(owners), first)), len(some(len(owners), has))/4
	with := func(name string, accepted bool, views ...[]byte) craftedFile {
		section := append(binary.LittleEndian.AppendUint32(nil, uint32(len(views))), bytes.Join(views, nil)...)
		return craftedFile{name, accepted, withSection(r.Snapshot(), 3, 0, section)}
	}
	none := view(0, nil)
	return []craftedFile{
		with("trims-of-a-quarter", true, view(0, some(quarter, anybody))),
		with("trims-of-more", false, view(0, some(quarter+1, anybody))),
		with("trims-but-one", true, view(0, some(own-1, first))),
		with("trims-of-all-of-one", false, view(0, some(own, first))),
		with("trims-of-members", true, none, view(1, some(members, has))),
		with("trims-of-more-members", false, none, view(1, some(members+1, has))),
		with("trims-of-others", false, none, view(1, some(1, func(owner int) bool { return !has(owner) }))),
		with("views-out-of-order", false, none, view(2, nil), view(1, nil)),
		with("views-twice", false, none, view(1, nil), view(1, nil)),
		with("views-without-the-first", false, view(1, nil)),
		with("views-of-unknown-features", false, none, view(4, nil)),
		with("no-views", false),
		with("trim-beyond-the-last", false, view(0, []uint32{uint32(len(owners))})),
		with("trim-in-two-bytes", false, rawView(0, 1, 0x80, 0)),
		with("trim-without-end", false, rawView(0, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80)),
		with("trim-of-33-bits", false, rawView(0, 1, 0x80, 0x80, 0x80, 0x80, 0x10)),
		with("trims-left-over", false, rawView(0, 1, 1, 1)),
		with("trims-missing", false, rawView(0, 2, 1)),
	}
}

// view is a declared view as section 3 has it.
func view(set uint64, trims []uint32) []byte {
	var text []byte
	next := uint32(0)
	for _, trim := range trims {
		text = binary.AppendUvarint(text, uint64(trim-next))
		next = trim + 1
	}
	return rawView(set, uint32(len(trims)), text...)
}

func rawView(set uint64, count uint32, trims ...byte) []byte {
	b := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, set), count)
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(trims))), trims...)
}

// sectionOf returns the content of a section.
func sectionOf(snapshot []byte, kind uint32) []byte {
	for at := 64; at < 64+24*int(snapshot[36]); at += 24 {
		if binary.LittleEndian.Uint32(snapshot[at:]) == kind {
			offset, length := binary.LittleEndian.Uint64(snapshot[at+8:]), binary.LittleEndian.Uint64(snapshot[at+16:])
			return snapshot[offset : offset+length]
		}
	}
	return nil
}

// withSection returns the snapshot with a section more, or with another one of its kind.
func withSection(snapshot []byte, kind, flags uint32, content []byte) []byte {
	const header, row, trailer = 64, 24, 8
	type part struct {
		kind, flags uint32
		content     []byte
	}
	parts := []part{{kind, flags, content}}
	for at := header; at < header+row*int(snapshot[36]); at += row {
		if other := binary.LittleEndian.Uint32(snapshot[at:]); other != kind {
			parts = append(parts, part{other, 0, sectionOf(snapshot, other)})
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return int(int64(a.kind) - int64(b.kind)) })
	b := bytes.Clone(snapshot[:header])
	b[36] = byte(len(parts))
	offset := header + row*len(parts)
	for _, p := range parts {
		b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, p.kind), p.flags)
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, uint64(offset)), uint64(len(p.content)))
		offset += (len(p.content) + 7) / 8 * 8
	}
	for _, p := range parts {
		b = append(append(b, p.content...), make([]byte, -len(p.content)&7)...)
	}
	return relength(append(b, make([]byte, trailer)...))
}
