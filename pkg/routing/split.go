// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"fmt"
	"maps"
	"slices"
)

// MaxBasisPoints is the whole of the keys, in hundredths of a percent: how many buckets a [Split] knows.
const MaxBasisPoints = 10_000

// MaxDatacenters is how many entries the basis points of a [Split] can have, that for all others included.
const MaxDatacenters = 1024

// MaxDatacenterBytes is how long the name of a datacenter can be: as long as the value of a label.
const MaxDatacenterBytes = 63

// AnyDatacenter is the entry of a [Split] for the datacenters that have none of their own.
const AnyDatacenter = "*"

// Split says which keys the candidate answers. Every key has a [Bucket] that depends on nothing but the key and the seed, and a
// datacenter sends the buckets below its basis points to the candidate: raising them never takes a key back.
type Split struct {
	// Seed keeps the splits of different migrations apart. A migration keeps it from its first step to its last.
	Seed uint32 `json:"seed"`
	// BasisPoints is the share of the keys that goes to the candidate by datacenter, 0 to MaxBasisPoints; AnyDatacenter is that
	// of all without an entry, and 0 where it has none either. There are at most MaxDatacenters.
	BasisPoints map[string]int `json:"basisPoints"`
}

// In returns the basis points of a datacenter; "" is one that has no entry of its own. No split is 0.
func (s *Split) In(datacenter string) int {
	if s == nil {
		return 0
	}
	if points, own := s.BasisPoints[datacenter]; own && datacenter != "" {
		return points
	}
	return s.BasisPoints[AnyDatacenter]
}

func (s *Split) check() error {
	if s.BasisPoints == nil {
		return fmt.Errorf("%s: split.basisPoints is missing", FileName)
	}
	if len(s.BasisPoints) > MaxDatacenters {
		return fmt.Errorf("%s: split.basisPoints has %d entries, the limit is %d", FileName, len(s.BasisPoints), MaxDatacenters)
	}
	for _, name := range slices.Sorted(maps.Keys(s.BasisPoints)) {
		if name == "" || len(name) > MaxDatacenterBytes {
			return fmt.Errorf("%s: split.basisPoints has the datacenter %.80q, whose name has %d bytes, not 1 to %d", FileName, name, len(name), MaxDatacenterBytes)
		}
		if points := s.BasisPoints[name]; points < 0 || points > MaxBasisPoints {
			return fmt.Errorf("%s: split.basisPoints[%q] is %d, not 0 to %d", FileName, name, points, MaxBasisPoints)
		}
	}
	return nil
}

// Bucket returns the bucket of a key, 0 to MaxBasisPoints-1. Hash is the position of the key on the ring, its CRC-32, which is
// mixed so that the buckets have nothing to do with positions: each backend loses about the same part of its keys.
//
// Every reader computes the same: docs/snapshot-format.md has the arithmetic and vectors.
//
// Source: the 32-bit finaliser of MurmurHash3 by Austin Appleby, in the public domain.
func Bucket(hash, seed uint32) int {
	x := hash ^ seed
	x ^= x >> 16
	x *= 0x85ebca6b
	x ^= x >> 13
	x *= 0xc2b2ae35
	x ^= x >> 16
	return int(x % MaxBasisPoints)
}
