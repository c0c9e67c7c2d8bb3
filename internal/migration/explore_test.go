// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// node is a state in a world, with what the invariants have to remember of the way to it.
type node struct {
	s     State
	w     *world
	ghost ghost
	from  int // The node before, for the trace.
	by    input
}

// edge is one call, and what is checked on it.
type edge struct {
	old, after State
	o          Observation
	now        time.Time
	effects    []Effect
	in         input
	ghost      ghost // Of the state before.
}

// explorer visits all that can be reached.
type explorer struct {
	m     machine
	name  string
	spec  Spec
	nodes []node
	seen  map[string]int
	calls int
}

func newExplorer(m machine, name string, spec Spec) *explorer {
	e := &explorer{m: m, name: name, spec: spec, seen: map[string]int{}}
	e.visit(node{w: newWorld("edge"), from: -1})
	return e
}

// walk visits first what is on some long ways, so that a bug near one of them is found soon.
func (e *explorer) walk() error {
	if err := e.follow(0, "nothing"); err != nil {
		return err
	}
	for i, n := range slices.Clone(e.nodes) {
		var envs []string
		switch {
		case n.s.At == Soaking:
			envs = []string{"backward"}
		case n.s.At == Dispatching && n.s.Retirement():
			envs = []string{"limited", "excluded"}
		}
		for _, env := range envs {
			if err := e.follow(i, env); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow goes on from a node with all well but one thing, as long as there is something new, or one step is done with a new attempt.
func (e *explorer) follow(i int, env string) error {
	for {
		in := input{[2]reach{here, here}, Pass, env, -1}
		switch s := e.nodes[i].s; {
		case s.At == AwaitingApproval && s.current(e.spec).Approval && !s.Approved:
			in.env = "Approve"
		case s.At == RolledBack:
			in.env = "attempt"
		}
		known := len(e.nodes)
		if err := e.call(i, in); err != nil {
			return err
		}
		if len(e.nodes) == known {
			return nil
		}
		i = known
	}
}

func (e *explorer) visit(n node) {
	key := key(n)
	if _, found := e.seen[key]; !found {
		e.seen[key] = len(e.nodes)
		e.nodes = append(e.nodes, n)
	}
}

// explore goes on until there is nothing new, or an invariant is broken.
func (e *explorer) explore() error {
	for i := 0; i < len(e.nodes); i++ {
		for _, in := range inputs {
			if other[e.name] == in.env {
				continue
			}
			if err := e.call(i, in); err != nil {
				return fmt.Errorf("%w\n%s", err, e.trace(i, in))
			}
		}
	}
	return nil
}

func (e *explorer) call(i int, in input) error {
	n := e.nodes[i]
	edge, w := e.edge(n, in)
	if err := edge.check(e.m); err != nil {
		return err
	}
	if frozen := edge.o.Deleted && edge.o.Spec.OnDelete == DeleteFreezes; !w.released && !frozen { // There is no way back from either.
		edge.after.History, w.told = nil, nil // No answer is asked for twice here; see the tests of actions.
		e.visit(node{edge.after, w, n.ghost.after(edge), i, in})
	}
	return nil
}

// edge makes the call.
func (e *explorer) edge(n node, in input) (edge, *world) {
	e.calls++
	w := n.w.clone()
	w.now = w.now.Add(tick)
	if in.env == "unwatched" {
		w.now = w.now.Add(5 * tick)
	}
	o := w.observe(e.spec, map[string]reach{"a": in.fleet[0], "b": in.fleet[1]}, map[string]Result{"errors": in.result})
	envs[in.env](n.s, &o)
	after, effects := e.m.step(n.s, o, w.now)
	for i, e := range effects {
		if i != in.effects {
			w.apply(e)
			continue
		}
		break
	}
	return edge{n.s, after, o, w.now, effects, in, n.ghost}, w
}

// trace is how a node is reached, and the call that broke an invariant there.
func (e *explorer) trace(i int, in input) string {
	lines := []string{fmt.Sprintf("%s: %s", e.nodes[i].s.At, in)}
	for ; e.nodes[i].from >= 0; i = e.nodes[i].from {
		lines = append(lines, fmt.Sprintf("%s: %s", e.nodes[e.nodes[i].from].s.At, e.nodes[i].by))
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

// TestExhaustive goes through all that the small models can reach: every invariant holds on every call, and everything comes to an end.
func TestExhaustive(t *testing.T) {
	for name, spec := range models() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newExplorer(standard, name, spec)
			if err := e.explore(); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d states, %d calls", len(e.nodes), e.calls)
			reached := map[Place]bool{}
			for _, n := range e.nodes {
				reached[n.s.At] = true
			}
			for _, p := range places {
				if !reached[p] {
					t.Errorf("no state is %s", p)
				}
			}
			ends := map[string]bool{}
			for _, n := range e.nodes {
				if err := e.end(n, ends); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// end goes on from a node with all well and a person who helps, until an end, or until it meets a node of which that is known.
func (e *explorer) end(n node, ends map[string]bool) error {
	r := &run{m: e.m, w: n.w.clone(), s: n.s, spec: e.spec, fleet: map[string]reach{"a": here, "b": here}, gates: map[string]Result{"errors": Pass}}
	var way []string
	for range 200 {
		k := key(node{s: r.s, w: r.w})
		way = append(way, k)
		if ended := (r.s.At == Succeeded || r.s.At == RolledBack) && r.w.rings[0].Holder == "" && r.w.rings[0].Published.Candidate == ""; ended || ends[k] {
			for _, k := range way {
				ends[k] = true
			}
			return nil
		}
		r.help()
		if r.s.Retirement() && len(r.s.latecomers(r.w.observe(r.spec, r.fleet, nil))) > 0 {
			r.act(Action{ID: "skip" + r.s.Token() + string(r.s.At), Type: SkipAction, Token: r.s.Token()})
		}
		r.step()
	}
	return fmt.Errorf("from %s nothing leads to an end; it stays %s with %v", n.s.At, r.s.At, r.s.Holds)
}
