// SPDX-License-Identifier: Apache-2.0

package loadreport

import (
	"hash/maphash"
	"math"
	"slices"
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

const (
	// joinParts is into how many parts the time between updates is divided: reports of one part are joined to one record. So a series
	// has a bounded number of records, whatever the interval between reports.
	joinParts = 4
	// maxRecords is that number: twice the time between updates, for a Collect can be late, and what begins and ends in it.
	maxRecords = 2*joinParts + 2
	// indexFrom is from how many reporters on a slot has an index.
	indexFrom = 8
)

// reporterID is a hash of a name: a million names have no room, and two reporters of one endpoint have the same with a probability of 2^-64.
func (s *Store) reporterID(name string) uint64 {
	if name == "" {
		return 0
	}
	return maphash.String(s.seed, name)
}

// slot is what was reported of one endpoint by one source.
type slot struct {
	list []series
	// index has the places in list, and is nil while there are few.
	index map[uint64]int
}

// series is what one reporter said.
type series struct {
	reporter uint64
	// records are in the order of time.
	records []record
}

// record is what was said of one time.
type record struct {
	end    time.Time
	window time.Duration
	cpu, inFlight, custom,
	requests, errors float64
}

func newRecord(r Report) record {
	return record{r.End, r.Window, r.CPU, r.InFlight, r.Custom, r.Requests, r.Errors}
}

func (s *slot) find(reporter uint64) *series {
	if s.index != nil {
		if i, ok := s.index[reporter]; ok {
			return &s.list[i]
		}
		return nil
	}
	if i := slices.IndexFunc(s.list, func(one series) bool { return one.reporter == reporter }); i >= 0 {
		return &s.list[i]
	}
	return nil
}

func (s *slot) insert(reporter uint64) *series {
	s.list = append(s.list, series{reporter: reporter})
	if s.index != nil {
		s.index[reporter] = len(s.list) - 1
	} else if len(s.list) >= indexFrom {
		s.reindex()
	}
	return &s.list[len(s.list)-1]
}

func (s *slot) reindex() {
	s.index = nil
	if len(s.list) < indexFrom {
		return
	}
	s.index = make(map[uint64]int, len(s.list))
	for i, one := range s.list {
		s.index[one.reporter] = i
	}
}

// forget drops the reporters whose newest report ended at stale or before, and returns how many.
func (s *slot) forget(stale time.Time) int {
	before := len(s.list)
	s.list = slices.DeleteFunc(s.list, func(one series) bool { return !one.newest().end.After(stale) })
	if gone := before - len(s.list); gone > 0 {
		s.list = slices.Clip(s.list)
		s.reindex()
		return gone
	}
	return 0
}

// fresh says whether a reporter's newest report ended after stale.
func (s *slot) fresh(stale time.Time) bool {
	return slices.ContainsFunc(s.list, func(one series) bool { return one.newest().end.After(stale) })
}

func (s *series) newest() *record { return &s.records[len(s.records)-1] }

// add appends a record, or joins it to the newest one while both together are at most part long and that one ended after collected.
func (s *series) add(r record, part time.Duration, collected time.Time, byRequests bool) {
	if len(s.records) > 0 {
		last := s.newest()
		if last.window > 0 && r.window > 0 && last.window+r.window <= part && last.end.After(collected) {
			*last = last.joined(r, byRequests)
			return
		}
	}
	if len(s.records) == maxRecords {
		s.records = append(s.records[:0], s.records[1:]...)
	}
	s.records = append(s.records, r)
}

// after returns the records that ended after since, or the newest one.
func (s *series) after(since time.Time) []record {
	i := slices.IndexFunc(s.records, func(r record) bool { return r.end.After(since) })
	if i < 0 {
		i = len(s.records) - 1
	}
	return s.records[i:]
}

// joined returns one record for two times, of which other is the later one.
func (r record) joined(other record, byRequests bool) record {
	w, v := r.window.Seconds(), other.window.Seconds()
	if byRequests && r.requests+other.requests > 0 {
		w, v = r.requests, other.requests
	}
	return record{
		end: other.end, window: r.window + other.window,
		cpu: meanOf(r.cpu, w, other.cpu, v), custom: meanOf(r.custom, w, other.custom, v),
		inFlight: meanOf(r.inFlight, r.window.Seconds(), other.inFlight, other.window.Seconds()),
		requests: sumOf(r.requests, other.requests), errors: sumOf(r.errors, other.errors),
	}
}

// meanOf returns the weighted mean of those that are numbers.
func meanOf(a, weightA, b, weightB float64) float64 {
	switch {
	case math.IsNaN(a):
		return b
	case math.IsNaN(b):
		return a
	}
	return (a*weightA + b*weightB) / (weightA + weightB)
}

// sumOf returns the sum of those that are numbers.
func sumOf(a, b float64) float64 {
	switch {
	case math.IsNaN(a):
		return b
	case math.IsNaN(b):
		return a
	}
	return a + b
}

// byRequests says whether figures of a source are means over requests.
func byRequests(source v1alpha1.LoadSourceType) bool { return source == v1alpha1.SourceLRS }
