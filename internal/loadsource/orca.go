// SPDX-License-Identifier: Apache-2.0

package loadsource

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ringwright/ringwright/internal/loadreport"
)

// Streams bounds the ORCA streams of all policies together. Its methods may be called concurrently.
type Streams struct{ places chan struct{} }

// NewStreams returns room for a number of streams.
func NewStreams(limit int) *Streams { return &Streams{places: make(chan struct{}, limit)} }

// Open is how many there are.
func (s *Streams) Open() int { return len(s.places) }

// ORCA keeps a stream to each endpoint.
type ORCA struct {
	base
	port    int32
	streams *Streams

	problems sync.Mutex
	// failing are the endpoints whose stream does not work, by ID: why.
	failing map[string]problem
}

type problem struct{ name, text string }

// NewORCA returns a source that opens a stream to each endpoint, at port where that is not 0.
func NewORCA(options Options, port int32, streams *Streams) *ORCA {
	return &ORCA{base: newBase(options), port: port, streams: streams, failing: map[string]problem{}}
}

// Run implements Source.
func (o *ORCA) Run(ctx context.Context) error {
	type stream struct {
		address netip.AddrPort
		cancel  context.CancelFunc
	}
	open := map[string]stream{}
	var running sync.WaitGroup
	defer running.Wait()
	for {
		wanted := map[string]bool{}
		for _, e := range o.present() {
			wanted[e.ID] = true
			address, err := o.address(e)
			if known, ok := open[e.ID]; ok && (err != nil || known.address != address) {
				known.cancel()
				delete(open, e.ID)
			}
			if err != nil {
				o.fail(e, err.Error())
				continue
			}
			if _, ok := open[e.ID]; ok {
				continue
			}
			inner, cancel := context.WithCancel(ctx)
			open[e.ID] = stream{address, cancel}
			running.Go(func() { o.follow(inner, e, address) })
		}
		for id, s := range open {
			if !wanted[id] {
				s.cancel()
				delete(open, id)
			}
		}
		o.forget(wanted)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-o.changed:
		}
	}
}

// address returns where the service of an endpoint is. It is never a name, which somebody else could make another address of.
func (o *ORCA) address(e loadreport.Endpoint) (netip.AddrPort, error) {
	ip, err := netip.ParseAddr(e.Address)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is no IP address", e.Address)
	}
	port := e.Port
	if o.port != 0 {
		port = o.port
	}
	if port < 1 || port > 65535 {
		return netip.AddrPort{}, fmt.Errorf("it has no port")
	}
	return netip.AddrPortFrom(ip, uint16(port)), nil
}

// fail takes note of why the stream of an endpoint does not work; "" where it does.
func (o *ORCA) fail(e loadreport.Endpoint, text string) {
	o.problems.Lock()
	same := o.failing[e.ID].text == text
	if text == "" {
		delete(o.failing, e.ID)
	} else {
		o.failing[e.ID] = problem{nameOf(e), text}
	}
	o.problems.Unlock()
	if !same {
		o.tellFailing()
	}
}

// forget drops what is known of endpoints that are not wanted.
func (o *ORCA) forget(wanted map[string]bool) {
	o.problems.Lock()
	maps.DeleteFunc(o.failing, func(id string, _ problem) bool { return !wanted[id] })
	o.problems.Unlock()
	o.tellFailing()
}

// tellFailing says how many there are, and why the first ones are.
func (o *ORCA) tellFailing() {
	o.problems.Lock()
	list := slices.SortedFunc(maps.Values(o.failing), func(a, b problem) int { return strings.Compare(a.name, b.name) })
	o.problems.Unlock()
	if len(list) == 0 {
		o.tell("")
		return
	}
	var parts []string
	for _, p := range list[:min(3, len(list))] {
		parts = append(parts, fmt.Sprintf("%s: %.200s", p.name, p.text))
	}
	o.tell(fmt.Sprintf("%d of %d endpoints: %s", len(list), len(o.present()), strings.Join(parts, "; ")))
}

// patience is how long a stream may say nothing: grpc-go's own service reports every 30 s at most.
func (o *ORCA) patience() time.Duration { return max(3*o.Interval, 2*time.Minute) }
