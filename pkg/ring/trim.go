// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"cmp"
	"fmt"
	"slices"
)

// declaredView is a view of a V3 ring that is trimmed.
type declaredView struct {
	// features is the set of its features, by their positions in the sorted list.
	features uint64
	// trims are the positions of the points that it leaves out, ascending.
	trims []uint32
}

// setViews turns the declared views into sets of features, ascending and each once.
func (t *table) setViews(views [][]string) error {
	if t.algorithm.Version != V3 {
		return nil
	}
	t.views = []uint64{0}
	for i, names := range views {
		set := uint64(0)
		for _, name := range names {
			f, ok := slices.BinarySearch(t.features, name)
			if !ok {
				return &ConfigError{fmt.Sprintf("views[%d]", i), name, "not a declared feature"}
			}
			set |= 1 << f
		}
		t.views = append(t.views, set)
	}
	slices.Sort(t.views)
	t.views = slices.Compact(t.views)
	return nil
}

// trimBudget is the part of a view's points that may be left out: a quarter.
const trimBudget = 4

// trim returns the trims of every declared view.
func (t *table) trim(points []point, previous *Ring) []declaredView {
	views := make([]declaredView, len(t.views))
	parallel(len(views), func(k int) {
		views[k] = declaredView{features: t.views[k], trims: t.trimOne(points, previous, t.views[k])}
	})
	return views
}

// trimOne returns the trims of one view.
func (t *table) trimOne(points []point, previous *Ring, set uint64) []uint32 {
	members, sticky := t.membersOf(set), t.stickyTrims(points, previous, set)
	trims, reached := newTrimmer(t, points, members, sticky).attempt()
	if !reached && len(sticky) > 0 {
		// What was trimmed before is in the way: begin anew, if that gets there.
		if fresh, ok := newTrimmer(t, points, members, nil).attempt(); ok {
			return fresh
		}
	}
	return trims
}

// membersOf returns the backends that have all features of the set and a weight.
func (t *table) membersOf(set uint64) bitmap {
	members := newBitmap(len(t.ids))
	for i, w := range t.weights {
		if w > 0 {
			members.set(i)
		}
	}
	for f := range t.features {
		if set>>f&1 != 0 {
			members.and(t.members[f])
		}
	}
	return members
}

// stickyTrims finds the points that the previous ring has trimmed in the view of the same features. A point is known by
// its backend and hash: a chain has no hash twice.
func (t *table) stickyTrims(points []point, previous *Ring, set uint64) []uint32 {
	if previous == nil || previous.identity != t.identity {
		return nil
	}
	oldSet, ok := previous.featureSet(t.namesOf(set))
	if !ok {
		return nil
	}
	old, ok := previous.declared(oldSet)
	if !ok {
		return nil
	}
	backends := make(map[string]int, len(t.ids))
	for i, id := range t.ids {
		backends[id.text] = i
	}
	var sticky []uint32
	next := 0
	for s := previous.packed.scan(); next < len(old.trims) && s.next(); {
		for ; next < len(old.trims) && old.trims[next]-s.first < uint32(len(s.points)); next++ {
			p := s.points[old.trims[next]-s.first]
			if i, ok := backends[previous.ID(p.backend())]; ok {
				if at, ok := findPoint(points, p.hash(), i); ok {
					sticky = append(sticky, at)
				}
			}
		}
	}
	slices.Sort(sticky)
	return sticky
}

func (t *table) namesOf(set uint64) []string {
	var names []string
	for f, name := range t.features {
		if set>>f&1 != 0 {
			names = append(names, name)
		}
	}
	return names
}

// findPoint returns the position of a backend's point among points, which are in ring order.
func findPoint(points []point, hash uint32, backend int) (uint32, bool) {
	at, _ := slices.BinarySearchFunc(points, hash, func(p point, h uint32) int { return cmp.Compare(p.hash(), h) })
	for ; at < len(points) && points[at].hash() == hash; at++ {
		if points[at].backend() == backend {
			return uint32(at), true
		}
	}
	return 0, false
}
