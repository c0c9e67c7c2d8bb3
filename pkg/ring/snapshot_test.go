// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
)

// TestPinnedDigests: an upgrade never changes a byte of a published ring. A digest here is changed only together with
// the format version.
func TestPinnedDigests(t *testing.T) {
	weighted := fleet(100, ring.V1, 160)
	for i := range weighted.Backends {
		weighted.Backends[i].Weight = uint32(i % 11)
		weighted.Backends[i].Zone = []string{"a", "b", ""}[i%3]
	}
	rows := map[string]struct {
		config ring.Config
		digest string
	}{
		"worked example": {workedExample(), "sha256:1cc211d9a3d213187b3a9a990d934eb1b708a54c2b5e5e945b3925ffb2e9bfc5"},
		"v1 weighted":    {weighted, "sha256:679cf3a19b97bc123760c2aacf86d9df0aa15fc4a50b14071c5c94ac247cd8d6"},
		"v2 2048×160":    {fleet(2048, ring.V2, 160), "sha256:7727814f88505006e69362908d430e965a2b9b67a98c674d47cce95cf7bad99b"},
		"v3 trimmed":     {withFeatures(trimmed(100, 40, 3), 2, 0.7), "sha256:051c93a01877c1376e39cdcab244fa8bf0d66b9f48a4b97105f12254fbec3a95"},
		"crowded":        {crowded(), "sha256:36751a8d174d3da85f475a096271db55c7bb42263b4e8a4d08f694b326c0a6d8"},
	}
	for name, row := range rows {
		if got := mustBuild(t, row.config).Digest(); got != row.digest {
			t.Errorf("%s: digest %s, pinned is %s", name, got, row.digest)
		}
	}
}

// workedExample is the ring that docs/snapshot-format.md shows in hex.
func workedExample() ring.Config {
	return ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 2},
		Identity:  ring.IdentityAddress,
		Backends: []ring.Backend{
			{ID: "10.0.0.1:8080", Weight: 2, Zone: "a", Features: []string{"eu"}},
			{ID: "10.0.0.2:8080", Weight: 1, Zone: "b"},
			{ID: "[2001:db8::1]:8080", Weight: 0},
		},
		Features: []string{"eu"},
	}
}

// crowded returns a ring with buckets that hold more points than the 4 bits of the directory can count: many names with
// the same checksum.
func crowded() ring.Config {
	c := ring.Config{Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 8}, Identity: ring.IdentityName}
	for i := range 60 {
		c.Backends = append(c.Backends, ring.Backend{ID: nameWithSum(i, 0x12345678), Weight: 1})
	}
	return c
}

// nameWithSum returns a printable name with this CRC-32. CRC is linear, and 48 letters that are each one of two
// reach every checksum: Gaussian elimination over GF(2) finds the choice.
func nameWithSum(i int, sum uint32) string {
	name := []byte(fmt.Sprintf("%04d", i) + strings.Repeat("A", 48))
	type row struct{ effect, choice uint64 }
	base := crc32.ChecksumIEEE(name)
	var basis [32]row
	for k := range 48 {
		name[4+k] ^= 2
		r := row{uint64(crc32.ChecksumIEEE(name) ^ base), 1 << k}
		name[4+k] ^= 2
		for bit := 31; bit >= 0 && r.effect != 0; bit-- {
			if r.effect>>bit&1 == 0 {
				continue
			}
			if basis[bit].effect == 0 {
				basis[bit] = r
				break
			}
			r.effect, r.choice = r.effect^basis[bit].effect, r.choice^basis[bit].choice
		}
	}
	need, choice := uint64(base^sum), uint64(0)
	for bit := 31; bit >= 0; bit-- {
		if need>>bit&1 != 0 {
			need, choice = need^basis[bit].effect, choice^basis[bit].choice
		}
	}
	for k := range 48 {
		if choice>>k&1 != 0 {
			name[4+k] ^= 2
		}
	}
	return string(name)
}

func TestCrowdedBuckets(t *testing.T) {
	c := crowded()
	r := mustBuild(t, c)
	ref := newRefRing(c, func(ring.Backend) bool { return true })
	v := mustView(t, r)
	for _, h := range hashes(rand.New(rand.NewPCG(9, 9)), ref) {
		compareOwners(t, v, h, ref.owners(h))
	}
	if got := len(r.Warnings()); got != 59 {
		t.Errorf("%d warnings, want one for each of 59 shadowed backends", got)
	}
}

func TestRoundTrip(t *testing.T) {
	for seed := range uint64(100) {
		c := randomConfig(rand.New(rand.NewPCG(seed, 6)))
		built := mustBuild(t, c)
		opened, err := ring.Open(bytes.Clone(built.Snapshot()))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := opened.Verify(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i := range opened.Len() {
			if opened.ID(i) != built.ID(i) || opened.Weight(i) != built.Weight(i) || opened.Zone(i) != built.Zone(i) {
				t.Fatalf("seed %d: backend %d differs", seed, i)
			}
		}
	}
}

// TestSize bounds the whole file, names and all.
func TestSize(t *testing.T) {
	for _, row := range []struct {
		pointsPerWeight uint32
		limit           float64
	}{{160, 3.68}, {40, 4.25}} {
		r := mustBuild(t, fleet(2048, ring.V2, row.pointsPerWeight))
		if got := float64(len(r.Snapshot())) / float64(r.PointCount()); got > row.limit {
			t.Errorf("2048 × %d: %.3f bytes a point, limit %.2f", row.pointsPerWeight, got, row.limit)
		}
	}
}

// reseal gives an edited snapshot the checksum that it should have, so that the edit itself is what a reader finds.
func reseal(b []byte) []byte {
	if len(b) >= 4 {
		binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], crc32.MakeTable(crc32.Castagnoli)))
	}
	return b
}

// TestFixedPointHasOnePoint renames a backend to one on the fixed point: it has one point, and not as many as its weight gives.
func TestFixedPointHasOnePoint(t *testing.T) {
	r := mustBuild(t, ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 2}, Identity: ring.IdentityAddress,
		Backends: []ring.Backend{{ID: "10.0.87.193:3255", Weight: 1}},
	})
	forged := reseal(bytes.Replace(r.Snapshot(), []byte("10.0.87.193:3255"), []byte("10.0.87.193:3254"), 1))
	if _, err := ring.Open(forged); err == nil || !strings.Contains(err.Error(), "has 2 points, its weight of 1 gives 1") {
		t.Errorf("error %v", err)
	}
}

// TestEveryByteCounts edits each byte of small snapshots in turn. Without a new checksum every edit is refused; with it,
// an edit is refused with a FormatError, or it is another ring that is in canonical form.
func TestEveryByteCounts(t *testing.T) {
	for _, c := range []ring.Config{workedExample(), fleet(3, ring.V1, 160), withFeatures(trimmed(6, 10, 3), 2, 0.7)} {
		good := mustBuild(t, c).Snapshot()
		for at := range good {
			for _, flip := range []byte{1, 0x80, 0xff} {
				bad := bytes.Clone(good)
				bad[at] ^= flip
				if _, err := ring.Open(bad); err == nil {
					t.Fatalf("byte %d: an edit without a checksum was accepted", at)
				}
				checkOpen(t, reseal(bad))
			}
		}
	}
}

// checkOpen is the property of the decoder: it refuses with a FormatError, or what it accepted is a ring that works.
func checkOpen(t *testing.T, data []byte) {
	t.Helper()
	const limit = 1 << 16 // A recipe that somebody invented could ask for much.
	r, err := ring.OpenWith(data, ring.OpenOptions{MaxPoints: limit})
	config, unread := ring.ReadConfig(data)
	if err != nil {
		var formatError *ring.FormatError
		var tooMany *ring.TooManyPointsError
		switch {
		case errors.As(err, &tooMany) && tooMany.Points > limit:
		case !errors.As(err, &formatError) && !errors.Is(err, ring.ErrEmptySlot):
			t.Fatalf("error %v of type %T", err, err)
		}
		return
	}
	want := r.Config()
	want.Previous, want.MaxPoints = nil, 0
	if unread != nil || !reflect.DeepEqual(want, config) {
		t.Fatalf("what it says of itself: %+v, %v, want %+v", config, unread, want)
	}
	for h := uint32(0); h < 0xf0000000; h += 0x0fffffff {
		if owner, err := r.Owner(h); err == nil && (owner >= r.Len() || r.Weight(owner) == 0) {
			t.Fatalf("owner %d of %d", owner, r.Len())
		}
	}
	sum := uint64(0)
	for _, share := range r.Shares() {
		sum += share
	}
	if sum != 0 && sum != ring.KeySpace {
		t.Fatalf("the shares add up to %d", sum)
	}
}

func TestOpenNamesTheField(t *testing.T) {
	good := mustBuild(t, workedExample()).Snapshot()
	put := func(at int, b ...byte) func([]byte) []byte {
		return func(data []byte) []byte { copy(data[at:], b); return reseal(data) }
	}
	rows := map[string]struct {
		edit func([]byte) []byte
		want string
	}{
		"nothing":                 {func([]byte) []byte { return nil }, "magic"},
		"text conversion":         {func(b []byte) []byte { return bytes.Replace(b, []byte("\n"), []byte("\r\n"), 1) }, "magic"},
		"cut short":               {func(b []byte) []byte { return b[:len(b)-8] }, "length at byte 40"},
		"only a header":           {func(b []byte) []byte { return b[:40] }, "length at byte 40: the file has 40 bytes"},
		"another format":          {put(8, 2), "format version at byte 8: it is 2, this reader knows 1"},
		"a flipped bit":           {func(b []byte) []byte { b[100] ^= 4; return b }, "checksum"},
		"flags":                   {put(10, 1), "flags at byte 10"},
		"algorithm version":       {put(12, 9), "algorithm at byte 12"},
		"identity":                {put(13, 4), "identity at byte 13"},
		"weight unit of V2":       {put(20, 1), "only V3 has it"},
		"reserved bytes":          {put(48, 1), "reserved header bytes at byte 48"},
		"backend count":           {put(28, 0xff, 0xff, 0xff, 0xff), "backend count at byte 28: 4294967295 is over the limit of 65536"},
		"point count":             {put(32, 0xff, 0xff, 0xff, 0xff), "point count at byte 32"},
		"section count":           {put(36, 99), "section count at byte 36"},
		"section order":           {put(64, 7), "section kind"},
		"section flag":            {put(68, 1), "section flags at byte 68: section 1 is not optional"},
		"section offset":          {put(72, 1), "section offset at byte 72"},
		"section length":          {put(80, 0xff, 0xff, 0xff), "section length at byte 80"},
		"trailer padding":         {func(b []byte) []byte { b[len(b)-5] = 1; return reseal(b) }, "trailer padding"},
		"weight of a drained one": {put(136+16+2, 1), `backend "[2001:db8::1]:8080" has 0 points, its weight of 1 gives 2`},
		"identity out of order":   {put(136+16+3+3, '3'), "backend identity"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			_, err := ring.Open(row.edit(bytes.Clone(good)))
			if formatError := (*ring.FormatError)(nil); !errors.As(err, &formatError) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v, want one that says %q", err, row.want)
			}
		})
	}
}

func TestEmptySlot(t *testing.T) {
	if _, err := ring.Open(ring.EmptySlot()); !errors.Is(err, ring.ErrEmptySlot) {
		t.Errorf("error %v, want ErrEmptySlot", err)
	}
}

// withSection returns the snapshot with one more section behind the others.
func withSection(snapshot []byte, kind, flags uint32, content []byte) []byte {
	const header, row, trailer = 64, 24, 8
	count := int(binary.LittleEndian.Uint32(snapshot[36:]))
	table := header + row*count
	b := bytes.Clone(snapshot[:table])
	for k := range count {
		offset := b[header+row*k+8:]
		binary.LittleEndian.PutUint64(offset, binary.LittleEndian.Uint64(offset)+row)
	}
	b = binary.LittleEndian.AppendUint32(b, kind)
	b = binary.LittleEndian.AppendUint32(b, flags)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(snapshot)-trailer+row))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(content)))
	b = append(b, snapshot[table:len(snapshot)-trailer]...)
	b = append(b, content...)
	b = append(b, make([]byte, (8-len(content)%8)%8+trailer)...)
	binary.LittleEndian.PutUint32(b[36:], uint32(count+1))
	binary.LittleEndian.PutUint64(b[40:], uint64(len(b)))
	return reseal(b)
}

// TestUnknownSections adds a section of a kind that this version does not know.
func TestUnknownSections(t *testing.T) {
	with := func(flags uint32) []byte {
		return withSection(mustBuild(t, workedExample()).Snapshot(), 77, flags, []byte("hi"))
	}
	r, err := ring.Open(with(1))
	if err != nil {
		t.Fatalf("an optional section was refused: %v", err)
	}
	if r.PointCount() != 6 || r.Verify() == nil {
		t.Errorf("%d points; Verify must see the extra section", r.PointCount())
	}
	if _, err := ring.Open(with(0)); err == nil || !strings.Contains(err.Error(), "77 is unknown to this reader and not optional") {
		t.Errorf("a section that is not optional: %v", err)
	}
}

// TestVerifySeesAnotherPoint moves one point of a valid snapshot: canonical, but not what the backends give.
func TestVerifySeesAnotherPoint(t *testing.T) {
	b := bytes.Clone(mustBuild(t, fleet(3, ring.V1, 160)).Snapshot())
	for at := len(b) - 40; at > 0; at-- {
		b[at] ^= 4
		if r, err := ring.Open(reseal(b)); err == nil {
			if r.Verify() == nil {
				t.Error("Verify did not see that a point has moved")
			}
			return
		}
		b[at] ^= 4
	}
	t.Fatal("no edit gave a canonical snapshot")
}

// TestOpenAllocatesLittle holds Open to its promise for rings of any shape.
func TestOpenAllocatesLittle(t *testing.T) {
	many := ring.Config{Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 1}, Identity: ring.IdentityName, Backends: named(65536), Features: numbered(64)}
	for name, c := range map[string]ring.Config{"2048×160": fleet(2048, ring.V2, 160), "65536×1": many, "drained": drained(4096)} {
		snapshot := mustBuild(t, c).Snapshot()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := ring.Open(snapshot); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(4*len(snapshot)+16<<10); got > limit {
			t.Errorf("%s: Open of %d bytes allocated %d, limit %d", name, len(snapshot), got, limit)
		}
	}
}

func drained(n int) ring.Config {
	c := fleet(n, ring.V2, 1)
	for i := range c.Backends {
		c.Backends[i].Weight = 0
	}
	return c
}

func FuzzOpen(f *testing.F) {
	for _, c := range []ring.Config{workedExample(), withFeatures(trimmed(6, 10, 3), 2, 0.7), fleet(3, ring.V1, 160), crowded(), drained(2), {Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 1}, Identity: ring.IdentityName}} {
		f.Add(mustBuild(f, c).Snapshot())
		f.Add(mustBuild(f, c).Recipe())
	}
	f.Add(ring.EmptySlot())
	f.Fuzz(func(t *testing.T, data []byte) {
		checkOpen(t, bytes.Clone(data))
		if len(data) >= 72 {
			data = bytes.Clone(data)
			binary.LittleEndian.PutUint64(data[40:], uint64(len(data)))
			checkOpen(t, reseal(data))
		}
	})
}

// FuzzOwner compares the packed search with a sorted slice on rings of any make.
func FuzzOwner(f *testing.F) {
	f.Add(uint64(1), uint32(0))
	f.Add(uint64(77), uint32(0xffffffff))
	f.Fuzz(func(t *testing.T, seed uint64, hash uint32) {
		c := randomConfig(rand.New(rand.NewPCG(seed, 7)))
		v := mustView(t, mustBuild(t, c))
		compareOwners(t, v, hash, newRefRing(c, func(ring.Backend) bool { return true }).owners(hash))
	})
}

// TestWorkedExample keeps the hex in the documentation true.
func TestWorkedExample(t *testing.T) {
	doc, err := os.ReadFile("../../docs/snapshot-format.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), hex.Dump(mustBuild(t, workedExample()).Snapshot())) {
		t.Errorf("docs/snapshot-format.md does not show this dump:\n%s", hex.Dump(mustBuild(t, workedExample()).Snapshot()))
	}
}
