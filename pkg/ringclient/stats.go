// SPDX-License-Identifier: Apache-2.0

package ringclient

import (
	"maps"
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
	// Selections is how many lookups were answered.
	Selections uint64
	// BytesHeld is about how many bytes the current state keeps in memory.
	BytesHeld int64
	// WatchError says why file events do not come, so that only the poll finds changes; "" where they do and with
	// Options.PollOnly.
	WatchError string
	// SubPathMounts names the paths below the directory that are mounted with subPath. Kubelet never updates those.
	SubPathMounts []string
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
	stats.SubPathMounts = append([]string(nil), c.subPaths...)
	if s := c.state.Load(); s != nil {
		stats.BytesHeld = s.BytesHeld()
	}
	return stats
}

// counters are what Stats are made of. Lookups touch selections only.
type counters struct {
	selections atomic.Uint64
	// Selections are written all the time by every processor; the padding keeps what follows out of their cache line.
	_ [56]byte

	mu         sync.Mutex
	loads      uint64
	loadTime   time.Duration
	loadErrors map[Reason]uint64
	lastError  *Failure
	watchError string
}

// succeed notes that the directory holds what is loaded.
func (c *counters) succeed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
}

// swap notes a new state.
func (c *counters) swap(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loads++
	c.loadTime += took
	c.settle()
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
		Selections: c.selections.Load(),
		WatchError: c.watchError,
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
