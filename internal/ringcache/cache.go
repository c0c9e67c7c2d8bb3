// SPDX-License-Identifier: Apache-2.0

// Package ringcache remembers rings that were built, so that a HashRing which has not changed is not built again each time
// that it is looked at.
//
// Guarantees:
//
//   - What it returns is what [plan.BuildRing] returns for the same request, with the cache's limit of points. Nothing depends
//     on what it remembers but time: the key is a digest of everything that decides the bytes.
//   - It keeps at most [MaxBytes] of snapshots, those that were asked for last. Points are not kept.
//   - The rings that are being built or compared at one time have at most as many points together as one may have, which bounds
//     the memory that this takes. Two that are compared can have up to twice as many: they have to be open both. Then nothing else
//     is built or compared.
package ringcache

import (
	"container/list"
	"context"
	"crypto/sha256"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/ringwright/ringwright/internal/plan"
)

// MaxBytes is how many bytes of snapshots are remembered. A snapshot has at most 16 MiB.
const MaxBytes = 64 << 20

// entryBytes is about what an entry takes beside its snapshot.
const entryBytes = 1 << 10

// Cache remembers rings. It is safe for concurrent use.
type Cache struct {
	build     func(plan.Request) (*plan.Ring, error)
	maxBytes  int
	maxPoints uint64
	// building counts the points that are being built or compared.
	building *semaphore.Weighted
	builds   atomic.Uint64
	hits     atomic.Uint64

	mu sync.Mutex
	// recent holds the entries, the last one asked for in front; entries finds them.
	recent  *list.List
	entries map[[sha256.Size]byte]*list.Element
	bytes   int
	// movements are those that were found out.
	movements map[comparison]movement
}

// comparison is of two rings, by their digests: of all their views, or of that of all backends.
type comparison struct {
	from, to string
	views    bool
}

// movement is how many positions have another owner in a view.
type movement struct {
	moved uint64
	view  []string
}

// maxMovements is how many movements are remembered.
const maxMovements = 4096

// entry is the result of a build. Errors are remembered too: a ring that is too large takes as long to find out.
type entry struct {
	key  [sha256.Size]byte
	ring *plan.Ring
	err  error
}

func (e entry) bytes() int {
	if e.ring == nil {
		return entryBytes
	}
	return entryBytes + len(e.ring.Snapshot()) + len(e.ring.Recipe())
}

// New returns an empty cache that builds rings of at most maxPoints points, 1 to [plan.MaxPoints].
func New(maxPoints uint64) *Cache { return newCache(plan.BuildRing, MaxBytes, maxPoints) }

func newCache(build func(plan.Request) (*plan.Ring, error), maxBytes int, maxPoints uint64) *Cache {
	return &Cache{
		build: build, maxBytes: maxBytes, maxPoints: maxPoints, building: semaphore.NewWeighted(int64(maxPoints)),
		recent: list.New(), entries: map[[sha256.Size]byte]*list.Element{}, movements: map[comparison]movement{},
	}
}

// Build returns what [plan.BuildRing] does.
func (c *Cache) Build(q plan.Request) (*plan.Ring, error) {
	q.Config.MaxPoints = min(q.Config.MaxPoints, c.maxPoints)
	key, err := q.Key()
	if err != nil {
		return nil, err
	}
	if known, ok := c.find(key); ok {
		c.hits.Add(1)
		return known.ring, known.err
	}
	points := int64(min(q.Points(), c.maxPoints))
	if err := c.building.Acquire(context.Background(), points); err != nil { // It waits for builds, which end by themselves.
		return nil, err
	}
	defer c.building.Release(points)
	c.builds.Add(1)
	made := entry{key: key}
	made.ring, made.err = c.build(q)
	c.remember(made)
	return made.ring, made.err
}

// Movement returns what [plan.Movement] does.
func (c *Cache) Movement(from, to *plan.Ring) (uint64, error) {
	m, err := c.compare(from, to, false)
	return m.moved, err
}

// WorstMovement returns what [plan.WorstMovement] does. The view must not be changed.
func (c *Cache) WorstMovement(from, to *plan.Ring) (moved uint64, view []string, err error) {
	m, err := c.compare(from, to, true)
	return m.moved, m.view, err
}

func (c *Cache) compare(from, to *plan.Ring, views bool) (m movement, err error) {
	key := comparison{from.Digest(), to.Digest(), views}
	c.mu.Lock()
	m, known := c.movements[key]
	c.mu.Unlock()
	if known {
		return m, nil
	}
	points := min(int64(from.PointCount())+int64(to.PointCount()), int64(c.maxPoints)) // More than there are would wait for ever.
	if err := c.building.Acquire(context.Background(), points); err != nil {
		return movement{}, err
	}
	defer c.building.Release(points)
	if views {
		m.moved, m.view, err = plan.WorstMovement(from, to)
	} else {
		m.moved, err = plan.Movement(from, to)
	}
	if err != nil {
		return movement{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.movements) == maxMovements {
		clear(c.movements) // They are found out again.
	}
	c.movements[key] = m
	return m, nil
}

// Builds returns how often something was built, or refused, that was not known.
func (c *Cache) Builds() uint64 { return c.builds.Load() }

// Hits returns how often something was asked for that was known.
func (c *Cache) Hits() uint64 { return c.hits.Load() }

func (c *Cache) find(key [sha256.Size]byte) (entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.entries[key]
	if !ok {
		return entry{}, false
	}
	c.recent.MoveToFront(element)
	return element.Value.(entry), true
}

func (c *Cache) remember(e entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.entries[e.key]; known {
		return // Somebody has built the same at the same time.
	}
	c.entries[e.key] = c.recent.PushFront(e)
	c.bytes += e.bytes()
	for c.bytes > c.maxBytes {
		oldest := c.recent.Back()
		gone := c.recent.Remove(oldest).(entry)
		delete(c.entries, gone.key)
		c.bytes -= gone.bytes()
	}
}
