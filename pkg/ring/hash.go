// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"hash/crc32"
	"runtime"
)

// Hash returns the position of a key on the ring: its CRC-32 (IEEE). It does not allocate.
func Hash(key []byte) uint32 {
	if runtime.GOARCH == "amd64" && len(key) < longKey {
		return hashShort(key)
	}
	return crc32.ChecksumIEEE(key)
}

// longKey is from what length on the standard library multiplies polynomials on amd64. Below it goes by 8 bytes at a time,
// each step waiting for the one before; by 16 it is half the steps, and that is most of the time of a look-up. Other
// processors have an instruction for it, which the standard library uses at any length.
const longKey = 64

func hashShort(key []byte) uint32 {
	register := ^uint32(0)
	for ; len(key) >= 16; key = key[16:] {
		a, b := binary.LittleEndian.Uint64(key)^uint64(register), binary.LittleEndian.Uint64(key[8:])
		register = slicing[15][byte(a)] ^ slicing[14][byte(a>>8)] ^ slicing[13][byte(a>>16)] ^ slicing[12][byte(a>>24)] ^
			slicing[11][byte(a>>32)] ^ slicing[10][byte(a>>40)] ^ slicing[9][byte(a>>48)] ^ slicing[8][a>>56] ^
			slicing[7][byte(b)] ^ slicing[6][byte(b>>8)] ^ slicing[5][byte(b>>16)] ^ slicing[4][byte(b>>24)] ^
			slicing[3][byte(b>>32)] ^ slicing[2][byte(b>>40)] ^ slicing[1][byte(b>>48)] ^ slicing[0][b>>56]
	}
	for ; len(key) >= 4; key = key[4:] {
		register = crcWord(register ^ binary.LittleEndian.Uint32(key))
	}
	for _, b := range key {
		register = slicing[0][byte(register)^b] ^ register>>8
	}
	return ^register
}

// slicing holds the tables of a CRC over up to sixteen bytes at once: slicing[k][b] is byte b followed by k zero bytes.
var slicing = makeSlicing()

func makeSlicing() (t [16][256]uint32) {
	t[0] = *crc32.MakeTable(crc32.IEEE)
	for k := 1; k < len(t); k++ {
		for b := range t[k] {
			v := t[k-1][b]
			t[k][b] = v>>8 ^ t[0][v&0xff]
		}
	}
	return t
}
