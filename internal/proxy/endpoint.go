// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
)

// endpoint is a backend at an address, with connections of its own: they are used for nobody else, and can be closed when the
// backend leaves.
type endpoint struct {
	id string
	// target is where to dial: a host and a port.
	target    string
	scheme    string
	transport *http.Transport
	most      int64
	// requests is how many run.
	requests atomic.Int64
	// answered is when an answer began last, in nanoseconds.
	answered atomic.Int64
	// used says that it was asked for since the table was swept last.
	used  atomic.Bool
	spare int
	// alerted says that it refused what the proxy shows since it answered last, which is logged once.
	alerted atomic.Bool

	passOver, maxPassOver time.Duration
	// failing says that failures is above 0.
	failing atomic.Bool
	mu      sync.Mutex
	// failures is how often in a row it was reported, failed when that was last, until for how long it is passed over.
	failures      int
	failed, until time.Time
}

// targetOf returns where to dial an address, "" where it cannot be.
func targetOf(address string, defaultPort uint16) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil { // It has no port.
		host, port = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]"), strconv.Itoa(int(defaultPort))
	}
	// net/http asks for a name in another form where it is not ASCII; no backend has such a name.
	if host == "" || port == "" || strings.ContainsFunc(host, func(c rune) bool { return c > unicode.MaxASCII || c <= ' ' }) {
		return ""
	}
	return net.JoinHostPort(host, port)
}

// newEndpoint returns the endpoint of a backend. It keeps copies of the strings: the ring that they come from can go away.
func (p *Proxy) newEndpoint(id, target string) *endpoint {
	e := &endpoint{
		id: strings.Clone(id), target: strings.Clone(target), scheme: "http", most: int64(p.config.MaxBackendConnections),
		passOver: p.config.PassOver, maxPassOver: p.config.MaxPassOver,
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!p.config.HTTP2 || p.credentials != nil)
	e.transport = &http.Transport{
		// It makes the connections without TLS.
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := p.dialEndpoint(ctx, e, network, address)
			if err != nil {
				return nil, err
			}
			c.shared = p.config.HTTP2
			return c, nil
		},
		DisableCompression:     true,
		MaxConnsPerHost:        p.config.MaxBackendConnections,
		MaxIdleConns:           p.config.IdleConnections,
		MaxIdleConnsPerHost:    p.config.IdleConnections,
		DisableKeepAlives:      p.config.IdleConnections == 0, // 0 idle connections are no limit to net/http.
		IdleConnTimeout:        p.config.KeepAlive,
		ResponseHeaderTimeout:  p.config.ResponseTimeout,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: int64(p.config.MaxHeaderBytes),
		Protocols:              protocols,
	}
	if p.credentials == nil {
		protocols.SetUnencryptedHTTP2(p.config.HTTP2)
		return e
	}
	protocols.SetHTTP2(p.config.HTTP2)
	e.scheme = "https"
	e.transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return p.dialEncrypted(ctx, e, network, address)
	}
	return e
}

// dialEndpoint refuses every address but that of the endpoint: whatever goes wrong above, nobody else is connected to.
func (p *Proxy) dialEndpoint(ctx context.Context, e *endpoint, network, address string) (*conn, error) {
	if address != e.target {
		return nil, errForeignAddress
	}
	return p.dialer.dial(ctx, network, e.target)
}

func (p *Proxy) dialEncrypted(ctx context.Context, e *endpoint, network, address string) (net.Conn, error) {
	plain, err := p.dialEndpoint(ctx, e, network, address)
	if err != nil {
		return nil, err
	}
	protocols := []string{"http/1.1"}
	if p.config.HTTP2 {
		protocols = []string{"h2", "http/1.1"}
	}
	config, err := p.credentials.handshake(p.config.TLS.serverName(e.id, e.target), protocols)
	if err != nil {
		p.config.Logger.Warn("newer TLS files cannot be used, the ones before are", "error", err)
	}
	return encrypt(ctx, plain, config, p.config.DialTimeout)
}

// acquire takes a place for a request, and says whether there was one.
func (e *endpoint) acquire() bool {
	if e.requests.Add(1) > e.most {
		e.requests.Add(-1)
		return false
	}
	return true
}

func (e *endpoint) release() { e.requests.Add(-1) }

// fail notes that the backend could not be reached, and returns for how long it is to be passed over: 0 where it is already.
// Requests that fail together count once.
func (e *endpoint) fail(now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now.Before(e.until) {
		return 0
	}
	rest := e.passOver
	for range e.failures {
		rest = min(2*rest, e.maxPassOver)
	}
	e.failures++
	// Agents that lost a backend at one moment come back to it at different ones.
	rest += time.Duration((rand.Float64() - 0.5) * 0.4 * float64(rest))
	e.failed, e.until = now, now.Add(rest)
	e.failing.Store(true)
	return rest
}

// serve notes an answer to a request that was sent at some moment, and says whether the backend is back: it had failed, and the
// request was sent after that.
func (e *endpoint) serve(sent, now time.Time) bool {
	e.answered.Store(now.UnixNano())
	if e.alerted.Load() {
		e.alerted.Store(false)
	}
	if !e.failing.Load() {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if sent.Before(e.failed) {
		return false
	}
	e.failures, e.until = 0, time.Time{}
	e.failing.Store(false)
	return true
}

// silentSince says that no answer of the backend began after a moment.
func (e *endpoint) silentSince(moment time.Time) bool { return e.answered.Load() < moment.UnixNano() }
