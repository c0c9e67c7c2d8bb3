// SPDX-License-Identifier: Apache-2.0

package loadreport

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// defaultSpan is the time between two updates of a policy that had none yet.
const defaultSpan = 10 * time.Second

// policy is one, with what was reported of it.
type policy struct {
	store *Store

	mu      sync.Mutex
	metric  v1alpha1.LoadMetric
	sources []Source
	// sorted are the endpoints in the order of their IDs.
	sorted    []*endpoint
	byID      map[string]*endpoint
	byAddress map[string]*endpoint
	errors    map[v1alpha1.LoadSourceType]SourceError
	// span is the time that the last Collect was about, and collected its end.
	span      time.Duration
	collected time.Time
	// series is how many there are.
	series int
}

// endpoint has a slot for each source.
type endpoint struct {
	id    string
	slots []slot
}

// set replaces endpoints and sources.
func (p *policy) set(spec PolicySpec) {
	old, oldSources := p.byID, p.sources
	p.metric, p.sources = spec.Metric, slices.Clone(spec.Sources)
	p.byID, p.byAddress = make(map[string]*endpoint, len(spec.Endpoints)), make(map[string]*endpoint, len(spec.Endpoints))
	p.sorted = p.sorted[:0:0]
	left := 0
	for _, e := range spec.Endpoints {
		if p.byID[e.ID] != nil {
			continue
		}
		one := &endpoint{id: e.ID, slots: make([]slot, len(p.sources))}
		if known := old[e.ID]; known != nil {
			for i, source := range p.sources {
				if j := indexOf(oldSources, source.Type); j >= 0 {
					one.slots[i] = known.slots[j]
					left += len(known.slots[j].list)
				}
			}
		}
		p.byID[e.ID] = one
		p.sorted = append(p.sorted, one)
		if e.Address != "" && e.Port != 0 {
			p.byAddress[net.JoinHostPort(e.Address, strconv.Itoa(int(e.Port)))] = one
		}
	}
	slices.SortFunc(p.sorted, func(a, b *endpoint) int { return strings.Compare(a.id, b.id) })
	p.grow(left - p.series)
	kept := make(map[v1alpha1.LoadSourceType]SourceError)
	for _, source := range p.sources {
		if e, ok := p.errors[source.Type]; ok {
			kept[source.Type] = e
		}
	}
	p.errors = kept
}

// grow counts series that are new, or gone.
func (p *policy) grow(by int) {
	p.series += by
	p.store.series.Add(int64(by))
}

func indexOf(sources []Source, t v1alpha1.LoadSourceType) int {
	return slices.IndexFunc(sources, func(s Source) bool { return s.Type == t })
}

func (p *policy) source(t v1alpha1.LoadSourceType) int { return indexOf(p.sources, t) }

// endpoint returns one by its ID, or by an address and port in any spelling.
func (p *policy) endpoint(name string) *endpoint {
	if e := p.byID[name]; e != nil {
		return e
	}
	if e := p.byAddress[name]; e != nil {
		return e
	}
	if ap, err := netip.ParseAddrPort(name); err == nil {
		return p.byAddress[netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()).String()]
	}
	return nil
}

// add keeps a report, or says why not.
func (p *policy) add(now time.Time, r Report) Reason {
	if err := r.Validate(now); err != nil {
		var refused *Error
		errors.As(err, &refused)
		return refused.Reason
	}
	i := p.source(r.Source)
	if i < 0 {
		return UnknownSource
	}
	stale := now.Add(-p.sources[i].StaleAfter)
	if !r.End.After(stale) {
		return Stale
	}
	e := p.endpoint(r.Endpoint)
	if e == nil {
		return UnknownEndpoint
	}
	slot, id := &e.slots[i], p.store.reporterID(r.Reporter)
	one := slot.find(id)
	if one == nil {
		if one = p.newSeries(slot, id, stale); one == nil {
			return TooManyReporters
		}
	} else {
		switch gap := r.End.Sub(one.newest().end); {
		case gap <= 0:
			return Replayed
		case gap < p.store.limits.MinSpacing:
			return TooOften
		}
	}
	one.add(newRecord(r), p.span/joinParts, p.collected, byRequests(r.Source))
	return ""
}

// newSeries makes room for a reporter, by forgetting those of the endpoint that are stale where there is none. It returns nil where there is
// no room.
func (p *policy) newSeries(s *slot, id uint64, stale time.Time) *series {
	full := func() bool {
		l := p.store.limits
		return len(s.list) >= l.Reporters || p.series >= l.PolicySeries || p.store.series.Load() >= int64(l.Series)
	}
	if full() {
		p.grow(-s.forget(stale))
		if full() {
			return nil
		}
	}
	p.grow(1)
	return s.insert(id)
}
