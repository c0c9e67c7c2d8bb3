// SPDX-License-Identifier: Apache-2.0

package gate

import "time"

const (
	// shortestWindow is how long a step has to be in effect before a Prometheus is asked about it: a rate needs two scrapes. A gate
	// with a shorter interval or window waits for that only.
	shortestWindow = time.Minute
	// maxLookback is how old the newest sample of a series may be that a query without a range sees; the default of Prometheus.
	maxLookback = 5 * time.Minute
)

// patience returns how long a step has to be in effect before a gate is asked.
func (c compiled) patience() time.Duration { return min(c.interval, c.window, shortestWindow) }

// reach returns how far a query may reach back at a moment, in whole seconds: at most window, and never to before since, where that
// is known.
func (c compiled) reach(since, at time.Time) time.Duration {
	if since.IsZero() {
		return c.window.Truncate(time.Second)
	}
	return min(c.window, at.Sub(since)).Truncate(time.Second)
}
