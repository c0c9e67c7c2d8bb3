// SPDX-License-Identifier: Apache-2.0

package ringclient

import "github.com/fsnotify/fsnotify"

// SubPathMounts gives tests a table of mounts of their own.
var SubPathMounts = subPathMounts

// SettleTime is how long a client waits after an event.
const SettleTime = settleTime

// OpenWithEvents is Open with events that a test sends, in place of those of the file system.
func OpenWithEvents(
	dir string, options Options, events <-chan fsnotify.Event, failures <-chan error,
) (*Client, error) {
	options.PollOnly = true
	c, err := newClient(dir, options)
	if err != nil {
		return nil, err
	}
	c.watch.changes, c.watch.failures = events, failures
	if err := c.start(); err != nil {
		return nil, err
	}
	return c, nil
}

// CachedViews returns how many views a state keeps beside that of all backends.
func (s *State) CachedViews() int { return len(*s.stable.loaded.views.kept.Load()) }

// NewUnstarted returns a client that reads only when LoadNow is called. It need not be closed.
func NewUnstarted(dir string, options Options) (*Client, error) { return newClient(dir, options) }

// LoadNow reads the directory, as an event makes the client do.
func (c *Client) LoadNow() error { return c.load() }
