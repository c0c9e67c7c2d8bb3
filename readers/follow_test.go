// SPDX-License-Identifier: Apache-2.0

package readers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/routingtest"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

// step is what a directory holds next, and what a reader does then.
type step struct {
	name string
	// files are nil where the directory is gone.
	files map[string][]byte
	// want is "loaded", "stale" or "refused", and then what is loaded: UID, leader epoch, generation.
	want string
}

// edited returns files with one of them changed; without content it is gone.
func edited(files map[string][]byte, name string, content []byte) map[string][]byte {
	next := map[string][]byte{}
	for other, c := range files {
		next[other] = c
	}
	if next[name] = content; content == nil {
		delete(next, name)
	}
	return next
}

// followSteps are what happens to a directory: a reader goes forward, keeps the last good ring, and never goes back.
func followSteps(t testing.TB) []step {
	t.Helper()
	one := namedRing{"one", fleet(20, 5), false}.build(t)
	two := namedRing{"two", fleet(21, 5), false}.build(t)
	pub := func(uid string, epoch, generation int64, snapshot []byte, chunks int) map[string][]byte {
		return publish(generation, epoch, uid, snapshot, ring.V2, chunks).files(t)
	}
	other := publish(99, 9, "u1", one, ring.V2, 1)
	other.file.Ring = "cdn/other"
	version := publish(30, 9, "u1", two, ring.V1, 1)
	both := publish(13, 4, "u1", two, ring.V2, 1)
	ref := routing.NewReference(routing.SlotB, ring.Digest(one), "V2", 2)
	both.file.Candidate, both.snapshots[routing.SlotB] = &ref, one
	migration := both.files(t)
	chunked := pub("u1", 4, 12, two, 3)
	future := edited(pub("u1", 4, 20, two, 1), routing.FileName, []byte(routingtest.Reseal(strings.Replace(string(migration[routing.FileName]), "{", `{"weights":1,`, 1))))
	return []step{
		{"nothing there", nil, "refused none"},
		{"an empty slot", edited(pub("u1", 3, 7, one, 1), "ring-a.snap", ring.EmptySlot()), "refused none"},
		{"the first", pub("u1", 3, 7, one, 1), "loaded u1 3 7"},
		{"the next", pub("u1", 3, 8, two, 1), "loaded u1 3 8"},
		{"a generation back", pub("u1", 3, 7, one, 1), "stale u1 3 8"},
		{"a former leader", pub("u1", 2, 100, one, 1), "stale u1 3 8"},
		{"no leader", pub("u1", 0, 101, one, 1), "stale u1 3 8"},
		{"a new leader counts on", pub("u1", 4, 9, one, 1), "loaded u1 4 9"},
		{"a new leader may count lower", pub("u1", 5, 2, two, 1), "loaded u1 5 2"},
		{"another HashRing of the name", pub("u2", 1, 1, one, 1), "loaded u2 1 1"},
		{"and back", pub("u1", 4, 10, two, 1), "loaded u1 4 10"},
		{"the same generation with other content", pub("u1", 4, 10, one, 1), "loaded u1 4 10"},
		{"another ring", other.files(t), "refused u1 4 10"},
		{"the directory is gone", nil, "refused u1 4 10"},
		{"routing.json is gone", edited(pub("u1", 4, 11, two, 1), routing.FileName, nil), "refused u1 4 10"},
		{"the slot is gone", edited(pub("u1", 4, 11, two, 1), "ring-a.snap", nil), "refused u1 4 10"},
		{"the slot is older", edited(pub("u1", 4, 11, two, 1), "ring-a.snap", one[:len(one)-8]), "refused u1 4 10"},
		{"a flipped bit", edited(pub("u1", 4, 11, two, 1), "ring-a.snap", flip(two, 4711)), "refused u1 4 10"},
		{"a chunk is missing", edited(chunked, "ring-a.snap.2", nil), "refused u1 4 10"},
		{"a chunk is empty", edited(chunked, "ring-a.snap.1", []byte{}), "refused u1 4 10"},
		{"a chunk is empty and the rest is whole", edited(edited(edited(chunked, "ring-a.snap", two), "ring-a.snap.1", []byte{}), "ring-a.snap.2", []byte{}), "refused u1 4 10"},
		{"all chunks", chunked, "loaded u1 4 12"},
		{"the candidate is missing", edited(migration, "ring-b.snap", nil), "refused u1 4 12"},
		{"half of the candidate is of another moment", edited(migration, "ring-b.snap.1", []byte("another")), "refused u1 4 12"},
		{"both rings", migration, "loaded u1 4 13"},
		{"another algorithm than it says", version.files(t), "refused u1 4 13"},
		{"a later routing.json", future, "refused u1 4 13"},
		{"the first again", pub("u1", 4, 14, two, 1), "loaded u1 4 14"},
	}
}

// TestFollow: what the steps say is what Go does, and all readers do the same.
func TestFollow(t *testing.T) {
	root := t.TempDir()
	steps := followSteps(t)
	var question strings.Builder
	var want []string
	for i, s := range steps {
		dir := filepath.Join(root, fmt.Sprint(i))
		if s.files != nil {
			layouts[i%len(layouts)](t, dir, s.files)
		}
		question.WriteString(dir + "\n")
		want = append(want, s.want)
	}
	t.Run("Go", func(t *testing.T) { followInGo(t, root, steps) })
	t.Run("others", func(t *testing.T) {
		agree(t, "follow", []byte(question.String()), want, func(i int) string { return steps[i].name })
	})
}

// followInGo gives a client one directory after the other, by a link that points to each in turn.
func followInGo(t *testing.T, root string, steps []step) {
	link := filepath.Join(root, "now")
	c, err := ringclient.Open(link, ringclient.Options{WaitForRing: true, PollOnly: true, PollInterval: ringclient.MinPollInterval})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for i, s := range steps {
		before := c.Stats().Loads
		if err := os.Symlink(filepath.Join(root, fmt.Sprint(i)), link+".next"); err != nil {
			t.Fatal(err)
		}
		at := time.Now()
		if err := os.Rename(link+".next", link); err != nil {
			t.Fatal(err)
		}
		waitFor(t, s.name, func() bool {
			stats := c.Stats()
			return stats.Loads > before || stats.LastError != nil && stats.LastError.Current && stats.LastError.At.After(at)
		})
		if got := outcome(c, before); got != s.want {
			t.Errorf("%s: %s, want %s", s.name, got, s.want)
		}
	}
}

func outcome(c *ringclient.Client, before uint64) string {
	stats := c.Stats()
	how := "refused"
	switch {
	case stats.Loads > before:
		how = "loaded"
	case stats.LoadErrors[ringclient.ReasonRegression] > 0 && strings.Contains(stats.LastError.Err.Error(), "the loaded one is") &&
		!strings.Contains(stats.LastError.Err.Error(), "of ring"):
		how = "stale"
	}
	state := c.State()
	if state == nil {
		return how + " none"
	}
	return fmt.Sprintf("%s %s %d %d", how, state.UID(), state.LeaderEpoch(), state.Generation())
}

func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}
