// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
)

// This file looks for snapshots that Open accepts although Build would not have written them. Its tests are inside the
// package, because only there a snapshot can be encoded again without placing the points again.

// reencode writes what was read from a snapshot: the table from the sections, the points as they stand.
func reencode(t *testing.T, r *Ring) []byte {
	t.Helper()
	table, err := newTable(r.Config())
	if err != nil {
		t.Fatalf("Open accepted a table that Build refuses: %v", err)
	}
	points := make([]point, 0, r.PointCount())
	c := r.packed.cursorAt(0, 0)
	for range r.PointCount() {
		points = append(points, c.next())
	}
	again := table.encode(points, r.views)
	if r.encoding == EncodingPoints {
		return again
	}
	opened, err := Open(again)
	if err != nil {
		t.Fatal(err)
	}
	return opened.Recipe()
}

// fuzzPoints bounds what a recipe that somebody invented makes a test build.
const fuzzPoints = 1 << 16

// checkCanonical is the property encode(decode(b)) = b, for snapshots without optional sections, which no encoder writes.
func checkCanonical(t *testing.T, data []byte) {
	t.Helper()
	r, err := OpenWith(data, OpenOptions{MaxPoints: fuzzPoints})
	if err != nil || binary.LittleEndian.Uint32(data[atSections:]) > uint32(2+min(len(r.features), 1)+min(len(r.views), 1)) {
		return
	}
	if again := reencode(t, r); !bytes.Equal(again, data) {
		t.Fatalf("Open accepted %d bytes that are encoded as other %d bytes:\n%x\n%x", len(data), len(again), data, again)
	}
}

// canonicalSeeds are small rings that use every part of the format.
func canonicalSeeds(t testing.TB) [][]byte {
	t.Helper()
	v2 := Algorithm{Version: V2, PointsPerWeight: 2}
	tied := Config{Algorithm: v2, Identity: IdentityName}
	for i := range 20 {
		tied.Backends = append(tied.Backends, Backend{ID: fmt.Sprintf("n%d", i), Weight: 1})
	}
	var seeds [][]byte
	for _, c := range []Config{
		{Algorithm: v2, Identity: IdentityName},
		{Algorithm: v2, Identity: IdentityAddress, Backends: []Backend{{ID: "10.0.87.193:3254", Weight: 2}}},
		{Algorithm: v2, Identity: IdentityNGINX, Features: []string{"a", "b"}, Backends: []Backend{
			{ID: "[::1]:80", Weight: 256, Zone: "x", Features: []string{"b"}}, {ID: "h:1", Zone: "y"}, {ID: "1.1.1.1"}}},
		tied,
		{Algorithm: Algorithm{Version: V3, PointsPerWeight: 8, WeightUnit: 1, MaxImbalance: 100_000}, Identity: IdentityName,
			Features: []string{"a"}, Views: [][]string{{"a"}}, Backends: []Backend{
				{ID: "x", Weight: 1, Features: []string{"a"}}, {ID: "y", Weight: 1, Features: []string{"a"}}, {ID: "z", Weight: 1}}},
	} {
		r, err := Build(c)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, r.Snapshot(), r.Recipe())
	}
	return seeds
}

func sealed(b []byte) []byte {
	binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], castagnoli))
	return b
}

// TestCanonicalForm edits every byte of small snapshots, alone and together with the byte behind it, and demands that
// whatever is still accepted is what the encoder writes.
func TestCanonicalForm(t *testing.T) {
	for _, seed := range canonicalSeeds(t) {
		for at := range len(seed) - trailerBytes {
			for _, flip := range []byte{1, 8, 128} {
				b := bytes.Clone(seed)
				b[at] ^= flip
				checkCanonical(t, sealed(b))
				b[at+1]++
				checkCanonical(t, sealed(b))
			}
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range canonicalSeeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < headerBytes+trailerBytes {
			return
		}
		data = bytes.Clone(data)
		binary.LittleEndian.PutUint64(data[atLength:], uint64(len(data)))
		checkCanonical(t, sealed(data))
	})
}

// TestPointsOfABackendAreCounted: the points of a backend follow from its weight and its checksum, so a snapshot with
// too few is refused although it would be canonical otherwise.
func TestPointsOfABackendAreCounted(t *testing.T) {
	table, err := newTable(Config{Algorithm: Algorithm{Version: V2, PointsPerWeight: 2}, Identity: IdentityName,
		Backends: []Backend{{ID: "a", Weight: MaxWeight}, {ID: "b", Weight: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(table.encode([]point{newPoint(7, 0), newPoint(8, 1), newPoint(9, 1)}, nil))
	if err == nil || !strings.Contains(err.Error(), `backend "a" has 1 points, its weight of 1000000 gives 2000000`) {
		t.Errorf("one point of two million: error %v", err)
	}
}

// TestFormatErrorsAreShort: what is wrong with a snapshot goes to logs and conditions, however large the snapshot is.
func TestFormatErrorsAreShort(t *testing.T) {
	for _, identity := range []Identity{IdentityAddress, IdentityNGINX, IdentityName} {
		table := &table{algorithm: Algorithm{Version: V2, PointsPerWeight: 1}, identity: identity, weights: []uint32{0},
			zones: []string{""}, ids: []id{{text: "x:" + strings.Repeat("0", 1<<20)}}}
		_, err := Open(table.encode(nil, nil))
		if formatError := (*FormatError)(nil); !errors.As(err, &formatError) || len(err.Error()) > 2000 {
			t.Errorf("%s: an error of %d bytes", identity, len(fmt.Sprint(err)))
		}
	}
}

// TestErrorsNameTheEntry: an entry that is wrong is reported where it stands, not where the section begins.
func TestErrorsNameTheEntry(t *testing.T) {
	table, err := newTable(Config{Algorithm: Algorithm{Version: V2, PointsPerWeight: 3}, Identity: IdentityName, Backends: []Backend{{ID: "a", Weight: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	snapshot := table.encode([]point{newPoint(9, 0), newPoint(8, 0), newPoint(10, 0)}, nil)
	_, err = Open(snapshot)
	formatError := (*FormatError)(nil)
	points := pointsHeader + groupBytes + 14 + entrySlack // One group of buckets, three entries of 28 bits and the first again.
	entries := len(snapshot) - trailerBytes - align(points) + pointsHeader + groupBytes
	if !errors.As(err, &formatError) || formatError.Field != "entries" || formatError.Offset != entries+3 {
		t.Errorf("error %v, want one at byte %d", err, entries+3)
	}
}

// TestCursorStartsInItsBucket: a walk starts where it is asked to, not at the first bucket of the ring.
func TestCursorStartsInItsBucket(t *testing.T) {
	c := Config{Algorithm: Algorithm{Version: V2, PointsPerWeight: 1000}, Identity: IdentityName, Backends: []Backend{{ID: "a", Weight: 1}, {ID: "b", Weight: 1}}}
	r, err := Build(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, hash := range []uint32{0, 1, 1 << 28, 1 << 31, 3 << 30, 0xffffffff} {
		start := r.packed.cursorFrom(hash)
		if start.pos != 0 && start.bucket != hash>>r.packed.shift {
			t.Errorf("from %08x the cursor starts in bucket %d, not %d", hash, start.bucket, hash>>r.packed.shift)
		}
		if owner, err := r.Owner(hash); err != nil || owner != start.next().backend() {
			t.Errorf("from %08x the first point is not the owner's", hash)
		}
	}
}
