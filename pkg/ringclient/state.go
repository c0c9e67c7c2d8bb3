// SPDX-License-Identifier: Apache-2.0

package ringclient

import (
	"crypto/sha256"
	"time"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// State is one verified set of files. It never changes and is safe for concurrent use. A program that asks several
// questions about one ring takes the state once and asks it, not the client. A state keeps its snapshot in memory: do not
// hold one for longer than the questions take.
type State struct {
	name       string
	uid        string
	generation int64
	loadedAt   time.Time
	// source is the SHA-256 of routing.json, by which an unchanged file is recognised.
	source [sha256.Size]byte
	// loaded is shared by the states that differ in the routing file only.
	loaded *loadedRing
	// addresses holds the dial address of each backend; it is nil where every identity is one.
	addresses []string
	// passOver says whether a backend is down; it is nil where none is.
	passOver func(backend int) bool
	// addressBytes is what the addresses hold in memory.
	addressBytes int64
	counters     *counters
}

// loadedRing is an opened snapshot with what was derived from it.
type loadedRing struct {
	ring   *ring.Ring
	digest string
	views  *viewCache
}

// RingName returns the namespace and name of the HashRing, "cdn/edge-cache".
func (s *State) RingName() string { return s.name }

// Generation returns the generation of routing.json, at least 1.
func (s *State) Generation() int64 { return s.generation }

// Digest returns the digest of the snapshot, "sha256:" and 64 hex digits.
func (s *State) Digest() string { return s.loaded.digest }

// Version returns the version of the ring's algorithm.
func (s *State) Version() ring.Version { return s.loaded.ring.Algorithm().Version }

// LoadedAt returns when the state was swapped in.
func (s *State) LoadedAt() time.Time { return s.loadedAt }

// Ring returns the ring that answers.
func (s *State) Ring() *ring.Ring { return s.loaded.ring }

// BytesHeld returns about how many bytes of memory the state keeps: the snapshot, the points that were built for a recipe,
// the addresses and the cached views.
func (s *State) BytesHeld() int64 {
	return int64(s.loaded.ring.HeldBytes()) + s.addressBytes + s.loaded.views.bytes()
}

// setAddresses fills in the dial addresses that routing.json gives. Without any, an identity that is an address is dialled
// and a name cannot be.
func (s *State) setAddresses(file routing.File) {
	r := s.loaded.ring
	named := r.Identity() == ring.IdentityName
	if len(file.Addresses) == 0 && !named {
		return
	}
	const stringHeader = 16
	s.addresses = make([]string, r.Len())
	s.addressBytes = int64(len(s.addresses)) * stringHeader
	for i := range s.addresses {
		address, found := file.Addresses[r.ID(i)]
		switch {
		case found:
			s.addresses[i] = address
			s.addressBytes += int64(len(address))
		case !named:
			s.addresses[i] = r.ID(i)
		}
	}
}

// setDown marks the backends that routing.json says are down. One that is not on the ring has no effect.
func (s *State) setDown(file routing.File) {
	r := s.loaded.ring
	down := make(map[string]bool, len(file.Down))
	for _, id := range file.Down {
		down[id] = true
	}
	var list []bool
	for i := range r.Len() {
		if down[r.ID(i)] {
			if list == nil {
				list = make([]bool, r.Len())
			}
			list[i] = true
		}
	}
	if list != nil {
		s.addressBytes += int64(len(list))
		s.passOver = func(backend int) bool { return list[backend] }
	}
}

func (s *State) address(backend int) string {
	if s.addresses == nil {
		return s.loaded.ring.ID(backend)
	}
	return s.addresses[backend]
}
