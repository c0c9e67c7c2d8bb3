// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"
)

// flushInterval is how long a part of an answer may wait for more of it, where its length is known: others are passed on as they
// come. One of up to smallBytes is passed on when it is complete.
const (
	flushInterval = 100 * time.Millisecond
	smallBytes    = 4 << 10
)

// rewrite makes the request for the backends of that of the client. Hop-by-hop headers are gone already.
func (x *exchange) rewrite(r *httputil.ProxyRequest) {
	// The query goes on as it came: what is routed by and what the backend gets are the same.
	r.Out.URL.RawQuery, r.Out.URL.ForceQuery = r.In.URL.RawQuery, r.In.URL.ForceQuery
	// So does the path. What begins with two slashes would become a target in absolute form.
	if path := sentPath(r.In); path != r.Out.URL.EscapedPath() && !strings.HasPrefix(path, "//") {
		r.Out.URL.Opaque = path
	}
	// net/http fills in the trailers of the request that it read, not those of a copy.
	r.Out.Trailer = r.In.Trailer
	switch x.p.config.Forwarded {
	case ForwardedReplace:
		r.SetXForwarded()
	case ForwardedAppend:
		r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
		r.SetXForwarded()
		for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
			if given := r.In.Header[name]; len(given) > 0 {
				r.Out.Header[name] = given
			}
		}
	}
	if via := x.p.config.Via; via != "" {
		r.Out.Header.Add("Via", fmt.Sprintf("%d.%d %s", r.In.ProtoMajor, r.In.ProtoMinor, via))
	}
}

// modify looks at the answer of a backend before it goes to the client.
func (x *exchange) modify(response *http.Response) error {
	config := &x.p.config
	x.p.metrics.firstByte[x.role].Observe(time.Since(x.started).Seconds())
	if answers := x.p.metrics.cacheAnswers; answers != nil {
		answers.count(response.Header.Values(config.CacheStatusHeader), x.role)
	}
	if config.Via != "" {
		response.Header.Add("Via", fmt.Sprintf("%d.%d %s", response.ProtoMajor, response.ProtoMinor, config.Via))
	}
	if config.DecisionHeader != "" {
		response.Header.Set(config.DecisionHeader, x.describe())
	}
	if len(response.Header["Content-Type"]) == 0 {
		x.writer.Header()["Content-Type"] = nil // The server would guess one.
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		if inner, ok := response.Body.(io.ReadWriteCloser); ok {
			x.tunnel = newTunnel(x, inner)
			response.Body = x.tunnel
		}
		return nil
	}
	if response.Body == http.NoBody {
		return nil
	}
	if response.ContentLength > smallBytes {
		x.reverse.FlushInterval = flushInterval
	}
	body := response.Body
	response.Body = &download{ReadCloser: body, x: x, timer: startIdleTimer(config.IdleTimeout, func() { x.breakOff(body) })}
	return nil
}

// describe returns who answered, as a dictionary of RFC 9651.
func (x *exchange) describe() string {
	d := x.decision
	var out strings.Builder
	out.WriteString(`backend="`)
	for _, c := range []byte(d.ID()) {
		switch {
		case c == '"' || c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&out, "%%%02X", c)
		default:
			out.WriteByte(c)
		}
	}
	failover := 0
	if d.Failover() || len(x.tried) > 0 {
		failover = 1
	}
	fmt.Fprintf(&out, `", role=%s, revision=%d, failover=?%d, attempts=%d`, d.Role(), d.Revision(), failover, x.attempts)
	return out.String()
}

// fail answers where no backend did.
func (x *exchange) fail(_ http.ResponseWriter, r *http.Request, err error) {
	var f *failure
	if !errors.As(err, &f) {
		// httputil.ReverseProxy refuses a protocol that was not asked for or is not ASCII.
		f = &failure{reason: reasonUpgrade, id: x.decision.ID(), err: err}
	}
	x.p.config.Logger.Debug("no answer", "method", r.Method, "backend", f.id, "reason", string(f.reason), "attempts", x.attempts, "error", f.err)
	if f.reason == reasonCanceled {
		panic(http.ErrAbortHandler) // An empty answer would look like one to a client that only closed its side.
	}
	x.failed = true
	x.refuse(x.failureProblem(f))
}

// failureProblem is what a client is told of the last attempt.
func (x *exchange) failureProblem(f *failure) *problem {
	config := &x.p.config
	p := &problem{status: http.StatusBadGateway, reason: f.reason, Field: "backend", Value: f.id}
	p.closes = x.upload != nil && !x.upload.ended.Load()
	switch f.reason {
	case reasonBodySize:
		return x.bodyProblem("")
	case reasonBody:
		p.status, p.Error, p.Field, p.Value = http.StatusBadRequest, "the request body broke off: "+f.err.Error(), "body", ""
		if timedOut(f.err) {
			p.status, p.Limit = http.StatusRequestTimeout, config.IdleTimeout.String()
		}
	case reasonConnections:
		p.status, p.retryAfter, p.Error = http.StatusServiceUnavailable, 1, "too many connections to backends are open"
		p.Field, p.Value, p.Limit = "--proxy-max-connections", "", strconv.Itoa(config.MaxConnections)
	case reasonLocal:
		p.status, p.retryAfter, p.Error = http.StatusServiceUnavailable, 1, "the proxy could not open a connection: "+f.err.Error()
	case reasonBackendBusy:
		p.status, p.retryAfter, p.Error = http.StatusServiceUnavailable, 1, "too many requests to this backend are running"
		p.Limit = fmt.Sprintf("--proxy-max-backend-connections %d", config.MaxBackendConnections)
	case reasonResponseTimeout:
		p.status, p.Error, p.Limit = http.StatusGatewayTimeout, "the backend did not answer in time", config.ResponseTimeout.String()
	case reasonDeadline:
		p.status, p.Error, p.Limit = http.StatusGatewayTimeout, "the request took too long", config.Timeout.String()
	case reasonTimeout:
		p.status, p.retryAfter, p.Limit = http.StatusGatewayTimeout, 1, config.DialTimeout.String()
		p.Error = fmt.Sprintf("no backend could be connected to in time, the last of %d attempts was to this one", x.attempts)
	case reasonTLS:
		if f.retriable {
			x.unconnected(p, f)
			break
		}
		p.Error = "the backend ended the TLS connection: " + f.err.Error()
	case reasonRefused, reasonDNS, reasonConnect, reasonNoAddress:
		x.unconnected(p, f)
	case reasonUpgrade:
		p.Error = f.err.Error()
	default:
		p.Error = "the backend closed the connection without an answer"
		if f.reason == reasonBroken {
			p.Error = "the answer of the backend could not be read"
		}
	}
	return p
}

// unconnected says that no backend could be connected to.
func (x *exchange) unconnected(p *problem, f *failure) {
	p.retryAfter = 1
	p.Error = fmt.Sprintf("no backend could be connected to, the last of %d attempts was to this one: %s", x.attempts, f.reason)
	p.Limit = fmt.Sprintf("%d attempts", x.p.config.Attempts)
}

// refuse answers with a problem.
func (x *exchange) refuse(p *problem) {
	x.p.metrics.errors.WithLabelValues(string(p.reason), roleNames[x.role]).Inc()
	p.write(&x.writer)
}

// reset breaks the connection of an HTTP/1.0 client in a way that it notices: to it, a connection that is closed in order is the
// end of an answer whose length it does not know.
func (w *responseWriter) reset() {
	conn, _, err := w.control.Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
