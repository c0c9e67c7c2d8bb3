// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MaxRefusals is how many connections are being refused at a time.
	MaxRefusals = 256
	// RefusalTimeout is how long a refused peer has to say something, and then again to hang up, from when it was told to.
	RefusalTimeout = 250 * time.Millisecond
	// refusalWriteTimeout is how long that may take to tell. A new connection has room for it; it is the processor that can be busy.
	refusalWriteTimeout = 5 * time.Second
)

// Limits bound a [Listener].
type Limits struct {
	// Connections is how many connections are open at a time, at least 1.
	Connections int
	// Refuse tells a peer that there are too many: it writes to the connection, which has a deadline already. The listener
	// closes it. Nil says nothing.
	Refuse func(net.Conn)
}

// Listener accepts up to its limit of connections at a time. It is safe for concurrent use.
type Listener struct {
	net.Listener
	limits            Limits
	places, refusals  chan struct{}
	closed            chan struct{}
	closing           sync.Once
	accepted, refused atomic.Uint64
}

// New returns a listener that accepts what inner does, within limits. It owns inner.
func New(inner net.Listener, limits Limits) *Listener {
	return &Listener{
		Listener: inner, limits: limits,
		places: make(chan struct{}, limits.Connections), refusals: make(chan struct{}, MaxRefusals), closed: make(chan struct{}),
	}
}

// Accept returns the next connection that has a place. Those that have none are refused on the way.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.places <- struct{}{}:
			return l.take(conn), nil
		default:
		}
		// It is full. Where as many are being refused as may be, whichever ends first decides.
		select {
		case l.places <- struct{}{}:
			return l.take(conn), nil
		case l.refusals <- struct{}{}:
			go l.refuse(conn)
		case <-l.closed:
			_ = conn.Close()
			return nil, net.ErrClosed
		}
	}
}

// Close stops accepting. Connections that were accepted stay open. To close it again is no error.
func (l *Listener) Close() error {
	var err error
	l.closing.Do(func() {
		close(l.closed)
		err = l.Listener.Close()
	})
	return err
}

// Open returns how many connections are open.
func (l *Listener) Open() int { return len(l.places) }

// Limit returns how many can be open.
func (l *Listener) Limit() int { return l.limits.Connections }

// Accepted returns how many connections were accepted so far.
func (l *Listener) Accepted() uint64 { return l.accepted.Load() }

// Refused returns how many connections were refused so far.
func (l *Listener) Refused() uint64 { return l.refused.Load() }

// take gives a connection back its place when it is closed. The wrapper has the methods of what it wraps, so that whoever copies
// to it can still let the kernel do it.
func (l *Listener) take(conn net.Conn) net.Conn {
	l.accepted.Add(1)
	release := sync.OnceFunc(func() { <-l.places })
	switch c := conn.(type) {
	case *net.TCPConn:
		return &tcpConn{c, release}
	case *net.UnixConn:
		return &unixConn{c, release}
	default:
		return &anyConn{c, release}
	}
}

type tcpConn struct {
	*net.TCPConn
	release func()
}

// Close closes the connection and gives its place back.
func (c *tcpConn) Close() error {
	defer c.release()
	return c.TCPConn.Close()
}

type unixConn struct {
	*net.UnixConn
	release func()
}

// Close closes the connection and gives its place back.
func (c *unixConn) Close() error {
	defer c.release()
	return c.UnixConn.Close()
}

type anyConn struct {
	net.Conn
	release func()
}

// Close closes the connection and gives its place back.
func (c *anyConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// refuse waits until the peer has said something, says so, and waits until the peer has closed: closing a connection with unread bytes would reset it, and take from the
// peer what it has not read yet.
func (l *Listener) refuse(conn net.Conn) {
	defer func() { <-l.refusals }()
	defer func() { _ = conn.Close() }() // Nothing that was written has to arrive.
	l.refused.Add(1)
	_ = conn.SetWriteDeadline(time.Now().Add(refusalWriteTimeout))
	if l.limits.Refuse == nil {
		return
	}
	var discard [512]byte
	// A client of HTTP takes an answer that comes before its request for a broken connection.
	_ = conn.SetReadDeadline(time.Now().Add(RefusalTimeout))
	read, err := conn.Read(discard[:])
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	l.limits.Refuse(conn)
	if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(RefusalTimeout))
	for read < maxDiscardBytes {
		n, err := conn.Read(discard[:])
		if err != nil {
			return
		}
		read += n
	}
}

// maxDiscardBytes is how much of a refused request is read at most.
const maxDiscardBytes = 64 << 10
