// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

const (
	self = "uid-1"
	tick = time.Minute
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world is what there is outside: what effects change, and observations show.
type world struct {
	now      time.Time
	rings    []Ring
	slots    map[string]bool // Of which ring the slot of the candidate has been filled and not emptied.
	told     map[string]Refusal
	released bool
	done     int // How many effects changed something.
}

func newWorld(rings ...string) *world {
	w := &world{now: epoch, slots: map[string]bool{}, told: map[string]Refusal{}}
	for _, name := range rings {
		w.rings = append(w.rings, Ring{Name: name, Candidate: name + "-new", Emptied: true,
			Published: Published{Version: Version{1, 1}, Stable: name + "-old"}})
	}
	return w
}

func (w *world) clone() *world {
	c := *w
	c.rings, c.slots, c.told = slices.Clone(w.rings), maps.Clone(w.slots), maps.Clone(w.told)
	return &c
}

func (w *world) ring(name string) *Ring {
	return &w.rings[slices.IndexFunc(w.rings, func(r Ring) bool { return r.Name == name })]
}

// apply carries out an effect; one that was carried out before changes nothing. Without the lock nothing may be written.
func (w *world) apply(e Effect) {
	switch e.Kind {
	case Answer:
		if w.told != nil {
			w.told[e.Answered.ID] = e.Answered.Refusal
		}
		return
	case Release:
		w.released = true
		return
	}
	r := w.ring(e.Ring)
	if e.Kind != Lock && e.Kind != Unlock && r.Holder != self {
		panic(fmt.Sprintf("%s of %s, which %q has", e.Kind, e.Ring, r.Holder))
	}
	before := *r
	p := &r.Published
	switch e.Kind {
	case Lock:
		if r.Holder == "" {
			r.Holder = self
		}
	case Unlock:
		if r.Holder == self {
			r.Holder = ""
		}
	case Publish:
		p.Candidate, p.Seed, p.Split, r.Emptied = e.Candidate, e.Seed, e.Split, false
	case Withdraw:
		p.Candidate, p.Seed, p.Split, r.Emptied = "", 0, nil, true
	case Promote:
		p.Stable, p.Candidate, p.Seed, p.Split, r.Candidate = e.Candidate, "", 0, nil, ""
	case Empty:
		r.Emptied = true
	}
	if before.Published.Candidate != p.Candidate || before.Published.Stable != p.Stable || !before.Published.Split.Equal(p.Split) {
		p.Version.Generation++
	}
	if before.Holder != r.Holder || before.Emptied != r.Emptied || before.Published.Version != p.Version {
		w.done++
	}
}

// reach is how the consumers of a datacenter are.
type reach string

const (
	here  reach = "here"  // All have what is published.
	stale reach = "stale" // They answer, and one has not.
	gone  reach = "gone"  // None answers.
)

// observe shows the world; fleets has the datacenters.
func (w *world) observe(spec Spec, fleets map[string]reach, results map[string]Result) Observation {
	o := Observation{Self: self, Spec: spec, Rings: slices.Clone(w.rings)}
	for _, r := range w.rings {
		for _, name := range slices.Sorted(maps.Keys(fleets)) {
			f := Fleet{Ring: r.Name, Datacenter: name, Version: r.Published.Version, Total: 10, Reachable: 10, Current: 10}
			switch fleets[name] {
			case stale:
				f.Current, f.Stale = 9, []string{name + "-7"}
			case gone:
				f.Reachable, f.Current, f.Stale = 0, 0, []string{name + "-0"}
			}
			o.Fleets = append(o.Fleets, f)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		o.Measurements = append(o.Measurements, Measurement{Gate: name, At: w.now, Result: results[name]})
	}
	return o
}

// spec is a small one: datacenter a first, then all others.
func testSpec() Spec {
	return Spec{
		Stages: []Stage{
			{Name: "first", Datacenters: []string{"a"}, Steps: []PlannedStep{{Traffic: 5000, Soak: 2 * tick}, {Traffic: whole, Soak: tick, Approval: true}}},
			{Name: "rest", Remainder: true, Steps: []PlannedStep{{Traffic: whole, Soak: 2 * tick}}},
		},
		Gates:           []Gate{{Name: "errors", Enforced: true, Interval: tick, FailureThreshold: 2, FailureWindow: 3 * tick}},
		Limits:          Limits{MaxTraffic: whole},
		Attempt:         1,
		Acknowledgement: Acknowledgement{Quorum: whole, Deadline: 2 * tick},
		Rollback:        Rollback{Automatic: true},
		Retirement:      Retirement{Soak: 2 * tick},
		OnDelete:        DeleteRollsBack,
		Interval:        tick,
	}
}

// run is a migration in a world, one observation after the other.
type run struct {
	m     machine
	w     *world
	s     State
	spec  Spec
	fleet map[string]reach
	gates map[string]Result
	edit  func(o *Observation) // Changes the next observation, once.

	deleted bool
}

func newRun(rings ...string) *run {
	return &run{m: standard, w: newWorld(rings...), spec: testSpec(), fleet: map[string]reach{"a": here, "b": here}, gates: map[string]Result{"errors": Pass}}
}

// observe shows the world, and what persons do.
func (r *run) observe() Observation {
	o := r.w.observe(r.spec, r.fleet, r.gates)
	o.Deleted = r.deleted
	if r.edit != nil {
		r.edit(&o)
		r.edit = nil
	}
	return o
}

// plan observes and stores, a tick later.
func (r *run) plan() []Effect {
	var list []Effect
	r.w.now = r.w.now.Add(tick)
	r.s, list = r.m.step(r.s, r.observe(), r.w.now)
	return list
}

// step does so and carries out the effects.
func (r *run) step() []Effect {
	list := r.plan()
	for _, e := range list {
		r.w.apply(e)
	}
	return list
}

// help does what a person does to let a migration end: it resumes, and approves.
func (r *run) help() {
	var t ActionType
	switch {
	case r.s.Paused != nil && stepPlace(r.s.At) || r.s.Paused != nil && r.s.RollbackAvailable():
		t = ResumeAction
	case r.s.At == AwaitingApproval && r.s.current(r.spec).Approval && !r.s.Approved:
		t = Approve
	default:
		return
	}
	r.act(Action{ID: string(t) + r.s.Token(), Type: t, Token: r.s.Token(), Actor: "ann"})
}

func (r *run) act(actions ...Action) {
	r.edit = func(o *Observation) { o.Actions = actions }
}

// until steps until a place and stage; it fails the test if it does not get there.
func (r *run) until(t *testing.T, p Place, stage int) {
	t.Helper()
	for range 100 {
		if r.s.At == p && r.s.Stage == stage {
			return
		}
		r.help()
		r.step()
	}
	t.Fatalf("it does not get to %s of stage %d: it stays %s with %v", p, stage, place(r.s), r.s.Holds)
}

// wantHold steps once and wants a hold, and says what it says.
func (r *run) wantHold(t *testing.T, h HoldType) string {
	t.Helper()
	r.step()
	for _, got := range r.s.Holds {
		if got.Type == h {
			return got.Detail
		}
	}
	t.Fatalf("%s is not held by %s: %v", place(r.s), h, r.s.Holds)
	return ""
}

// wantNoHold steps once and wants none.
func (r *run) wantNoHold(t *testing.T) {
	t.Helper()
	if r.step(); len(r.s.Holds) > 0 {
		t.Fatalf("%s is held by %v", place(r.s), r.s.Holds)
	}
}
