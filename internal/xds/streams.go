// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"context"
	"maps"
	"slices"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// kind is a kind of stream.
type kind uint8

const (
	sotw kind = iota
	delta
	loadReports
	kindCount
)

var kinds = [kindCount]string{"sotw", "delta", "load_reports"}

// streamKey names a stream: both kinds of discovery streams count from 1.
type streamKey struct {
	kind kind
	id   int64
}

// stream is an open discovery stream.
type stream struct {
	ctx context.Context
	// typeURL is the type of a stream for one type, "" for an aggregated one.
	typeURL string
	// node is that of its first request, nil before.
	node *corev3.Node
	// endpoints are the names of the endpoints that it watches.
	endpoints map[string]struct{}
}

// streams are the open streams, and what nodes watch: load reports come on a stream of their own, which says nothing but its node.
type streams struct {
	mu     sync.Mutex
	open   map[streamKey]*stream
	counts [kindCount]int
	// watched counts the discovery streams of each node that watch a name.
	watched map[string]map[string]int
	// wakes has a channel for each stream of load reports of a node.
	wakes map[string]map[chan struct{}]struct{}
}

func newStreams() *streams {
	return &streams{
		open: make(map[streamKey]*stream), watched: make(map[string]map[string]int), wakes: make(map[string]map[chan struct{}]struct{}),
	}
}

// add takes a stream in, unless there are too many. What was opened is closed even where it was not taken in.
func (s *streams) add(key streamKey, opened *stream, limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts[sotw]+s.counts[delta] >= limit {
		return false
	}
	s.open[key] = opened
	s.counts[key.kind]++
	return true
}

func (s *streams) get(key streamKey) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[key]
}

func (s *streams) closed(key streamKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.open[key]
	if gone == nil {
		return
	}
	delete(s.open, key)
	s.counts[key.kind]--
	s.recount(gone.node.GetId(), gone.endpoints, nil)
}

// watch brings the endpoints that a stream watches up to date.
func (s *streams) watch(current *stream, update func(names map[string]struct{})) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := maps.Clone(current.endpoints)
	update(current.endpoints)
	s.recount(current.node.GetId(), before, current.endpoints)
}

// recount counts that one stream of a node watches other names than before. Where the node's change, its streams of load reports wake.
func (s *streams) recount(node string, before, after map[string]struct{}) {
	names := s.watched[node]
	if names == nil {
		names = make(map[string]int)
		s.watched[node] = names
	}
	changed := false
	for name := range before {
		if _, still := after[name]; still {
			continue
		}
		if names[name]--; names[name] == 0 {
			delete(names, name)
			changed = true
		}
	}
	for name := range after {
		if _, already := before[name]; already {
			continue
		}
		names[name]++
		changed = changed || names[name] == 1
	}
	if len(names) == 0 {
		delete(s.watched, node)
	}
	if changed {
		wake(s.wakes[node])
	}
}

// names returns what the streams of a node watch, sorted.
func (s *streams) names(node string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.watched[node]))
}

// listen opens a stream of load reports: the channel says that what the node watches, or what is asked for, may have changed.
func (s *streams) listen(node string, limit int) (changed chan struct{}, closed func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts[loadReports] >= limit {
		return nil, nil
	}
	s.counts[loadReports]++
	changed = make(chan struct{}, 1)
	changed <- struct{}{}
	if s.wakes[node] == nil {
		s.wakes[node] = make(map[chan struct{}]struct{})
	}
	s.wakes[node][changed] = struct{}{}
	return changed, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.counts[loadReports]--
		delete(s.wakes[node], changed)
		if len(s.wakes[node]) == 0 {
			delete(s.wakes, node)
		}
	}
}

// wakeWatchers wakes the streams of load reports of the nodes that watch a policy.
func (s *streams) wakeWatchers(policy string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for node, channels := range s.wakes {
		if s.watched[node][policy] > 0 {
			wake(channels)
		}
	}
}

func wake(channels map[chan struct{}]struct{}) {
	for c := range channels {
		select {
		case c <- struct{}{}:
		default: // It is awake already.
		}
	}
}

func (s *streams) count() [kindCount]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}
