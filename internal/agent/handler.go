// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ringwright/ringwright/internal/agentapi"
	"github.com/ringwright/ringwright/internal/movement"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// handler answers requests from a client's ring. What listeners differ in is which routes they have.
type handler struct {
	client   *ringclient.Client
	metrics  *metrics
	movement *movement.Table
	// started is when the agent began.
	started    time.Time
	version    string
	datacenter string
	log        *slog.Logger
	override   override
	// draining says that the agent was asked to stop.
	draining atomic.Bool
	// warnings are what was wrong from the start.
	warnings []string
	// parts run beside the listeners.
	parts []part
}

func newHandler(config Config, client *ringclient.Client) *handler {
	seen := movement.New()
	return &handler{
		client: client, metrics: newMetrics(config, client, seen), movement: seen, started: config.started, version: config.Version, datacenter: config.Datacenter, log: config.Logger,
		override: override{force: config.Force},
	}
}

// answer writes the answer to a request and returns its status.
type answer func(w http.ResponseWriter, r *http.Request) int

// route is what a path answers.
type route struct {
	path string
	// methods are those that are allowed, and answers what each of them does.
	methods []string
	answers []answer
	observe *observer
}

// access is what may be asked on a listener.
type access int

const (
	// statusOnly has no lookups: it is for whoever comes from outside the pod.
	statusOnly access = iota
	// lookups has them too, and does not trust whoever asks.
	lookups
	// admin can also override the split: only programs of the same pod get here.
	admin
)

const (
	lookupPath   = "/v1/lookup"
	overridePath = "/v1/override"
	metricsPath  = "/metrics"
	healthzPath  = "/healthz"
	readyzPath   = "/readyz"
)

// routes are the http.Handler of one listener.
type routes struct {
	handler *handler
	byPath  map[string]*route
	other   *route
}

// routes returns what a listener serves.
func (h *handler) routes(a access) *routes {
	list := []*route{
		readOnly(agentapi.StatusPath, h.status),
		readOnly(metricsPath, h.metrics.answer),
		readOnly(healthzPath, h.healthz),
		readOnly(readyzPath, h.readyz),
	}
	if a >= lookups {
		lookup := readOnly(lookupPath, h.lookup)
		list = append([]*route{lookup.with(http.MethodPost, h.lookupBatch)}, list...)
	}
	if a == admin {
		list = append(list, readOnly(overridePath, h.showOverride).
			with(http.MethodPut, guarded(h.setOverride)).with(http.MethodDelete, guarded(h.clearOverride)))
	}
	all := &routes{handler: h, byPath: make(map[string]*route)}
	var paths []string
	for _, r := range list {
		r.observe = h.metrics.observer(r.path, r.methods)
		all.byPath[r.path] = r
		paths = append(paths, r.path)
	}
	all.other = &route{observe: h.metrics.observer("other", nil), answers: []answer{notFound(strings.Join(paths, ", "))}}
	if a != admin { // It says why it is not here.
		all.byPath[overridePath] = &route{
			path: overridePath, observe: h.metrics.observer(overridePath, nil), answers: []answer{overrideForbidden},
		}
	}
	return all
}

// readOnly returns a route that answers GET and HEAD.
func readOnly(path string, get answer) *route {
	return &route{path: path, methods: []string{http.MethodGet, http.MethodHead}, answers: []answer{get, get}}
}

// with returns the route with another method.
func (r *route) with(method string, a answer) *route {
	r.methods, r.answers = append(r.methods, method), append(r.answers, a)
	return r
}

// The value of a header that is shared and never changed.
var closeConnection = []string{"close"}

// ServeHTTP answers a request and counts it. While the agent drains, it asks each connection to end after its answer.
func (all *routes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	if all.handler.draining.Load() {
		w.Header()["Connection"] = closeConnection
	}
	at, known := all.byPath[r.URL.Path]
	if !known {
		at = all.other
	}
	status := at.choose(r.Method)(w, r)
	at.observe.observe(r.Method, status, time.Since(started))
}

// choose returns what answers a method. A route without methods answers all in the same way.
func (r *route) choose(method string) answer {
	if len(r.methods) == 0 {
		return r.answers[0]
	}
	for i, m := range r.methods {
		if m == method {
			return r.answers[i]
		}
	}
	return r.notAllowed
}

func (r *route) notAllowed(w http.ResponseWriter, request *http.Request) int {
	allowed := strings.Join(r.methods, ", ")
	w.Header().Set("Allow", allowed)
	return badField("the method is not allowed here", "method", request.Method, allowed).with(http.StatusMethodNotAllowed).write(w)
}

func notFound(paths string) answer {
	return func(w http.ResponseWriter, r *http.Request) int {
		return badField("there is nothing at this path", "path", r.URL.Path, paths).with(http.StatusNotFound).write(w)
	}
}
