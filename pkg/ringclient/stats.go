// SPDX-License-Identifier: Apache-2.0

package ringclient

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Stats is what a client counted since Open, and what it has at this moment.
type Stats struct {
	// Loads is how many states were swapped in. Reading unchanged files is none.
	Loads uint64
	// LoadTime is how long those loads took together, from the first file to the swap.
	LoadTime time.Duration
	// LoadErrors is how many reads of the directory failed, by reason. It grows with every poll while the cause remains.
	LoadErrors map[Reason]uint64
	// LastError is the latest of them, nil where there was none.
	LastError *Failure
	// Selections is how many lookups were answered, Failovers in how many of them the owner was passed over, and Errors how often the
	// program said that a backend that a lookup gave it failed, see [Decision.CountError].
	Selections, Failovers, Errors uint64
	// Rings are the same by ring and role: those of the present state first, the stable one before the candidate, then
	// earlier ones, the latest first, up to [MaxRingStats] together. What is older is in the sums only.
	Rings []RingStats
	// Failed is how many backends are passed over at this moment because they were reported as failed.
	Failed int
	// BytesHeld is about how many bytes the current state keeps in memory.
	BytesHeld int64
	// WatchError says why file events do not come, so that only the poll finds changes; "" where they do and with
	// Options.PollOnly.
	WatchError string
	// SubPathMounts names the paths below the directory that are mounted with subPath. Kubelet never updates those.
	SubPathMounts []string
}

// MaxRingStats is how many entries Stats.Rings can have.
const MaxRingStats = 16

// RingStats counts the lookups that a ring answered in one role.
type RingStats struct {
	Role Role
	// Revision is the number of the ring among those of its HashRing, 0 where that is not known, Digest that of its snapshot.
	Revision int64
	Digest   string
	// Selections is how many lookups it answered, Failovers in how many of them the owner was passed over, and Errors how often a
	// backend that it gave was said to have failed.
	Selections, Failovers, Errors uint64
}

// Failure is a read of the directory that failed.
type Failure struct {
	// Reason is why, and Err says it in words; it is a *LoadError.
	Reason Reason
	Err    error
	// At is when it happened last.
	At time.Time
	// Current says that no read has succeeded since.
	Current bool
}

// Stats returns the counters. The caller owns them.
func (c *Client) Stats() Stats {
	stats := c.counters.stats()
	stats.Failed = c.failures.count()
	stats.SubPathMounts = append([]string(nil), c.subPaths...)
	if s := c.state.Load(); s != nil {
		stats.BytesHeld = s.BytesHeld()
	}
	return stats
}

// counters are what Stats are made of. Lookups touch the ring counters only.
type counters struct {
	mu         sync.Mutex
	loads      uint64
	loadTime   time.Duration
	loadErrors map[Reason]uint64
	lastError  *Failure
	watchError string
	// rings are in the order of Stats.Rings. Past has the sums of those that were forgotten.
	rings []*ringCounter
	past  RingStats
}

// ringCounter counts the lookups of one ring in one role.
type ringCounter struct {
	of                    RingStats
	selections, failovers counter
	// errors are so rare that one number does.
	errors atomic.Uint64
}

func (c *ringCounter) stats() RingStats {
	stats := c.of
	stats.Selections, stats.Failovers, stats.Errors = c.selections.load(), c.failovers.load(), c.errors.Load()
	return stats
}

// succeed notes that the directory holds what is loaded.
func (c *counters) succeed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
}

// swap notes a new state, and gives its rings their counters.
func (c *counters) swap(next *State, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if next.candidate != nil {
		next.candidate.counts = c.countsOf(next.candidate)
	}
	next.stable.counts = c.countsOf(next.stable)
	c.forget()
	c.loads++
	c.loadTime += took
	c.settle()
}

// countsOf returns the counter of a ring in its role, which it puts in front of all.
func (c *counters) countsOf(s *side) *ringCounter {
	of := RingStats{Role: s.role, Revision: s.revision, Digest: s.loaded.digest}
	counts := &ringCounter{of: of}
	if i := slices.IndexFunc(c.rings, func(r *ringCounter) bool { return r.of == of }); i >= 0 {
		counts = c.rings[i]
		c.rings = slices.Delete(c.rings, i, i+1)
	}
	c.rings = slices.Insert(c.rings, 0, counts)
	return counts
}

// forget drops the oldest counters beyond MaxRingStats into the sums. What a lookup on a state that old counts later is lost.
func (c *counters) forget() {
	for len(c.rings) > MaxRingStats {
		last := c.rings[len(c.rings)-1].stats()
		c.past.Selections += last.Selections
		c.past.Failovers += last.Failovers
		c.past.Errors += last.Errors
		c.rings = c.rings[:len(c.rings)-1]
	}
}

// settle replaces the last failure instead of changing it: Stats has handed it out.
func (c *counters) settle() {
	if c.lastError != nil && c.lastError.Current {
		past := *c.lastError
		past.Current = false
		c.lastError = &past
	}
}

// fail notes a failed read and says whether it is news: the one before succeeded or failed otherwise.
func (c *counters) fail(f Failure) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loadErrors == nil {
		c.loadErrors = make(map[Reason]uint64)
	}
	c.loadErrors[f.Reason]++
	last := c.lastError
	c.lastError = &f
	return last == nil || !last.Current || last.Err.Error() != f.Err.Error()
}

// watch notes whether file events come, and says whether that is news.
func (c *counters) watch(problem string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := c.watchError != problem
	c.watchError = problem
	return changed
}

func (c *counters) stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	stats := Stats{
		Loads:      c.loads,
		LoadTime:   c.loadTime,
		LoadErrors: maps.Clone(c.loadErrors),
		Selections: c.past.Selections,
		Failovers:  c.past.Failovers,
		Errors:     c.past.Errors,
		WatchError: c.watchError,
	}
	for _, counts := range c.rings {
		ring := counts.stats()
		stats.Rings = append(stats.Rings, ring)
		stats.Selections += ring.Selections
		stats.Failovers += ring.Failovers
		stats.Errors += ring.Errors
	}
	if stats.LoadErrors == nil {
		stats.LoadErrors = map[Reason]uint64{}
	}
	if c.lastError != nil {
		last := *c.lastError
		stats.LastError = &last
	}
	return stats
}
