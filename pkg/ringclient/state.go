// SPDX-License-Identifier: Apache-2.0

package ringclient

import (
	"crypto/sha256"
	"time"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// State is one verified set of files. It never changes and is safe for concurrent use. A program that asks several
// questions about one ring takes the state once and asks it, not the client. A state keeps its snapshots in memory: do not
// hold one for longer than the questions take.
type State struct {
	name       string
	uid        string
	epoch      int64
	generation int64
	loadedAt   time.Time
	// source is the SHA-256 of routing.json, by which an unchanged file is recognised.
	source [sha256.Size]byte

	stable *side
	// candidate is nil where there is none.
	candidate *side
	// split is nil where there is none, basisPoints what it says of the datacenter of this reader.
	split       *routing.Split
	basisPoints int
	force       Force
	// threshold is below what bucket the candidate answers: basisPoints, unless that is forced.
	threshold int
}

// RingName returns the namespace and name of the HashRing, "cdn/edge-cache".
func (s *State) RingName() string { return s.name }

// UID returns the UID of the HashRing, "" where the files were built without a cluster.
func (s *State) UID() string { return s.uid }

// Generation returns the generation of routing.json, at least 1.
func (s *State) Generation() int64 { return s.generation }

// LeaderEpoch returns the epoch of the operator that wrote routing.json, 0 where it has none.
func (s *State) LeaderEpoch() int64 { return s.epoch }

// LoadedAt returns when the state was swapped in.
func (s *State) LoadedAt() time.Time { return s.loadedAt }

// Digest returns the digest of the stable ring's snapshot, "sha256:" and 64 hex digits.
func (s *State) Digest() string { return s.stable.loaded.digest }

// Version returns the version of the stable ring's algorithm.
func (s *State) Version() ring.Version { return s.stable.version() }

// Ring returns the stable ring.
func (s *State) Ring() *ring.Ring { return s.stable.loaded.ring }

// Loaded is a ring that a state has loaded. The zero value, and one that is not from a state, has no backends to ask for.
type Loaded struct {
	Role Role
	// Revision is the number of the ring among those of its HashRing, 0 where that is not known.
	Revision int64
	// Digest is that of its snapshot, "sha256:" and 64 hex digits.
	Digest string
	Ring   *ring.Ring
	// Down is how many of its backends are passed over because the routing file says so.
	Down int
	side *side
}

// IsDown says whether a backend, by its number on the ring, is passed over because the routing file says so.
func (l Loaded) IsDown(backend int) bool { return l.side.isDown(backend) }

// BytesHeld returns about how many bytes of memory the ring takes, as [State.BytesHeld] counts them. Where both rings are of one
// snapshot, that is counted for each.
func (l Loaded) BytesHeld() int64 { return l.side.bytesHeld() }

// Address returns where to dial a backend, by its number on the ring, as [Decision.Address] does.
func (l Loaded) Address(backend int) string { return l.side.address(backend) }

// Stable returns the ring that answers what the candidate does not.
func (s *State) Stable() Loaded { return s.stable.describe() }

// Candidate returns the ring that a migration goes to, and false where there is none.
func (s *State) Candidate() (Loaded, bool) {
	if s.candidate == nil {
		return Loaded{}, false
	}
	return s.candidate.describe(), true
}

// BasisPoints returns how many of routing.MaxBasisPoints buckets of keys the routing file gives to the candidate in the
// datacenter of this client. What was forced is not in it.
func (s *State) BasisPoints() int { return s.basisPoints }

// EffectiveBasisPoints returns how many of routing.MaxBasisPoints buckets of keys the candidate answers: BasisPoints, or all or
// none where that is forced, and 0 where there is no candidate.
func (s *State) EffectiveBasisPoints() int { return s.threshold }

// Forced returns what the client was told to use instead of the split.
func (s *State) Forced() Force { return s.force }

// BytesHeld returns about how many bytes of memory the state keeps: the snapshots, whether they are mapped or not, the points
// that were built for a recipe, the addresses and the cached views.
func (s *State) BytesHeld() int64 {
	n := s.stable.bytesHeld()
	switch {
	case s.candidate == nil:
	case s.candidate.loaded == s.stable.loaded:
		n += s.candidate.heldBytes
	default:
		n += s.candidate.bytesHeld()
	}
	return n
}

// forced returns the state with its split, or what is to be used instead of it.
func (s *State) forced(force Force) *State {
	next := *s
	next.force, next.threshold = force, s.basisPoints
	switch {
	case s.candidate == nil || force == ForceStable:
		next.threshold = 0
	case force == ForceCandidate:
		next.threshold = routing.MaxBasisPoints
	}
	if next.threshold > 0 && next.split == nil { // There is no split yet, and the candidate is forced.
		next.split = &routing.Split{}
	}
	return &next
}

func (s *side) describe() Loaded {
	return Loaded{Role: s.role, Revision: s.revision, Digest: s.loaded.digest, Ring: s.loaded.ring, Down: s.downCount, side: s}
}

func (s *side) version() ring.Version { return s.loaded.ring.Algorithm().Version }

func (s *side) bytesHeld() int64 {
	return int64(s.loaded.ring.HeldBytes()) + s.heldBytes + s.loaded.views.bytes()
}
