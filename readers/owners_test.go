// SPDX-License-Identifier: Apache-2.0

package readers_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/internal/testenv/golden"
	"github.com/ringwright/ringwright/pkg/ring"
)

// maxRecipePoints is what all readers build for a recipe in these tests.
const maxRecipePoints = 1 << 16

func TestRings(t *testing.T) {
	for _, n := range rings() {
		t.Run(n.name, func(t *testing.T) {
			snapshot := n.build(t)
			golden.Assert(t, filepath.Join("testdata", "rings", n.name+".snap"), snapshot)
			if n.recipe { // It is asked what the same ring with points is asked.
				return
			}
			golden.Assert(t, filepath.Join("testdata", "rings", n.name+".txt"), answers(t, snapshot))
		})
	}
}

// TestVectorRings writes the rings of the vectors as recipes: a reader that places them and finds the owners that the
// vectors name agrees with NGINX and pingora.
func TestVectorRings(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(vectors, "*", "*.txt"))
	if err != nil || len(files) != 15 {
		t.Fatalf("%d files of vectors (%v), want 15", len(files), err)
	}
	for _, path := range files {
		kind, name := filepath.Base(filepath.Dir(path)), strings.TrimSuffix(filepath.Base(path), ".txt")
		n := namedRing{kind + "-" + name, vectorConfig(t, path), true}
		golden.Assert(t, filepath.Join("testdata", "vectors", n.name+".snap"), n.build(t))
	}
}

// answers says what Go reads from a snapshot, and who owns what.
func answers(t testing.TB, snapshot []byte) []byte {
	t.Helper()
	r, err := ring.Open(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	out := new(bytes.Buffer)
	fmt.Fprintf(out, "digest %s\npoints %d\n", r.Digest(), r.PointCount())
	for i := range r.Len() {
		fmt.Fprintf(out, "backend %s %d %s\n", r.ID(i), r.Weight(i), orDash(r.Zone(i)))
	}
	fmt.Fprintf(out, "features %s\n", orDash(strings.Join(r.Features(), ",")))
	for _, set := range sets(r.Features()) {
		v, err := r.View(set...)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(out, "view %s %d\n", orDash(strings.Join(set, ",")), v.Len())
		for _, position := range positions(r) {
			fmt.Fprintf(out, "owners %d", position)
			for _, owner := range v.AppendOwners(nil, position, 4, nil) {
				fmt.Fprintf(out, " %d", owner)
			}
			fmt.Fprintln(out)
		}
	}
	return out.Bytes()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// sets returns all sets of up to three features.
func sets(features []string) [][]string {
	all := [][]string{nil}
	for i, a := range features {
		all = append(all, []string{a})
		for j, b := range features[i+1:] {
			all = append(all, []string{a, b})
			for _, c := range features[i+j+2:] {
				all = append(all, []string{a, b, c})
			}
		}
	}
	return all
}

// positions returns where a reader can go wrong: at the ends of the ring and around points, and anywhere.
func positions(r *ring.Ring) []uint32 {
	list := []uint32{0, 1, 1<<31 - 1, 1 << 31, 1<<32 - 1}
	for i := range uint32(24) {
		list = append(list, ring.Hash(fmt.Appendf(nil, "key-%d", i)))
	}
	for i := range min(r.Len(), 6) {
		sum := chainStart(r, i)
		point := crc32.Update(sum, crc32.IEEETable, make([]byte, 4))
		list = append(list, point-1, point, point+1)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// chainStart returns a checksum from which the chain of a backend starts, if V3 gives it no other one and no brackets are left out. In other
// cases the position is as good as any.
func chainStart(r *ring.Ring, i int) uint32 {
	id := []byte(r.ID(i))
	if colon := bytes.LastIndexByte(id, ':'); r.Identity() != ring.IdentityName && colon >= 0 {
		id[colon] = 0
	}
	return crc32.ChecksumIEEE(id)
}

// summary is a checksum of what a reader finds in a snapshot: backends, features, and owners. testdata/README.md says it
// in words, and the other readers compute the same.
func summary(snapshot []byte) (sum uint32, accepted bool) {
	r, err := ring.OpenWith(snapshot, ring.OpenOptions{MaxPoints: maxRecipePoints})
	if err != nil {
		return 0, false
	}
	var b []byte
	for i := range r.Len() {
		b = append(append(b, r.ID(i)...), 0)
		b = binary.LittleEndian.AppendUint32(b, r.Weight(i))
		b = append(append(b, r.Zone(i)...), 0)
	}
	for _, set := range append([][]string{nil}, singles(r.Features())...) {
		b = append(append(b, strings.Join(set, "")...), 0)
		v, err := r.TransientView(set...)
		if err != nil {
			return 0, false
		}
		for j := range uint32(64) {
			for _, owner := range v.AppendOwners(nil, j*0x9e3779b1, 3, nil) {
				b = binary.LittleEndian.AppendUint32(b, uint32(owner))
			}
			b = append(b, 0xff)
		}
	}
	return crc32.ChecksumIEEE(b), true
}

// singles returns the sets of one feature, and that of all.
func singles(features []string) [][]string {
	var all [][]string
	for _, f := range features {
		all = append(all, []string{f})
	}
	return append(all, features)
}
