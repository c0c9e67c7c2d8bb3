// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/http"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

// probeAnswer is the body of a probe that succeeds.
type probeAnswer struct {
	Status string `json:"status"`
}

// healthz says that the process answers. A ring that cannot be loaded is no reason to start it again: that would not help, and lose
// the last good one.
func (h *handler) healthz(w http.ResponseWriter, _ *http.Request) int {
	return writeJSON(w, http.StatusOK, probeAnswer{"ok"})
}

// readyz says whether lookups should come here.
func (h *handler) readyz(w http.ResponseWriter, _ *http.Request) int {
	switch {
	case h.draining.Load():
		return (&problem{status: http.StatusServiceUnavailable, Error: "draining: the agent was asked to stop"}).write(w)
	case h.client.State() == nil:
		return h.notReady().write(w)
	default:
		return writeJSON(w, http.StatusOK, probeAnswer{"ready"})
	}
}

// notReady says why there is no ring.
func (h *handler) notReady() *problem {
	p := &problem{status: http.StatusServiceUnavailable, Error: ringclient.ErrNotLoaded.Error()}
	if last := h.client.Stats().LastError; last != nil {
		p.Error += ": " + last.Err.Error()
	}
	return p
}
