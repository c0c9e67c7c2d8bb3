// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// errTooManyConnections says that the limit of connections to all backends is reached.
	errTooManyConnections = errors.New("too many connections to backends are open")
	// errForeignAddress says that a transport asked for another address than the ring gave for its backend.
	errForeignAddress = errors.New("this is not the address of the backend")
)

// dialer makes the connections to all backends and counts those that are open.
type dialer struct {
	timeout time.Duration
	// idle is how long a write may take.
	idle time.Duration
	most int64
	open atomic.Int64
	// makeRoom closes connections that nobody uses.
	makeRoom func()
}

// dial connects to address, within the time for it and the limit of connections.
func (d *dialer) dial(ctx context.Context, network, address string) (*conn, error) {
	if d.open.Add(1) > d.most {
		d.makeRoom()
		if d.open.Load() > d.most {
			d.open.Add(-1)
			return nil, errTooManyConnections
		}
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	inner, err := (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		d.open.Add(-1)
		return nil, err
	}
	return &conn{Conn: inner, idle: d.idle, release: sync.OnceFunc(func() { d.open.Add(-1) })}, nil
}

// conn is a connection to a backend. It knows how much was written to it, which is the evidence that a request was not sent.
type conn struct {
	net.Conn
	written atomic.Int64
	// shared says that it carries several requests at once, without TLS that would say so.
	shared bool
	idle   time.Duration
	// armed is when the deadline of writes was set. A transport writes from one goroutine at a time.
	armed   time.Time
	release func()
}

// Write gives up on a backend that takes nothing for as long as a body may rest.
func (c *conn) Write(p []byte) (int, error) {
	if now := time.Now(); now.Sub(c.armed) > c.idle/4 {
		c.armed = now
		if err := c.SetWriteDeadline(now.Add(c.idle)); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

// Close closes the connection and gives its place back.
func (c *conn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// tlsError is a handshake that failed.
type tlsError struct{ err error }

func (e *tlsError) Error() string { return fmt.Sprintf("TLS handshake: %v", e.err) }

func (e *tlsError) Unwrap() error { return e.err }

// encrypt makes a TLS connection of c, which it closes where that fails.
func encrypt(ctx context.Context, c *conn, config *tls.Config, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	secure := tls.Client(c, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, &tlsError{errors.Join(err, c.Close())}
	}
	return secure, nil
}

// unwrap returns the connection below TLS, and nil where a connection carries several requests at once: then nothing that is
// written can be said to be of one of them.
func unwrap(c net.Conn) *conn {
	if secure, ok := c.(*tls.Conn); ok {
		if secure.ConnectionState().NegotiatedProtocol == "h2" {
			return nil
		}
		c = secure.NetConn()
	}
	plain, _ := c.(*conn)
	if plain != nil && plain.shared {
		return nil
	}
	return plain
}
