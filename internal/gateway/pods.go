// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/lru"
)

// podTable remembers pods: how often they report, and when they did last. The ones that it has heard of longest ago are forgotten where there
// are too many.
type podTable struct {
	limit rate.Limit
	burst int
	// mu makes one of get and add.
	mu   sync.Mutex
	pods *lru.Cache // Of *pod by UID.
}

type pod struct {
	limiter *rate.Limiter
	mu      sync.Mutex
	last    time.Time
}

func newPodTable(pods int, perSecond float64, burst int) *podTable {
	return &podTable{limit: rate.Limit(perSecond), burst: burst, pods: lru.New(pods)}
}

func (t *podTable) get(uid string) *pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.pods.Get(uid); ok {
		return known.(*pod)
	}
	p := &pod{limiter: rate.NewLimiter(t.limit, t.burst)}
	t.pods.Add(uid, p)
	return p
}

// allow takes note of a call of a pod, and returns when its last report was, zero where it is not known, and how long it has to wait.
func (t *podTable) allow(uid string, now time.Time) (last time.Time, wait time.Duration) {
	p := t.get(uid)
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.limiter.ReserveN(now, 1); r.DelayFrom(now) > 0 {
		wait = r.DelayFrom(now)
		r.CancelAt(now)
		return p.last, wait
	}
	return p.last, 0
}

// reported takes note of a report that counts.
func (t *podTable) reported(uid string, now time.Time) {
	p := t.get(uid)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = now
}
