// SPDX-License-Identifier: Apache-2.0

package loadreport

import (
	"math"
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// collect returns a reading of each endpoint that has a fresh report.
func (p *policy) collect(now, since time.Time) []Reading {
	if span := now.Sub(since); span > 0 && span <= MaxAge {
		p.span, p.collected = span, now
	}
	var readings []Reading
	fresh := make([]Reading, 0, len(p.sources))
	for _, e := range p.sorted {
		fresh = fresh[:0]
		for i, source := range p.sources {
			s := &e.slots[i]
			p.grow(-s.forget(now.Add(-source.StaleAfter)))
			if len(s.list) > 0 {
				fresh = append(fresh, s.read(e.id, source.Type, since))
			}
		}
		if len(fresh) > 0 {
			readings = append(readings, p.merge(fresh))
		}
	}
	return readings
}

// merge returns the reading of the first source that has the policy's metric, and the figures that it has not from the first that has them.
func (p *policy) merge(fresh []Reading) Reading {
	first := 0
	for i := range fresh {
		if fresh[i].has(p.metric) {
			first = i
			break
		}
	}
	r := fresh[first]
	for _, other := range fresh {
		r.CPU = orElse(r.CPU, other.CPU)
		r.InFlight = orElse(r.InFlight, other.InFlight)
		r.Custom = orElse(r.Custom, other.Custom)
		if math.IsNaN(r.Requests) { // Errors belong to requests.
			r.Requests, r.Errors, r.Rate = other.Requests, other.Errors, other.Rate
		}
	}
	return r
}

func (r *Reading) has(metric v1alpha1.LoadMetric) bool {
	switch metric {
	case v1alpha1.MetricInFlight:
		return !math.IsNaN(r.InFlight)
	case v1alpha1.MetricCustom:
		return !math.IsNaN(r.Custom)
	case v1alpha1.MetricCPU, v1alpha1.MetricMax: // What is in flight can be of another source.
		return !math.IsNaN(r.CPU)
	}
	return true
}

func orElse(value, other float64) float64 {
	if math.IsNaN(value) {
		return other
	}
	return value
}

// read returns the reading of one source, and forgets the records that ended at since or before, but for the newest ones.
func (s *slot) read(endpoint string, source v1alpha1.LoadSourceType, since time.Time) Reading {
	isNew := s.fresh(since)
	nan := math.NaN()
	r := Reading{Endpoint: endpoint, Source: source, InFlight: nan, Requests: nan, Errors: nan, Rate: nan, Reporters: len(s.list)}
	var cpu, custom mean
	for i := range s.list {
		one := &s.list[i]
		records := one.after(since)
		var inFlight mean
		var counted time.Duration
		requests := nan
		for _, record := range records {
			r.cover(record)
			cpu.add(record.cpu, record, byRequests(source))
			custom.add(record.custom, record, byRequests(source))
			inFlight.add(record.inFlight, record, false)
			if math.IsNaN(record.requests) || isNew && !record.end.After(since) { // It was counted before.
				continue
			}
			requests, counted = sumOf(requests, record.requests), counted+record.window
			r.Errors = sumOf(r.Errors, record.errors)
		}
		r.InFlight = sumOf(r.InFlight, inFlight.value())
		if counted > 0 {
			r.Requests = sumOf(r.Requests, requests)
			r.Rate = sumOf(r.Rate, requests/counted.Seconds())
		}
		if drop := len(one.records) - len(records); drop > 0 {
			one.records = append(one.records[:0], records...)
		}
	}
	r.CPU, r.Custom = cpu.value(), custom.value()
	return r
}

// cover extends the time of a reading by that of a record.
func (r *Reading) cover(one record) {
	start := one.end.Add(-one.window)
	if r.Start.IsZero() || start.Before(r.Start) {
		r.Start = start
	}
	if one.end.After(r.End) {
		r.End = one.end
	}
}

// mean is a weighted one of figures that can be NaN: by the requests of their records where byRequests, and where none has any by their time.
type mean struct{ requests, byRequest, time, byTime float64 }

// instant is the weight of a record without a window.
const instant = time.Second

func (m *mean) add(figure float64, r record, byRequests bool) {
	if math.IsNaN(figure) {
		return
	}
	w := r.window
	if w == 0 {
		w = instant
	}
	m.time += w.Seconds()
	m.byTime += figure * w.Seconds()
	if byRequests && r.requests > 0 {
		m.requests += r.requests
		m.byRequest += figure * r.requests
	}
}

func (m *mean) value() float64 {
	switch {
	case m.requests > 0:
		return m.byRequest / m.requests
	case m.time > 0:
		return m.byTime / m.time
	}
	return math.NaN()
}
