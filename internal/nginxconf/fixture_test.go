// SPDX-License-Identifier: Apache-2.0

package nginxconf_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/materialize"
	"github.com/ringwright/ringwright/internal/nginxconf"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

// configOf returns the configuration of a V1 ring over servers with the weights 1, 2, 3 and so on.
func configOf(identity ring.Identity, servers ...string) ring.Config {
	c := ring.Config{Algorithm: ring.Algorithm{Version: ring.V1, PointsPerWeight: ring.V1PointsPerWeight}, Identity: identity}
	for i, s := range servers {
		c.Backends = append(c.Backends, ring.Backend{ID: s, Weight: uint32(1 + i)})
	}
	return c
}

func build(t *testing.T, c ring.Config) *ring.Ring {
	t.Helper()
	r, err := ring.Build(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// moment returns what is loaded of a ring without a candidate.
func moment(t *testing.T, r *ring.Ring, down ...string) nginxconf.Moment {
	t.Helper()
	return momentWith(t, r, func(f *routing.File) { f.Down = slices.Sorted(slices.Values(down)) })
}

// momentWith loads a ring with another routing file.
func momentWith(t *testing.T, r *ring.Ring, change func(f *routing.File)) nginxconf.Moment {
	t.Helper()
	dir := t.TempDir()
	file := routing.File{APIVersion: routing.APIVersion, Ring: "cdn/edge", Generation: 7}
	file.Stable = routing.NewReference(routing.SlotA, r.Digest(), r.Algorithm().Version.String(), 1)
	file.Stable.Revision = 3
	change(&file)
	install(t, dir, file, map[string][]byte{"ring-a.snap": r.Snapshot()})
	client, err := ringclient.Open(dir, ringclient.Options{PollOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return nginxconf.Moment{Ring: "cdn/edge", Generation: 7, Stable: client.State().Stable()}
}

func candidateOf(t *testing.T, r *ring.Ring) *ringclient.Loaded {
	t.Helper()
	loaded := moment(t, r).Stable
	return &loaded
}

// install writes a routing file and snapshots into dir.
func install(t *testing.T, dir string, file routing.File, files map[string][]byte) {
	t.Helper()
	text, err := file.Encode()
	if err != nil {
		t.Fatal(err)
	}
	files[routing.FileName] = text
	if err := materialize.Write(dir, files); err != nil {
		t.Fatal(err)
	}
}

// publish writes a ring, and a candidate where there is one, into dir.
func publish(t *testing.T, dir string, generation int64, stable, candidate *ring.Ring, basisPoints int, down ...string) {
	t.Helper()
	ref := func(slot routing.Slot, r *ring.Ring) routing.Reference {
		return routing.NewReference(slot, r.Digest(), r.Algorithm().Version.String(), 1)
	}
	file := routing.File{APIVersion: routing.APIVersion, Ring: "cdn/edge", Generation: generation, Stable: ref(routing.SlotA, stable), Down: slices.Sorted(slices.Values(down))}
	files := map[string][]byte{"ring-a.snap": stable.Snapshot()}
	if candidate != nil {
		c := ref(routing.SlotB, candidate)
		file.Candidate, file.Split = &c, &routing.Split{BasisPoints: map[string]int{"*": basisPoints}}
		files["ring-b.snap"] = candidate.Snapshot()
	}
	install(t, dir, file, files)
}

// start opens the directory and runs a renderer until the test ends.
func start(t *testing.T, dir string, config nginxconf.Config) (*ringclient.Client, *nginxconf.Renderer) {
	t.Helper()
	client, err := ringclient.Open(dir, ringclient.Options{WaitForRing: true})
	if err != nil {
		t.Fatal(err)
	}
	r, err := nginxconf.New(config, client)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the end: %v", err)
		}
		_ = client.Close()
	})
	return client, r
}

// eventually fails the test where a condition does not come true in time.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		}
	}
}

func contains(list []string, part string) bool { return strings.Contains(fmt.Sprint(list), part) }
