// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// story is a run with things that happen at some place, and where it ends.
type story struct {
	rings []string
	do    func(r *run)
	at    Place // Where do is done, once, when at is reached in stage.
	stage int
	end   Place
}

var stories = map[string]story{
	"forward":          {rings: []string{"edge"}, end: Succeeded},
	"two rings":        {rings: []string{"edge", "tile"}, end: Succeeded},
	"rollback":         {rings: []string{"edge", "tile"}, at: Soaking, stage: 1, do: func(r *run) { r.spec.Backward = true }, end: RolledBack},
	"deleted":          {rings: []string{"edge"}, at: AwaitingApproval, do: func(r *run) { r.deleted = true }, end: RolledBack},
	"deleted, retired": {rings: []string{"edge"}, at: Retiring, stage: 2, do: func(r *run) { r.deleted = true }, end: Succeeded},
	"staged": {rings: []string{"edge"}, at: Soaking, stage: 1, do: func(r *run) {
		r.spec.Backward, r.spec.Rollback.Steps, r.spec.Rollback.Interval = true, []int{3000, 0}, 2*tick
	}, end: RolledBack},
}

// play runs a story to its end. Of the effects, crash says after how many of all the operator dies before it does the rest of
// that call; twice carries every effect out twice.
func (st story) play(t *testing.T, crash int, twice bool) (*run, []string) {
	t.Helper()
	r := newRun(st.rings...)
	var trace []string
	count, done := 0, st.do == nil
	for range 150 {
		if !done && r.s.At == st.at && r.s.Stage == st.stage {
			st.do(r)
			done = true
		}
		r.help()
		before := place(r.s)
		list := r.plan()
		for _, e := range list {
			if count++; count == crash+1 {
				break
			}
			r.w.apply(e)
			if twice {
				changed := r.w.done
				if r.w.apply(e); r.w.done != changed {
					t.Errorf("%s of %s changes something the second time", e.Kind, e.Ring)
				}
			}
		}
		if at := place(r.s); at != before {
			trace = append(trace, at)
		}
		if len(list) == 0 && r.s.At == st.end || r.w.released {
			return r, trace
		}
	}
	t.Fatalf("it stays %s with %v", place(r.s), r.s.Holds)
	return nil, nil
}

// TestCrashAfterEachEffect: wherever the operator dies, the same places are gone through, and the world ends alike.
func TestCrashAfterEachEffect(t *testing.T) {
	for name, st := range stories {
		t.Run(name, func(t *testing.T) {
			want, way := st.play(t, -1, false)
			if want.s.At != st.end || want.w.done < 4 {
				t.Fatalf("it ends %s after %d effects", want.s.At, want.w.done)
			}
			check := func(what string, got *run, trace []string) {
				t.Helper()
				if diff := cmp.Diff(way, trace); diff != "" {
					t.Errorf("%s: the way (-without +with):\n%s", what, diff)
				}
				if diff := cmp.Diff(want.w.rings, got.w.rings); diff != "" {
					t.Errorf("%s: the end (-without +with):\n%s", what, diff)
				}
			}
			for crash := range want.w.done + len(want.w.told) + 2 {
				got, trace := st.play(t, crash, false)
				check(fmt.Sprintf("a crash after effect %d", crash), got, trace)
			}
			got, trace := st.play(t, -1, true)
			check("all effects twice", got, trace)
		})
	}
}

// TestStateIsNotChanged: the state that goes in stays as it is, so that one that could not be stored is tried again.
func TestStateIsNotChanged(t *testing.T) {
	r := newRun("edge")
	for range 30 {
		r.help()
		r.w.now = r.w.now.Add(tick)
		o := r.observe()
		before := fmt.Sprintf("%+v", r.s)
		first, effects := Step(r.s, o, r.w.now)
		again, same := Step(r.s, o, r.w.now)
		if after := fmt.Sprintf("%+v", r.s); after != before {
			t.Fatalf("at %s the old state is changed:\n%s\n%s", r.s.At, before, after)
		}
		if diff := cmp.Diff(first, again) + cmp.Diff(effects, same); diff != "" {
			t.Fatalf("at %s a second call says something else:\n%s", r.s.At, diff)
		}
		r.s = first
		for _, e := range effects {
			r.w.apply(e)
		}
	}
}
