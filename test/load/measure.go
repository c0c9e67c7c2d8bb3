// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ringwright/ringwright/internal/manager"
	"github.com/ringwright/ringwright/internal/plan"
)

// The limits.
const (
	maxLatencySeconds = 2
	maxRestartSeconds = 60
	maxMebibytes      = 512
)

// settleTimeout is how long a change may take before it counts as lost.
const settleTimeout = time.Minute

func (l *load) name(text string) string {
	return fmt.Sprintf("%d×%d %s, %s", l.rings, l.backends, l.source, text)
}

func (l *load) add(kind kind, name string, figure, limit float64) {
	l.results = append(l.results, result{kind, l.name(name), figure, limit})
}

// publishAll creates the rings and waits until all are published and the operator has nothing left to do.
func (l *load) publishAll(ctx context.Context) error {
	l.say("creating %d HashRings of %d backends, source %s", l.rings, l.backends, l.source)
	started := time.Now()
	if err := l.createAll(ctx); err != nil {
		return err
	}
	l.say("created in %.1f s", time.Since(started).Seconds())
	if err := l.watch.all(ctx, l.rings); err != nil {
		return fmt.Errorf("waiting for all rings to be published: %w", err)
	}
	l.add(timed, "seconds until all rings were published that were created at once", time.Since(started).Seconds(), unlimited)
	return l.operator.idle(ctx, l.rings)
}

// settle waits until what was coalesced is written, of rings and of the catalog.
func (l *load) settle(ctx context.Context) error {
	return pause(ctx, plan.DefaultMinInterval+manager.CatalogDelay)
}

// steady counts what the operator writes while nothing changes.
func (l *load) steady(ctx context.Context) error {
	if err := l.settle(ctx); err != nil {
		return err
	}
	before, err := l.cluster.writes()
	if err != nil {
		return err
	}
	l.say("writes so far: %v", before)
	l.say("watching the steady state for %d s", l.seconds)
	if err := pause(ctx, time.Duration(l.seconds)*time.Second); err != nil {
		return err
	}
	writes, err := l.countWrites()
	l.add(exact, fmt.Sprintf("steady state of %d s: writes by the operator, at most", l.seconds), writes, 0)
	return err
}

// countWrites returns how much the operator has written since it was last asked, and names it where there is any.
func (l *load) countWrites() (float64, error) {
	writes, err := l.cluster.writes()
	for _, name := range slices.Sorted(maps.Keys(writes)) {
		l.say("  %s: %d", name, writes[name])
	}
	return sum(writes), err
}

// churn changes single backends at the given rate, of one ring after the other.
func (l *load) churn(ctx context.Context) error {
	l.say("changing %d backends a second for %d s", l.rate, l.seconds)
	c := &churner{load: l, counts: make([]int, l.rings), busy: make([]bool, l.rings)}
	ticker := time.NewTicker(time.Second / time.Duration(l.rate))
	defer ticker.Stop()
	var changes sync.WaitGroup
	for tick := range l.rate * l.seconds {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		changes.Go(func() { c.change(ctx, tick%l.rings) })
	}
	changes.Wait()
	if c.err != nil {
		return c.err
	}
	l.say("%d changes, %d passed over because the one before was on its way; writes:", len(c.latencies)+c.lost, c.passed)
	if _, err := l.countWrites(); err != nil {
		return err
	}
	l.add(exact, "churn: changes that did not reach their ConfigMap, at most", float64(c.lost), 0)
	for _, p := range []int{50, 90, 99, 100} {
		limit := unlimited
		if p == 99 {
			limit = maxLatencySeconds
		}
		l.add(timed, fmt.Sprintf("churn of %d changes a second: p%d of the seconds beyond minInterval from a change to its ConfigMap, at most", l.rate, p),
			percentile(c.latencies, p), limit)
	}
	return l.operator.idle(ctx, l.rings)
}

// churner changes rings and measures. It is safe for concurrent use.
type churner struct {
	*load
	mu sync.Mutex
	// counts are the changes of each ring so far; busy are those whose last one is on its way.
	counts       []int
	busy         []bool
	latencies    []time.Duration
	lost, passed int
	err          error
}

// change changes a ring, unless the change before is on its way, and waits until the change is published.
func (c *churner) change(ctx context.Context, ring int) {
	count, free := c.begin(ring)
	if !free {
		return
	}
	published, generation, err := c.published(ctx, ring)
	if err != nil {
		c.finish(ring, func() { c.err = err })
		return
	}
	seen, current := c.watch.next(ringName(ring), generation)
	if !current { // The status is not written yet, so that it is not known since when minInterval runs.
		c.finish(ring, func() { c.passed++ })
		return
	}
	if err := c.load.change(ctx, ring, count); err != nil {
		c.finish(ring, func() { c.err = fmt.Errorf("changing ring %d: %w", ring, err) })
		return
	}
	from := time.Now()
	if due := published.Add(plan.DefaultMinInterval); due.After(from) {
		from = due
	}
	select {
	case at := <-seen:
		c.finish(ring, func() { c.latencies = append(c.latencies, max(at.Sub(from), 0)); c.counts[ring]++ })
	case <-time.After(settleTimeout):
		c.finish(ring, func() { c.lost++; c.counts[ring]++ })
	}
}

// begin returns how many changes a ring has had, or false where the last of them is on its way.
func (c *churner) begin(ring int) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[ring] {
		c.passed++
		return 0, false
	}
	c.busy[ring] = true
	return c.counts[ring], true
}

// finish takes note of what became of a change.
func (c *churner) finish(ring int, note func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy[ring] = false
	note()
}

// restart stops the operator, starts it again, and waits until it has looked at every ring.
func (l *load) restart(ctx context.Context) error {
	l.say("restarting the operator")
	if err := errors.Join(l.settle(ctx), l.noteMemory()); err != nil {
		return err
	}
	if err := l.operator.stop(); err != nil {
		return err
	}
	if _, err := l.cluster.writes(); err != nil {
		return err
	}
	started := time.Now()
	if err := l.startOperator(ctx); err != nil {
		return err
	}
	if err := l.operator.idle(ctx, l.rings); err != nil {
		return err
	}
	l.add(timed, "restart: seconds from the start of the program until every ring was looked at, at most", time.Since(started).Seconds(), maxRestartSeconds)
	if err := l.settle(ctx); err != nil {
		return err
	}
	writes, err := l.countWrites()
	l.add(exact, "restart: writes by the operator, at most", writes, 0)
	return err
}

// noteMemory keeps the peak of the running operator.
func (l *load) noteMemory() error {
	peak, err := l.operator.bytes("VmHWM")
	if err != nil {
		return err
	}
	now, err := l.operator.bytes("VmRSS")
	if err != nil {
		return err
	}
	l.peak = max(l.peak, peak)
	l.say("memory of the operator: %d MiB, peak %d MiB", now>>20, peak>>20)
	return nil
}

// memory reports the peak of both operators.
func (l *load) memory(context.Context) error {
	if err := l.noteMemory(); err != nil {
		return err
	}
	l.add(timed, "memory: peak of the operator's resident set in MiB, at most", float64(l.peak)/(1<<20), maxMebibytes)
	return nil
}
