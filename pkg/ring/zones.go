// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"math/bits"
	"slices"
)

// AppendOwnersByZone appends to dst up to n distinct backends of the view, as [View.AppendOwners] does, but no two of one
// zone while there is another: first the first backend in ring order of each zone that has one, then, where n is more than
// there are zones, those that were left out, in ring order too. Backends without a zone are of one zone together. Backends
// for which skip returns true are passed over and count for no zone.
//
// It allocates only to grow dst. It looks at some points for each owner; where a zone has nobody left whom skip lets through, at
// about as many points as the view has backends, and asks skip about each of those once.
func (v *View) AppendOwnersByZone(dst []int, hash uint32, n int, skip func(backend int) bool) []int {
	if v.size == 0 || n <= 0 {
		return dst
	}
	first := len(dst)
	zones := v.zones
	pos, _ := v.points.find(hash)
	for looked := range v.points.points {
		if len(dst)-first == min(n, zones) {
			break
		}
		if int(looked) == v.size { // Longer than it takes when every zone has somebody: maybe one has not.
			zones = v.liveZones(skip)
			if len(dst)-first >= zones {
				break
			}
		}
		owner := v.points.owner(pos)
		if v.holds(pos, owner) && !v.hasZone(dst[first:], owner) && (skip == nil || !skip(owner)) {
			dst = append(dst, owner)
		}
		pos = v.points.closed(pos + 1)
	}
	spread := dst[first:]
	if len(spread) == n || len(spread) == v.size {
		return dst
	}
	return v.AppendOwners(dst, hash, n-len(spread), func(backend int) bool {
		return slices.Contains(spread, backend) || skip != nil && skip(backend)
	})
}

// hasZone says that one of these backends is in the zone of backend.
func (v *View) hasZone(backends []int, backend int) bool {
	zone := v.ring.backends.zoneOf.at(backend)
	for _, b := range backends {
		if v.ring.backends.zoneOf.at(b) == zone {
			return true
		}
	}
	return false
}

// countZones returns in how many zones the view has backends; none is a zone as well.
func (v *View) countZones() int {
	zones := newBitmap(v.ring.backends.zoneCount() + 1)
	for i := range v.ring.Len() {
		if v.members.has(i) {
			zones.set(int(v.ring.backends.zoneOf.at(i)))
		}
	}
	return zones.count()
}

// liveZones returns in how many zones there are backends of the view for which skip does not return true. It takes 64
// zones at a time, so that it allocates nothing.
func (v *View) liveZones(skip func(backend int) bool) (count int) {
	for from := 0; from <= v.ring.backends.zoneCount(); from += 64 {
		seen := uint64(0)
		for i := range v.ring.Len() {
			zone := int(v.ring.backends.zoneOf.at(i)) - from
			if zone >= 0 && zone < 64 && v.members.has(i) && seen>>zone&1 == 0 && (skip == nil || !skip(i)) {
				seen |= 1 << zone
			}
		}
		count += bits.OnesCount64(seen)
	}
	return count
}
