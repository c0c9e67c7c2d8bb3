// SPDX-License-Identifier: Apache-2.0

package ringclient

import "github.com/ringwright/ringwright/pkg/ring"

// MaxOwners is the largest number of backends that one lookup can ask for.
const MaxOwners = 64

// Decision says which backend is to take a key, and by which ring. Its strings are part of the state that decided and keep
// it in memory.
type Decision struct {
	// ID is the identity of the backend.
	ID string
	// Address is where to dial the backend: what routing.json gives for it, else the identity where that is an address or
	// an NGINX server, else "". It has the port that the HashRing gave it, which an NGINX server need not have.
	Address string
	// Zone is where the backend runs, "" where that is not known.
	Zone string
	// Weight is the weight of the backend.
	Weight uint32
	// Generation is the generation of the routing file that decided.
	Generation int64
	// Digest names the snapshot that decided.
	Digest string
}

// Lookup returns up to n distinct backends for a key, in ring order: the owner, then those that would own the key if the
// ones before were gone. Backends that routing.json says are down are passed over, unless all are. Features restrict it to the backends that have all of them. There are fewer than n where the view
// has no more, and at least one.
//
// Errors: [ErrNotLoaded] where no ring is loaded yet, [OwnerCountError] where n is not within 1 to MaxOwners,
// [ring.UnknownFeatureError], and [ring.ErrNoBackend] where no backend has the features and a weight. It allocates the
// result.
func (c *Client) Lookup(key []byte, features []string, n int) ([]Decision, error) {
	return c.AppendDecisions(nil, key, features, n)
}

// AppendDecisions appends to dst what Lookup returns, and returns dst as it was with an error. It takes no lock. It
// allocates only to grow dst, for the first lookup in a view, for views beyond [MaxCachedViews], and for an error.
func (c *Client) AppendDecisions(dst []Decision, key []byte, features []string, n int) ([]Decision, error) {
	s := c.state.Load()
	if s == nil {
		return dst, ErrNotLoaded
	}
	return s.AppendDecisions(dst, key, features, n)
}

// AppendDecisions is [Client.AppendDecisions] on this state.
func (s *State) AppendDecisions(dst []Decision, key []byte, features []string, n int) ([]Decision, error) {
	if n < 1 || n > MaxOwners {
		return dst, &OwnerCountError{Count: n}
	}
	view, err := s.loaded.views.view(features)
	if err != nil {
		return dst, err
	}
	hash := ring.Hash(key)
	if n > 1 {
		return s.appendSeveral(dst, view, hash, n)
	}
	owner, err := view.Owner(hash)
	if err != nil {
		return dst, err
	}
	if s.passOver != nil && s.passOver(owner) {
		return s.appendSeveral(dst, view, hash, n)
	}
	s.counters.selections.Add(1)
	return append(dst, s.decision(owner)), nil
}

// appendSeveral is apart from the search for an owner that is up, which needs no buffer.
func (s *State) appendSeveral(dst []Decision, view *ring.View, hash uint32, n int) ([]Decision, error) {
	var buf [MaxOwners]int
	owners := view.AppendOwners(buf[:0], hash, n, s.passOver)
	if len(owners) == 0 { // All are down, or nobody looks at them any more: then it is worth a try.
		owners = view.AppendOwners(buf[:0], hash, n, nil)
	}
	if len(owners) == 0 {
		return dst, ring.ErrNoBackend
	}
	s.counters.selections.Add(1)
	for _, owner := range owners {
		dst = append(dst, s.decision(owner))
	}
	return dst, nil
}

func (s *State) decision(backend int) Decision {
	r := s.loaded.ring
	return Decision{
		ID:         r.ID(backend),
		Address:    s.address(backend),
		Zone:       r.Zone(backend),
		Weight:     r.Weight(backend),
		Generation: s.generation,
		Digest:     s.loaded.digest,
	}
}
