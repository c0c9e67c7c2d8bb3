// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/ringwright/ringwright/pkg/ring"
)

// keyBytes is how long the keys are that are hashed.
const keyBytes = 32

// hashRatio compares the hash of short keys with that of the standard library. Each key depends on the hash before it.
func hashRatio() (float64, error) {
	hashes := func(hash func(key []byte) uint32, last *uint32) way {
		key := make([]byte, keyBytes)
		work := func(n int) error {
			for range n {
				binary.LittleEndian.PutUint32(key, *last)
				*last = hash(key)
			}
			return nil
		}
		return lookupWay(work)
	}
	var x, y uint32
	ratio, err := speedup(lookupRounds, hashes(ring.Hash, &x), hashes(crc32.ChecksumIEEE, &y))
	if err == nil && x != y {
		return 0, errors.New("the two hashes differ")
	}
	return ratio, err
}
