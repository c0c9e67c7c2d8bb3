// SPDX-License-Identifier: Apache-2.0

package movement_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ringwright/ringwright/internal/materialize"
	"github.com/ringwright/ringwright/internal/movement"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

// fleet is a ring of three backends and a candidate of four others, and a client that follows its files.
type fleet struct {
	dir        string
	generation int64
	rings      [2]*ring.Ring
	client     *ringclient.Client
}

func newFleet(t testing.TB) *fleet {
	t.Helper()
	f := &fleet{dir: t.TempDir()}
	for i, names := range [][]string{{"a", "b", "c"}, {"d", "e", "f", "g"}} {
		c := ring.Config{
			Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 160}, Identity: ring.IdentityName, Features: []string{"eu"},
		}
		for _, name := range names {
			c.Backends = append(c.Backends, ring.Backend{ID: name, Weight: 1})
		}
		c.Backends[0].Features = []string{"eu"}
		r, err := ring.Build(c)
		if err != nil {
			t.Fatal(err)
		}
		f.rings[i] = r
	}
	f.share(t, 0)
	c, err := ringclient.Open(f.dir, ringclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	f.client = c
	return f
}

// share gives a part of the keys, in basis points, to the candidate.
func (f *fleet) share(t testing.TB, basisPoints int) {
	t.Helper()
	f.generation++
	references := [2]routing.Reference{}
	for i, slot := range []routing.Slot{routing.SlotA, routing.SlotB} {
		references[i] = routing.Reference{Slot: slot, Digest: f.rings[i].Digest(), Version: "V2", Revision: int64(i + 1)}
	}
	text, err := routing.File{
		APIVersion: routing.APIVersion, Ring: "cdn/edge", Generation: f.generation, Stable: references[0], Candidate: &references[1],
		Split: &routing.Split{Seed: 7, BasisPoints: map[string]int{routing.AnyDatacenter: basisPoints}},
	}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := materialize.Write(f.dir, map[string][]byte{
		routing.FileName: text, routing.SlotA.FileName(): f.rings[0].Snapshot(), routing.SlotB.FileName(): f.rings[1].Snapshot(),
	}); err != nil {
		t.Fatal(err)
	}
	for f.client != nil && f.client.State().Generation() != f.generation {
		if _, err := f.client.Pick([]byte("key")); err != nil {
			t.Fatal(err)
		}
	}
}

// look asks for keys, and tells the table.
func (f *fleet) look(t testing.TB, table *movement.Table, keys int, features ...string) {
	t.Helper()
	for i := range keys {
		key := fmt.Appendf(nil, "videos/%d", i)
		d, err := f.client.Pick(key, features...)
		if err != nil {
			t.Fatal(err)
		}
		table.Note(ring.Hash(key), features, d)
	}
}

// counts returns what is exported: checks and changes of the stable ring, then those of the candidate.
func counts(t testing.TB, table *movement.Table) (all [4]int) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(table)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			i := 0
			if strings.HasSuffix(family.GetName(), "changes_total") {
				i++
			}
			if m.GetLabel()[0].GetValue() == "candidate" {
				i += 2
			}
			all[i] = int(m.GetCounter().GetValue())
		}
	}
	return all
}

// TestMigration: what moves is counted for the ring that it moves to, once, and as much as the split gives it.
func TestMigration(t *testing.T) {
	const keys = 32_000 // About 2,000 are watched.
	f, table := newFleet(t), movement.New()
	f.look(t, table, keys)
	if got := counts(t, table); got != [4]int{} {
		t.Errorf("keys that were never seen are counted: %v", got)
	}
	f.look(t, table, keys)
	first := counts(t, table)
	if watched := first[0]; watched < keys/movement.Sample*8/10 || watched > keys/movement.Sample*11/10 || first != [4]int{watched} {
		t.Fatalf("of %d keys that stay: %v", keys, first)
	}
	f.share(t, 2500)
	f.look(t, table, keys)
	moved := counts(t, table)
	if share := float64(moved[3]) / float64(first[0]); share < 0.2 || share > 0.3 || moved[2] != moved[3] || moved[1] != 0 {
		t.Errorf("after a quarter has moved: %v, %.3f of those that are watched", moved, share)
	}
	f.look(t, table, keys)
	if still := counts(t, table); still[3] != moved[3] || still[1] != 0 || still[2] != 2*moved[2] {
		t.Errorf("they are counted again: %v, then %v", moved, still)
	}
	f.share(t, 0)
	f.look(t, table, keys)
	if back := counts(t, table); back[1] != moved[3] || back[3] != moved[3] {
		t.Errorf("after they moved back: %v, then %v", moved, back)
	}
}

// TestFeatures: the same key with other features is another key.
func TestFeatures(t *testing.T) {
	f, table := newFleet(t), movement.New()
	for range 3 {
		f.look(t, table, 3200)
		f.look(t, table, 3200, "eu")
	}
	if got := counts(t, table); got[0] == 0 || got[1] != 0 {
		t.Errorf("%v", got)
	}
}

// TestFailover: a backend that is passed over is a change, and so is that it comes back.
func TestFailover(t *testing.T) {
	f, table := newFleet(t), movement.New()
	f.look(t, table, 3200)
	if !f.client.ReportFailed("a", ringclient.MaxPassOver) {
		t.Fatal("not reported")
	}
	f.look(t, table, 3200)
	gone := counts(t, table)
	f.client.ReportServing("a")
	f.look(t, table, 3200)
	if back := counts(t, table); gone[1] == 0 || back[1] != 2*gone[1] {
		t.Errorf("%v when it is gone, %v when it is back", gone, back)
	}
}

// TestBounds: however many keys there are, the table stays as it is, and a lookup allocates nothing.
func TestBounds(t *testing.T) {
	if size := unsafe.Sizeof(movement.Table{}); size > movement.Bytes+128 || movement.Bytes > 256<<10 {
		t.Errorf("the table has %d bytes", size)
	}
	f, table := newFleet(t), movement.New()
	keys, features := make([][]byte, 64), []string{"eu"}
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "videos/%d", i)
	}
	d, err := f.client.Pick(keys[0])
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		for _, key := range keys {
			table.Note(ring.Hash(key), nil, d)
			table.Note(ring.Hash(key), features, d)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	var nobody *movement.Table
	nobody.Note(0, nil, d) // Nothing happens.
	if problems, err := testutil.CollectAndLint(table); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}

// TestConcurrent has several goroutines look at once; the race detector looks on.
func TestConcurrent(t *testing.T) {
	f, table := newFleet(t), movement.New()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { f.look(t, table, 2000) })
	}
	group.Wait()
	if got := counts(t, table); got[1] != 0 || got[0] == 0 {
		t.Errorf("%v", got)
	}
}

// BenchmarkNote is of keys in turn, one in Sample of which is watched.
func BenchmarkNote(b *testing.B) {
	f, table := newFleet(b), movement.New()
	hashes := make([]uint32, 1024)
	for i := range hashes {
		hashes[i] = ring.Hash(fmt.Appendf(nil, "videos/%016x/720p.m3u8", i))
	}
	d, err := f.client.Pick([]byte("key"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		table.Note(hashes[i&1023], nil, d)
	}
}
