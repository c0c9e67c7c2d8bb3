// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
)

// reason is why an attempt failed or the proxy answered itself. It is a label of metrics.
type reason string

const (
	// Reasons for which the next backend is tried, if anything is.

	reasonNoAddress reason = "no_address" // the backend has none that can be dialled
	reasonRefused   reason = "refused"    // nobody listens
	reasonTimeout   reason = "dial_timeout"
	reasonDNS       reason = "dns"
	reasonTLS       reason = "tls"
	reasonConnect   reason = "connect" // another error of connecting
	reasonStale     reason = "stale"   // a kept connection was closed as it was used
	reasonReset     reason = "reset"   // a new connection was closed without an answer

	// Reasons that end a request.

	reasonBroken          reason = "broken" // the answer had begun
	reasonResponseTimeout reason = "response_timeout"
	reasonDeadline        reason = "timeout"
	reasonCanceled        reason = "canceled" // the client left
	reasonBody            reason = "body"     // the client broke off its body
	reasonBodySize        reason = "body_size"
	reasonBusy            reason = "busy"
	reasonBackendBusy     reason = "backend_busy"
	reasonConnections     reason = "connections"
	reasonLocal           reason = "local" // this system has no more of what a connection needs
	reasonMethod          reason = "method"
	reasonTarget          reason = "target" // not of a form that has a path
	reasonKeyEmpty        reason = "key_empty"
	reasonKeySize         reason = "key_size"
	reasonFeatures        reason = "features"
	reasonNoRing          reason = "no_ring"
	reasonNoBackend       reason = "no_backend"
	reasonUpgrade         reason = "upgrade"
)

// failure is an attempt that brought no answer.
type failure struct {
	reason reason
	// retriable says that the reason is one of those for which something else can be tried.
	retriable bool
	// unreachable says that no connection could be made.
	unreachable bool
	// sent says that some of the request may have reached the backend.
	sent bool
	id   string
	err  error
}

func (f *failure) Error() string { return fmt.Sprintf("backend %s: %s: %v", f.id, f.reason, f.err) }

func (f *failure) Unwrap() error { return f.err }

// failedOver are the reasons for which another backend is tried.
var failedOver = []reason{
	reasonNoAddress, reasonRefused, reasonTimeout, reasonDNS, reasonTLS, reasonConnect, reasonStale, reasonReset,
}

// blamed are the reasons for which a failed attempt is an error of the backend, and so of the ring that gave it: not of the client, of
// this host, or of a kept connection whose time was over.
var blamed = []reason{
	reasonNoAddress, reasonRefused, reasonTimeout, reasonDNS, reasonTLS, reasonConnect, reasonReset, reasonBroken, reasonResponseTimeout,
	reasonBackendBusy, reasonDeadline,
}

// blame counts a failed attempt where the backend is to blame. Where the time for all is over and the client still sends, it may be the
// one that is slow.
func (x *exchange) blame(f *failure) {
	sends := x.upload != nil && !x.upload.ended.Load()
	if slices.Contains(blamed, f.reason) && (f.reason != reasonDeadline || !sends) {
		x.countError(f.reason)
	}
}

func (x *exchange) countError(r reason) {
	x.decision.CountError()
	x.p.metrics.backendErrors.WithLabelValues(string(r), roleNames[x.role]).Inc()
}

// evidence is what is seen of one attempt: it decides whether the request can be sent again.
type evidence struct {
	// connected, reused: a connection was there, and had been used before.
	connected, reused atomic.Bool
	// sentBefore says that an earlier connection of the same attempt had taken something: net/http tries again by itself
	// where it may.
	sentBefore atomic.Bool
	conn       atomic.Pointer[conn]
	secure     atomic.Pointer[tls.Conn] // nil without TLS
	// written is what had been written to the connection before the request.
	written atomic.Int64
	// answered says that a byte of the answer came.
	answered atomic.Bool
}

func (e *evidence) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GotConn: e.gotConn, GotFirstResponseByte: e.gotByte}
}

func (e *evidence) gotConn(info httptrace.GotConnInfo) {
	if e.connected.Load() && e.sent() {
		e.sentBefore.Store(true)
	}
	secure, _ := info.Conn.(*tls.Conn)
	e.secure.Store(secure)
	plain := unwrap(info.Conn)
	e.conn.Store(plain)
	if plain != nil {
		e.written.Store(plain.written.Load())
	}
	e.reused.Store(info.Reused)
	e.connected.Store(true)
}

func (e *evidence) gotByte() { e.answered.Store(true) }

// sent says that something of the request may have left. What was written to a connection that carries several requests counts
// as theirs all.
func (e *evidence) sent() bool {
	if !e.connected.Load() {
		return e.sentBefore.Load()
	}
	plain := e.conn.Load()
	return e.sentBefore.Load() || plain == nil || plain.written.Load() != e.written.Load()
}

// judge says what an error of an attempt means.
func (x *exchange) judge(e *evidence, err error) *failure {
	f := &failure{id: x.decision.ID(), err: err, sent: e.sent()}
	var upload error
	if x.upload != nil {
		upload = x.upload.failure()
	}
	var tooLarge *http.MaxBytesError
	switch cause := context.Cause(x.ctx); {
	case errors.Is(cause, errDeadline):
		f.reason = reasonDeadline
	case cause != nil && !timedOut(upload): // To a server, a client that is slow has left as well.
		f.reason = reasonCanceled
	case errors.As(upload, &tooLarge):
		f.reason, f.err = reasonBodySize, upload
	case upload != nil:
		f.reason, f.err = reasonBody, upload
	case errors.Is(err, errTooManyConnections):
		f.reason = reasonConnections
	case !e.connected.Load() && isLocal(err):
		f.reason = reasonLocal
	case !e.connected.Load():
		f.reason, f.retriable, f.unreachable = connectReason(err), true, true
	case e.answered.Load():
		f.reason = reasonBroken
	case e.alert(err) != nil: // Every backend would say the same of what the proxy shows.
		f.reason, f.err = reasonTLS, e.alert(err)
	case timedOut(err):
		f.reason = reasonResponseTimeout
	case e.reused.Load():
		f.reason, f.retriable = reasonStale, true
	default:
		f.reason, f.retriable = reasonReset, true
	}
	return f
}

// notEstablished is what HTTP/2 of net/http says of a connection that ended before its first request, in place of why it ended.
const notEstablished = "http2: client conn could not be established"

// alert returns what a backend said as it ended a TLS connection, nil where it said nothing. With TLS 1.3 that is how it refuses a
// certificate: to the proxy, the handshake was over.
func (e *evidence) alert(err error) error {
	if secure := e.secure.Load(); secure != nil && err.Error() == notEstablished {
		_, err = secure.Read(make([]byte, 1)) // It says again why it ended.
	}
	var said *net.OpError
	if errors.As(err, &said) && said.Op == "remote error" { // crypto/tls has no type for it.
		return said
	}
	return nil
}

// isLocal says that a connection could not be made for want of something here, which says nothing about the backend: files, ports
// or memory. A resolver keeps of such an error only the text.
func isLocal(err error) bool {
	var dns *net.DNSError
	isDNS := errors.As(err, &dns)
	return slices.ContainsFunc([]syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM,
	}, func(e syscall.Errno) bool { return errors.Is(err, e) || isDNS && strings.HasSuffix(dns.Err, e.Error()) })
}

// connectReason says why a connection could not be made.
func connectReason(err error) reason {
	var (
		dns         *net.DNSError
		handshake   *tlsError
		certificate *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &handshake), errors.As(err, &certificate):
		return reasonTLS
	case errors.As(err, &dns):
		return reasonDNS
	case errors.Is(err, syscall.ECONNREFUSED):
		return reasonRefused
	case timedOut(err), errors.Is(err, context.DeadlineExceeded):
		return reasonTimeout
	default:
		return reasonConnect
	}
}

// idempotent says that a request can be sent twice with the effect of once: by its method (RFC 9110, 9.2.2), or because its
// client gave it a key by which the backend knows it again. net/http has the same two names.
func idempotent(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return len(r.Header["Idempotency-Key"]) > 0 || len(r.Header["X-Idempotency-Key"]) > 0
}
