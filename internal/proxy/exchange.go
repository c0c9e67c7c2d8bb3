// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"slices"
	"time"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

// errDeadline says that the time for a request as a whole is over.
var errDeadline = errors.New("the time for the request is over")

// exchange is one request on its way. It is used once: what net/http leaves running may still look at it.
type exchange struct {
	p        *Proxy
	reverse  httputil.ReverseProxy
	writer   responseWriter
	started  time.Time
	state    *ringclient.State
	key      []byte
	keyBytes [128]byte // where most keys fit
	features []string

	decision ringclient.Decision
	// endpoint is that of the decision, nil where it has no address. Held says that a place of it is taken.
	endpoint *endpoint
	held     bool
	// tried are the backends before this one, attempts how often anything was tried. Again says that it is the same backend as
	// before, on another connection.
	tried    []string
	attempts int
	again    bool
	// upload is the body of the request, nil where it has none.
	upload *upload
	// tunnel is what the connection became, nil in most cases.
	tunnel *tunnel
	ctx    context.Context
	// stop gives back the timer of ctx, nil where it has none.
	stop context.CancelFunc
	// first is the evidence of the first attempt, which in most cases is the only one, and seen that of the current one.
	first evidence
	seen  *evidence
	// role is that of the decision.
	role roleLabel
	// failed says that the proxy answered because no backend did.
	failed bool
	// complete says that the client has got a whole answer, of a backend or of the proxy.
	complete bool
}

// ServeHTTP routes one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{p: p, started: time.Now()}
	control := http.NewResponseController(w)
	x.writer = responseWriter{ResponseWriter: w, control: control, idle: p.config.IdleTimeout}
	defer x.finish(r)
	running := p.inFlight.Add(1)
	problem := x.admit(r, running)
	if problem == nil {
		problem = x.route(r)
	}
	if problem != nil {
		x.refuse(problem)
		x.complete = true
		return
	}
	if r.ContentLength != 0 {
		if p.config.MaxBody > 0 {
			r.Body = http.MaxBytesReader(w, r.Body, p.config.MaxBody)
		}
		// An answer may begin before the request has ended, and then the rest of it is the backend's and not the server's.
		_ = control.EnableFullDuplex()
	}
	x.reverse = httputil.ReverseProxy{
		Rewrite: x.rewrite, Transport: x, ModifyResponse: x.modify, ErrorHandler: x.fail,
		BufferPool: &p.buffers, ErrorLog: p.errorLog,
	}
	x.reverse.ServeHTTP(&x.writer, r)
	x.complete = true
}

// RoundTrip sends a request to the backend of the decision, and to others where that fails and may be tried. The error is a
// *failure.
func (x *exchange) RoundTrip(out *http.Request) (*http.Response, error) {
	x.ctx = out.Context()
	if limit := x.p.config.Timeout; limit > 0 {
		x.ctx, x.stop = context.WithTimeoutCause(x.ctx, limit-time.Since(x.started), errDeadline)
		out = out.WithContext(x.ctx)
	}
	if out.Body != nil {
		x.upload = &upload{
			source: out.Body, control: x.writer.control, idle: x.p.config.IdleTimeout, limit: x.p.config.ReplayBytes, budget: &x.p.replay,
		}
	}
	for {
		response, failed := x.attempt(out)
		if failed == nil {
			return response, nil
		}
		x.release()
		x.blame(failed)
		x.report(failed)
		if !x.another(out, failed) {
			return nil, failed
		}
	}
}

// attempt sends the request once.
func (x *exchange) attempt(out *http.Request) (*http.Response, *failure) {
	x.attempts++
	x.p.metrics.attempts.Inc()
	e := x.endpoint
	if e == nil {
		err := errors.New("the ring gives no address for it that can be dialled")
		return nil, &failure{reason: reasonNoAddress, retriable: true, id: x.decision.ID(), err: err}
	}
	if !e.acquire() {
		return nil, &failure{reason: reasonBackendBusy, id: e.id, err: errors.New("its limit of requests is reached")}
	}
	x.held = true
	sent := time.Now()
	response, err := e.transport.RoundTrip(x.address(out))
	if err != nil {
		failed := x.judge(x.seen, err)
		// One that answers others is slow; one that has answered nobody since is taken for gone.
		failed.unreachable = failed.unreachable || failed.reason == reasonResponseTimeout && e.silentSince(sent)
		return nil, failed
	}
	if e.serve(sent, time.Now()) {
		x.p.client.ReportServing(e.id)
		x.p.config.Logger.Info("backend answers again", "backend", e.id, "address", e.target)
	}
	if x.upload != nil {
		x.upload.settle()
	}
	return response, nil
}

// address returns the request to the backend of the decision, with what is seen of it in x.seen.
func (x *exchange) address(out *http.Request) *http.Request {
	request := out
	trace := httptrace.ContextClientTrace(x.ctx)
	if x.attempts == 1 && trace != nil && trace.GotConn == nil && trace.GotFirstResponseByte == nil {
		// The trace is httputil.ReverseProxy's, of this request alone. To join it with another one costs more than a lookup.
		x.seen = &x.first
		trace.GotConn, trace.GotFirstResponseByte = x.seen.gotConn, x.seen.gotByte
	} else {
		x.seen = &evidence{}
		request = out.WithContext(httptrace.WithClientTrace(x.ctx, x.seen.trace()))
	}
	target := *out.URL
	target.Scheme, target.Host, target.User = x.endpoint.scheme, x.endpoint.target, nil
	request.URL = &target
	if x.p.config.Host == HostBackend {
		request.Host = x.endpoint.target
	}
	if x.upload != nil {
		request.Body = x.upload.attempt()
	}
	return request
}

// breakOff ends an answer that came to rest.
func (x *exchange) breakOff(body io.Closer) {
	if c := x.seen.conn.Load(); c != nil {
		_ = c.Close()
		return
	}
	_ = body.Close() // Other answers share the connection.
}

// report lets lookups pass over a backend that cannot be reached.
func (x *exchange) report(f *failure) {
	if x.endpoint == nil {
		return
	}
	if f.reason == reasonTLS && !f.unreachable && !x.endpoint.alerted.Swap(true) {
		x.p.config.Logger.Warn("backend ended the TLS connection", "backend", x.endpoint.id, "address", x.endpoint.target, "error", f.err)
	}
	if !f.unreachable {
		return
	}
	if rest := x.endpoint.fail(time.Now()); rest > 0 && x.p.client.ReportFailed(x.endpoint.id, rest) {
		x.p.metrics.passedOver.Inc()
		x.p.config.Logger.Info("backend cannot be reached, it is passed over",
			"backend", x.endpoint.id, "address", x.endpoint.target, "for", rest, "reason", string(f.reason), "error", f.err)
	}
}

// another decides whether the request is sent again, and where.
func (x *exchange) another(r *http.Request, f *failure) bool {
	refused := ""
	switch {
	case !f.retriable:
		if f.reason == reasonBroken || f.reason == reasonResponseTimeout {
			refused = string(f.reason)
		}
	case f.sent && !idempotent(r):
		refused = "not_idempotent"
	case x.upload != nil && !x.upload.replayable():
		refused = "body"
	case x.attempts >= x.p.config.Attempts:
		refused = "attempts"
	case f.reason == reasonStale && !x.again:
		x.again = true // Its keep-alive was over, which says nothing about the backend.
	case !x.next():
		refused = "no_backend"
	}
	if refused != "" {
		x.p.metrics.retriesRefused.WithLabelValues(refused).Inc()
	}
	if refused != "" || !f.retriable {
		return false
	}
	x.p.metrics.failovers.WithLabelValues(string(f.reason), roleNames[x.role]).Inc()
	return true
}

// next takes the next backend that was not tried, by the same ring.
func (x *exchange) next() bool {
	x.again = false
	x.tried = append(x.tried, x.decision.ID())
	decisions, err := x.state.AppendUncounted(nil, x.key, x.features, min(len(x.tried)+1, ringclient.MaxOwners))
	if err != nil {
		return false
	}
	for _, d := range decisions {
		if !slices.Contains(x.tried, d.ID()) {
			x.take(d)
			return true
		}
	}
	return false
}

// take makes a decision that of the request.
func (x *exchange) take(d ringclient.Decision) {
	x.decision, x.endpoint = d, nil
	x.role = roleStable
	if d.Role() == ringclient.Candidate {
		x.role = roleCandidate
	}
	if target := targetOf(d.Address(), x.p.config.DefaultPort); target != "" {
		x.endpoint = x.p.table.get(place{d.ID(), target}, x.p.newEndpoint)
	}
}

func (x *exchange) release() {
	if x.held {
		x.held = false
		x.endpoint.release()
	}
}

// finish counts the request and gives back what it held. It also runs when an answer is broken off.
func (x *exchange) finish(r *http.Request) {
	x.release()
	if x.tunnel != nil { // Also where the client did not ask for the protocol that the backend switched to.
		_ = x.tunnel.Close()
	}
	if x.stop != nil {
		x.stop()
	}
	if x.upload != nil {
		rest := time.Duration(0)
		if x.complete {
			rest = linger
		}
		x.upload.close(rest)
		x.p.metrics.receivedBytes.Add(float64(x.upload.read.Load()))
	}
	ended := classAborted
	switch {
	case x.complete:
		ended = class(min(max(x.writer.status/100, 1), 5) - 1) // A tunnel has no status, and some servers have their own.
	case r.Context().Err() != nil:
		ended = classCanceled
	}
	x.p.metrics.requests[x.role][ended].Inc()
	if x.endpoint != nil {
		label := classNames[ended]
		if x.failed {
			label = classFailed
		}
		x.p.metrics.countBackend(x.endpoint.id, label)
	}
	if ended == classAborted && !r.ProtoAtLeast(1, 1) {
		x.writer.reset()
	}
	x.p.inFlight.Add(-1)
}
