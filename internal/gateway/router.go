// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/ringwright/ringwright/internal/loadreport"
)

const (
	// MaxBatch is how many reports go to a replica at a time.
	MaxBatch = 10_000
	// maxDelay is how long a report may wait for others.
	maxDelay = time.Second
	// maxPause is the longest pause before a replica that did not answer is sent to again. It is twice as long after each failure.
	maxPause = 10 * time.Second
	// lastSend is how long the reports that wait may take to be sent after the end.
	lastSend = 2 * time.Second
)

// Owners knows which replica has a policy.
type Owners interface {
	// Owner returns the address of the replica that has a policy, host:port, and whether it is this one; ok is false where none has it.
	Owner(policy string) (address string, local bool, ok bool)
}

// Forwarder carries reports to another replica.
type Forwarder interface {
	// Forward sends at most MaxBatch reports to the replica at an address, and returns when it has answered.
	Forward(ctx context.Context, address string, reports []loadreport.Report) error
}

// RouterOptions say how reports reach their owners. Those that are 0 have the defaults.
type RouterOptions struct {
	// Owners knows them.
	Owners Owners
	// Store is this replica's own.
	Store *loadreport.Store
	// Forwarder reaches the others.
	Forwarder Forwarder
	// Delay is how long a report waits for others at most, default 500ms and at most 1s.
	Delay time.Duration
	// Queue is how many reports wait for one replica, default 100,000. Beyond that the oldest are dropped and counted. One has 150 bytes and
	// the names that it has.
	Queue int
	// Metrics counts what is dropped.
	Metrics *loadreport.Metrics
	// Clock is the real one by default.
	Clock clock.WithTicker
}

// Router carries reports of every source to the owners of their policies.
type Router struct {
	options RouterOptions
	// full has a value when a batch is full, so that it does not wait.
	full chan struct{}

	mu     sync.Mutex
	queues map[string]*queue
}

// NewRouter returns one, which carries reports while Run runs.
func NewRouter(o RouterOptions) *Router {
	o.Delay = min(cmp.Or(o.Delay, 500*time.Millisecond), maxDelay)
	o.Queue = cmp.Or(o.Queue, 100_000)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Router{options: o, full: make(chan struct{}, 1), queues: map[string]*queue{}}
}

// Route takes reports: those of policies that this replica has go to its store at once, others wait to be sent. It does not block.
func (r *Router) Route(reports ...loadreport.Report) {
	for len(reports) > 0 {
		n := 1
		for n < len(reports) && reports[n].Policy == reports[0].Policy {
			n++
		}
		same := reports[:n]
		reports = reports[n:]
		address, local, ok := r.options.Owners.Owner(same[0].Policy)
		switch {
		case !ok:
			r.drop(loadreport.NoOwner, same)
		case local:
			r.options.Store.Add(r.options.Clock.Now(), same...)
		default:
			r.enqueue(address, same)
		}
	}
}

func (r *Router) drop(reason loadreport.Reason, reports []loadreport.Report) {
	for _, report := range reports {
		r.options.Metrics.Refused(report.Source, reason, 1)
	}
}

func (r *Router) enqueue(address string, reports []loadreport.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.queues[address]
	if q == nil {
		q = &queue{}
		r.queues[address] = q
	}
	for _, report := range reports {
		if dropped, full := q.push(report, r.options.Queue); full {
			r.options.Metrics.Refused(dropped.Source, loadreport.Overflow, 1)
		}
	}
	if q.len() >= MaxBatch {
		select {
		case r.full <- struct{}{}:
		default:
		}
	}
}

// Run carries reports until ctx ends, and then once more.
func (r *Router) Run(ctx context.Context) error {
	var sending sync.WaitGroup
	defer sending.Wait()
	ticker := r.options.Clock.NewTicker(r.options.Delay)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSend)
			defer cancel()
			sending.Wait()
			r.send(last, &sending)
			sending.Wait()
			return nil
		case <-ticker.C():
		case <-r.full:
		}
		r.send(ctx, &sending)
	}
}

// send has a batch sent to each replica that none is on its way to. Replicas do not wait for each other.
func (r *Router) send(ctx context.Context, sending *sync.WaitGroup) {
	now := r.options.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for address, q := range r.queues {
		if q.busy || now.Before(q.pauseUntil) {
			continue
		}
		batch := q.take(MaxBatch)
		if len(batch) == 0 {
			delete(r.queues, address)
			continue
		}
		q.busy = true
		sending.Go(func() {
			err := r.options.Forwarder.Forward(ctx, address, batch)
			r.sent(address, batch, err)
		})
	}
}

// sent takes note of what became of a batch. One that was not taken waits to be sent again, each report to where its policy is now.
func (r *Router) sent(address string, batch []loadreport.Report, err error) {
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		q := r.queues[address]
		q.busy, q.failures, q.pauseUntil = false, 0, time.Time{}
		return
	}
	here := slices.Clone(batch[:0:0])
	var moved []loadreport.Report
	for _, report := range batch {
		if owner, local, ok := r.options.Owners.Owner(report.Policy); ok && !local && owner == address {
			here = append(here, report)
		} else {
			moved = append(moved, report)
		}
	}
	r.mu.Lock()
	q := r.queues[address]
	q.busy = false
	q.pauseUntil = r.options.Clock.Now().Add(min(r.options.Delay<<min(q.failures, 10), maxPause))
	q.failures++
	dropped := q.pushFront(here, r.options.Queue)
	r.mu.Unlock()
	r.drop(loadreport.Overflow, dropped)
	slices.SortStableFunc(moved, func(a, b loadreport.Report) int { return strings.Compare(a.Policy, b.Policy) })
	r.Route(moved...)
}

// Waiting is how many reports wait to be sent.
func (r *Router) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, q := range r.queues {
		n += q.len()
	}
	return n
}
