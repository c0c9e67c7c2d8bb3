// SPDX-License-Identifier: Apache-2.0

package ringclient

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Client holds the ring of a directory and keeps it current. It is safe for concurrent use.
type Client struct {
	dir      string
	options  Options
	subPaths []string
	watch    watch

	state    atomic.Pointer[State]
	counters counters
	failures failures

	// swapping is held while the state is replaced, and guards force.
	swapping sync.Mutex
	force    Force

	// ready is closed when the first ring is loaded.
	ready chan struct{}
	// stop asks the goroutine to end, done says that it has.
	stop, done chan struct{}
	closing    sync.Once
}

// Open loads the ring in dir and starts to follow its changes. The caller closes the client.
//
// The directory holds routing.json and the slots, ring-a.snap and ring-b.snap, with ring-a.snap.1 and so on where a snapshot
// is cut into chunks; or it has them in subdirectories "routing", "a", "b", "a-1" and so on. Each of these may be a volume
// that kubelet swaps. Errors: [OptionError], and without Options.WaitForRing
// a [LoadError] where the directory holds no valid ring.
func Open(dir string, options Options) (*Client, error) {
	c, err := newClient(dir, options)
	if err != nil {
		return nil, err
	}
	if err := c.start(); err != nil {
		return nil, err
	}
	return c, nil
}

// newClient returns a client that has read nothing yet and runs nothing.
func newClient(dir string, options Options) (*Client, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding %s: %w", dir, err)
	}
	return &Client{
		dir:      absolute,
		options:  options,
		force:    options.Force,
		subPaths: findSubPathMounts(absolute),
		watch:    watch{dir: absolute},
		ready:    make(chan struct{}),
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
	}, nil
}

// start loads the directory for the first time and follows it from then on.
func (c *Client) start() error {
	if len(c.subPaths) > 0 {
		c.options.Logger.Warn("mounted with subPath: kubelet will never update it", "paths", c.subPaths)
	}
	c.refreshWatch()
	if err := c.load(); err != nil && !c.options.WaitForRing {
		c.watch.close()
		return err
	}
	go c.follow()
	return nil
}

// State returns what is loaded now, or nil where nothing is yet.
func (c *Client) State() *State { return c.state.Load() }

// Wait returns when a ring is loaded: at once where one is. Errors: that of ctx, and [ErrClosed].
func (c *Client) Wait(ctx context.Context) error {
	select {
	case <-c.ready:
		return nil
	default:
	}
	select {
	case <-c.ready:
		return nil
	case <-c.stop:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("waiting for a ring: %w", ctx.Err())
	}
}

// Close stops following the directory and returns when nothing of the client runs any more. Lookups go on being answered
// from the last state. It can be called more than once and always returns nil.
func (c *Client) Close() error {
	c.closing.Do(func() { close(c.stop) })
	<-c.done
	c.failures.close()
	return nil
}

// follow loads the directory whenever it changed and at every poll, until stop.
func (c *Client) follow() {
	defer close(c.done)
	defer c.watch.close()
	poll := time.NewTimer(c.pollInterval())
	defer poll.Stop()
	var settled <-chan time.Time
	for {
		select {
		case <-c.stop:
			return
		case <-c.watch.changes:
			settled = startSettling(settled)
			continue
		case err := <-c.watch.failures:
			c.options.Logger.Debug("file events may be lost", "error", err)
			settled = startSettling(settled)
			continue
		case <-settled:
		case <-poll.C:
		}
		settled = nil
		c.refreshWatch()
		_ = c.load() // It is counted and logged, and the next event or poll tries again.
		poll.Reset(c.pollInterval())
	}
}

// startSettling starts the time between the first event and the load, unless it runs already.
func startSettling(running <-chan time.Time) <-chan time.Time {
	if running != nil {
		return running
	}
	return time.After(settleTime)
}

func (c *Client) pollInterval() time.Duration {
	if c.state.Load() == nil {
		return min(c.options.PollInterval, coldPollInterval)
	}
	return c.options.PollInterval
}

func (c *Client) refreshWatch() {
	if c.options.PollOnly {
		return
	}
	problem := ""
	if err := c.watch.refresh(); err != nil {
		problem = err.Error()
	}
	if c.counters.watch(problem) && problem != "" {
		c.options.Logger.Warn("no file events: only the poll finds changes", "error", problem, "poll", c.options.PollInterval)
	}
}
