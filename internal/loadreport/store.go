// SPDX-License-Identifier: Apache-2.0

package loadreport

import (
	"hash/maphash"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// Store keeps the reports of the policies that this replica owns. Its methods may be called concurrently.
type Store struct {
	limits  Limits
	metrics *Metrics
	// seed makes hashes of reporters' names that nobody outside can guess.
	seed maphash.Seed
	// series is how many there are in all policies.
	series atomic.Int64

	mu       sync.RWMutex
	policies map[string]*policy
}

// NewStore returns an empty one. What it refuses is counted in metrics, which can be nil.
func NewStore(limits Limits, metrics *Metrics) *Store {
	return &Store{limits: limits.withDefaults(), metrics: metrics, seed: maphash.MakeSeed(), policies: map[string]*policy{}}
}

// SetPolicy replaces what was set. What was reported of endpoints and sources that are gone is forgotten.
func (s *Store) SetPolicy(spec PolicySpec) {
	s.mu.Lock()
	p := s.policies[spec.Policy]
	if p == nil {
		p = &policy{store: s, span: defaultSpan}
		s.policies[spec.Policy] = p
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.mu.Unlock()
	p.set(spec)
}

// DeletePolicy forgets a policy and all that was reported of it.
func (s *Store) DeletePolicy(policy string) {
	s.mu.Lock()
	p := s.policies[policy]
	delete(s.policies, policy)
	s.mu.Unlock()
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(PolicySpec{})
}

// policy returns one, or nil.
func (s *Store) policy(name string) *policy {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.policies[name]
}

// Add takes reports, and says how many were refused, by reason; nil where none was. Endpoint is an ID, or "address:port". The reports of a
// reporter have to come in the order of their ends.
func (s *Store) Add(now time.Time, reports ...Report) (refused map[Reason]int) {
	var t tally
	for len(reports) > 0 {
		n := 1
		for n < len(reports) && reports[n].Policy == reports[0].Policy {
			n++
		}
		s.addTo(reports[0].Policy, now, reports[:n], &t)
		reports = reports[n:]
	}
	t.count(s.metrics)
	return t.refused
}

// addTo takes reports of one policy.
func (s *Store) addTo(name string, now time.Time, reports []Report, t *tally) {
	p := s.policy(name)
	if p == nil {
		for _, r := range reports {
			t.add(r.Source, UnknownPolicy)
		}
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range reports {
		t.add(r.Source, p.add(now, r))
	}
}

// Collect returns what is known of each endpoint that has a fresh report, in the order of the IDs: the mean over all reports that ended after
// since. It forgets the reports that ended at since or before, but for each reporter's newest.
func (s *Store) Collect(policy string, now, since time.Time) []Reading {
	p := s.policy(policy)
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.collect(now, since)
}

// Fresh says of how many endpoints each source of a policy has a fresh report, whether it counts or that of an earlier source does.
func (s *Store) Fresh(policy string, now time.Time) map[v1alpha1.LoadSourceType]int {
	p := s.policy(policy)
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fresh := make(map[v1alpha1.LoadSourceType]int, len(p.sources))
	for i, source := range p.sources {
		fresh[source.Type] = 0
		for _, e := range p.sorted {
			if e.slots[i].fresh(now.Add(-source.StaleAfter)) {
				fresh[source.Type]++
			}
		}
	}
	return fresh
}

// SetSourceError takes note of what is wrong with a source, "" where nothing is.
func (s *Store) SetSourceError(policy string, source v1alpha1.LoadSourceType, now time.Time, message string) {
	p := s.policy(policy)
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if message == "" || p.source(source) < 0 {
		delete(p.errors, source)
		return
	}
	p.errors[source] = SourceError{At: now, Message: message}
}

// SourceErrors returns what is wrong with the sources of a policy.
func (s *Store) SourceErrors(policy string) map[v1alpha1.LoadSourceType]SourceError {
	p := s.policy(policy)
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.errors)
}

// Series is how many pairs of an endpoint and a reporter there are in all policies.
func (s *Store) Series() int { return int(s.series.Load()) }
