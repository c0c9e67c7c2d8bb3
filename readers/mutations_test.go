// SPDX-License-Identifier: Apache-2.0

package readers_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/internal/testenv/golden"
	"github.com/ringwright/ringwright/pkg/ring"
)

// reseal gives an edited snapshot the checksum that it should have, so that the edit itself is what a reader finds.
func reseal(b []byte) []byte {
	if len(b) >= 4 {
		binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], crc32.MakeTable(crc32.Castagnoli)))
	}
	return b
}

// relength gives a snapshot the length that it has, and the checksum.
func relength(b []byte) []byte {
	if len(b) >= 72 {
		binary.LittleEndian.PutUint64(b[40:], uint64(len(b)))
	}
	return reseal(b)
}

// mutation is a way to make bad snapshots of a good one: count says how many, and at makes number i.
type mutation struct {
	name  string
	count func(good []byte) int
	at    func(good []byte, i int) []byte
}

// setValues are what a field of four bytes is set to, beside one more and one less than it was.
var setValues = []uint32{0, 1, 2, 255, 256, 65_535, 65_537, 1<<31 - 1, 1 << 31, 1<<32 - 1}

// mutations are listed in testdata/README.md, and the other readers make the same.
var mutations = []mutation{
	{"truncate", func(b []byte) int { return len(b) }, func(b []byte, i int) []byte { return b[:i] }},
	{"truncate-resealed", func(b []byte) int { return len(b) }, func(b []byte, i int) []byte { return relength(bytes.Clone(b[:i])) }},
	{"flip", func(b []byte) int { return 8 * len(b) }, flip},
	{"flip-resealed", func(b []byte) int { return 8 * len(b) }, func(b []byte, i int) []byte { return reseal(flip(b, i)) }},
	{"set-resealed", func(b []byte) int { return (len(setValues) + 2) * (len(b)/4 - 1) }, set},
}

func flip(good []byte, i int) []byte {
	b := bytes.Clone(good)
	b[i/8] ^= 1 << (i % 8)
	return b
}

func set(good []byte, i int) []byte {
	b := bytes.Clone(good)
	kinds := len(setValues) + 2
	word := b[i/kinds*4:]
	value := binary.LittleEndian.Uint32(word)
	switch kind := i % kinds; kind {
	case kinds - 2:
		value++
	case kinds - 1:
		value--
	default:
		value = setValues[kind]
	}
	binary.LittleEndian.PutUint32(word, value)
	return reseal(b)
}

// TestCorruption writes what Go makes of corrupt snapshots: which it refuses, and a summary of the others.
func TestCorruption(t *testing.T) {
	out := new(bytes.Buffer)
	for _, n := range rings() {
		good := n.build(t)
		if len(good) > 800 {
			continue
		}
		for _, m := range mutations {
			fmt.Fprintln(out, "mutate", n.name, m.name, verdicts(m, good))
		}
	}
	for _, c := range crafted(t) {
		verdict := "refused"
		if sum, accepted := summary(c.data); accepted {
			verdict = fmt.Sprintf("%08x", sum)
		}
		if accepted := verdict != "refused"; accepted != c.accepted {
			t.Errorf("%s: accepted is %v", c.name, accepted)
		}
		fmt.Fprintf(out, "crafted %s %s %s\n", c.name, verdict, orDash(hex.EncodeToString(c.data)))
	}
	golden.Assert(t, filepath.Join("testdata", "corruption.txt"), out.Bytes())
}

// verdicts says how many mutations there are, which of them are accepted, as ranges of numbers, and the CRC-32 of the summaries of those.
func verdicts(m mutation, good []byte) string {
	var (
		sums   []byte
		ranges []string
		first  = -1
		count  = m.count(good)
	)
	for i := range count + 1 {
		sum, accepted := uint32(0), false
		if i < count {
			sum, accepted = summary(m.at(good, i))
		}
		switch {
		case accepted && first < 0:
			first = i
		case !accepted && first >= 0:
			ranges = append(ranges, fmt.Sprintf("%d-%d", first, i-1))
			first = -1
		}
		if accepted {
			sums = binary.LittleEndian.AppendUint32(sums, sum)
		}
	}
	return fmt.Sprintf("%d %s %08x", count, orDash(strings.Join(ranges, ",")), crc32.ChecksumIEEE(sums))
}

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
	return append(list, craftedTrims(t)...)
}

// edit sets a byte of a snapshot.
func edit(good []byte, at int, value byte) []byte {
	b := bytes.Clone(good)
	b[at] = value
	return reseal(b)
}

// craftedIdentities writes other identities in place of a good one of the same length. None is drained, so that points do not matter.
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

// craftedTrims writes other trims into a small ring of V3.
func craftedTrims(t testing.TB) []craftedFile {
	t.Helper()
	good := namedRing{"", trimmed(6, 8), false}.build(t)
	section := binary.LittleEndian.Uint64(good[64+2*24+8:])
	if n := binary.LittleEndian.Uint32(good[section+12:]); n < 2 || n != binary.LittleEndian.Uint32(good[section+16:]) {
		t.Fatalf("the view of all has %d trims, want at least 2 of one byte each", n)
	}
	first := int(section) + 20
	long := bytes.Clone(good) // The first trim takes the two bytes of the first two.
	long[first], long[first+1] = good[first]|0x80, 0
	long[section+12]--
	endless := bytes.Clone(good)
	for i := first; i < first+int(good[section+16]); i++ {
		endless[i] = 0x80
	}
	return []craftedFile{{"trim-in-two-bytes", false, reseal(long)}, {"trim-without-end", false, reseal(endless)}}
}

// withSection returns the snapshot with one more section behind the others that are of a lower kind.
func withSection(snapshot []byte, kind, flags uint32, content []byte) []byte {
	const header, row, trailer = 64, 24, 8
	type part struct {
		kind, flags uint32
		content     []byte
	}
	parts := []part{{kind, flags, content}}
	for at := header; at < header+row*int(snapshot[36]); at += row {
		offset, length := binary.LittleEndian.Uint64(snapshot[at+8:]), binary.LittleEndian.Uint64(snapshot[at+16:])
		parts = append(parts, part{binary.LittleEndian.Uint32(snapshot[at:]), 0, snapshot[offset : offset+length]})
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

// TestSeedsOfTheFuzzer: what the Go decoder stumbled over once is no riddle to it now. The other readers get it in
// TestReadersAgree.
func TestSeedsOfTheFuzzer(t *testing.T) {
	for _, data := range fuzzSeeds(t) {
		summary(data)
	}
}

// fuzzSeeds returns the inputs that the fuzzer of the Go decoder keeps.
func fuzzSeeds(t testing.TB) [][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(vectors, "fuzz", "FuzzOpen", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d seeds, %v", len(files), err)
	}
	var seeds [][]byte
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var data []byte
		if _, err := fmt.Sscanf(string(text), "go test fuzz v1\n[]byte(%q)", &data); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		seeds = append(seeds, data)
	}
	return seeds
}
