// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"

	agentv1 "github.com/ringwright/ringwright/api/agent/v1"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// lookupService answers lookups over gRPC.
type lookupService struct {
	agentv1.UnimplementedLookupServer
	handler *handler
}

// Lookup answers one key.
func (s *lookupService) Lookup(_ context.Context, r *agentv1.LookupRequest) (*agentv1.LookupResponse, error) {
	n, p := checkCall(r.Features, r.N)
	if p == nil {
		p = checkKey(paramKey, r.Key)
	}
	if p != nil {
		return nil, callError(codes.InvalidArgument, p)
	}
	state, err := s.state()
	if err != nil {
		return nil, err
	}
	decisions, failure := state.AppendDecisions(nil, r.Key, r.Features, n)
	if failure != nil {
		p := lookupProblem(failure, r.Features)
		return nil, callError(codeOf(p), p)
	}
	hash := ring.Hash(r.Key)
	s.handler.movement.Note(hash, r.Features, decisions[0])
	response := &agentv1.LookupResponse{
		State: callState(state), Ring: callRing(state, decisions[0]), Answer: callAnswer(state, r.Key, hash, decisions[0]),
		Owners: make([]*agentv1.Backend, len(decisions)),
	}
	for i, d := range decisions {
		response.Owners[i] = callBackend(d)
	}
	return response, nil
}

// LookupBatch answers several keys from one state.
func (s *lookupService) LookupBatch(_ context.Context, r *agentv1.LookupBatchRequest) (*agentv1.LookupBatchResponse, error) {
	n, p := checkCall(r.Features, r.N)
	if p == nil {
		p = checkKeys(r.Keys)
	}
	if p != nil {
		return nil, callError(codes.InvalidArgument, p)
	}
	state, err := s.state()
	if err != nil {
		return nil, err
	}
	memory := scratches.Get().(*scratch)
	defer memory.release()
	found := &memory.batch.answers
	defer found.reset()
	response := &agentv1.LookupBatchResponse{State: callState(state), Answers: make([]*agentv1.BatchAnswer, len(r.Keys))}
	for i, key := range r.Keys {
		decisions, failure := state.AppendDecisions(memory.decisions[:0], key, r.Features, n)
		if failure != nil {
			p := lookupProblem(failure, r.Features)
			return nil, callError(codeOf(p), p)
		}
		memory.decisions = decisions
		hash := ring.Hash(key)
		s.handler.movement.Note(hash, r.Features, decisions[0])
		at := found.ring(decisions[0])
		answer := &agentv1.BatchAnswer{
			Answer: callAnswer(state, key, hash, decisions[0]), Ring: uint32(at), Owners: make([]uint32, len(decisions)),
		}
		for j, d := range decisions {
			answer.Owners[j] = uint32(found.backend(at, d))
		}
		response.Answers[i] = answer
	}
	for _, d := range found.rings {
		response.Rings = append(response.Rings, callRing(state, d))
	}
	for _, d := range found.backends {
		response.Backends = append(response.Backends, callBackend(d))
	}
	return response, nil
}

// state returns what is loaded.
func (s *lookupService) state() (*ringclient.State, error) {
	if state := s.handler.client.State(); state != nil {
		return state, nil
	}
	return nil, callError(codes.Unavailable, s.handler.notReady())
}

// checkCall returns how many backends a call asks for.
func checkCall(features []string, n uint32) (int, *problem) {
	if n > ringclient.MaxOwners {
		return 0, badField("n is not a number within its limits", paramCount, fmt.Sprint(n), limitOfCount)
	}
	return max(int(n), 1), checkFeatures(features, strings.Join(features, ","))
}

func checkKey(name string, key []byte) *problem {
	if len(key) > MaxKeyBytes {
		return badField(fmt.Sprintf("the key has %d bytes", len(key)), name, "", fmt.Sprintf("%d bytes", MaxKeyBytes))
	}
	return nil
}

func checkKeys(keys [][]byte) *problem {
	if len(keys) == 0 || len(keys) > MaxBatchKeys {
		return badField("the number of keys is not within its limits", paramKeys, fmt.Sprint(len(keys)), fmt.Sprintf("1 to %d keys", MaxBatchKeys))
	}
	for i, key := range keys {
		if p := checkKey(paramKeys, key); p != nil {
			p.Field = fmt.Sprintf("%s[%d]", paramKeys, i)
			return p
		}
	}
	return nil
}

func callState(s *ringclient.State) *agentv1.State {
	return &agentv1.State{Ring: s.RingName(), Generation: s.Generation(), LeaderEpoch: s.LeaderEpoch()}
}

func callRing(s *ringclient.State, d ringclient.Decision) *agentv1.Ring {
	role := agentv1.Role_ROLE_STABLE
	if d.Role() == ringclient.Candidate {
		role = agentv1.Role_ROLE_CANDIDATE
	}
	return &agentv1.Ring{Role: role, Revision: d.Revision(), Digest: d.Digest(), Version: versionOf(s, d.Role())}
}

func callAnswer(s *ringclient.State, key []byte, hash uint32, d ringclient.Decision) *agentv1.Answer {
	answer := &agentv1.Answer{KeyHash: hash, Failover: d.Failover()}
	if bucket, split := s.Bucket(key); split {
		number := uint32(bucket)
		answer.Bucket = &number
	}
	return answer
}

func callBackend(d ringclient.Decision) *agentv1.Backend {
	return &agentv1.Backend{Id: d.ID(), Address: d.Address(), Zone: d.Zone(), Weight: d.Weight()}
}
