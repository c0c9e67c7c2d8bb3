// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
)

// TestReadConfig: what a snapshot says of its ring is the same with and without its points, and builds the ring again.
func TestReadConfig(t *testing.T) {
	for _, version := range []ring.Version{ring.V1, ring.V2, ring.V3} {
		c := ring.Config{
			Algorithm: ring.Algorithm{Version: version, PointsPerWeight: 160}, Identity: ring.IdentityName, Features: []string{"b", "a"},
			Backends: []ring.Backend{{ID: "c2", Weight: 3, Zone: "z"}, {ID: "c1", Weight: 2, Features: []string{"b", "a"}}, {ID: "c3"}, {ID: "c4", Weight: 1, Features: []string{"a"}}},
		}
		if version == ring.V3 {
			c.Algorithm.WeightUnit, c.Algorithm.MaxImbalance, c.Views = 1, 10_000, [][]string{{"b", "a"}}
		}
		built, err := ring.Build(c)
		if err != nil {
			t.Fatal(err)
		}
		want := built.Config()
		want.Previous, want.MaxPoints = nil, 0
		for _, snapshot := range [][]byte{built.Snapshot(), built.Recipe()} {
			got, err := ring.ReadConfig(snapshot)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(want, got) {
				t.Errorf("%s: got %+v, want %+v", version, got, want)
			}
			for i := range snapshot {
				broken := bytes.Clone(snapshot)
				broken[i] ^= 0x40
				if _, err := ring.ReadConfig(broken); err == nil {
					t.Fatalf("%s: a change of byte %d is not noticed", version, i)
				}
			}
		}
	}
	if _, err := ring.ReadConfig(ring.EmptySlot()); !errors.Is(err, ring.ErrEmptySlot) {
		t.Errorf("an empty slot: %v", err)
	}
}
