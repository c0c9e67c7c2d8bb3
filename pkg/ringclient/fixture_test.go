// SPDX-License-Identifier: Apache-2.0

package ringclient_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ringwright/ringwright/internal/materialize"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// publication is what a HashRing publishes at one moment.
type publication struct {
	ring       string
	uid        string
	generation int64
	slot       routing.Slot
	snapshot   *ring.Ring
	addresses  map[string]string
	down       []string
	// chunks is how many files the snapshot is cut into; 0 is one.
	chunks int
	epoch  int64
	// candidate is in the other slot; nil where there is none.
	candidate *ring.Ring
	// split may be set with a candidate only. Revisions are of stable and candidate.
	split     *routing.Split
	revisions [2]int64
}

// published returns a publication of slot a of ring cdn/edge.
func published(generation int64, r *ring.Ring) publication {
	return publication{ring: "cdn/edge", generation: generation, slot: routing.SlotA, snapshot: r}
}

// files returns the files of the publication by name. The other slot is empty.
func (p publication) files(t testing.TB) map[string][]byte {
	t.Helper()
	file := routing.File{
		APIVersion: routing.APIVersion, Ring: p.ring, UID: p.uid, Generation: p.generation, Addresses: p.addresses, Down: p.down,
		Stable: routing.NewReference(p.slot, p.snapshot.Digest(), p.snapshot.Algorithm().Version.String(), p.chunks),
	}
	file.LeaderEpoch, file.Stable.Revision, file.Split = p.epoch, p.revisions[0], p.split
	other := map[routing.Slot]routing.Slot{routing.SlotA: routing.SlotB, routing.SlotB: routing.SlotA}[p.slot]
	if p.candidate != nil {
		candidate := routing.NewReference(other, p.candidate.Digest(), p.candidate.Algorithm().Version.String(), 1)
		candidate.Revision = p.revisions[1]
		file.Candidate = &candidate
	}
	encoded, err := file.Encode()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{
		routing.SlotA.FileName(): ring.EmptySlot(), routing.SlotB.FileName(): ring.EmptySlot(), routing.FileName: encoded,
	}
	if p.candidate != nil {
		files[other.FileName()] = p.candidate.Snapshot()
	}
	rest, names := p.snapshot.Snapshot(), file.Stable.Files()
	for i, name := range names {
		n := len(rest) / (len(names) - i)
		files[name], rest = rest[:n], rest[n:]
	}
	return files
}

// addressRing builds a ring of n backends 10.0.0.1:8080 and up, each with the weight of its place from 1 on, every second
// one with feature "eu", every third with "ssd", in zones a and b in turn.
func addressRing(t testing.TB, n int) *ring.Ring {
	t.Helper()
	c := ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 40}, Identity: ring.IdentityAddress,
		Features: []string{"eu", "none", "ssd"},
	}
	for i := range n {
		b := ring.Backend{ID: fmt.Sprintf("10.0.0.%d:8080", i+1), Weight: uint32(i + 1), Zone: string(rune('a' + i%2))}
		if i%2 == 0 {
			b.Features = append(b.Features, "eu")
		}
		if i%3 == 0 {
			b.Features = append(b.Features, "ssd")
		}
		c.Backends = append(c.Backends, b)
	}
	return build(t, c)
}

func build(t testing.TB, c ring.Config) *ring.Ring {
	t.Helper()
	r, err := ring.Build(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// mount writes files into dir as kubelet does.
func mount(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	if err := materialize.Write(dir, files); err != nil {
		t.Fatal(err)
	}
}

// writePlain writes files into dir as "kubectl hashring build" does.
func writePlain(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	for name, content := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// open opens dir with a poll that never comes in a test's time, so that only events can bring a change.
func open(t testing.TB, dir string, options ringclient.Options) *ringclient.Client {
	t.Helper()
	if options.PollInterval == 0 {
		options.PollInterval = time.Hour
	}
	c, err := ringclient.Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// eventually waits until a condition holds; what says for what.
func eventually(t testing.TB, what string, holds func() bool) {
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

// waitForGeneration waits until the client holds a generation.
func waitForGeneration(t testing.TB, c *ringclient.Client, generation int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("generation %d", generation), func() bool {
		s := c.State()
		return s != nil && s.Generation() == generation
	})
}

// ids returns the identities of decisions.
func ids(decisions []ringclient.Decision) []string {
	var list []string
	for _, d := range decisions {
		list = append(list, d.ID())
	}
	return list
}

// owners returns the identities that a ring gives for a key.
func owners(t testing.TB, r *ring.Ring, key string, n int, features ...string) []string {
	t.Helper()
	view, err := r.View(features...)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, owner := range view.AppendOwners(nil, ring.Hash([]byte(key)), n, nil) {
		list = append(list, r.ID(owner))
	}
	return list
}
