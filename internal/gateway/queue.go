// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"
	"time"

	"github.com/ringwright/ringwright/internal/loadreport"
)

// queue is what waits for one replica, the oldest first.
type queue struct {
	// reports from head on wait.
	reports []loadreport.Report
	head    int
	// busy says that a batch is on its way, after failures in a row, and nothing is sent before pauseUntil.
	busy       bool
	failures   int
	pauseUntil time.Time
}

func (q *queue) len() int { return len(q.reports) - q.head }

// push appends a report. Where limit wait, the oldest is dropped.
func (q *queue) push(r loadreport.Report, limit int) (dropped loadreport.Report, full bool) {
	if full = q.len() >= limit; full {
		dropped = q.reports[q.head]
		q.reports[q.head] = loadreport.Report{}
		q.head++
	}
	if q.head > 0 && q.head*2 >= len(q.reports) { // Half of it is free: each report moves once on average.
		q.reports = slices.Delete(q.reports, 0, q.head)
		q.head = 0
	}
	q.reports = append(q.reports, r)
	return dropped, full
}

// pushFront puts back what was taken, and returns the oldest that have no room.
func (q *queue) pushFront(reports []loadreport.Report, limit int) (dropped []loadreport.Report) {
	all := slices.Concat(reports, q.reports[q.head:])
	if over := len(all) - limit; over > 0 {
		dropped, all = all[:over], all[over:]
	}
	q.reports, q.head = all, 0
	return dropped
}

// take removes the oldest reports, at most n.
func (q *queue) take(n int) []loadreport.Report {
	taken := slices.Clone(q.reports[q.head:min(q.head+n, len(q.reports))])
	q.head += len(taken)
	if q.head == len(q.reports) {
		q.reports, q.head = nil, 0
	}
	return taken
}
