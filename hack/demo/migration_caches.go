// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
)

// cacheCount is how many nodes there are.
const cacheCount = 10

// The headers between what sends requests, the caches, and what reads the answers. The proxy passes them on.
const (
	datacenterHeader = "X-Demo-Datacenter"
	faultHeader      = "X-Demo-Fault"
	statusHeader     = "X-Cache-Status"
	decisionHeader   = "X-Ringwright-Decision"
)

// fetch is a request of a cache to the origin.
type fetch struct{ datacenter, cache, key string }

// origin is where caches get what they do not have. It can be out of reach of a datacenter.
type origin struct {
	mu      sync.Mutex
	away    map[string]bool
	fetches []fetch
	refused int
}

func newOrigin() *origin { return &origin{away: map[string]bool{}} }

// reach says whether the origin can be reached from a datacenter.
func (o *origin) reach(datacenter string, reachable bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.away[datacenter] = !reachable
}

// get answers a cache, and says whether it could be reached.
func (o *origin) get(f fetch) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.away[f.datacenter] {
		o.refused++
		return false
	}
	o.fetches = append(o.fetches, f)
	return true
}

// between returns what was fetched from one count of fetches to another.
func (o *origin) between(from, to int) []fetch {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.fetches[from:to])
}

func (o *origin) isAway(datacenter string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.away[datacenter]
}

func (o *origin) counts() (fetched, refused int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.fetches), o.refused
}

// cache is the node of a name in every datacenter, each with a memory of its own.
type cache struct {
	name   string
	origin *origin
	mu     sync.Mutex
	memory map[fetch]bool
}

// ServeHTTP answers from memory, and otherwise from the origin. While that is away, only what is in memory can be had.
func (c *cache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := fetch{datacenter: r.Header.Get(datacenterHeader), cache: c.name, key: r.URL.Path}
	c.mu.Lock()
	hit := c.memory[f]
	if !hit && c.origin.get(f) {
		c.memory[f] = true
	}
	stored := c.memory[f]
	c.mu.Unlock()
	w.Header().Set(statusHeader, map[bool]string{true: "HIT", false: "MISS"}[hit])
	if !stored {
		w.Header().Set(faultHeader, "the origin is out of reach")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, c.name) // Whoever has gone needs no answer.
}

func (m *migrationDemo) startCaches(context.Context) error {
	say(fmt.Sprintf("Starting %d caches, each with a memory for each datacenter", cacheCount))
	for i := range cacheCount {
		name := fmt.Sprintf("cache-%d", i)
		b := &backend{name: name, handler: &cache{name: name, origin: m.origin, memory: map[fetch]bool{}}}
		if err := b.start(); err != nil {
			return err
		}
		m.backends = append(m.backends, b)
	}
	return nil
}
