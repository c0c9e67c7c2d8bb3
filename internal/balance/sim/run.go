// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"time"

	"github.com/ringwright/ringwright/internal/balance"
)

// FrameTime is the time between the frames of a Run.
const FrameTime = 10 * time.Second

// Frame is what happened in FrameTime. Quotients are of the servers' true utilisation to its mean.
type Frame struct {
	// At is the end of it.
	At time.Duration
	// Average is the mean utilisation.
	Average float64
	// MaxOverAverage, P95OverAverage and P5OverAverage are those of the busiest server and the percentiles.
	MaxOverAverage, P95OverAverage, P5OverAverage float64
	// Requests and Failed count requests.
	Requests, Failed float64
	// Moved is the part of the traffic, or of the keys of a ring, that changed its server.
	Moved float64
	// Controller is what the last update found, Weights the smallest, median and largest weight that clients have.
	Controller Verdict
	Weights    Spread
}

// Verdict is what of a balance.Result has a place here.
type Verdict struct {
	Skipped                             balance.SkipReason
	PredictedMaxOverAverage, NoiseFloor float64
	Cold, Guarded, Clamped, Silent      int
	Doubted                             int
	Ignored                             bool
}

// Spread is of weights.
type Spread struct{ Min, Median, Max float64 }

// Run is a simulation that has ended.
type Run struct {
	Scenario Scenario
	Seed     uint64
	Frames   []Frame
	// Requests and Failed count all requests.
	Requests, Failed float64
	// Moved is the part of all traffic, or of the keys of a ring, that changed its server, in total.
	Moved float64
	// Published is how often weights were published.
	Published int

	busy   [][]float64 // By frame and index of the server; NaN where it was not there all the time.
	world  *world
	state  balance.State
	result balance.Result
	ring   *keyRing
	mail   mailbox
	told   []balance.Weight
	// moved is what moved since the last frame, liars the weights that the first server was given.
	moved float64
	liars []float64
}

// Simulate runs a scenario, which must be valid.
func Simulate(s Scenario, seed uint64) (*Run, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	s.Config.StaleAfter = s.staleAfter()
	r := &Run{Scenario: s, Seed: seed, world: newWorld(s, seed)}
	if s.Ring {
		r.ring = &keyRing{}
	}
	if err := r.tell(balance.Equal(r.ready())); err != nil {
		return nil, err
	}
	events := s.Events
	interval := max(int(s.Config.Interval/time.Second), 1)
	for r.world.now < s.Duration.Seconds() {
		for len(events) > 0 && events[0].At.Seconds() <= r.world.now {
			r.happen(events[0])
			events = events[1:]
		}
		r.world.second()
		r.mail.send(r.world)
		second := int(r.world.now)
		if second%int(FrameTime/time.Second) == 0 {
			r.frame()
		}
		// A replacement is noticed at once; updates come at their time.
		if second%interval == 0 || r.changed() {
			if err := r.control(); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// ready returns the endpoints, each with the weight 0.
func (r *Run) ready() []balance.Weight {
	list := make([]balance.Weight, len(r.world.servers))
	for i, s := range r.world.servers {
		list[i].ID = s.id
	}
	return list
}

// changed says that clients do not know all servers.
func (r *Run) changed() bool {
	servers := r.world.servers
	return len(r.told) != len(servers) || r.told[len(servers)-1].ID != servers[len(servers)-1].id
}

// control updates the controller, and tells clients.
func (r *Run) control() error {
	w := r.world
	in := balance.Input{Now: instant(w.now), Reports: r.mail.deliver(w)}
	for _, s := range w.servers {
		in.Endpoints = append(in.Endpoints, balance.Endpoint{ID: s.id, Ready: true})
	}
	r.state, r.result = balance.Update(w.Config, r.state, in)
	own := r.state.Weights()
	percent := w.Percent
	if w.Equal {
		percent = 0
	}
	wanted := balance.Blend(balance.Equal(own), own, percent)
	if w.ideal {
		for i, x := range w.ideals() {
			wanted[i].Weight = x
		}
	}
	if w.Ring {
		wanted = balance.Settled(r.told, wanted, balance.PublishFrom)
	}
	if balance.Change(r.told, wanted) <= balance.PublishFrom {
		return nil
	}
	return r.tell(wanted)
}

// tell publishes weights.
func (r *Run) tell(weights []balance.Weight) error {
	w := r.world
	first := r.told == nil
	r.told = weights
	if w.blind {
		r.state.Published = nil // The only one is taken to have been there from ever on.
	}
	r.state = r.state.Publish(instant(w.now), weights)
	shares := make(map[string]float64, len(weights))
	if w.Ring {
		var err error
		var moved float64
		if shares, moved, err = r.ring.shares(weights); err != nil {
			return err
		}
		r.moved += moved
	} else {
		for _, x := range weights {
			shares[x.ID] = x.Weight / float64(len(weights))
		}
	}
	for _, s := range w.servers {
		before := s.share
		s.share = (1-w.Ignoring)*shares[s.id] + w.Ignoring/float64(len(w.servers))
		if !first && !w.Ring {
			r.moved += max(s.share-before, 0)
		}
	}
	if !first {
		r.Published++
	}
	return nil
}

// happen lets an event happen.
func (r *Run) happen(e Event) {
	w := r.world
	count := min(max(int(math.Round(e.Part*float64(len(w.servers)))), 1), len(w.servers))
	for _, s := range w.servers[:count] {
		switch e.Kind {
		case Freeze:
			s.frozen = true
		case Mute:
			s.muted = true
		case StallIO:
			s.stalled = true
		case BlackHole:
			s.hole = true
		case LieZero, LieHuge, LieNaN, LieLow:
			s.lie = e.Kind
		}
	}
	switch e.Kind {
	case Replace:
		// The oldest go, so that a whole fleet is replaced by and by.
		w.servers = append([]*server(nil), w.servers[count:]...)
		for range count {
			w.add(true)
		}
	case Restart:
		r.mail.arrived = nil
		r.state = balance.Restore(instant(w.now), r.state.Store(), r.told)
	case RestartEmpty:
		r.mail.arrived = nil
		r.state, r.told = balance.State{}, nil
	}
}

// frame ends a frame.
func (r *Run) frame() {
	w := r.world
	f := Frame{At: time.Duration(w.now * float64(time.Second))}
	busy := make([]float64, w.created)
	for i := range busy {
		busy[i] = math.NaN()
	}
	for _, s := range w.servers {
		if s.frame.seconds == FrameTime.Seconds() {
			busy[s.index] = s.frame.busy / s.frame.seconds
		}
		f.Requests += s.frame.requests
		f.Failed += s.frame.failed
		s.frame = gauge{since: w.now}
	}
	r.busy = append(r.busy, busy)
	b := balanceOf(busy)
	f.Average, f.MaxOverAverage, f.P95OverAverage, f.P5OverAverage = b.Average, b.MaxOverAverage, b.P95OverAverage, b.P5OverAverage
	f.Controller = Verdict{
		r.result.Skipped, r.result.PredictedMaxOverAverage, r.result.NoiseFloor,
		r.result.Cold, r.result.Guarded, r.result.Clamped, r.result.Silent, r.result.Doubted, r.result.Ignored,
	}
	f.Weights = spreadOf(r.told)
	r.liars = append(r.liars, r.told[0].Weight)
	f.Moved, r.moved = r.moved, 0
	r.Frames = append(r.Frames, f)
	r.Requests += f.Requests
	r.Failed += f.Failed
	r.Moved += f.Moved
}
