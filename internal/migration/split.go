// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"maps"
	"slices"
)

// Split is the share of the keys that goes to the candidate, in basis points by datacenter. One that is not in it has 0.
// There is no entry for all others: a datacenter that appears stays on the stable ring until a stage takes it.
type Split map[string]int

// Equal compares shares; an entry of 0 is as good as none.
func (s Split) Equal(other Split) bool {
	for name, share := range s {
		if other[name] != share {
			return false
		}
	}
	for name, share := range other {
		if s[name] != share {
			return false
		}
	}
	return true
}

// zero says whether no key goes to the candidate.
func (s Split) zero() bool {
	for _, share := range s {
		if share != 0 {
			return false
		}
	}
	return true
}

// members returns the datacenters of a stage.
func (s State) members(stage int) []string {
	if s.Plan[stage].Remainder {
		return s.Remainder
	}
	return s.Plan[stage].Datacenters
}

// begun returns the datacenters of the stages that have begun, sorted.
func (s State) begun() []string {
	var names []string
	for i := range min(s.Stage+1, len(s.Plan)) {
		names = append(names, s.members(i)...)
	}
	if s.Retirement() && !s.Plan[len(s.Plan)-1].Remainder {
		names = append(names, s.Remainder...) // Who came too late and was taken along.
	}
	slices.Sort(names)
	return names
}

// latecomers returns the datacenters with consumers that no stage has taken, sorted; those without a name are "".
func (s State) latecomers(o Observation) []string {
	begun := s.begun()
	return slices.DeleteFunc(o.datacenters(), func(name string) bool {
		_, found := slices.BinarySearch(begun, name)
		return found
	})
}

// remainder returns the datacenters that no stage names.
func (s State) remainder(o Observation) []string {
	named := map[string]bool{"": true}
	for _, stage := range s.Plan {
		for _, name := range stage.Datacenters {
			named[name] = true
		}
	}
	return slices.DeleteFunc(o.datacenters(), func(name string) bool { return named[name] })
}

// planned returns the shares of the present step, without limits.
func (s State) planned() Split {
	split := Split{}
	for _, name := range s.begun() {
		split[name] = whole
	}
	if !s.Retirement() {
		for _, name := range s.members(s.Stage) {
			split[name] = s.Plan[s.Stage].Steps[s.Step].Traffic
		}
	}
	return split
}

// limited returns a split under the limits.
func (l Limits) limited(split Split) Split {
	under := maps.Clone(split)
	for name, share := range split {
		under[name] = min(share, l.MaxTraffic)
		if slices.Contains(l.Excluded, name) {
			under[name] = 0
		}
	}
	return under
}

// target returns the split that the present step asks for. A datacenter that cannot be reached keeps at most what it has.
func target(s State, o Observation) Split {
	split := o.Spec.Limits.limited(s.planned())
	for name, share := range split {
		if share > s.Split[name] && !o.reachable(name) {
			split[name] = s.Split[name]
		}
	}
	return split
}

// raised says whether a share of want is above that of have.
func raised(have, want Split) bool {
	for name, share := range want {
		if share > have[name] {
			return true
		}
	}
	return false
}

// lowest returns the lower share of each datacenter of a split; one that is not in ceilings has 0 there.
func lowest(split, ceilings Split) Split {
	low := Split{}
	for name, share := range split {
		low[name] = min(share, ceilings[name])
	}
	return low
}

// published returns the highest share of each datacenter in the routing files.
func (o Observation) published() Split {
	high := Split{}
	for _, r := range o.Rings {
		for name, share := range r.Published.Split {
			high[name] = max(high[name], share)
		}
	}
	return high
}
