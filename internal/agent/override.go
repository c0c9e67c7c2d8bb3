// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

// maxOverrideBytes is how long the body of an override can be.
const maxOverrideBytes = 1 << 10

// overrideAnswer is the body of a request for an override and of its answer.
type overrideAnswer struct {
	// Ring is "stable" or "candidate", or "" where the split decides.
	Ring string `json:"ring"`
}

func (h *handler) showOverride(w http.ResponseWriter, _ *http.Request) int {
	return writeJSON(w, http.StatusOK, overrideAnswer{h.override.get().String()})
}

// setOverride makes one ring answer all keys. It takes a candidate that is not there: there may be one in a moment.
func (h *handler) setOverride(w http.ResponseWriter, r *http.Request) int {
	const limit = "stable or candidate"
	var asked overrideAnswer
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOverrideBytes))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&asked)
	if err == nil {
		if _, end := decoder.Token(); end != io.EOF {
			err = errors.New("it goes on behind its object")
		}
	}
	if err != nil {
		return badField(`the body is not {"ring":"stable"} or {"ring":"candidate"}: `+err.Error(), "body", "", limit).write(w)
	}
	force, known := parseForce(asked.Ring)
	if !known {
		return badField("there is no such ring", "ring", asked.Ring, limit).write(w)
	}
	return h.changeOverride(w, r, force)
}

func (h *handler) clearOverride(w http.ResponseWriter, r *http.Request) int {
	return h.changeOverride(w, r, ringclient.ForceNone)
}

func (h *handler) changeOverride(w http.ResponseWriter, r *http.Request, force ringclient.Force) int {
	if err := h.override.set(h.client, force); err != nil {
		return (&problem{status: http.StatusInternalServerError, Error: err.Error()}).write(w)
	}
	h.log.Warn("override changed", "ring", force.String(), "peer", r.RemoteAddr)
	return writeJSON(w, http.StatusOK, overrideAnswer{force.String()})
}

// override is what is used instead of the split at this moment. The state of the client says the same, once there is one.
type override struct {
	mu    sync.Mutex
	force ringclient.Force
}

func (o *override) get() ringclient.Force {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.force
}

func (o *override) set(client *ringclient.Client, force ringclient.Force) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := client.SetForce(force); err != nil {
		return err
	}
	o.force = force
	return nil
}

// overrideForbidden answers on the listeners that others than the programs of the pod can reach.
func overrideForbidden(w http.ResponseWriter, _ *http.Request) int {
	return (&problem{
		status: http.StatusForbidden,
		Error:  "the override is served on a loopback address (--listen) and on the Unix socket (--unix-socket) only, because nobody is asked who he is",
	}).write(w)
}

// guarded lets a change through only if no browser sends it. A page that a browser of this host shows can send requests to loopback,
// and with a name that it lets point there, read the answers; but it cannot choose the header Host, and not leave Origin out.
func guarded(next answer) answer {
	return func(w http.ResponseWriter, r *http.Request) int {
		if origin := r.Header.Get("Origin"); origin != "" {
			return badField("a browser may not change this", "Origin", origin, "no such header").with(http.StatusForbidden).write(w)
		}
		if !isLoopbackHost(r) {
			return badField("the request is for another host: a name can be made to point here", "Host", r.Host,
				"localhost or a loopback address").with(http.StatusForbidden).write(w)
		}
		return next(w, r)
	}
}

// isLoopbackHost says whether a request names this host as it is named from here. On a Unix socket every name does: no browser gets
// there.
func isLoopbackHost(r *http.Request) bool {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && local.Network() == "unix" {
		return true
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.IsLoopback()
}
