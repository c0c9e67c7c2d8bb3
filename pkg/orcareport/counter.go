// SPDX-License-Identifier: Apache-2.0

package orcareport

import (
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync"
)

// maxShards bounds the memory of a counter: a shard has a cache line or two.
const maxShards = 64

// counter counts requests in shards, so that they do not wait for each other.
type counter struct{ shards []shard }

type shard struct {
	mu sync.Mutex
	count
	inFlight int64
	_        [64]byte // No other shard in the same cache line.
}

// count are sums. The area is that below the curve of requests in flight over time.
type count struct{ area, requests, errors int64 }

func newCounter() counter {
	n := min(1<<bits.Len(uint(runtime.GOMAXPROCS(0))), maxShards) // More than that many: two rarely meet.
	return counter{make([]shard, n)}
}

// begin counts a request that begins at a time, and returns its shard for end.
func (c *counter) begin(now int64) *shard {
	s := &c.shards[rand.Uint32()&uint32(len(c.shards)-1)]
	s.mu.Lock()
	s.inFlight++
	s.area -= now
	s.mu.Unlock()
	return s
}

// end counts a request that ends.
func (s *shard) end(now int64, failed bool) {
	s.mu.Lock()
	s.inFlight--
	s.area += now
	s.requests++
	if failed {
		s.errors++
	}
	s.mu.Unlock()
}

// sum returns the sums up to a time. A request in flight has added minus its beginning to the area, so what it has until now is missing.
func (c *counter) sum(now int64) count {
	var all count
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		all.area += s.area + s.inFlight*now
		all.requests += s.requests
		all.errors += s.errors
		s.mu.Unlock()
	}
	return all
}
