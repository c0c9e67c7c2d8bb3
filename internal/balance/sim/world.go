// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

const (
	// cores is how many processors a server of speed 1 has.
	cores = 8
	// patience is how long a request waits for a processor until it fails, in seconds.
	patience = 1.0
	// stallPatience is how long clients wait for a stalled one.
	stallPatience = 5.0
	// stalledPart is the part of its throughput that a stalled server has left.
	stalledPart = 0.1
	// neighbourPart is what a neighbour takes on average, neighbourNoise how much that differs from second to second.
	neighbourPart, neighbourNoise = 1.0 / 8, 0.2
	// warmUp is how many times as much work a request is for a server that has just started, warmTime until it is a third.
	warmUp, warmTime = 4.0, 15.0
	// clients is how many clients go round the servers, each at its own place.
	clients = 20
)

// server is one endpoint.
type server struct {
	id    string
	index int
	speed float64
	start float64 // When it started, in seconds; what was there at the beginning is warm.
	// neighbour is the part of the processors that a neighbour takes until then.
	neighbour, neighbourUntil float64
	stalled, hole             bool
	frozen, muted             bool
	lie                       Kind

	// share is the part of the traffic that clients send.
	share float64
	// due is what round-robin clients still have to send, backlog the work that waits, in seconds of a processor.
	due, backlog float64
	// offset is when it reports.
	offset int

	report gauge // Since the last report.
	frame  gauge // Since the last frame.
}

// gauge adds up what a server does.
type gauge struct {
	since, seconds, busy, inFlight, requests, failed float64
	// noticed is how many failures the server knows of: that a client waits no longer it does not.
	noticed float64
}

func (g *gauge) add(second gauge) {
	g.seconds++
	g.busy += second.busy
	g.inFlight += second.inFlight
	g.requests += second.requests
	g.failed += second.failed
	g.noticed += second.noticed
}

// world is all servers and the clients.
type world struct {
	Scenario
	chance  *rand.Rand
	now     float64 // In seconds.
	servers []*server
	created int
	// work is what a request is, in seconds of a processor of speed 1.
	work float64
}

func newWorld(s Scenario, seed uint64) *world {
	w := &world{Scenario: s, chance: rand.New(rand.NewPCG(seed, 0x72696e67))}
	speeds := 0.0
	for range s.Endpoints {
		speeds += w.add(false).speed
	}
	w.work = s.Load * cores * speeds / (s.Requests * float64(s.Endpoints))
	return w
}

// add starts a server. A new one is slow at first.
func (w *world) add(fresh bool) *server {
	s := &server{
		id: fmt.Sprintf("server-%05d", w.created), index: w.created, speed: w.Speeds[w.created%len(w.Speeds)],
		start: math.Inf(-1), offset: w.chance.IntN(max(int(w.ReportInterval/time.Second), 1)),
	}
	if fresh {
		s.start = w.now
	}
	s.report.since, s.frame.since = w.now, w.now
	w.created++
	w.servers = append(w.servers, s)
	return s
}

// capacity is how many seconds of a processor of speed 1 a server does in a second.
func (w *world) capacity(s *server) float64 {
	c := cores * s.speed
	if s.neighbourUntil > w.now {
		c *= 1 - s.neighbour
	}
	return c
}

// cost is how many times as much work a request is for a server as usual.
func (w *world) cost(s *server) float64 {
	if math.IsInf(s.start, -1) {
		return 1
	}
	return 1 + (warmUp-1)*math.Exp(-(w.now-s.start)/warmTime)
}

// ideals returns the weights with which all servers would be equally busy, in the order of the servers.
func (w *world) ideals() []float64 {
	weights, sum := make([]float64, len(w.servers)), 0.0
	for i, s := range w.servers {
		weights[i] = w.capacity(s) / w.cost(s)
		sum += weights[i]
	}
	for i := range weights {
		weights[i] *= float64(len(weights)) / sum
	}
	return weights
}

// second lets a second pass.
func (w *world) second() {
	w.visit()
	// All traffic goes up and down by a tenth in ten minutes; a controller must not care.
	rate := w.Requests * float64(w.Endpoints) * (1 + 0.1*math.Sin(2*math.Pi*w.now/600))
	if !w.RandomPicks {
		rate = float64(w.poisson(rate))
	}
	for _, s := range w.servers {
		did := w.serve(s, float64(w.arrivals(s, rate*s.share)))
		s.report.add(did)
		s.frame.add(did)
	}
	w.now++
}

// visit lets neighbours come, and take a little more or less every second.
func (w *world) visit() {
	for _, s := range w.servers {
		if s.neighbourUntil > w.now {
			s.neighbour = min(max(neighbourPart*(1+neighbourNoise*w.chance.NormFloat64()), 0), 2*neighbourPart)
		}
	}
	switch stay := w.NeighbourTime.Seconds(); {
	case w.Neighbours == 0:
	case stay == 0:
		if w.now == 0 {
			for _, i := range w.chance.Perm(len(w.servers))[:int(w.Neighbours*float64(len(w.servers)))] {
				w.servers[i].neighbourUntil = math.Inf(1)
			}
		}
	default:
		// This rate of arrivals keeps the wanted part of the servers visited.
		rate := w.Neighbours / (1 - w.Neighbours) / stay
		for _, s := range w.servers {
			if s.neighbourUntil <= w.now && w.chance.Float64() < rate {
				s.neighbourUntil = w.now + w.chance.ExpFloat64()*stay
			}
		}
	}
}

// arrivals returns how many requests a server gets when that many are its part.
func (w *world) arrivals(s *server, part float64) int {
	if w.RandomPicks || w.Ring {
		return w.poisson(part)
	}
	s.due += part
	// Where each client is in its round is as good as chance.
	n := max(math.Floor(s.due+w.chance.NormFloat64()*math.Sqrt(clients/12.0)), 0)
	s.due -= n
	return int(n)
}

// serve lets a server work for a second.
func (w *world) serve(s *server, n float64) gauge {
	did := gauge{requests: n}
	if s.hole {
		did.failed, did.noticed = n, n
		did.busy, did.inFlight = 0.02*n*w.work/w.capacity(s), n*0.001
		return did
	}
	each := w.work * w.cost(s)
	s.backlog += max(n*each+w.chance.NormFloat64()*math.Sqrt(n)*w.Variation*each, 0)
	capacity, wait := w.capacity(s), patience
	if s.stalled {
		capacity, wait = stalledPart*w.Requests*w.work, stallPatience
	}
	done := min(s.backlog, capacity)
	s.backlog -= done
	if most := wait * capacity; s.backlog > most {
		did.failed = min((s.backlog-most)/each, n)
		did.noticed = did.failed
		s.backlog = most
	}
	did.busy = done / w.capacity(s)
	did.inFlight = n*each/s.speed*(1+queued(done/capacity)) + s.backlog/each
	if s.stalled {
		did.inFlight = s.backlog/each + n*wait*min(did.failed/max(n, 1), 1) // Those that will fail wait until then.
		did.busy *= 0.3
		did.noticed = 0
	}
	return did
}

// queued is how long a request waits for one of the cores, in times of its work, by the approximation of Sakasegawa.
func queued(busy float64) float64 {
	busy = min(busy, 0.98)
	return busy * busy * busy / (cores * (1 - busy)) // sqrt(2·(cores+1)) - 1 is 3.2; what it is exactly does not matter here.
}

// poisson draws how many of many independent events happen.
func (w *world) poisson(mean float64) int {
	if mean > 50 {
		return max(int(math.Round(mean+w.chance.NormFloat64()*math.Sqrt(mean))), 0)
	}
	n, p, limit := 0, w.chance.Float64(), math.Exp(-mean)
	for p > limit {
		n++
		p *= w.chance.Float64()
	}
	return n
}
