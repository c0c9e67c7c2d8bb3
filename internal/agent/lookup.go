// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// maxKeptBytes is how large a buffer of a scratch may be to be used again.
const maxKeptBytes = 256 << 10

// scratch is the memory of a lookup. It is used again for later ones, so that they allocate next to nothing.
type scratch struct {
	query     query
	batch     batch
	decisions []ringclient.Decision
	out       []byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// release gives the memory back, unless a large request made it large.
func (s *scratch) release() {
	clear(s.decisions[:cap(s.decisions)]) // They keep a state in memory.
	if cap(s.out) <= maxKeptBytes && s.batch.isSmall() {
		scratches.Put(s)
	}
}

// lookup answers GET /v1/lookup.
func (h *handler) lookup(w http.ResponseWriter, r *http.Request) int {
	s := scratches.Get().(*scratch)
	defer s.release()
	if p := s.query.parse(r.URL.RawQuery); p != nil {
		return p.write(w)
	}
	// One state for the whole answer, so that what it says about the ring is of the ring that decided.
	state := h.client.State()
	if state == nil {
		return h.notReady().write(w)
	}
	var err error
	s.decisions, err = state.AppendDecisions(s.decisions[:0], s.query.key, s.query.features, s.query.count)
	if err != nil {
		return lookupProblem(err, s.query.features).write(w)
	}
	hash := ring.Hash(s.query.key)
	h.movement.Note(hash, s.query.features, s.decisions[0])
	s.out = appendAnswer(s.out[:0], state, hash, &s.query, s.decisions)
	return writeBody(w, http.StatusOK, s.out)
}

// lookupProblem says why a ring did not answer.
func lookupProblem(err error, features []string) *problem {
	var unknown *ring.UnknownFeatureError
	switch {
	case errors.As(err, &unknown):
		limit := "none is declared"
		if len(unknown.Declared) > 0 {
			limit = strings.Join(unknown.Declared, ", ")
		}
		return badField("the ring does not declare this feature", paramFeatures, unknown.Name, limit)
	case errors.Is(err, ring.ErrNoBackend):
		message := "no backend may own the key: none has the features and a weight"
		return badField(message, paramFeatures, strings.Join(features, ","), "").with(http.StatusServiceUnavailable)
	default:
		return &problem{status: http.StatusInternalServerError, Error: err.Error()}
	}
}
