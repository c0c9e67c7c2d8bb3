// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
)

// vectorFile is one file of testdata: placements that another implementation computed.
type vectorFile struct {
	config ring.Config
	keys   []vectorLine
	iters  []vectorLine
	// connects maps what a backend is called on the ring to the address that NGINX connected to.
	connects map[string]string
}

type vectorLine struct {
	key    []byte
	owners []string
}

// names are the hosts of names.txt, as testdata/README.md maps them.
var names = map[string]string{"localhost": "127.0.0.1", "mixedcase.test": "127.0.0.23", "MixedCase.test": "127.0.0.23"}

func readVectors(t *testing.T, path string) vectorFile {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	v := vectorFile{connects: map[string]string{}}
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if err := v.add(strings.Fields(scanner.Text())); err != nil {
			t.Fatalf("%s: %q: %v", path, scanner.Text(), err)
		}
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v *vectorFile) add(fields []string) error {
	switch fields[0] {
	case "algorithm":
		v.config.Algorithm.Version = map[string]ring.Version{"v1": ring.V1, "v2": ring.V2, "nginx": ring.V1}[fields[1]]
		v.config.Identity = ring.IdentityAddress
		if fields[1] == "nginx" {
			v.config.Identity = ring.IdentityNGINX
		}
		_, err := fmt.Sscan(fields[2], &v.config.Algorithm.PointsPerWeight)
		return err
	case "backend", "server":
		var weight uint32
		if _, err := fmt.Sscan(fields[2], &weight); err != nil {
			return err
		}
		v.config.Backends = append(v.config.Backends, ring.Backend{ID: fields[1], Weight: weight})
		v.connects[fields[1]] = connectAddress(fields[1])
	case "key", "iter":
		key, err := hex.DecodeString(strings.TrimPrefix(fields[1], "-"))
		line := vectorLine{key, fields[2:]}
		if fields[0] == "key" {
			v.keys = append(v.keys, line)
		} else {
			v.iters = append(v.iters, line)
		}
		return err
	case "ties":
	default:
		return fmt.Errorf("unknown line")
	}
	return nil
}

// connectAddress is where NGINX connects for a server text: names resolved, port 80 where none is given.
func connectAddress(server string) string {
	host, port, found := strings.Cut(server, ":")
	if strings.HasPrefix(server, "[") {
		end := strings.Index(server, "]")
		host, port, found = server[:end+1], strings.TrimPrefix(server[end+1:], ":"), len(server) > end+1
	}
	if !found {
		port = "80"
	}
	if ip, ok := names[host]; ok {
		host = ip
	}
	return host + ":" + port
}

func TestVectors(t *testing.T) {
	files, err := filepath.Glob("testdata/[np]*/*.txt") // Of NGINX and pingora.
	if err != nil || len(files) != 11 {
		t.Fatalf("found %d vector files (%v), want 11", len(files), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			v := readVectors(t, path)
			r, err := ring.Build(v.config)
			if err != nil {
				t.Fatal(err)
			}
			checkOwners(t, r, v)
			checkIterators(t, r, v)
			if err := r.Verify(); err != nil {
				t.Error(err)
			}
		})
	}
}

func checkOwners(t *testing.T, r *ring.Ring, v vectorFile) {
	t.Helper()
	if len(v.keys) < 30 {
		t.Fatalf("only %d keys", len(v.keys))
	}
	for _, line := range v.keys {
		owner, err := r.Owner(ring.Hash(line.key))
		if err != nil {
			t.Fatal(err)
		}
		want := line.owners[0]
		if got := r.ID(owner); got != want && v.connects[got] != want {
			t.Errorf("key %x: owner %s, want %s", line.key, got, want)
		}
	}
}

func checkIterators(t *testing.T, r *ring.Ring, v vectorFile) {
	t.Helper()
	for _, line := range v.iters {
		var got []string
		for owner := range r.Points(ring.Hash(line.key)) {
			if got = append(got, r.ID(owner)); len(got) == len(line.owners) {
				break
			}
		}
		if !slices.Equal(got, line.owners) {
			t.Errorf("iterator of %x:\n got %v\nwant %v", line.key, got, line.owners)
		}
	}
}

// TestAddressesAsPingoraPrintsThem guards the one place in which Go and Rust could print an address differently.
func TestAddressesAsPingoraPrintsThem(t *testing.T) {
	for _, text := range []string{"[::1]:443", "[::ffff:10.1.2.3]:80", "[2001:db8:4306::ff1]:11540", "89.32.27.187:30163"} {
		if got := netip.MustParseAddrPort(text).String(); got != text {
			t.Errorf("%s is printed as %s", text, got)
		}
	}
}
