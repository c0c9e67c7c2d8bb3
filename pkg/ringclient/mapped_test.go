// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ringclient_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// mappings returns how many files below dir this process has mapped.
func mappings(t *testing.T, dir string) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(maps), dir+"/")
}

// TestVolumesAreMapped: the snapshot of a volume is mapped, and unmapped when nobody can ask it any more. That of a plain directory,
// which anybody can write to in place, is copied, and so is one in chunks.
func TestVolumesAreMapped(t *testing.T) {
	r := addressRing(t, 9)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	volume, folded, plain, cut := filepath.Join(dir, "volume"), filepath.Join(dir, "folded"), filepath.Join(dir, "plain"), filepath.Join(dir, "cut")
	mount(t, volume, published(1, r).files(t))
	for name, content := range folders(published(1, r).files(t)) {
		mount(t, filepath.Join(folded, name), content)
	}
	writePlain(t, plain, published(1, r).files(t))
	chunks := published(1, r)
	chunks.chunks = 3
	mount(t, cut, chunks.files(t))
	for place, want := range map[string]int{volume: 1, folded: 1, plain: 0, cut: 0} {
		c, err := ringclient.NewUnstarted(place, ringclient.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.LoadNow(); err != nil {
			t.Fatal(err)
		}
		if n := mappings(t, place); n != want {
			t.Errorf("%s: %d files are mapped, want %d", filepath.Base(place), n, want)
		}
		checkAnswers(t, c, 1, r)
	}
}

// TestOldMappingsGo swaps many times. What was decided before stays right for as long as somebody has it.
func TestOldMappingsGo(t *testing.T) {
	rings := []*ring.Ring{addressRing(t, 5), addressRing(t, 6)}
	dir := t.TempDir()
	mount(t, dir, published(1, rings[1]).files(t))
	c, err := ringclient.NewUnstarted(dir, ringclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.LoadNow(); err != nil {
		t.Fatal(err)
	}
	first := mustLookup(t, c, []byte("key"), 1)[0]
	for generation := int64(2); generation < 50; generation++ {
		mount(t, dir, published(generation, rings[generation%2]).files(t))
		if err := c.LoadNow(); err != nil {
			t.Fatal(err)
		}
		if generation%7 == 0 {
			runtime.GC()
		}
	}
	if want := owners(t, rings[1], "key", 1)[0]; first.ID() != want || first.Zone() == "" || first.Digest() != rings[1].Digest() {
		t.Errorf("the first decision is %s now, want %s", first.ID(), want)
	}
	runtime.KeepAlive(first)
	eventually(t, "the old files to be unmapped", func() bool {
		runtime.GC()
		return mappings(t, dir) == 1
	})
	checkAnswers(t, c, 49, rings[1])
}

// TestSwapTakesOneSnapshotAtMost: what a swap allocates is a part of the snapshot where that is mapped, and little more than the snapshot
// where it is copied, in one file or in chunks.
func TestSwapTakesOneSnapshotAtMost(t *testing.T) {
	large := func(weight uint32) *ring.Ring {
		c := ring.Config{Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 160}, Identity: ring.IdentityAddress}
		for i := range 2048 {
			c.Backends = append(c.Backends, ring.Backend{ID: fmt.Sprintf("10.%d.%d.1:8080", i/256, i%256), Weight: weight})
		}
		return build(t, c)
	}
	first, second := large(1), large(2) // Each of more than a megabyte.
	for name, row := range map[string]struct {
		write  func(testing.TB, string, map[string][]byte)
		chunks int
		most   float64
	}{
		"mapped": {mount, 0, 0.2}, "copied": {writePlain, 0, 1.2}, "in chunks": {mount, 4, 1.2},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c, err := ringclient.NewUnstarted(dir, ringclient.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			for generation, r := range []*ring.Ring{first, second} {
				p := published(int64(generation+1), r)
				p.chunks = row.chunks
				row.write(t, dir, p.files(t))
				runtime.ReadMemStats(&before)
				if err := c.LoadNow(); err != nil {
					t.Fatal(err)
				}
				runtime.ReadMemStats(&after)
			}
			part := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(second.Snapshot()))
			if part > row.most || part == 0 {
				t.Errorf("the swap allocated %.2f of the snapshot, the limit is %.2f", part, row.most)
			}
		})
	}
}
