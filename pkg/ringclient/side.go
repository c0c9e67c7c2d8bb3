// SPDX-License-Identifier: Apache-2.0

package ringclient

import (
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// side is one of the two rings of a state in its role, with what the routing file says of its backends.
type side struct {
	role     Role
	revision int64
	// generation is that of the routing file.
	generation int64
	// loaded is shared by the states that differ in the routing file only.
	loaded *loadedRing
	// whole is the view of all backends.
	whole *ring.View
	// addresses holds the dial address of each backend; it is nil where every identity is one.
	addresses []string
	// down says which backends are; it is nil where none is.
	down      []bool
	downCount int
	failed    *failures
	// skip says whether a backend is to be passed over. It is asked only where passesOver says so.
	skip   func(backend int) bool
	counts *ringCounter
	// heldBytes is what the addresses and down take in memory.
	heldBytes int64
}

// loadedRing is an opened snapshot with what was derived from it.
type loadedRing struct {
	ring   *ring.Ring
	digest string
	views  *viewCache
}

func newSide(role Role, ref routing.Reference, file routing.File, loaded *loadedRing, failed *failures) *side {
	s := &side{role: role, revision: ref.Revision, generation: file.Generation, loaded: loaded, whole: loaded.views.whole, failed: failed}
	s.setAddresses(file)
	s.setDown(file)
	s.skip = func(backend int) bool {
		return s.isDown(backend) || failed.any() && failed.has(loaded.ring.ID(backend))
	}
	return s
}

// passesOver says that there may be backends to be passed over.
func (s *side) passesOver() bool { return s.down != nil || s.failed.any() }

func (s *side) decision(backend int) Decision { return Decision{side: s, backend: int32(backend)} }

func (s *side) isDown(backend int) bool { return s.down != nil && s.down[backend] }

func (s *side) address(backend int) string {
	if s.addresses == nil {
		return s.loaded.ring.ID(backend)
	}
	return s.addresses[backend]
}

// setAddresses fills in the dial addresses that routing.json gives. Without any, an identity that is an address is dialled
// and a name cannot be.
func (s *side) setAddresses(file routing.File) {
	r := s.loaded.ring
	named := r.Identity() == ring.IdentityName
	if len(file.Addresses) == 0 && !named {
		return
	}
	const stringHeader = 16
	s.addresses = make([]string, r.Len())
	s.heldBytes = int64(len(s.addresses)) * stringHeader
	for i := range s.addresses {
		address, found := file.Addresses[r.ID(i)]
		switch {
		case found:
			s.addresses[i] = address
			s.heldBytes += int64(len(address))
		case !named:
			s.addresses[i] = r.ID(i)
		}
	}
}

// setDown marks the backends that routing.json says are down. One that is not on the ring has no effect.
func (s *side) setDown(file routing.File) {
	if len(file.Down) == 0 {
		return
	}
	r := s.loaded.ring
	down := make(map[string]bool, len(file.Down))
	for _, id := range file.Down {
		down[id] = true
	}
	list := make([]bool, r.Len())
	for i := range list {
		if down[r.ID(i)] {
			list[i] = true
			s.downCount++
		}
	}
	if s.downCount > 0 {
		s.down = list
		s.heldBytes += int64(len(list))
	}
}
