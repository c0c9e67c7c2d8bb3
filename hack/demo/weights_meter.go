// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// measuredWindow is how long max/avg is measured over. The slowest servers have about 1,300 requests in it, which come by chance, so that
	// with perfect weights it is about 1.04.
	measuredWindow = 10 * time.Second
	sampleInterval = 500 * time.Millisecond
	// evenBound is what max/avg has to come to, and steadyBound what it has to stay within: weights follow what was reported by chance too. Above
	// unevenBound it has to be where nothing has balanced yet.
	evenBound, steadyBound, unevenBound = 1.10, 1.15, 1.25
	// settleTimeout is how long that may take.
	settleTimeout = 2 * time.Minute
)

// usage is how long the workers of each server have been busy, at a time.
type usage struct {
	at   time.Time
	busy map[*server]int64
}

// meter measures the servers that are alive.
type meter struct{ servers func() []*server }

func (m *meter) read() usage {
	u := usage{time.Now(), map[*server]int64{}}
	for _, s := range m.servers() {
		if !s.dead.Load() {
			u.busy[s] = s.busy.Load()
		}
	}
	return u
}

// balance is how busy servers were in a window.
type balance struct{ largest, mean float64 }

// since returns that of the servers which are there at the end of it.
func (u usage) since(from usage) balance {
	var b balance
	for s, busy := range u.busy {
		part := float64(busy-from.busy[s]) / float64(u.at.Sub(from.at)) / serverWorkers
		b.largest, b.mean = max(b.largest, part), b.mean+part/float64(len(u.busy))
	}
	return b
}

func (b balance) maxOverAverage() float64 { return b.largest / b.mean }

func (b balance) String() string {
	return fmt.Sprintf("max/avg %.3f: the busiest server is busy for %.0f%% of the time, all of them for %.0f%% in the mean", b.maxOverAverage(), 100*b.largest, 100*b.mean)
}

// over measures a window that begins now.
func (m *meter) over(ctx context.Context, window time.Duration) (balance, error) {
	from := m.read()
	pause(ctx, window)
	return m.read().since(from), ctx.Err()
}

// settle waits until the last window is even, and returns it, and how long that took from now on.
func (m *meter) settle(ctx context.Context) (balance, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	past := []usage{m.read()}
	began, shown := past[0].at, past[0].at
	for {
		pause(ctx, sampleInterval)
		now := m.read()
		for len(past) > 1 && now.at.Sub(past[1].at) >= measuredWindow {
			past = past[1:]
		}
		past = append(past, now)
		last := now.since(past[0])
		if now.at.Sub(past[0].at) >= measuredWindow && last.maxOverAverage() <= evenBound {
			return last, now.at.Sub(began), nil
		}
		if ctx.Err() != nil {
			return last, 0, fmt.Errorf("after %v %v; it should be at most %.2f: %w", now.at.Sub(began).Round(time.Second), last, evenBound, ctx.Err())
		}
		if now.at.Sub(shown) >= measuredWindow/2 {
			shown = now.at
			fmt.Printf("  after %2.0f s, over the last %2.0f s: max/avg %.3f\n", now.at.Sub(began).Seconds(), now.at.Sub(past[0].at).Seconds(), last.maxOverAverage())
		}
	}
}

// stays fails where a window is not even any more.
func (b balance) stays() error {
	if b.maxOverAverage() > steadyBound {
		return fmt.Errorf("%v; it should be at most %.2f", b, steadyBound)
	}
	return nil
}
