// SPDX-License-Identifier: Apache-2.0

package ringclient_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

// TestStatsByRing counts what each ring answers in each role. A ring that returns counts on.
func TestStatsByRing(t *testing.T) {
	stable, candidate := addressRing(t, 9), addressRing(t, 12)
	dir := t.TempDir()
	c, err := ringclient.NewUnstarted(dir, ringclient.Options{Datacenter: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	load := func(p publication, lookups int) {
		t.Helper()
		mount(t, dir, p.files(t))
		if err := c.LoadNow(); err != nil {
			t.Fatal(err)
		}
		for i := range lookups {
			if _, err := c.Lookup(splitKey(i), nil, 1+i%2); err != nil {
				t.Fatal(err)
			}
		}
	}
	first := published(1, stable)
	first.revisions[0] = 7
	load(first, 5)
	load(migration(2, stable, candidate, 0), 4)
	old := mustLookup(t, c, splitKey(0), 1)[0]
	load(migration(3, stable, candidate, routing.MaxBasisPoints), 3)
	old.CountError() // It counts for the ring that gave the backend, whatever is loaded by then.
	lookedUp := mustLookup(t, c, splitKey(0), 2)
	lookedUp[0].CountError()
	lookedUp[1].CountError()
	last := published(4, candidate)
	last.slot, last.revisions[0], last.down = routing.SlotB, 8, ids(mustLookup(t, c, splitKey(0), 1))
	load(last, 1)
	want := []ringclient.RingStats{
		{Role: ringclient.Stable, Revision: 8, Digest: candidate.Digest(), Selections: 1, Failovers: 1},
		{Role: ringclient.Stable, Revision: 7, Digest: stable.Digest(), Selections: 10, Errors: 1},
		{Role: ringclient.Candidate, Revision: 8, Digest: candidate.Digest(), Selections: 5, Errors: 2},
	}
	stats := c.Stats()
	if diff := cmp.Diff(want, stats.Rings); diff != "" {
		t.Errorf("by ring (-want +got):\n%s", diff)
	}
	if stats.Selections != 16 || stats.Failovers != 1 || stats.Errors != 3 {
		t.Errorf("%d selections, %d failovers and %d errors together", stats.Selections, stats.Failovers, stats.Errors)
	}
}

func mustLookup(t *testing.T, c *ringclient.Client, key []byte, n int) []ringclient.Decision {
	t.Helper()
	got, err := c.Lookup(key, nil, n)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestStatsAreBounded loads more rings than are counted one by one. The sums keep them all.
func TestStatsAreBounded(t *testing.T) {
	dir := t.TempDir()
	c, err := ringclient.NewUnstarted(dir, ringclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := addressRing(t, 3)
	const revisions = ringclient.MaxRingStats + 5
	for revision := int64(1); revision <= revisions; revision++ {
		p := published(revision, r)
		p.revisions[0] = revision
		mount(t, dir, p.files(t))
		if err := c.LoadNow(); err != nil {
			t.Fatal(err)
		}
		mustLookup(t, c, []byte("key"), 1)[0].CountError()
	}
	stats := c.Stats()
	if len(stats.Rings) != ringclient.MaxRingStats || stats.Rings[0].Revision != revisions || stats.Selections != revisions ||
		stats.Errors != revisions {
		t.Errorf("%d rings, the first of revision %d, %d selections, %d errors", len(stats.Rings), stats.Rings[0].Revision, stats.Selections, stats.Errors)
	}
}
