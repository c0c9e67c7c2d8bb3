// SPDX-License-Identifier: Apache-2.0

package readers_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/internal/materialize"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// publication is what a HashRing publishes at one moment.
type publication struct {
	file      routing.File
	snapshots map[routing.Slot][]byte
}

// publish returns a publication of a stable ring in slot a.
func publish(generation, epoch int64, uid string, snapshot []byte, version ring.Version, chunks int) publication {
	return publication{
		file: routing.File{
			APIVersion: routing.APIVersion, Ring: "cdn/edge", UID: uid, Generation: generation, LeaderEpoch: epoch,
			Stable: routing.NewReference(routing.SlotA, ring.Digest(snapshot), version.String(), chunks),
		},
		snapshots: map[routing.Slot][]byte{routing.SlotA: snapshot},
	}
}

// files returns the files by name. A slot without a ring holds the marker, and there is one spare chunk of each slot.
func (p publication) files(t testing.TB) map[string][]byte {
	t.Helper()
	encoded, err := p.file.Encode()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{routing.FileName: encoded}
	refs := map[routing.Slot]routing.Reference{routing.SlotA: {Slot: routing.SlotA}, routing.SlotB: {Slot: routing.SlotB}}
	refs[p.file.Stable.Slot] = p.file.Stable
	if p.file.Candidate != nil {
		refs[p.file.Candidate.Slot] = *p.file.Candidate
	}
	for slot, ref := range refs {
		rest, found := p.snapshots[slot]
		if !found {
			rest = ring.EmptySlot()
		}
		names := ref.Files()
		for i, name := range names {
			n := len(rest) / (len(names) - i)
			files[name], rest = rest[:n], rest[n:]
		}
		files[slot.ChunkFileName(len(names))] = nil
	}
	return files
}

// layouts are the ways in which the files of a ring can lie in a directory.
var layouts = []func(t testing.TB, dir string, files map[string][]byte){
	func(t testing.TB, dir string, files map[string][]byte) { mount(t, dir, files) },
	func(t testing.TB, dir string, files map[string][]byte) { writePlain(t, dir, files) },
	func(t testing.TB, dir string, files map[string][]byte) { // Each ConfigMap is a volume of its own.
		for name, content := range files {
			mount(t, filepath.Join(dir, folderOf(name)), map[string][]byte{name: content})
		}
	},
	func(t testing.TB, dir string, files map[string][]byte) { // One volume, with a folder for each ConfigMap.
		paths := map[string][]byte{}
		for name, content := range files {
			paths[folderOf(name)+"/"+name] = content
		}
		mount(t, dir, paths)
	},
}

func mount(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	if err := materialize.Write(dir, files); err != nil {
		t.Fatal(err)
	}
}

// folderOf returns the folder that a file may lie in.
func folderOf(name string) string {
	for _, slot := range []routing.Slot{routing.SlotA, routing.SlotB} {
		for chunk := range routing.MaxChunks {
			if slot.ChunkFileName(chunk) == name {
				return slot.ChunkFolder(chunk)
			}
		}
	}
	return routing.RoutingFolder
}

// randomRing returns a small ring of any make.
func randomRing(rng *rand.Rand) ring.Config {
	c := ring.Config{
		Algorithm: ring.Algorithm{Version: ring.Version(1 + rng.IntN(3)), PointsPerWeight: 1 + uint32(rng.IntN(12))},
		Identity:  ring.Identity(1 + rng.IntN(3)),
		Features:  []string{"eu", "gpu", "ssd"}[:rng.IntN(4)],
	}
	switch c.Algorithm.Version {
	case ring.V1:
		c.Algorithm.PointsPerWeight = 160
	case ring.V3:
		c.Algorithm.WeightUnit, c.Algorithm.MaxImbalance = 1+uint32(rng.IntN(3)), 10_000
		for i := range c.Features {
			if rng.IntN(2) == 0 {
				c.Views = append(c.Views, c.Features[:i+1])
			}
		}
	}
	for i := range rng.IntN(12) {
		b := ring.Backend{ID: randomID(rng, c.Identity, i), Weight: uint32(max(0, rng.IntN(6)-1)), Zone: []string{"", "a", "zone-b"}[rng.IntN(3)]}
		for _, f := range c.Features {
			if rng.IntN(2) == 0 {
				b.Features = append(b.Features, f)
			}
		}
		c.Backends = append(c.Backends, b)
	}
	return c
}

func randomID(rng *rand.Rand, identity ring.Identity, i int) string {
	switch identity {
	case ring.IdentityAddress:
		return []string{fmt.Sprintf("10.0.0.%d:80", i), fmt.Sprintf("[2001:db8::%x:1]:443", i+1), fmt.Sprintf("[::ffff:10.0.0.%d]:80", i)}[rng.IntN(3)]
	case ring.IdentityNGINX:
		return []string{fmt.Sprintf("cache-%d:80", i), fmt.Sprintf("cache-%d", i), fmt.Sprintf("10.0.0.%d", i), fmt.Sprintf("[0:0::%x]:80", i+1)}[rng.IntN(4)]
	default:
		return fmt.Sprintf("backend-%d", i)
	}
}

// randomPublication returns what a HashRing could publish: with or without a migration, chunks, addresses, backends that are down.
func randomPublication(t testing.TB, rng *rand.Rand) publication {
	t.Helper()
	config := randomRing(rng)
	stable := randomSnapshot(t, rng, config)
	p := publish(1+rng.Int64N(100), rng.Int64N(3), "", stable, config.Algorithm.Version, 1+rng.IntN(4))
	p.file.Stable.Revision = rng.Int64N(5)
	backends := config.Backends
	if rng.IntN(2) == 0 {
		other := randomRing(rng)
		other.Identity, other.Backends = config.Identity, append(slices.Clone(config.Backends), ring.Backend{ID: randomID(rng, config.Identity, 77), Weight: 2})
		other.Features = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(other.Features), config.Features...))))
		backends = other.Backends
		if rng.IntN(4) == 0 { // The candidate knows no features.
			other.Features, other.Views = nil, nil
			for i := range other.Backends {
				other.Backends[i].Features = nil
			}
		}
		snapshot := randomSnapshot(t, rng, other)
		p.snapshots[routing.SlotB] = snapshot
		ref := routing.NewReference(routing.SlotB, ring.Digest(snapshot), other.Algorithm.Version.String(), 1+rng.IntN(3))
		ref.Revision = 9
		p.file.Candidate = &ref
		if rng.IntN(4) > 0 {
			p.file.Split = &routing.Split{Seed: rng.Uint32(), BasisPoints: map[string]int{"lab01": rng.IntN(10_001), "*": rng.IntN(10_001)}}
		}
	}
	for _, b := range backends {
		if rng.IntN(3) == 0 {
			p.file.Down = append(p.file.Down, b.ID)
		}
		if rng.IntN(3) == 0 {
			if p.file.Addresses == nil {
				p.file.Addresses = map[string]string{}
			}
			p.file.Addresses[b.ID] = fmt.Sprintf("192.0.2.%d:80", rng.IntN(256))
		}
	}
	if rng.IntN(4) == 0 {
		p.file.Down = append(p.file.Down, "of another ring")
	}
	slices.Sort(p.file.Down)
	p.file.Down = slices.Compact(p.file.Down)
	return p
}

// randomSnapshot returns the points of a ring or its recipe.
func randomSnapshot(t testing.TB, rng *rand.Rand, c ring.Config) []byte {
	t.Helper()
	return namedRing{"random", c, rng.IntN(3) == 0}.build(t)
}

// spoil makes a publication one that no reader may take, in most cases, and says how.
func spoil(rng *rand.Rand, files map[string][]byte) string {
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range files {
			if !yield(name) {
				return
			}
		}
	})
	name := names[rng.IntN(len(names))]
	content := slices.Clone(files[name])
	how := rng.IntN(5)
	switch {
	case how == 0:
		delete(files, name)
		return name + " is missing"
	case how == 1 || len(content) == 0:
		files[name] = nil
	case how == 2:
		files[name] = content[:len(content)-1]
	case how == 3:
		files[name] = ring.EmptySlot()
	default:
		content[rng.IntN(len(content))] ^= 1
		files[name] = content
	}
	return fmt.Sprintf("%s is spoilt by way %d", name, how)
}

func tabs(fields ...any) string {
	texts := make([]string, len(fields))
	for i, f := range fields {
		texts[i] = orDash(fmt.Sprint(f))
	}
	return strings.Join(texts, "\t") + "\n"
}
