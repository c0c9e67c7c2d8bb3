// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"slices"
	"time"

	"github.com/ringwright/ringwright/internal/balance"
)

// epoch is when simulations begin.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func instant(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

// mailbox is the reports on their way and those that have arrived.
type mailbox struct {
	onTheWay, arrived []balance.Report
}

// send lets the servers report that are due.
func (m *mailbox) send(w *world) {
	interval := int(w.ReportInterval / time.Second)
	for _, s := range w.servers {
		if (int(w.now)+s.offset)%interval != 0 || s.report.seconds == 0 {
			continue
		}
		if s.frozen {
			continue // What it sent last is sent again by deliver.
		}
		r := s.report.reported(s.id, w.now)
		s.report = gauge{since: w.now}
		if lost := w.chance.Float64() < w.Loss; lost || s.muted {
			continue
		}
		lie(s.lie, &r)
		m.onTheWay = append(m.onTheWay, r)
	}
}

// reported returns the report of what a gauge shows.
func (g gauge) reported(id string, now float64) balance.Report {
	return balance.Report{
		Endpoint: id, Start: instant(g.since), End: instant(now),
		CPU: g.busy / g.seconds, InFlight: g.inFlight / g.seconds, Custom: g.busy / g.seconds, Requests: g.requests, Errors: g.noticed,
	}
}

// lie makes a report say what its server does not do.
func lie(kind Kind, r *balance.Report) {
	set := func(x float64) { r.CPU, r.InFlight, r.Custom = x, x, x }
	switch kind {
	case LieZero:
		set(0)
	case LieHuge:
		set(1e300)
		r.Requests, r.Errors = 1e300, 1e300
	case LieNaN:
		set(math.NaN())
		r.Requests, r.Errors = math.NaN(), math.Inf(1)
	case LieLow:
		set(0.05)
	}
}

// deliver returns the reports that have arrived by now and may still be used.
func (m *mailbox) deliver(w *world) []balance.Report {
	due := instant(w.now - w.ReportDelay.Seconds())
	stays := m.onTheWay[:0]
	for _, r := range m.onTheWay {
		if r.End.After(due) {
			stays = append(stays, r)
		} else {
			m.arrived = append(m.arrived, r)
		}
	}
	m.onTheWay = stays
	frozen := map[string]bool{}
	for _, s := range w.servers {
		frozen[s.id] = s.frozen
	}
	oldest := instant(w.now - w.staleAfter().Seconds())
	m.arrived = slices.DeleteFunc(m.arrived, func(r balance.Report) bool {
		return !r.End.After(oldest) && !frozen[r.Endpoint] // A frozen one comes again and again.
	})
	return m.arrived
}
