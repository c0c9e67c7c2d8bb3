// SPDX-License-Identifier: Apache-2.0

package ringclient

import "github.com/ringwright/ringwright/pkg/ring"

// Role is what a ring is for at one moment.
type Role uint8

const (
	// Stable is the ring that answers, save for the keys that a migration sends to the candidate.
	Stable Role = iota
	// Candidate is the ring that a migration goes to.
	Candidate
)

// String returns "stable" or "candidate".
func (r Role) String() string {
	if r == Candidate {
		return "candidate"
	}
	return "stable"
}

// Decision says which backend is to take a key, and by which ring. It is a small value, two words, which is what makes a lookup
// fast; what it tells is computed when it is asked. As long as it is reachable, so is the snapshot of the ring that decided. The zero
// value tells nothing and panics.
type Decision struct {
	side     *side
	backend  int32
	failover bool
}

// ID returns the identity of the backend, without allocating.
func (d Decision) ID() string { return d.side.loaded.ring.ID(int(d.backend)) }

// Address returns where to dial the backend: what routing.json gives for it, else the identity where that is an address or
// an NGINX server, else "". It has the port that the HashRing gave it, which an NGINX server need not have.
func (d Decision) Address() string { return d.side.address(int(d.backend)) }

// Failover says that the owner of the key was passed over, because it is down or was reported as failed.
func (d Decision) Failover() bool { return d.failover }

// CountError counts in [Stats], for the ring that decided in its role, that the backend did not do what was asked of it: no connection
// could be made, or it gave no answer, or not all of one. What it answers is no such error. It is what a migration is judged by, so
// count each backend that was tried in vain once, and nothing that the caller or its own host is to blame for. It takes no lock and
// does not allocate. Lookups go on returning the backend; see [Client.ReportFailed].
func (d Decision) CountError() { d.side.counts.errors.Add(1) }

// Role returns which of the two rings decided.
func (d Decision) Role() Role { return d.side.role }

// Revision returns the number of that ring among those of its HashRing, 0 where that is not known.
func (d Decision) Revision() int64 { return d.side.revision }

// Digest returns the digest of its snapshot, "sha256:" and 64 hex digits.
func (d Decision) Digest() string { return d.side.loaded.digest }

// Generation returns the generation of the routing file that decided.
func (d Decision) Generation() int64 { return d.side.generation }

// Zone returns where the backend runs, "" where that is not known.
func (d Decision) Zone() string { return d.ring().Zone(int(d.backend)) }

// Weight returns the weight of the backend.
func (d Decision) Weight() uint32 { return d.ring().Weight(int(d.backend)) }

func (d Decision) ring() *ring.Ring { return d.side.loaded.ring }
