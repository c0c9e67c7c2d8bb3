// SPDX-License-Identifier: Apache-2.0

package ringclient

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// MaxPassOver is the longest that a backend is passed over for one report of a failure. The reader is to try it again; who knows
// better for how long it will be gone tells the operator, which tells everybody.
const MaxPassOver = 5 * time.Minute

// MaxFailed is how many backends can be passed over because they were reported, at a time. Beyond it reports have no effect: a
// reader that finds so many gone has lost its own network rather than its backends.
const MaxFailed = 1024

// failures are the backends that the program reported. Reading them takes no lock: each change replaces the whole.
type failures struct {
	changing sync.Mutex
	// timer calls expire when the time of the first one is over; nil before there was any. Closed says that it must not be set again.
	timer  *time.Timer
	closed bool
	// list is nil while nobody is reported, so that a lookup sees by one read that there is nothing to ask.
	list atomic.Pointer[map[string]time.Time]
}

// ReportFailed tells that the backend of that identity does not answer. Lookups pass over it for a time of at most
// [MaxPassOver], beginning now; a report while it is passed over changes how long. It is for connections that cannot be made; that a backend is slow, or says
// that it cannot, does not make another one know the key. It has no effect where the identity is unknown to the rings that are loaded, passOver is not above 0, or
// [MaxFailed] others are passed over already, and then returns false.
func (c *Client) ReportFailed(id string, passOver time.Duration) bool {
	s := c.state.Load()
	if s == nil || passOver <= 0 || !s.knows(id) {
		return false
	}
	return c.failures.add(id, time.Now(), min(passOver, MaxPassOver))
}

// ReportServing tells that the backend of that identity answers again: it is no longer passed over because of a report. Where it was
// not, nothing happens and it costs a read.
func (c *Client) ReportServing(id string) {
	if c.failures.any() {
		c.failures.remove(id)
	}
}

func (s *State) knows(id string) bool {
	if _, found := s.stable.loaded.ring.Find(id); found {
		return true
	}
	if s.candidate == nil {
		return false
	}
	_, found := s.candidate.loaded.ring.Find(id)
	return found
}

// any says that there may be such backends.
func (f *failures) any() bool { return f.list.Load() != nil }

// has says that a backend is to be passed over.
func (f *failures) has(id string) bool {
	list := f.list.Load()
	if list == nil {
		return false
	}
	until, found := (*list)[id]
	return found && time.Now().Before(until)
}

func (f *failures) add(id string, now time.Time, passOver time.Duration) bool {
	f.changing.Lock()
	defer f.changing.Unlock()
	next := f.present(now)
	if _, known := next[id]; !known && len(next) >= MaxFailed {
		return false
	}
	next[id] = now.Add(passOver)
	f.store(next, now)
	return true
}

func (f *failures) remove(id string) {
	f.changing.Lock()
	defer f.changing.Unlock()
	list := f.list.Load()
	if list == nil {
		return
	}
	if _, known := (*list)[id]; !known {
		return
	}
	now := time.Now()
	next := f.present(now)
	delete(next, id)
	f.store(next, now)
}

// expire forgets those whose time is over, so that lookups need not ask any more.
func (f *failures) expire() {
	f.changing.Lock()
	defer f.changing.Unlock()
	now := time.Now()
	f.store(f.present(now), now)
}

// present returns a copy of those whose time is not over.
func (f *failures) present(now time.Time) map[string]time.Time {
	list := f.list.Load()
	if list == nil {
		return map[string]time.Time{}
	}
	next := maps.Clone(*list)
	maps.DeleteFunc(next, func(_ string, until time.Time) bool { return !now.Before(until) })
	return next
}

// store replaces the list, and sees to it that it is looked at when the first time in it is over.
func (f *failures) store(next map[string]time.Time, now time.Time) {
	if len(next) == 0 {
		f.list.Store(nil)
		return
	}
	f.list.Store(&next)
	first := slices.MinFunc(slices.Collect(maps.Values(next)), time.Time.Compare).Sub(now)
	switch {
	case f.closed:
	case f.timer == nil:
		f.timer = time.AfterFunc(first, f.expire)
	default:
		f.timer.Reset(first)
	}
}

// close stops what would run later. Whoever is passed over then stays so until its time is over.
func (f *failures) close() {
	f.changing.Lock()
	defer f.changing.Unlock()
	f.closed = true
	if f.timer != nil {
		f.timer.Stop()
	}
}

// count returns how many are passed over.
func (f *failures) count() int {
	f.changing.Lock()
	defer f.changing.Unlock()
	return len(f.present(time.Now()))
}
