// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"time"
)

// ErrForeignAddress is what the dialer of a backend says to every other address.
var ErrForeignAddress = errForeignAddress

// TargetOf is targetOf, IsLocal is isLocal.
var (
	TargetOf = targetOf
	IsLocal  = isLocal
)

// DialAs dials an address with the dialer of a backend at target.
func (p *Proxy) DialAs(ctx context.Context, target, address string) error {
	e := p.newEndpoint("id", target)
	c, err := e.transport.DialContext(ctx, "tcp", address)
	if err == nil {
		err = errors.Join(errors.New("connected"), c.Close())
	}
	return err
}

// PassOvers returns for how long a backend is passed over by failures at moments; at a negative one it serves.
func (p *Proxy) PassOvers(start time.Time, moments ...time.Duration) []time.Duration {
	e := p.newEndpoint("id", "127.0.0.1:1")
	var list []time.Duration
	for _, at := range moments {
		if at < 0 {
			e.serve(start.Add(-at), start.Add(-at))
			continue
		}
		list = append(list, e.fail(start.Add(at)))
	}
	return list
}

// Sent says whether a request counts as sent that wrote to connections in turn, of which only the last one may be open.
func Sent(writes ...int) bool {
	e := &evidence{}
	trace := e.trace()
	for _, n := range writes {
		inner, peer := net.Pipe()
		go func() { _, _ = peer.Read(make([]byte, 64)) }()
		c := &conn{Conn: inner, idle: time.Minute, release: func() {}}
		c.written.Store(100) // Of requests before.
		trace.GotConn(httptrace.GotConnInfo{Conn: c, Reused: true})
		if n > 0 {
			_, _ = c.Write(make([]byte, n))
		}
		_, _ = c.Close(), peer.Close()
	}
	return e.sent()
}

// LooksAfterStop says whether an idle timer runs that was stopped while it looked.
func LooksAfterStop() bool {
	t := startIdleTimer(time.Hour, func() {})
	t.rests()
	t.stop()
	t.look()
	return t.timer.Stop()
}

// Sweep looks who has left, and forgets endpoints that nobody asked for in so many sweeps.
func (p *Proxy) Sweep(unused int) { p.sweep(unused) }

// EndpointAt returns the endpoint that the table has for a backend at an address, and whose it is.
func (p *Proxy) EndpointAt(id, target string) (endpoint any, ofID, ofTarget string) {
	e := p.table.get(place{id, target}, p.newEndpoint)
	return e, e.id, e.target
}
