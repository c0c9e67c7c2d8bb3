// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"sync"
	"time"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

// sweepInterval is how often it is looked which backends have left.
const sweepInterval = time.Second

// table holds the endpoints that were asked for.
type table struct {
	mu sync.RWMutex
	// endpoints are by identity and address: a request of a moment before an address changed still goes to the old one.
	endpoints map[place]*endpoint
	closed    bool
}

// place is what makes two endpoints the same.
type place struct{ id, target string }

// get returns the endpoint at a place, and makes it with create where there is none.
func (t *table) get(at place, create func(id, target string) *endpoint) *endpoint {
	t.mu.RLock()
	e := t.endpoints[at]
	t.mu.RUnlock()
	if e == nil {
		e = t.add(at, create)
	}
	if !e.used.Load() {
		e.used.Store(true)
	}
	return e
}

// add makes an endpoint. Those of the same backend at other addresses lose their idle connections.
func (t *table) add(at place, create func(id, target string) *endpoint) *endpoint {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.endpoints[at]; e != nil {
		return e
	}
	for _, other := range t.endpoints {
		if other.id == at.id {
			other.transport.CloseIdleConnections()
		}
	}
	e := create(at.id, at.target)
	if t.closed {
		e.transport.DisableKeepAlives = true
		return e
	}
	t.endpoints[place{e.id, e.target}] = e
	return e
}

// closeIdle closes the connections that no request uses.
func (t *table) closeIdle() {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, e := range t.endpoints {
		e.transport.CloseIdleConnections()
	}
}

// close does so for good.
func (t *table) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, e := range t.endpoints {
		e.transport.CloseIdleConnections()
	}
	clear(t.endpoints)
}

// sweep forgets the endpoints of backends that left the rings, and those that nobody asked for in many sweeps, with their idle
// connections. A connection that is in use is closed after its request.
func (t *table) sweep(state *ringclient.State, unused int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at, e := range t.endpoints {
		if e.used.Swap(false) {
			e.spare = 0
		} else {
			e.spare++
		}
		if onRing(state, e.id) && (e.spare < unused || e.requests.Load() > 0) {
			continue
		}
		delete(t.endpoints, at)
		e.transport.CloseIdleConnections()
	}
}

// onRing says that a backend is on one of the rings. Before there is a ring, nobody has left it.
func onRing(state *ringclient.State, id string) bool {
	if state == nil {
		return true
	}
	if _, found := state.Stable().Ring.Find(id); found {
		return true
	}
	candidate, exists := state.Candidate()
	if !exists {
		return false
	}
	_, found := candidate.Ring.Find(id)
	return found
}

// follow sweeps until stop.
func (p *Proxy) follow() {
	defer close(p.done)
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	unused := int(2*p.config.KeepAlive/sweepInterval) + 2
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
			p.sweep(unused)
		}
	}
}

// sweep forgets who has left, also where nobody has asked for them for so long that they are not in the table any more.
func (p *Proxy) sweep(unused int) {
	state := p.client.State()
	p.table.sweep(state, unused)
	p.metrics.forget(func(id string) bool { return !onRing(state, id) })
}
