// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"github.com/ringwright/ringwright/internal/movement"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// The answer to a batch has each ring and each backend once, and answers name them by their place:
//
//	{"ring":"cdn/edge","generation":41,"leaderEpoch":12,
//	 "answers":[                  in the order of the keys
//	  {"keyHash":891568578,"bucket":17,"failover":false,
//	   "ring":0,                  the place in rings of the one that decided
//	   "owners":[0,1]}],          the places in backends, the one that is to take the key first
//	 "rings":[{"role":"stable","revision":7,"digest":"sha256:…","version":"V2"}],
//	 "backends":[{"id":"one","address":"10.0.0.1:8080","zone":"z1","weight":1}]}
//
// A backend that both rings have and that answers of both name is there twice: what it is can differ.

// roles is how many rings a state has at most.
const roles = 2

// batchAnswer is what the answers of a batch name, each with its place.
type batchAnswer struct {
	// rings has a decision of each ring that is named.
	rings []ringclient.Decision
	// backends are those that are named, and places says where each is, by its identity, for each ring.
	backends []ringclient.Decision
	places   [roles]map[string]int
}

// isSmall says that the memory may be used again: a map never gets smaller.
func (a *batchAnswer) isSmall() bool { return len(a.backends) <= MaxBatchKeys }

func (a *batchAnswer) reset() {
	clear(a.rings[:cap(a.rings)]) // Decisions keep a state in memory.
	clear(a.backends[:cap(a.backends)])
	a.rings, a.backends = a.rings[:0], a.backends[:0]
	for i := range a.places {
		clear(a.places[i])
	}
}

// ring returns the place of the ring that decided.
func (a *batchAnswer) ring(d ringclient.Decision) int {
	for i := range a.rings {
		if a.rings[i].Role() == d.Role() {
			return i
		}
	}
	a.rings = append(a.rings, d)
	return len(a.rings) - 1
}

// backend returns the place of a backend of the ring in a place.
func (a *batchAnswer) backend(ring int, d ringclient.Decision) int {
	places := a.places[ring]
	if places == nil {
		places = make(map[string]int)
		a.places[ring] = places
	}
	place, known := places[d.ID()]
	if !known {
		place = len(a.backends)
		places[d.ID()] = place
		a.backends = append(a.backends, d)
	}
	return place
}

// appendBatchAnswer looks the keys of the batch up and appends the answer. An error is of the features, and so of all keys.
func (s *scratch) appendBatchAnswer(dst []byte, state *ringclient.State, seen *movement.Table) ([]byte, error) {
	answer := &s.batch.answers
	defer answer.reset()
	dst = appendState(append(dst, '{'), state)
	dst = append(dst, `,"answers":[`...)
	for i := range s.batch.ends {
		key := s.batch.key(i)
		var err error
		s.decisions, err = state.AppendDecisions(s.decisions[:0], key, s.batch.features, s.batch.count)
		if err != nil {
			return nil, err
		}
		hash := ring.Hash(key)
		seen.Note(hash, s.batch.features, s.decisions[0])
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = answer.appendOne(dst, state, key, hash, s.decisions)
	}
	dst = append(dst, `],"rings":[`...)
	for i, d := range answer.rings {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendRing(append(dst, '{'), state, d), '}')
	}
	dst = append(dst, `],"backends":[`...)
	for i, d := range answer.backends {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendBackend(dst, d)
	}
	return append(dst, "]}\n"...), nil
}

// appendOne appends the answer for one key.
func (a *batchAnswer) appendOne(dst []byte, state *ringclient.State, key []byte, hash uint32, decisions []ringclient.Decision) []byte {
	dst = appendNumber(append(dst, `{"keyHash":`...), uint64(hash))
	dst = appendBucket(dst, state, key)
	dst = appendFlag(append(dst, `,"failover":`...), decisions[0].Failover())
	place := a.ring(decisions[0])
	dst = appendNumber(append(dst, `,"ring":`...), uint64(place))
	dst = append(dst, `,"owners":[`...)
	for i, d := range decisions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendNumber(dst, uint64(a.backend(place, d)))
	}
	return append(dst, "]}"...)
}
