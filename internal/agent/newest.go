// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// newest keeps a server open for whoever comes: when its listener is full, the connection is closed on which nothing has begun or
// ended for longest, whether it waits for a request or takes its answer. Whoever asks and hangs up, as probes do, finds a place.
type newest struct {
	limit int
	next  http.Handler

	mu sync.Mutex
	// conns has a tenant for each connection, the one that did something last at the end.
	conns list.List
	of    map[net.Conn]*list.Element
}

// tenant is a connection, and what ends its requests: one that is closed would be waited for until it is written to.
type tenant struct {
	conn net.Conn
	end  context.CancelFunc
}

// elementKey is that of the element of a connection in the context of its requests.
type elementKey struct{}

// keepNewest has a server, whose listener has a limit of at least 2 connections, serve those that come.
func keepNewest(s *http.Server, limit int) *http.Server {
	n := &newest{limit: limit, next: s.Handler, of: map[net.Conn]*list.Element{}}
	s.Handler, s.ConnContext, s.ConnState = n, n.enter, n.changed
	return s
}

// enter takes note of a connection that was accepted. One place stays free for the next, which would be refused without.
func (n *newest) enter(ctx context.Context, conn net.Conn) context.Context {
	ctx, end := context.WithCancel(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	element := n.conns.PushBack(tenant{conn, end})
	n.of[conn] = element
	if len(n.of) >= n.limit {
		oldest, _ := n.conns.Front().Value.(tenant)
		n.forget(oldest.conn)
		_ = oldest.conn.Close() // Its server finds out by itself.
	}
	return context.WithValue(ctx, elementKey{}, element)
}

// changed takes note of a connection that ended.
func (n *newest) changed(conn net.Conn, state http.ConnState) {
	if state == http.StateClosed {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.forget(conn)
	}
}

// forget ends what enter began. The caller holds mu.
func (n *newest) forget(conn net.Conn) {
	if element, there := n.of[conn]; there {
		left, _ := n.conns.Remove(element).(tenant)
		left.end()
		delete(n.of, conn)
	}
}

// ServeHTTP answers a request.
func (n *newest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	element, _ := r.Context().Value(elementKey{}).(*list.Element)
	n.touch(element)
	defer n.touch(element)
	n.next.ServeHTTP(w, r)
}

// touch takes note that something happens on a connection. One that was closed meanwhile is in no list.
func (n *newest) touch(element *list.Element) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns.MoveToBack(element)
}
