// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTableIsTotal: every place has a row for every event, and each leads to a place that there is.
func TestTableIsTotal(t *testing.T) {
	if diff := cmp.Diff(slices.Sorted(slices.Values(places)), slices.Sorted(maps.Keys(table))); diff != "" {
		t.Errorf("places (-known +in the table):\n%s", diff)
	}
	known := slices.Sorted(slices.Values(events))
	for _, p := range places {
		if diff := cmp.Diff(known, slices.Sorted(maps.Keys(table[p]))); diff != "" {
			t.Errorf("events of %s (-known +in the table):\n%s", p, diff)
		}
		for e, row := range table[p] {
			if row.pass == (row.to != "") || row.pass && row.do != nil || row.to != "" && !slices.Contains(places, row.to) {
				t.Errorf("%s, %s: %+v is no row", p, e, row)
			}
		}
		if last := table[p][events[len(events)-1]]; last.to != p || last.do != nil {
			t.Errorf("%s does not stay where it is when nothing happens", p)
		}
	}
}

// TestEveryPlaceReachesAnEnd follows the rows, those of a person or a deletion left out.
func TestEveryPlaceReachesAnEnd(t *testing.T) {
	for _, p := range places {
		seen, next := map[Place]bool{}, []Place{p}
		for len(next) > 0 {
			at := next[0]
			next = next[1:]
			if seen[at] {
				continue
			}
			seen[at] = true
			for _, e := range []Event{EventDone, EventRetires, EventRollback, EventLowered} {
				if row := table[at][e]; !row.pass {
					next = append(next, row.to)
				}
			}
		}
		if !seen[Succeeded] && !seen[RolledBack] {
			t.Errorf("%s reaches neither end", p)
		}
		if back := seen[RolledBack]; back != (p != Retiring && p != Succeeded) {
			t.Errorf("%s reaches RolledBack: %t", p, back)
		}
	}
}

// TestPhases pins the names that people see.
func TestPhases(t *testing.T) {
	plan := testSpec().Stages
	for _, row := range []struct {
		s    State
		want string
	}{
		{State{At: Pending}, "Pending"}, {State{At: Preparing, Plan: plan}, "Preparing"},
		{State{At: Converging, Plan: plan}, "Shifting"}, {State{At: Soaking, Plan: plan, Stage: 1}, "Shifting"},
		{State{At: Dispatching, Plan: plan, Stage: 2}, "Soaking"}, {State{At: Complete, Plan: plan, Stage: 2}, "Soaking"},
		{State{At: Retiring, Plan: plan, Stage: 2}, "Retiring"}, {State{At: RolledBack, Plan: plan, Stage: 1}, "RolledBack"},
	} {
		if got := row.s.Phase(); got != row.want {
			t.Errorf("%s in stage %d: %s, want %s", row.s.At, row.s.Stage, got, row.want)
		}
	}
}
