// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// lookupAnswer is the body of an answered lookup.
type lookupAnswer struct {
	// Key repeats the key where it was given as text and is UTF-8; KeyHex repeats it otherwise. One of them is there.
	Key    *string `json:"key,omitempty"`
	KeyHex *string `json:"keyHex,omitempty"`
	// KeyHash is the position of the key on the ring.
	KeyHash uint32 `json:"keyHash"`
	// Ring, Generation, Digest and Version name the ring that answered.
	Ring       string `json:"ring"`
	Generation int64  `json:"generation"`
	Digest     string `json:"digest"`
	Version    string `json:"version"`
	// Owners are at least one and at most n backends, the owner first.
	Owners []owner `json:"owners"`
}

// owner is one backend of an answer.
type owner struct {
	ID string `json:"id"`
	// Address is where to dial the backend, "" where that is not known.
	Address string `json:"address"`
	// Zone is "" where it is not known.
	Zone   string `json:"zone"`
	Weight uint32 `json:"weight"`
}

func (h *handler) lookup(w http.ResponseWriter, r *http.Request) {
	q, p := parseQuery(r.URL.RawQuery)
	if p != nil {
		p.write(w)
		return
	}
	// One state for the whole answer, so that what it says about the ring is of the ring that decided.
	state := h.client.State()
	if state == nil {
		h.notReady().write(w)
		return
	}
	var buf [4]ringclient.Decision
	decisions, err := state.AppendDecisions(buf[:0], q.key, q.features, q.count)
	if err != nil {
		lookupProblem(err, q).write(w)
		return
	}
	writeJSON(w, http.StatusOK, newAnswer(state, q, decisions))
}

func newAnswer(state *ringclient.State, q query, decisions []ringclient.Decision) *lookupAnswer {
	answer := &lookupAnswer{
		KeyHash:    ring.Hash(q.key),
		Ring:       state.RingName(),
		Generation: state.Generation(),
		Digest:     state.Digest(),
		Version:    state.Version().String(),
		Owners:     make([]owner, len(decisions)),
	}
	if text := string(q.key); !q.isHex && utf8.ValidString(text) {
		answer.Key = &text
	} else {
		text = hex.EncodeToString(q.key)
		answer.KeyHex = &text
	}
	for i, d := range decisions {
		answer.Owners[i] = owner{ID: d.ID(), Address: d.Address(), Zone: d.Zone(), Weight: d.Weight()}
	}
	return answer
}

// lookupProblem says why a ring did not answer.
func lookupProblem(err error, q query) *problem {
	var unknown *ring.UnknownFeatureError
	switch {
	case errors.As(err, &unknown):
		limit := "none is declared"
		if len(unknown.Declared) > 0 {
			limit = strings.Join(unknown.Declared, ", ")
		}
		return badField("the ring does not declare this feature", paramFeatures, unknown.Name, limit)
	case errors.Is(err, ring.ErrNoBackend):
		p := badField("no backend may own the key: none has the features and a weight", paramFeatures, strings.Join(q.features, ","), "")
		p.status = http.StatusServiceUnavailable
		return p
	default:
		return &problem{status: http.StatusInternalServerError, Error: err.Error()}
	}
}
