// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"cmp"
	"slices"
	"sync"
)

// Announcement is what clients are to be told of a policy.
type Announcement struct {
	// Policy is namespace/name.
	Policy string
	// Epoch and Version say which of two announcements is the later one: epochs first.
	Epoch, Version int64
	// Weights belong to whoever holds the announcement, and are not changed.
	Weights Served
}

// after says whether a is later than b.
func (a Announcement) after(b Announcement) bool {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Version, b.Version)) > 0
}

// Board keeps the latest announcement of each policy and tells those who watch it. It is safe for concurrent use.
type Board struct {
	mu       sync.Mutex
	latest   map[string]Announcement
	watchers map[*Watcher]struct{}
	// Stale is called for each announcement that came after a later one, if it is set.
	Stale func(Announcement)
}

// NewBoard returns an empty one.
func NewBoard() *Board {
	return &Board{latest: map[string]Announcement{}, watchers: map[*Watcher]struct{}{}}
}

// Put takes an announcement, and says whether it is later than what was known.
func (b *Board) Put(a Announcement) bool {
	b.mu.Lock()
	known, ok := b.latest[a.Policy]
	if ok && !a.after(known) {
		b.mu.Unlock()
		if known.Epoch > a.Epoch && b.Stale != nil {
			b.Stale(a)
		}
		return false
	}
	b.latest[a.Policy] = a
	for w := range b.watchers {
		w.note(a.Policy)
	}
	b.mu.Unlock()
	return true
}

// Get returns the latest announcement of a policy.
func (b *Board) Get(policy string) (Announcement, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a, ok := b.latest[policy]
	return a, ok
}

// Remove forgets a policy.
func (b *Board) Remove(policy string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.latest, policy)
}

// Watch returns a watcher of all that is there and comes. Its Close must be called.
func (b *Board) Watch() *Watcher {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := &Watcher{board: b, changed: map[string]struct{}{}, Ready: make(chan struct{}, 1)}
	for policy := range b.latest {
		w.changed[policy] = struct{}{}
	}
	b.watchers[w] = struct{}{}
	return w
}

// Watcher collects which policies have changed. One that is slow misses announcements between, never the last one.
type Watcher struct {
	board   *Board
	changed map[string]struct{}
	// Ready has a value when there is something to take.
	Ready chan struct{}
}

func (w *Watcher) note(policy string) {
	w.changed[policy] = struct{}{}
	select {
	case w.Ready <- struct{}{}:
	default:
	}
}

// Take returns the latest announcements of the policies that have changed, in the order of their names.
func (w *Watcher) Take() []Announcement {
	w.board.mu.Lock()
	defer w.board.mu.Unlock()
	announcements := make([]Announcement, 0, len(w.changed))
	for policy := range w.changed {
		if a, ok := w.board.latest[policy]; ok {
			announcements = append(announcements, a)
		}
	}
	clear(w.changed)
	slices.SortFunc(announcements, func(a, b Announcement) int { return cmp.Compare(a.Policy, b.Policy) })
	return announcements
}

// Close ends the watch.
func (w *Watcher) Close() {
	w.board.mu.Lock()
	defer w.board.mu.Unlock()
	delete(w.board.watchers, w)
}
