// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/internal/testenv/golden"
	"github.com/ringwright/ringwright/pkg/ring"
)

// knownRings are the rings of testdata/ringwright: what no other implementation computes, which are V3 and views. A ring can
// be the one before another.
func knownRings(t *testing.T) []knownRing {
	t.Helper()
	views := fleet(12, ring.V2, 10)
	views.Features = []string{"eu", "gpu", "ssd"}
	for i := range views.Backends {
		views.Backends[i].Weight = uint32(i % 4)
		for f, name := range views.Features {
			if (i>>f^i/5)&1 == 0 {
				views.Backends[i].Features = append(views.Backends[i].Features, name)
			}
		}
	}
	trims := withFeatures(trimmed(20, 40, 4), 2, 0.7)
	trims.Algorithm.WeightUnit = 2
	joined := withFeatures(trimmed(21, 40, 4), 2, 0.7)
	joined.Algorithm.WeightUnit = 2
	copy(joined.Backends, trims.Backends)
	salted := ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V3, PointsPerWeight: 8, WeightUnit: 10, MaxImbalance: 100_000}, Identity: ring.IdentityName,
	}
	for i, sum := range []uint32{ring.FixedPoint, 0x12345678, 0x12345678, ring.FixedPoint, 0x12345678} {
		salted.Backends = append(salted.Backends, ring.Backend{ID: nameWithSum(i, sum), Weight: 10, Zone: string(rune('a' + i%2))})
	}
	salted.Backends = append(salted.Backends, ring.Backend{ID: "drained"}, ring.Backend{ID: "light", Weight: 1})
	return []knownRing{
		{"views-v2", views, ""}, {"trims-v3", trims, ""}, {"joined-v3", joined, "trims-v3"}, {"salted-v3", salted, ""},
	}
}

type knownRing struct {
	name     string
	config   ring.Config
	previous string
}

// TestKnownAnswers pins rings and owners in files that a reader in another language can use, and checks them against a ring
// that is placed as plainly as can be. Run with -update to write them, which only a new algorithm version should need.
func TestKnownAnswers(t *testing.T) {
	built := map[string]*ring.Ring{}
	for _, k := range knownRings(t) {
		k.config.Previous = built[k.previous]
		r := mustBuild(t, k.config)
		built[k.name] = r
		golden.Assert(t, "testdata/ringwright/"+k.name+".txt", describeKnown(t, k, r))
	}
}

func describeKnown(t *testing.T, k knownRing, r *ring.Ring) []byte {
	t.Helper()
	var out strings.Builder
	a := r.Algorithm()
	if a.Version == ring.V3 {
		fmt.Fprintf(&out, "algorithm v3 %d %d %d\n", a.PointsPerWeight, a.WeightUnit, a.MaxImbalance)
	} else {
		fmt.Fprintf(&out, "algorithm v%d %d\n", a.Version, a.PointsPerWeight)
	}
	fmt.Fprintf(&out, "identity %s\n", strings.ToLower(r.Identity().String()))
	if k.previous != "" {
		fmt.Fprintf(&out, "previous %s\n", k.previous)
	}
	for i := range r.Len() {
		var features []string
		for _, f := range r.Features() {
			if r.HasFeature(i, f) {
				features = append(features, f)
			}
		}
		fmt.Fprintf(&out, "backend %s %d %s %s\n", r.ID(i), r.Weight(i), cmp.Or(r.Zone(i), "-"), list(features))
	}
	fmt.Fprintf(&out, "snapshot %d %s\nrecipe %d %s\n", len(r.Snapshot()), r.Digest(), len(r.Recipe()), ring.Digest(r.Recipe()))
	points := plainPoints(r)
	sets := r.Views()
	if a.Version != ring.V3 {
		sets = [][]string{nil, {"eu"}, {"gpu", "ssd"}, {"eu", "gpu", "ssd"}}
	}
	for _, set := range sets {
		describeView(t, &out, r, set, points)
	}
	return []byte(out.String())
}

func list(names []string) string { return cmp.Or(strings.Join(names, ","), "-") }

// plainPoint is a point of a ring that is placed by stepping through byte-wise checksums, the salted ones of V3 too.
type plainPoint struct {
	hash, rank uint32
	backend    int
}

func plainPoints(r *ring.Ring) []plainPoint {
	var points []plainPoint
	a, taken := r.Algorithm(), map[uint32]bool{ring.FixedPoint: true}
	for i := range r.Len() {
		input := refHashInput(r.Identity(), r.ID(i))
		n := r.Weight(i) * a.PointsPerWeight
		if a.Version == ring.V3 {
			plain := input
			for attempt := uint32(1); taken[crc32.ChecksumIEEE(input)]; attempt++ {
				input = binary.LittleEndian.AppendUint32(append(slices.Clone(plain), 0, 0), attempt)
			}
			taken[crc32.ChecksumIEEE(input)] = true
			if n > 0 {
				n = max((n+a.WeightUnit/2)/a.WeightUnit, 4)
			}
		}
		hash := uint32(0)
		for range n {
			hash = crc32.ChecksumIEEE(binary.LittleEndian.AppendUint32(slices.Clone(input), hash))
			rank := uint32(i)
			if a.Version == ring.V3 {
				rank = murmur(hash ^ crc32.ChecksumIEEE(input))
			}
			points = append(points, plainPoint{hash, rank, i})
		}
	}
	slices.SortFunc(points, func(a, b plainPoint) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.rank, b.rank)) })
	return points
}

// murmur is the finaliser of MurmurHash3.
func murmur(x uint32) uint32 {
	for _, step := range []struct{ shift, factor uint32 }{{16, 0x85ebca6b}, {13, 0xc2b2ae35}, {16, 1}} {
		x = (x ^ x>>step.shift) * step.factor
	}
	return x
}

// describeView writes what a view leaves out and the first three owners of some keys, and checks those plainly.
func describeView(t *testing.T, out *strings.Builder, r *ring.Ring, set []string, points []plainPoint) {
	t.Helper()
	left := map[int]bool{}
	v := mustView(t, r, set...)
	trims := r.Trims(set...)
	fmt.Fprintf(out, "view %s trims", list(set))
	for _, i := range trims {
		left[i] = true
		fmt.Fprintf(out, " %d", i)
	}
	out.WriteString("\n")
	for i := range 60 {
		key := fmt.Sprintf("key-%d", i)
		x := crc32.ChecksumIEEE([]byte(key))
		if i%3 == 2 && len(points) > 0 {
			x = points[i*7919%len(points)].hash // Exactly on a point, perhaps one that is left out.
			key = fmt.Sprintf("%08x", x)
		}
		var want []int
		start, _ := slices.BinarySearchFunc(points, x, func(p plainPoint, x uint32) int { return cmp.Compare(p.hash, x) })
		for k := range points {
			at := (start + k) % len(points)
			if b := points[at].backend; !left[at] && v.Has(b) && !slices.Contains(want, b) && len(want) < 3 {
				want = append(want, b)
			}
		}
		got := v.AppendOwners(nil, x, 3, nil)
		if !slices.Equal(got, want) {
			t.Errorf("view %q, position %08x: owners %v, placed plainly %v", set, x, got, want)
		}
		fmt.Fprintf(out, "key %08x %s", x, key)
		for _, b := range got {
			fmt.Fprintf(out, " %s", r.ID(b))
		}
		out.WriteString("\n")
	}
}
