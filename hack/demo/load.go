// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"sync/atomic"
)

// load is requests that go on all the time, and counts how they went.
type load struct {
	sent, failed atomic.Int64
	// failure is the first one.
	failure atomic.Pointer[error]
	cancel  context.CancelFunc
	workers sync.WaitGroup
}

// begin has workers send requests until stop is called, each its first, second and so on, with a pause in between.
func (l *load) begin(ctx context.Context, workers int, send func(ctx context.Context, worker, i int) error) {
	ctx, l.cancel = context.WithCancel(ctx)
	for worker := range workers {
		l.workers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				l.sent.Add(1)
				if err := send(ctx, worker, i); err != nil && ctx.Err() == nil {
					l.failed.Add(1)
					l.failure.CompareAndSwap(nil, &err)
				}
				pause(ctx, trafficPause)
			}
		})
	}
}

// stop ends them. It may be called at any time.
func (l *load) stop() {
	if l.cancel != nil {
		l.cancel()
		l.workers.Wait()
	}
}
