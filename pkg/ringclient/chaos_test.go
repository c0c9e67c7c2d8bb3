// SPDX-License-Identifier: Apache-2.0

package ringclient_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

// chaosKeys are what readers ask for all the time.
const chaosKeys = 16

// truth says who owns the keys in each generation, computed from the rings and not by a client.
type truth struct {
	mu     sync.RWMutex
	owners map[int64][chaosKeys]string
}

func (tr *truth) add(t *testing.T, p publication) {
	var want [chaosKeys]string
	for i := range want {
		key := splitKey(i)
		r := p.snapshot
		if p.candidate != nil && routing.Bucket(ring.Hash(key), p.split.Seed) < p.split.In("lab") {
			r = p.candidate
		}
		order := owners(t, r, string(key), r.Len())
		want[i] = order[0]
		if up := slices.IndexFunc(order, func(id string) bool { return !slices.Contains(p.down, id) }); up >= 0 {
			want[i] = order[up]
		}
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.owners[p.generation] = want
}

// check asks for one key and returns what is wrong with the answer, or "".
func (tr *truth) check(c *ringclient.Client, i int, last *int64) string {
	d, err := c.Pick(splitKey(i))
	if err != nil {
		return err.Error()
	}
	tr.mu.RLock()
	want := tr.owners[d.Generation()][i]
	tr.mu.RUnlock()
	switch {
	case d.ID() != want:
		return fmt.Sprintf("generation %d, key %d: %s, want %s", d.Generation(), i, d.ID(), want)
	case d.Generation() < *last:
		return fmt.Sprintf("generation %d after %d", d.Generation(), *last)
	}
	*last = d.Generation()
	return ""
}

// chaos is a directory in which files are written in all the wrong ways.
type chaos struct {
	t      *testing.T
	random *rand.Rand
	dir    string
	client *ringclient.Client
	rings  []*ring.Ring
	// loading is held while the client reads: it does so one load at a time.
	loading sync.Mutex
	// writes counts what was written.
	writes int
}

// publication returns the next one, of random rings, shares and backends that are down.
func (ch *chaos) publication(generation int64) publication {
	p := published(generation, ch.rings[ch.random.IntN(len(ch.rings))])
	if ch.random.IntN(2) == 0 {
		p.slot = routing.SlotB
	}
	if ch.random.IntN(3) > 0 {
		p.candidate = ch.rings[ch.random.IntN(len(ch.rings))]
		p.split = &routing.Split{Seed: ch.random.Uint32(), BasisPoints: map[string]int{"lab": ch.random.IntN(routing.MaxBasisPoints + 1)}}
	}
	for i := range 3 {
		if ch.random.IntN(4) == 0 {
			p.down = append(p.down, fmt.Sprintf("10.0.0.%d:8080", i+1))
		}
	}
	return p
}

// load is what an event causes.
func (ch *chaos) load() error {
	ch.loading.Lock()
	defer ch.loading.Unlock()
	return ch.client.LoadNow()
}

// loadUntil loads all the time, so that loads fall into writes, and between them. That most fail is no surprise here; what readers get
// is checked elsewhere.
func (ch *chaos) loadUntil(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
			_ = ch.load()
			runtime.Gosched()
		}
	}
}

// writeInPlace brings a file of a plain directory to its content by ways of which each leaves something else behind for a while.
func (ch *chaos) writeInPlace(name string, content []byte) {
	path := filepath.Join(ch.dir, name)
	write := func(part []byte) {
		ch.writes++
		if err := os.WriteFile(path, part, 0o600); err != nil {
			ch.t.Fatal(err)
		}
	}
	switch ch.random.IntN(4) {
	case 0: // Cut short.
		write(content[:ch.random.IntN(len(content))])
	case 1: // A flipped bit.
		flipped := slices.Clone(content)
		flipped[ch.random.IntN(len(flipped))] ^= 1 << ch.random.IntN(8)
		write(flipped)
	case 2: // Gone.
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			ch.t.Fatal(err)
		}
	case 3: // The new beginning before the old end.
		if old, err := os.ReadFile(path); err == nil && len(old) > 0 {
			half := ch.random.IntN(min(len(old), len(content)) + 1)
			write(append(slices.Clone(content[:half]), old[half:]...))
		}
	}
	if ch.random.IntN(2) == 0 {
		_ = ch.load()
	}
	write(content)
}

// TestNoWrongOwnerEver writes a thousand times, half of them in each layout, in the wrong order, in part, or not at all, while the client loads and readers
// ask: each answer is that of a generation as it was published, and none goes back. In between the client gets at every generation that is
// there whole.
func TestNoWrongOwnerEver(t *testing.T) {
	for name, volumes := range map[string]bool{"plain directory": false, "volumes of different moments": true} {
		t.Run(name, func(t *testing.T) {
			ch := &chaos{t: t, random: rand.New(rand.NewPCG(5, 1)), dir: t.TempDir()}
			for n := 4; n < 9; n++ {
				ch.rings = append(ch.rings, addressRing(t, n))
			}
			var err error
			if ch.client, err = ringclient.NewUnstarted(ch.dir, ringclient.Options{Datacenter: "lab"}); err != nil {
				t.Fatal(err)
			}
			tr := &truth{owners: map[int64][chaosKeys]string{}}
			stop, problems, loaded := make(chan struct{}), make(chan string, 2), make(chan struct{})
			for generation := int64(1); ch.writes < 500; generation++ {
				p := ch.publication(generation)
				tr.add(t, p)
				ch.write(p.files(t), volumes)
				if err := ch.load(); err != nil || ch.client.State().Generation() != generation {
					t.Fatalf("generation %d is there whole: %v", generation, err)
				}
				if generation == 1 {
					go func() { ch.loadUntil(stop); close(loaded) }()
					for range 2 {
						go func() { problems <- tr.checkUntil(stop, ch.client) }()
					}
				}
			}
			close(stop)
			<-loaded
			for range 2 {
				if problem := <-problems; problem != "" {
					t.Error(problem)
				}
			}
		})
	}
}

// write brings all files to their content, in a random order.
func (ch *chaos) write(files map[string][]byte, volumes bool) {
	if !volumes {
		names := []string{"ring-a.snap", "ring-b.snap", "routing.json"}
		ch.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names {
			ch.writeInPlace(name, files[name])
		}
		return
	}
	parts := folders(files)
	names := []string{"a", "b", "routing"}
	ch.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		ch.writes++
		mount(ch.t, filepath.Join(ch.dir, name), parts[name])
		if ch.random.IntN(2) == 0 {
			_ = ch.load()
		}
	}
}

// checkUntil returns the first wrong answer, or "".
func (tr *truth) checkUntil(stop <-chan struct{}, c *ringclient.Client) string {
	last := int64(0)
	for i := 0; ; i++ {
		select {
		case <-stop:
			return ""
		default:
		}
		if problem := tr.check(c, i%chaosKeys, &last); problem != "" {
			return problem
		}
		runtime.Gosched() // Else the writer gets a processor every ten milliseconds only.
	}
}
