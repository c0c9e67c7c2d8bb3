// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// TestHashIsTheChecksum at every length around the steps, wherever the key lies in memory.
func TestHashIsTheChecksum(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	data := make([]byte, 300)
	for n := range 200 {
		for range 20 {
			for i := range data {
				data[i] = byte(rnd.Uint32())
			}
			key := data[rnd.IntN(64):][:n]
			want := crc32.ChecksumIEEE(key)
			if Hash(key) != want || hashShort(key) != want {
				t.Fatalf("%d bytes %x: %08x and %08x, the checksum is %08x", n, key, Hash(key), hashShort(key), want)
			}
		}
	}
}
