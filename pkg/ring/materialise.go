// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"runtime"
	"sync/atomic"
)

const (
	// sparse is the part of a ring's points, one in so many, from which on down a view gets a copy of its own: walking over the
	// others takes as long as a search then.
	sparse = 4
	// copyBudget is the part of a ring's points, one in so many bytes, that all copies together may take.
	copyBudget = 2
)

// materialise gives a view of few points a copy of them, if the budget allows. Nothing but time and memory changes.
func (v *View) materialise() {
	if v.size == 0 || v.quota()*sparse > uint64(v.points.points) {
		return
	}
	l := newLayout(uint32(v.quota()), v.ring.Len())
	bytes := int64(l.directoryBytes()) + int64(l.entryBytes())
	if v.ring.copied.Add(bytes) > int64(v.points.heldBytes())/copyBudget {
		v.ring.copied.Add(-bytes)
		return
	}
	v.points, v.whole, v.trimmed = v.copyPoints(), true, nil
	runtime.AddCleanup(v, func(copied *atomic.Int64) { copied.Add(-bytes) }, v.ring.copied)
}

// quota returns how many points the weights of the members give them.
func (v *View) quota() uint64 {
	points := uint64(0)
	for i := range v.ring.Len() {
		if v.members.has(i) {
			points += v.ring.algorithm.quota(v.ring.Weight(i))
		}
	}
	return points
}

// copyPoints returns the points of the view alone. Owners keep their numbers.
func (v *View) copyPoints() *packed {
	var points []point
	for s := v.points.scan(); s.next(); {
		for k, p := range s.points {
			if v.holds(s.first+uint32(k), p.backend()) {
				points = append(points, p)
			}
		}
	}
	l := newLayout(uint32(len(points)), v.ring.Len())
	own := pack(points, l)
	own.entries = make([]byte, l.entryBytes())
	l.putEntries(own.entries, points)
	own.setGuide()
	return &own
}
