// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/hex"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

// Answers are written by appending: an encoder that works by reflection takes longer than everything else that a lookup is.
//
// The answer to one lookup is
//
//	{"key":"abc",            the key as it was given, if that was text in UTF-8; else "keyHex", in hex
//	 "keyHash":891568578,    the position of the key on the ring
//	 "ring":"cdn/edge",      the HashRing
//	 "generation":41,        of the routing file that decided
//	 "leaderEpoch":12,       likewise, 0 where it has none
//	 "role":"stable",        which of the two rings decided, or "candidate"
//	 "revision":7,           of that ring, 0 where it is not known
//	 "digest":"sha256:…",    of its snapshot
//	 "version":"V2",         of its algorithm
//	 "bucket":17,            of the key in the split, not there while there is no split
//	 "failover":false,       whether the owner was passed over
//	 "owners":[              at least one and at most n, the one that is to take the key first
//	  {"id":"one","address":"10.0.0.1:8080","zone":"z1","weight":1}]}
//
// with "" for an address or a zone that is not known.

// appendAnswer appends the answer to one lookup of a key with this hash, of which there is a decision at least.
func appendAnswer(dst []byte, state *ringclient.State, hash uint32, q *query, decisions []ringclient.Decision) []byte {
	if !q.isHex && utf8.Valid(q.key) {
		dst = appendText(append(dst, `{"key":`...), q.key)
	} else {
		dst = hex.AppendEncode(append(dst, `{"keyHex":"`...), q.key)
		dst = append(dst, '"')
	}
	dst = appendNumber(append(dst, `,"keyHash":`...), uint64(hash))
	dst = appendState(append(dst, ','), state)
	dst = appendRing(append(dst, ','), state, decisions[0])
	dst = appendBucket(dst, state, q.key)
	dst = appendFlag(append(dst, `,"failover":`...), decisions[0].Failover())
	dst = append(dst, `,"owners":[`...)
	for i, d := range decisions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendBackend(dst, d)
	}
	return append(dst, "]}\n"...)
}

// appendState appends the members that name a state.
func appendState(dst []byte, state *ringclient.State) []byte {
	dst = appendText(append(dst, `"ring":`...), state.RingName())
	dst = strconv.AppendInt(append(dst, `,"generation":`...), state.Generation(), 10)
	return strconv.AppendInt(append(dst, `,"leaderEpoch":`...), state.LeaderEpoch(), 10)
}

// appendRing appends the members that name the ring that decided.
func appendRing(dst []byte, state *ringclient.State, d ringclient.Decision) []byte {
	dst = append(append(dst, `"role":"`...), d.Role().String()...)
	dst = strconv.AppendInt(append(dst, `","revision":`...), d.Revision(), 10)
	dst = appendText(append(dst, `,"digest":`...), d.Digest())
	return appendText(append(dst, `,"version":`...), versionOf(state, d.Role()))
}

// versionOf returns the version of the algorithm of a ring that decided.
func versionOf(state *ringclient.State, role ringclient.Role) string {
	if candidate, found := state.Candidate(); found && role == ringclient.Candidate {
		return candidate.Ring.Algorithm().Version.String()
	}
	return state.Version().String()
}

// appendBucket appends the member with the bucket of a key, where there is a split.
func appendBucket(dst []byte, state *ringclient.State, key []byte) []byte {
	if bucket, split := state.Bucket(key); split {
		dst = appendNumber(append(dst, `,"bucket":`...), uint64(bucket))
	}
	return dst
}

func appendBackend(dst []byte, d ringclient.Decision) []byte {
	dst = appendText(append(dst, `{"id":`...), d.ID())
	dst = appendText(append(dst, `,"address":`...), d.Address())
	dst = appendText(append(dst, `,"zone":`...), d.Zone())
	dst = appendNumber(append(dst, `,"weight":`...), uint64(d.Weight()))
	return append(dst, '}')
}

// appendText appends a JSON string. All that gets here is UTF-8.
func appendText[T string | []byte](dst []byte, text T) []byte {
	dst, _ = jsontext.AppendQuote(dst, text)
	return dst
}

func appendNumber(dst []byte, n uint64) []byte { return strconv.AppendUint(dst, n, 10) }

func appendFlag(dst []byte, flag bool) []byte { return strconv.AppendBool(dst, flag) }
