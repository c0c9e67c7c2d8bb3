// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSectionsAddUpToTheSnapshot(t *testing.T) {
	config := Config{
		Algorithm: Algorithm{Version: V2, PointsPerWeight: 16},
		Identity:  IdentityName,
		Backends:  []Backend{{ID: "a", Weight: 1}, {ID: "b", Weight: 3, Features: []string{"eu"}}, {ID: "c"}},
	}
	for name, test := range map[string]struct {
		features []string
		want     []string
	}{
		"without features": {nil, []string{"header", "backends", "points"}},
		"with features":    {[]string{"eu"}, []string{"header", "backends", "features", "points"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := config
			c.Features = test.features
			if test.features == nil {
				c.Backends = []Backend{{ID: "a", Weight: 1}}
			}
			r, err := Build(c)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			sum := 0
			for _, s := range r.Sections() {
				names = append(names, s.Name)
				sum += s.Bytes
			}
			if diff := cmp.Diff(test.want, names); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if sum != len(r.Snapshot()) {
				t.Errorf("the sections have %d bytes, the snapshot %d", sum, len(r.Snapshot()))
			}
		})
	}
}

func TestPointCountsOfAView(t *testing.T) {
	r, err := Build(Config{
		Algorithm: Algorithm{Version: V2, PointsPerWeight: 16},
		Identity:  IdentityName,
		Features:  []string{"eu"},
		Backends:  []Backend{{ID: "a", Weight: 1}, {ID: "b", Weight: 3, Features: []string{"eu"}}, {ID: "c"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		features []string
		want     []int
	}{
		"whole ring": {nil, []int{16, 48, 0}},
		"eu":         {[]string{"eu"}, []int{0, 48, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := r.View(test.features...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, v.PointCounts()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
