// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/ringwright/ringwright/internal/telemetry"
)

// How long it takes until a pod is asked again: each of these, or down to half of it, so that many pods spread.
const (
	// firstDelay is after a publication, and before a pod that is not current is asked the second time; from then on it grows by a
	// half each time.
	firstDelay = 2 * time.Second
	// lastDelay is as far as it grows.
	lastDelay = 15 * time.Second
	// restDelay is for a pod that is current, and for one that could not be reached restAfter times.
	restDelay = time.Minute
	restAfter = 8
)

// How often the loop looks.
const (
	// listInterval is how old the list of pods may be though nobody said that it changed.
	listInterval = time.Minute
	// minListInterval is the least time between two readings of it.
	minListInterval = time.Second
	// minIdle collects what is due at almost the same time.
	minIdle = 250 * time.Millisecond
)

func jittered(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// delay returns how long a pod is left alone.
func delay(current, reached bool, misses int) time.Duration {
	if current || !reached && misses > restAfter {
		return jittered(restDelay)
	}
	d := firstDelay
	for miss := 1; miss < misses && d < lastDelay; miss++ {
		d = min(d+d/2, lastDelay)
	}
	return jittered(d)
}

// start asks the next pod that is due, and says whether there was one and room for it.
func (f *follower) start(ctx context.Context) bool {
	p := f.next(time.Now())
	if p == nil {
		return false
	}
	select {
	case f.poller.slots <- struct{}{}:
	case <-ctx.Done():
		f.finish(p, Answer{}, ctx.Err(), time.Now())
		return false
	}
	ip := p.IP // It never changes: a pod with another address is another one here.
	f.poller.running.Go(func() {
		began := time.Now()
		said, err := f.poller.options.Ask(ctx, ip, f.port, f.timeout)
		<-f.poller.slots
		now := time.Now()
		f.settle(now.Sub(began))
		if !errors.Is(err, context.Canceled) {
			f.poller.options.Metrics.ConsumerAsked(now.Sub(began), reasonOf(err))
		}
		if f.finish(p, said, err, now) {
			f.poller.options.Changed(f.key)
		}
	})
	return true
}

func reasonOf(err error) string {
	var failure *Failure
	if errors.As(err, &failure) {
		return failure.Reason
	}
	return ""
}

// next returns the pod to be asked next; nil where none is due or there is no room. Those come first that are likely to answer:
// the others take as long as the time-out.
func (f *follower) next(now time.Time) *pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crowded = false
	var first *pod
	for _, p := range f.pods {
		if !p.asking && p.IP != "" && !p.due.After(now) && (first == nil || p.before(first)) {
			first = p
		}
	}
	if first == nil {
		return nil
	}
	slow, admitted := f.poller.crowd.admit(f.asking, f.share)
	if !admitted {
		f.crowded = true
		return nil
	}
	first.asking, first.slow = true, slow
	f.asking++
	return first
}

// settle takes note of how long a request took.
func (f *follower) settle(took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.share = shareAfter(f.share, took)
}

func (p *pod) before(other *pod) bool {
	if dead, others := p.known.Failure != "", other.known.Failure != ""; dead != others {
		return others
	}
	return p.due.Before(other.due)
}

// finish takes note of an answer, and says whether something else is known than before.
func (f *follower) finish(p *pod, said Answer, err error, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.slow {
		f.poller.crowd.leave()
	}
	p.asking, p.slow = false, false
	if f.crowded || f.asking == 1 { // There is room again, or it is time to look when the next is due.
		f.signal()
	}
	f.asking--
	var failure *Failure
	if p.gone || err != nil && !errors.As(err, &failure) { // Or nobody waits for it any more.
		return false
	}
	before := p.known
	if failure != nil {
		p.known.Failure = failure.Text
	} else {
		p.known.Failure = ""
		if before.Said == nil || *before.Said != said.Answer {
			p.known.Said = &said.Answer
		}
		p.count(said.Counted, now) // A counter that has grown is no news.
	}
	first := !p.answered
	p.answered = true
	if was := p.current; f.renew(p, failure == nil, now) || first || was != p.current {
		if f.conclude(now) {
			return true
		}
	}
	return f.complete && (first || before != p.known)
}

// renew finds out whether a pod is current, and when it is asked again. It says whether it has become current.
func (f *follower) renew(p *pod, reached bool, now time.Time) bool {
	was := p.current
	p.current = f.isCurrent(p)
	if p.current {
		p.misses = 0
	} else {
		p.misses++
	}
	p.due = now.Add(delay(p.current, reached, p.misses))
	f.hasten(p, now)
	if p.current && p.measured {
		p.measured = false
		f.latency.one(f.poller.options.Metrics, now)
	}
	return p.current && !was
}

// idle returns how long there is nothing to do.
func (f *follower) idle(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.listed.Add(listInterval)
	if f.outdated {
		next = f.listed.Add(minListInterval)
	}
	for _, p := range f.pods {
		if !p.asking && p.IP != "" && p.due.Before(next) { // Without room the next answer wakes, or another ring has left some.
			next = p.due
		}
	}
	return max(next.Sub(now), minIdle)
}

// latency measures how long a publication takes. It counts from what this process published itself: after a start nobody knows
// how long pods have had what they have.
type latency struct {
	running bool
	since   time.Time
}

func (l *latency) begin(running bool, now time.Time) { l.running, l.since = running, now }

func (l *latency) one(m *telemetry.Metrics, now time.Time) {
	if l.running {
		m.Applied(telemetry.AppliedOne, now.Sub(l.since))
	}
}

// all is called when all are current, and counts once.
func (l *latency) all(m *telemetry.Metrics, now time.Time) {
	if l.running {
		l.running = false
		m.Applied(telemetry.AppliedAll, now.Sub(l.since))
	}
}
