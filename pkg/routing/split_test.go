// SPDX-License-Identifier: Apache-2.0

package routing_test

import (
	"encoding/json"
	"hash/crc32"
	"math"
	"os"
	"testing"

	"github.com/ringwright/ringwright/pkg/routing"
)

// TestBucketVectors pins the buckets of every reader in every language.
func TestBucketVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/buckets.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Key    string `json:"key"`
		Hash   uint32 `json:"hash"`
		Seed   uint32 `json:"seed"`
		Bucket int    `json:"bucket"`
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 30 {
		t.Fatalf("%d vectors", len(vectors))
	}
	for _, v := range vectors {
		hash, bucket := crc32.ChecksumIEEE([]byte(v.Key)), routing.Bucket(v.Hash, v.Seed)
		if hash != v.Hash || bucket != v.Bucket {
			t.Errorf("key %q, seed %d: hash %d and bucket %d, want %d and %d", v.Key, v.Seed, hash, bucket, v.Hash, v.Bucket)
		}
	}
}

// TestBucketsAreEven: every bucket has its part of the keys, also of those in one arc of the ring, and two seeds have nothing to do
// with each other.
func TestBucketsAreEven(t *testing.T) {
	const keys = 4 << 20
	rows := map[string]func(i uint32) (hash, seed uint32){
		"positions all around": func(i uint32) (uint32, uint32) { return i * 0x9e3779b1, 1 },
		"one short arc":        func(i uint32) (uint32, uint32) { return 0x80000000 + i, 1 },
		"one key, all seeds":   func(i uint32) (uint32, uint32) { return 0x12345678, i },
	}
	for name, at := range rows {
		var counts [routing.MaxBasisPoints]int
		for i := range uint32(keys) {
			counts[routing.Bucket(at(i))]++
		}
		want, chi := float64(keys)/routing.MaxBasisPoints, 0.0
		for _, n := range counts {
			chi += (float64(n) - want) * (float64(n) - want) / want
		}
		// Chi squared of 9,999 degrees of freedom is 9,999 with a standard deviation of 141. A mixer that spreads the keys
		// better than chance does is as welcome as chance.
		if deviation := (chi - 9999) / math.Sqrt(2*9999); deviation > 5 {
			t.Errorf("%s: chi squared is %.0f, %.1f deviations too high", name, chi, deviation)
		}
	}
}

func TestSplitIn(t *testing.T) {
	split := &routing.Split{BasisPoints: map[string]int{"*": 10, "lab01": 50, "held": 0}}
	for datacenter, want := range map[string]int{"lab01": 50, "held": 0, "other": 10, "": 10} {
		if got := split.In(datacenter); got != want {
			t.Errorf("%q: %d basis points, want %d", datacenter, got, want)
		}
	}
	only := &routing.Split{BasisPoints: map[string]int{"lab01": 50}}
	if only.In("other") != 0 || (*routing.Split)(nil).In("lab01") != 0 {
		t.Error("a datacenter that is not named has keys on the candidate")
	}
}
