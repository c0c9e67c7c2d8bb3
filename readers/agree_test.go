// SPDX-License-Identifier: Apache-2.0

package readers_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// TestReadersAgree: all readers refuse the same of some thousand snapshots that were edited at random, and find the same
// in the others.
func TestReadersAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	all := fuzzSeeds(t)
	for range 120 {
		good := randomSnapshot(t, rng, randomRing(rng))
		all = append(all, good)
		for range 15 {
			all = append(all, disturb(rng, good))
		}
	}
	all = append(all, namedRing{"large", fleet(2048, 160), false}.build(t))
	if last := len(all[len(all)-1]); last < 1<<20 {
		t.Fatalf("the large one has %d bytes", last)
	}
	var question []byte
	want := make([]string, len(all))
	accepted := 0
	for i, data := range all {
		question = append(binary.LittleEndian.AppendUint32(question, uint32(len(data))), data...)
		want[i] = "refused"
		if sum, ok := summary(data); ok {
			want[i] = fmt.Sprintf("%08x", sum)
			accepted++
		}
	}
	if refused := len(all) - accepted; accepted < 200 || refused < 200 {
		t.Fatalf("%d accepted, %d refused: not much of a test", accepted, refused)
	}
	agree(t, "open", question, want, func(i int) string { return fmt.Sprintf("snapshot %d: %.1600x", i, all[i]) })
}

// disturb edits one or two places of a snapshot, and gives it the length and the checksum that it should have.
func disturb(rng *rand.Rand, good []byte) []byte {
	b := append([]byte(nil), good...)
	for range 1 + rng.IntN(2) {
		at := rng.IntN(len(b))
		switch rng.IntN(6) {
		case 0:
			b[at] ^= 1 << rng.IntN(8)
		case 1:
			b[at] = byte(rng.Uint32())
		case 2:
			b[at]++
		case 3:
			b = append(b[:at], b[min(at+8, len(b)):]...)
		case 4:
			b = append(b[:at], append(make([]byte, 8), b[at:]...)...)
		default: // Exchange two bytes: counts, weights and entries stay what they are in sum.
			other := min(at+1+rng.IntN(8), len(b)-1)
			b[at], b[other] = b[other], b[at]
		}
		if len(b) == 0 {
			return b
		}
	}
	return relength(b)
}

// TestDecisionsAgree: all readers decide the same from some hundred directories.
func TestDecisionsAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 2))
	root := t.TempDir()
	var question strings.Builder
	var want, what []string
	kinds := map[string]int{}
	for i := range 400 {
		dir := filepath.Join(root, fmt.Sprint(i))
		files := randomPublication(t, rng).files(t)
		how := "whole"
		if rng.IntN(6) == 0 {
			how = spoil(rng, files)
		}
		layouts[rng.IntN(len(layouts))](t, dir, files)
		for _, datacenter := range []string{"", "lab01", "elsewhere"} {
			c := openDirectory(dir, datacenter)
			for range 4 {
				features, n, key := randomFeatures(rng), 1+rng.IntN(4), randomKey(rng)
				question.WriteString(tabs(dir, datacenter, strings.Join(features, ","), n, hex.EncodeToString(key)))
				answer, kind := decide(c, key, features, n)
				want = append(want, answer)
				what = append(what, fmt.Sprintf("directory %d, %s, datacenter %q, features %q, n %d, key %x\n%s", i, how, datacenter, features, n, key, files["routing.json"]))
				kinds[kind]++
			}
			if c != nil {
				_ = c.Close()
			}
		}
	}
	for _, kind := range []string{"not loaded", "nobody", "unknown feature", "stable", "candidate", "failover"} {
		if kinds[kind] < 20 {
			t.Errorf("only %d decisions of kind %q among %v: not much of a test", kinds[kind], kind, kinds)
		}
	}
	agree(t, "decide", []byte(question.String()), want, func(i int) string { return what[i] })
}

// openDirectory returns nil where nothing can be loaded.
func openDirectory(dir, datacenter string) *ringclient.Client {
	c, err := ringclient.Open(dir, ringclient.Options{Datacenter: datacenter, PollOnly: true, PollInterval: time.Hour})
	if err != nil {
		return nil
	}
	return c
}

// decide returns the answer of Go, and of what kind it is.
func decide(c *ringclient.Client, key []byte, features []string, n int) (answer, kind string) {
	if c == nil {
		return "not loaded", "not loaded"
	}
	decisions, err := c.Lookup(key, features, n)
	var unknown *ring.UnknownFeatureError
	switch {
	case errors.As(err, &unknown):
		return "unknown feature", "unknown feature"
	case errors.Is(err, ring.ErrNoBackend):
		return "nobody", "nobody"
	case err != nil:
		return err.Error(), "error"
	}
	for _, d := range decisions {
		answer += fmt.Sprintf("%s|%s|%s|%d|%s|%d|%s|%d|%v ", d.ID(), d.Address(), d.Zone(), d.Weight(), d.Role(), d.Revision(), d.Digest(), d.Generation(), d.Failover())
	}
	if decisions[0].Failover() {
		return answer, "failover"
	}
	return answer, decisions[0].Role().String()
}

func randomFeatures(rng *rand.Rand) []string {
	var features []string
	for i, name := range []string{"eu", "gpu", "ssd", "tape"} {
		if rng.IntN(3+2*i) == 0 {
			features = append(features, name)
		}
	}
	return features
}

func randomKey(rng *rand.Rand) []byte {
	key := make([]byte, rng.IntN(24))
	for i := range key {
		key[i] = byte(rng.Uint32())
	}
	return key
}

// writePlain writes files into a directory that nobody swaps.
func writePlain(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	for name, content := range files {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
