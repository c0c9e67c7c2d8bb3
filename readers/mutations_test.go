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
	"strings"
	"testing"

	"github.com/ringwright/ringwright/internal/testenv/golden"
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
