// SPDX-License-Identifier: Apache-2.0

package ringclient

import (
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// MaxOwners is the largest number of backends that one lookup can ask for.
const MaxOwners = 64

// Pick returns the backend for a key: its owner, on the ring that the split gives it to, or where that is down or was reported
// as failed the next one on the ring that is neither; where all are, the owner. Features restrict it to the backends that have all of them.
//
// It takes no lock, and does not allocate but for the first lookup in a view, for views beyond [MaxCachedViews], and for an error. Errors: [ErrNotLoaded] where no ring is loaded yet, [ring.UnknownFeatureError], and
// [ring.ErrNoBackend] where no backend has the features and a weight.
func (c *Client) Pick(key []byte, features ...string) (Decision, error) {
	s := c.state.Load()
	if s == nil {
		return Decision{}, ErrNotLoaded
	}
	return s.Pick(key, features...)
}

// Pick is [Client.Pick] on this state.
func (s *State) Pick(key []byte, features ...string) (Decision, error) {
	hash := ring.Hash(key)
	chosen := s.sideOf(hash)
	view := chosen.whole
	if len(features) > 0 {
		var err error
		if chosen, view, err = s.viewOn(chosen, features); err != nil {
			return Decision{}, err
		}
	}
	owner, err := view.Owner(hash)
	switch {
	case err != nil:
		return s.pickElsewhere(chosen, hash, features)
	case chosen.passesOver() && chosen.skip(owner):
		return chosen.next(view, hash), nil
	}
	chosen.counts.selections.add()
	return chosen.decision(owner), nil
}

// next returns the backend for a position whose owner is passed over. It is apart because it needs a buffer.
func (s *side) next(view *ring.View, hash uint32) Decision {
	var buf [1]Decision
	return s.appendDecisions(buf[:0], view, hash, 1)[0]
}

// viewOn returns the view of some features on the ring that was chosen, or on the stable one where that is the candidate and cannot
// have a backend for them.
func (s *State) viewOn(chosen *side, features []string) (*side, *ring.View, error) {
	view, err := chosen.loaded.views.view(features)
	if err == nil && view.Len() == 0 {
		err = ring.ErrNoBackend
	}
	if err != nil && chosen != s.stable {
		return s.viewOn(s.stable, features)
	}
	return chosen, view, err
}

// pickElsewhere is what Pick does where the ring that was chosen has no backend.
func (s *State) pickElsewhere(chosen *side, hash uint32, features []string) (Decision, error) {
	chosen, view, err := s.viewOn(chosen, features)
	if err != nil {
		return Decision{}, err
	}
	return chosen.next(view, hash), nil
}

// Lookup returns up to n distinct backends for a key, in ring order: the one that Pick returns, then those that it would return
// if the ones before were gone. There are fewer than n where the view has no more, and at least one; those that are passed over come only
// where there is nobody else.
//
// Errors: those of Pick, and [OwnerCountError] where n is not within 1 to MaxOwners. It allocates the result.
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
	if n == 1 {
		d, err := s.Pick(key, features...)
		if err != nil {
			return dst, err
		}
		return append(dst, d), nil
	}
	hash := ring.Hash(key)
	chosen, view, err := s.viewOn(s.sideOf(hash), features)
	if err != nil {
		return dst, err
	}
	return chosen.appendDecisions(dst, view, hash, n), nil
}

// AppendUncounted appends what [State.AppendDecisions] does and leaves [Stats] as they are: for whoever goes on with a lookup that
// is counted already, such as a proxy that looks for the next backend after the first one failed. Its errors and its cost are the same.
func (s *State) AppendUncounted(dst []Decision, key []byte, features []string, n int) ([]Decision, error) {
	if n < 1 || n > MaxOwners {
		return dst, &OwnerCountError{Count: n}
	}
	hash := ring.Hash(key)
	chosen, view, err := s.viewOn(s.sideOf(hash), features)
	if err != nil {
		return dst, err
	}
	return chosen.appendUncounted(dst, view, hash, n), nil
}

// Bucket returns the bucket of a key in the split of this state, 0 to routing.MaxBasisPoints-1, and false where there is none.
func (s *State) Bucket(key []byte) (int, bool) {
	if s.split == nil {
		return 0, false
	}
	return routing.Bucket(ring.Hash(key), s.split.Seed), true
}

// sideOf returns the ring that the split gives a position to.
func (s *State) sideOf(hash uint32) *side {
	if s.threshold > 0 && routing.Bucket(hash, s.split.Seed) < s.threshold {
		return s.candidate
	}
	return s.stable
}

// appendDecisions is apart from the search for an owner that is not passed over, which needs no buffer. The view has a backend.
func (s *side) appendDecisions(dst []Decision, view *ring.View, hash uint32, n int) []Decision {
	first := len(dst)
	dst = s.appendUncounted(dst, view, hash, n)
	s.counts.selections.add()
	if dst[first].failover {
		s.counts.failovers.add()
	}
	return dst
}

func (s *side) appendUncounted(dst []Decision, view *ring.View, hash uint32, n int) []Decision {
	var buf [MaxOwners]int
	owners := buf[:0]
	failover := false
	if s.passesOver() {
		first, _ := view.Owner(hash)
		failover = s.skip(first)
		owners = view.AppendOwners(owners, hash, n, s.skip)
	}
	if len(owners) == 0 { // Nobody is passed over, or all are: then it is worth a try.
		failover = false
		owners = view.AppendOwners(owners, hash, n, nil)
	}
	for _, owner := range owners {
		d := s.decision(owner)
		d.failover = failover
		dst = append(dst, d)
	}
	return dst
}
