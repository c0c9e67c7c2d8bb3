// SPDX-License-Identifier: Apache-2.0

package ringclient_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

// TestKeepsLastGoodRing swaps something in that must not be taken, and then something that must.
func TestKeepsLastGoodRing(t *testing.T) {
	first, second := addressRing(t, 9), addressRing(t, 8)
	next := published(6, second)
	next.slot = routing.SlotB
	other := next
	other.ring = "cdn/other"
	lower := next
	lower.generation = 4
	with := func(name string, content []byte) map[string][]byte {
		files := next.files(t)
		files[name] = content
		return files
	}
	for name, tc := range map[string]struct {
		bad  map[string][]byte
		want ringclient.Reason
	}{
		"routing cut short":         {with("routing.json", []byte(`{"apiVersion"`)), ringclient.ReasonRouting},
		"routing empty":             {with("routing.json", nil), ringclient.ReasonRouting},
		"snapshot cut short":        {with("ring-b.snap", second.Snapshot()[:100]), ringclient.ReasonDigest},
		"digest not there yet":      {with("ring-b.snap", first.Snapshot()), ringclient.ReasonDigest},
		"slot is empty":             {with("ring-b.snap", ring.EmptySlot()), ringclient.ReasonEmptySlot},
		"of another ring":           {other.files(t), ringclient.ReasonOtherRing},
		"of a lower generation":     {lower.files(t), ringclient.ReasonRegression},
		"routing file gone":         {map[string][]byte{"ring-b.snap": second.Snapshot()}, ringclient.ReasonMissing},
		"slot gone, routing stayed": {map[string][]byte{"routing.json": next.files(t)["routing.json"]}, ringclient.ReasonMissing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			mount(t, dir, published(5, first).files(t))
			c := open(t, dir, ringclient.Options{})
			mount(t, dir, tc.bad)
			eventually(t, "the failure", func() bool { return c.Stats().LastError != nil })
			if failure := c.Stats().LastError; failure.Reason != tc.want || !failure.Current || failure.At.IsZero() {
				t.Errorf("failure %+v, want a current one of reason %s", failure, tc.want)
			}
			if n := c.Stats().LoadErrors[tc.want]; n == 0 {
				t.Errorf("counted %v, want some %s", c.Stats().LoadErrors, tc.want)
			}
			checkAnswers(t, c, 5, first)
			mount(t, dir, next.files(t))
			waitForGeneration(t, c, 6)
			checkAnswers(t, c, 6, second)
			if failure := c.Stats().LastError; failure == nil || failure.Current {
				t.Errorf("failure %+v, want a past one", failure)
			}
		})
	}
}

// TestFollowsARecreatedRing: it counts generations anew, and its UID tells.
func TestFollowsARecreatedRing(t *testing.T) {
	first, second := addressRing(t, 9), addressRing(t, 8)
	before, after := published(5, first), published(1, second)
	before.uid, after.uid = "uid-1", "uid-2"
	dir := t.TempDir()
	mount(t, dir, before.files(t))
	c := open(t, dir, ringclient.Options{})
	mount(t, dir, after.files(t))
	waitForGeneration(t, c, 1)
	checkAnswers(t, c, 1, second)
}

func checkAnswers(t *testing.T, c *ringclient.Client, generation int64, r *ring.Ring) {
	t.Helper()
	got, err := c.Lookup([]byte("key"), nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(owners(t, r, "key", 2), ids(got)); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if got[0].Generation() != generation || got[0].Digest() != r.Digest() {
		t.Errorf("answered by generation %d, %s; want %d, %s", got[0].Generation(), got[0].Digest(), generation, r.Digest())
	}
}

// TestEverySwapIsSeen would fail at the second swap if the watch were on a file or on "..data".
func TestEverySwapIsSeen(t *testing.T) {
	rings := []*ring.Ring{addressRing(t, 5), addressRing(t, 6)}
	layouts := map[string]func(dir string, files map[string][]byte){
		"one volume": func(dir string, files map[string][]byte) { mount(t, dir, files) },
		"three volumes": func(dir string, files map[string][]byte) {
			for name, content := range folders(files) {
				mount(t, filepath.Join(dir, name), content)
			}
		},
		"plain directory": func(dir string, files map[string][]byte) { writePlain(t, dir, files) },
	}
	for name, lay := range layouts {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			lay(dir, published(1, rings[1]).files(t))
			c := open(t, dir, ringclient.Options{})
			for generation := int64(2); generation < 20; generation++ {
				r := rings[generation%2]
				lay(dir, published(generation, r).files(t))
				waitForGeneration(t, c, generation)
				checkAnswers(t, c, generation, r)
			}
		})
	}
}

func TestSameDigestIsNotOpenedAgain(t *testing.T) {
	config := ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 20}, Identity: ring.IdentityName,
		Backends: []ring.Backend{{ID: "cache-0", Weight: 1}},
	}
	p := published(1, build(t, config))
	p.addresses = map[string]string{"cache-0": "10.0.0.1:80"}
	dir := t.TempDir()
	mount(t, dir, p.files(t))
	c := open(t, dir, ringclient.Options{})
	before := c.State()

	p.generation, p.addresses = 2, map[string]string{"cache-0": "10.0.0.2:80"}
	files := p.files(t)
	delete(files, "ring-a.snap") // It is not read, so it need not be there.
	mount(t, dir, files)
	waitForGeneration(t, c, 2)
	if c.State().Ring() != before.Ring() {
		t.Error("the snapshot was opened again")
	}
	got, err := c.Lookup([]byte("key"), nil, 1)
	if err != nil || got[0].Address() != "10.0.0.2:80" {
		t.Errorf("lookup after the address changed: %+v, %v", got, err)
	}
	if old, err := before.AppendDecisions(nil, []byte("key"), nil, 1); err != nil || old[0].Address() != "10.0.0.1:80" {
		t.Errorf("the state before changed: %+v, %v", old, err)
	}
}

// TestEqualGenerationIsTaken is what happens when a directory is emptied and "kubectl hashring build" fills it again.
func TestEqualGenerationIsTaken(t *testing.T) {
	dir := t.TempDir()
	writePlain(t, dir, published(1, addressRing(t, 5)).files(t))
	c := open(t, dir, ringclient.Options{})
	second := addressRing(t, 6)
	writePlain(t, dir, published(1, second).files(t))
	eventually(t, "the second ring", func() bool { return c.State().Digest() == second.Digest() })
	checkAnswers(t, c, 1, second)
}

func TestWaitsForMissingDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	c := open(t, dir, ringclient.Options{WaitForRing: true, PollInterval: ringclient.MinPollInterval})
	if c.Stats().WatchError == "" {
		t.Error("a directory that does not exist is said to be watched")
	}
	if failure := c.Stats().LastError; failure == nil || failure.Reason != ringclient.ReasonMissing {
		t.Errorf("failure %+v, want reason missing", failure)
	}
	mount(t, dir, published(1, addressRing(t, 5)).files(t))
	if err := c.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the watch", func() bool { return c.Stats().WatchError == "" })
}

// TestDirectoryVanishesAndReturns replaces the directory itself, which no kubelet does and no watch outlives.
func TestDirectoryVanishesAndReturns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ring")
	first, second := addressRing(t, 5), addressRing(t, 6)
	mount(t, dir, published(1, first).files(t))
	c := open(t, dir, ringclient.Options{PollInterval: 20 * time.Millisecond})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the failure", func() bool { return c.Stats().LoadErrors[ringclient.ReasonMissing] > 0 })
	checkAnswers(t, c, 1, first)
	mount(t, dir, published(2, second).files(t))
	waitForGeneration(t, c, 2)
	checkAnswers(t, c, 2, second)
	eventually(t, "the watch", func() bool { return c.Stats().WatchError == "" })
}

// TestLookupsDuringSwaps reads all the time while the ring changes: each answer is that of one of the rings, whole.
func TestLookupsDuringSwaps(t *testing.T) {
	rings := []*ring.Ring{addressRing(t, 5), addressRing(t, 6), addressRing(t, 7)}
	truth := map[string][]string{}
	for _, r := range rings {
		truth[r.Digest()] = owners(t, r, "key", 3, "eu")
	}
	dir := t.TempDir()
	mount(t, dir, published(1, rings[1]).files(t))
	c := open(t, dir, ringclient.Options{})
	stop, failed := make(chan struct{}), make(chan string, 2)
	for range 2 {
		go func() { failed <- lookUpUntil(stop, c, truth) }()
	}
	for generation := int64(2); generation <= 40; generation++ {
		mount(t, dir, published(generation, rings[generation%3]).files(t))
		if generation%10 == 0 {
			waitForGeneration(t, c, generation)
		}
	}
	close(stop)
	for range 2 {
		if problem := <-failed; problem != "" {
			t.Error(problem)
		}
	}
	if stats := c.Stats(); len(stats.LoadErrors) > 0 {
		t.Errorf("loads failed: %v, %v", stats.LoadErrors, stats.LastError.Err)
	}
}

// lookUpUntil returns the first wrong answer, or "".
func lookUpUntil(stop <-chan struct{}, c *ringclient.Client, truth map[string][]string) string {
	var got []ringclient.Decision
	last := int64(0)
	for {
		select {
		case <-stop:
			return ""
		default:
		}
		var err error
		if got, err = c.AppendDecisions(got[:0], []byte("key"), []string{"eu"}, 3); err != nil {
			return "lookup failed: " + err.Error()
		}
		if diff := cmp.Diff(truth[got[0].Digest()], ids(got)); diff != "" {
			return "owners (-want +got):\n" + diff
		}
		if got[0].Generation() < last {
			return "the generation went back"
		}
		last = got[0].Generation()
	}
}
