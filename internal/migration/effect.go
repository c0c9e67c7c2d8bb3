// SPDX-License-Identifier: Apache-2.0

package migration

import "slices"

// EffectKind is what an effect does.
type EffectKind string

// The effects.
const (
	// Lock takes the lock of a ring, if nobody has it by then.
	Lock EffectKind = "Lock"
	// Publish writes both rings and the split.
	Publish EffectKind = "Publish"
	// Withdraw takes candidate and split out of the routing file, and the candidate out of its slot.
	Withdraw EffectKind = "Withdraw"
	// Promote makes the candidate the stable ring, without another.
	Promote EffectKind = "Promote"
	// Empty takes the old ring out of its slot.
	Empty EffectKind = "Empty"
	// Unlock gives the lock of a ring back.
	Unlock EffectKind = "Unlock"
	// Answer tells the giver of an action what became of it.
	Answer EffectKind = "Answer"
	// Release lets a deletion go through: the finalizer.
	Release EffectKind = "Release"
)

// Effect is something to be done outside. Each can be carried out twice.
type Effect struct {
	Kind EffectKind
	// Ring is which one; "" for Answer and Release.
	Ring string
	// Candidate is the digest of the ring to go to, for Publish and Promote.
	Candidate string
	// Seed and Split are for Publish.
	Seed  uint32
	Split Split
	// Answered is for Answer.
	Answered Answered
}

// effects returns what a state asks for and an observation lacks, in the order in which it is to be done.
func effects(s State, o Observation, answers []Answered) []Effect {
	var list []Effect
	for _, r := range o.Rings {
		if e := s.effect(r, o); e != nil {
			list = append(list, *e)
			if e.Kind == Lock && s.At == Queued {
				break // One after the other in the order of names, so that two migrations cannot wait for each other.
			}
		}
	}
	for _, a := range answers {
		list = append(list, Effect{Kind: Answer, Answered: a})
	}
	if o.Deleted && len(list) == 0 && s.over(o) {
		list = append(list, Effect{Kind: Release})
	}
	return list
}

// over says whether nothing is left to be done for one that is being deleted.
func (s State) over(o Observation) bool {
	return s.At == Succeeded || s.At == RolledBack || o.Spec.OnDelete == DeleteFreezes && s.RollbackAvailable()
}

// effect returns what a ring needs next; nil where it is as it shall be, or another migration has it.
func (s State) effect(r Ring, o Observation) *Effect {
	ours := r.Holder == o.Self
	if r.Holder != "" && !ours {
		return nil
	}
	switch frozen := o.Deleted && o.Spec.OnDelete == DeleteFreezes && s.RollbackAvailable(); {
	case frozen, s.At == Succeeded:
		return first(ours, Effect{Kind: Unlock, Ring: r.Name})
	case s.At == Pending:
		return nil
	case s.At == Queued:
		return first(!ours && len(s.Holds) == 0, Effect{Kind: Lock, Ring: r.Name})
	case s.At == RolledBack:
		return s.afterRollback(r, ours)
	case s.At == RollingBack:
		return s.rollback(r, ours)
	case s.At == Retiring:
		return s.retirement(r, o, ours)
	case !ours:
		return &Effect{Kind: Lock, Ring: r.Name} // Somebody took it away and nobody has it.
	default:
		return first(!s.published(r) && !s.foreign(r), s.publish(r))
	}
}

// first returns an effect if there is need for it.
func first(needed bool, e Effect) *Effect {
	if needed {
		return &e
	}
	return nil
}

func (s State) publish(r Ring) Effect {
	return Effect{Kind: Publish, Ring: r.Name, Candidate: s.Candidates[r.Name], Seed: s.Seed, Split: s.Split}
}

// foreign says whether a ring that is to be prepared sends keys to a candidate already.
func (s State) foreign(r Ring) bool { return s.At == Preparing && !r.Published.Split.zero() }

// rollback lowers the split. A lock that is lost is taken again for as long as keys go to the candidate.
func (s State) rollback(r Ring, ours bool) *Effect {
	switch {
	case !ours && r.Published.Split.zero(), s.Candidates[r.Name] == "", s.published(r):
		return nil
	case !ours:
		return &Effect{Kind: Lock, Ring: r.Name}
	}
	e := s.publish(r)
	return &e
}

// afterRollback takes the candidate away. A lock that is lost is taken again for that.
func (s State) afterRollback(r Ring, ours bool) *Effect {
	switch published := r.Published.Candidate != ""; {
	case ours && published:
		return &Effect{Kind: Withdraw, Ring: r.Name}
	case published && r.Published.Seed == s.Seed: // Nobody has the lock, and the split is ours.
		return &Effect{Kind: Lock, Ring: r.Name}
	}
	return first(ours, Effect{Kind: Unlock, Ring: r.Name})
}

// withdrawn says whether no ring that a rollback is to lower sends keys to the candidate.
func (s State) withdrawn(o Observation) bool {
	for _, r := range o.Rings {
		if r.Holder != "" && r.Holder != o.Self {
			continue // It is another migration's.
		}
		if s.rollback(r, r.Holder == o.Self) != nil {
			return false
		}
	}
	return true
}

// retirement makes the candidate the stable ring; the old one goes when every consumer has acknowledged that.
func (s State) retirement(r Ring, o Observation, ours bool) *Effect {
	switch {
	case s.published(r) && r.Emptied:
		return nil // The lock stays until the end of it is stored: after that the ring can be another migration's.
	case !ours:
		return &Effect{Kind: Lock, Ring: r.Name}
	case !s.published(r):
		return &Effect{Kind: Promote, Ring: r.Name, Candidate: s.Candidates[r.Name]}
	}
	return first(acknowledged(s, o, s.watched(o), whole), Effect{Kind: Empty, Ring: r.Name})
}

// retired says whether the old rings are gone.
func (s State) retired(o Observation) bool {
	return len(o.Rings) > 0 && !slices.ContainsFunc(o.Rings, func(r Ring) bool { return !s.published(r) || !r.Emptied })
}
