// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

// handler answers requests from a client's ring.
type handler struct {
	client  *ringclient.Client
	version string
}

// NewHandler returns the handler of everything that an agent serves, with a metrics registry of its own. Version is what
// the status gives as the agent's.
func NewHandler(client *ringclient.Client, version string) http.Handler {
	h := &handler{client: client, version: version}
	registry, durations := newRegistry(client)
	mux := http.NewServeMux()
	measured := func(label string, answer http.Handler) http.Handler {
		return promhttp.InstrumentHandlerDuration(durations.MustCurryWith(prometheus.Labels{"path": label}), answer)
	}
	route := func(path string, answer http.Handler) { mux.Handle(path, measured(path, readOnly(answer))) }
	route("/v1/lookup", http.HandlerFunc(h.lookup))
	route("/v1/status", http.HandlerFunc(h.status))
	route("/healthz", http.HandlerFunc(h.healthz))
	route("/readyz", http.HandlerFunc(h.readyz))
	route("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/", measured("other", http.HandlerFunc(notFound))) // A label for each path would be anybody's to add.
	return mux
}

// readOnly lets GET and HEAD through.
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Allow", "GET, HEAD")
		p := problem{
			status: http.StatusMethodNotAllowed, Error: "the method is not allowed here",
			Field: "method", Value: r.Method, Limit: "GET, HEAD",
		}
		p.write(w)
	})
}

func notFound(w http.ResponseWriter, r *http.Request) {
	p := badField("there is nothing at this path", "path", r.URL.Path, "/v1/lookup, /v1/status, /metrics, /healthz, /readyz")
	p.status = http.StatusNotFound
	p.write(w)
}

// probeAnswer is the body of a probe that succeeds.
type probeAnswer struct {
	Status string `json:"status"`
}

func (h *handler) healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, probeAnswer{"ok"})
}

func (h *handler) readyz(w http.ResponseWriter, _ *http.Request) {
	if h.client.State() == nil {
		h.notReady().write(w)
		return
	}
	writeJSON(w, http.StatusOK, probeAnswer{"ready"})
}

// notReady says why there is no ring.
func (h *handler) notReady() *problem {
	p := &problem{status: http.StatusServiceUnavailable, Error: ringclient.ErrNotLoaded.Error()}
	if last := h.client.Stats().LastError; last != nil {
		p.Error += ": " + last.Err.Error()
	}
	return p
}
