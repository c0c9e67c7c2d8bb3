// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/materialize"
	"github.com/ringwright/ringwright/internal/sixbyte"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

const (
	// readers is how many goroutines look up at a time.
	readers = 2
	// clientLookups is how many lookups each of them makes in a round.
	clientLookups = 4 * lookups
	// lab is the datacenter whose keys the mounted rings split in halves.
	lab = "lab"
)

// mounted is a directory that holds two rings as kubelet would have written them, 2048×160 under V2 and under V1, with half of the
// keys of one datacenter on the candidate.
type mounted struct {
	dir               string
	stable, candidate *ring.Ring
	generation        int64
}

func newMounted() (*mounted, error) {
	m := &mounted{}
	c := backends(fleetBackends, 1, fleetPoints)
	var err error
	if m.stable, err = ring.Build(c); err != nil {
		return nil, err
	}
	c.Algorithm.Version = ring.V1
	if m.candidate, err = ring.Build(c); err != nil {
		return nil, err
	}
	if m.dir, err = os.MkdirTemp("", "ringwright-bars-"); err != nil {
		return nil, err
	}
	return m, m.publish()
}

func (m *mounted) remove() { _ = os.RemoveAll(m.dir) }

// publish writes the next generation, of both rings.
func (m *mounted) publish() error {
	candidate := reference(routing.SlotB, m.candidate)
	return m.write(routing.File{
		Candidate: &candidate, Split: &routing.Split{Seed: 1, BasisPoints: map[string]int{lab: routing.MaxBasisPoints / 2}},
	}, m.candidate.Snapshot())
}

// publishStable writes the next generation, of the stable ring alone.
func (m *mounted) publishStable() error { return m.write(routing.File{}, ring.EmptySlot()) }

func (m *mounted) write(file routing.File, slotB []byte) error {
	m.generation++
	file.APIVersion, file.Ring, file.Generation, file.Stable = routing.APIVersion, "cdn/edge", m.generation, reference(routing.SlotA, m.stable)
	text, err := file.Encode()
	if err != nil {
		return err
	}
	return materialize.Write(m.dir, map[string][]byte{
		routing.FileName: text, routing.SlotA.FileName(): m.stable.Snapshot(), routing.SlotB.FileName(): slotB,
	})
}

func reference(slot routing.Slot, r *ring.Ring) routing.Reference {
	return routing.NewReference(slot, r.Digest(), r.Algorithm().Version.String(), 1)
}

// open returns a client of the directory that is told of nothing by itself.
func (m *mounted) open(datacenter string) (*ringclient.Client, error) {
	return ringclient.Open(m.dir, ringclient.Options{Datacenter: datacenter, PollInterval: time.Hour})
}

// openAlone returns a client that has the stable ring alone.
func (m *mounted) openAlone() (*ringclient.Client, error) {
	if err := m.publishStable(); err != nil {
		return nil, err
	}
	return m.open("")
}

// owner says which backend owns a key, by its identity.
type owner func(key []byte) (string, error)

// lookUp asks for the owners of n keys of 32 bytes in each of some goroutines. Each key depends on the owner before it, as the work
// of a program does that has to have an owner before it can go on.
func lookUp(n int, ask owner) error {
	var running sync.WaitGroup
	errs := make([]error, readers)
	for reader := range readers {
		running.Go(func() {
			key := make([]byte, keyBytes)
			x := uint32(reader)
			for range n {
				binary.LittleEndian.PutUint32(key, x)
				id, err := ask(key)
				if err != nil {
					errs[reader] = err
					return
				}
				x = sixbyte.Next(x, len(id))
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// pickSlowdown compares a client, with half of the keys on each of two rings, with the bare rings, of which a bit of the key's hash takes
// one: whatever a lookup does beside hash and search is in the ratio. The bare rings are those that the client has, mapped as they are:
// the same bytes elsewhere in memory are found faster or slower by as much, which says nothing of the client.
func pickSlowdown() (float64, error) {
	m, err := newMounted()
	if err != nil {
		return 0, err
	}
	defer m.remove()
	c, err := m.open(lab)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	candidate, _ := c.State().Candidate()
	rings := [2]*ring.Ring{c.State().Ring(), candidate.Ring}
	bare := func(key []byte) (string, error) {
		hash := ring.Hash(key)
		r := rings[hash>>7&1]
		owner, err := r.Owner(hash)
		if err != nil {
			return "", err
		}
		return r.ID(owner), nil
	}
	picked := func(key []byte) (string, error) {
		d, err := c.Pick(key)
		if err != nil {
			return "", err
		}
		return d.ID(), nil
	}
	ways := func(ask owner) way {
		return way{warm: func() error { return lookUp(warmLookups/readers, ask) }, work: func() error { return lookUp(clientLookups, ask) }}
	}
	return speedup(lookupRounds, ways(bare), ways(picked))
}

// pickAllocations returns the allocations of two lookups, of which one asks for a feature, half of them on each ring.
func pickAllocations() (float64, error) {
	m, err := newMounted()
	if err != nil {
		return 0, err
	}
	defer m.remove()
	c, err := m.open(lab)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	key, x := make([]byte, keyBytes), uint32(0)
	var problem error
	allocations := testing.AllocsPerRun(1000, func() {
		x += 0x9e3779b1
		binary.LittleEndian.PutUint32(key, x)
		if _, err := c.Pick(key, "half"); err != nil {
			problem = err
		}
		if _, err := c.Pick(key); err != nil {
			problem = err
		}
	})
	return allocations, problem
}
