// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// watched returns the datacenters whose consumers have to have the split, sorted: those of the stages that have begun, and all
// while it is prepared and before and after the old ring is retired. One that is excluded and has no consumers left is none.
func (s State) watched(o Observation) []string {
	names := s.begun()
	if s.At == Preparing || s.Retirement() {
		names = append(names, o.datacenters()...)
	}
	slices.Sort(names)
	present := o.datacenters()
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		if !slices.Contains(o.Spec.Limits.Excluded, name) {
			return false
		}
		return !slices.Contains(present, name) || stepPlace(s.At) && !s.Retirement()
	})
}

// published says whether the routing file of a ring is as the state asks for, and stays so.
func (s State) published(r Ring) bool {
	candidate := s.Candidates[r.Name]
	switch {
	case s.At == Retiring:
		return r.Published.Stable == candidate && r.Published.Candidate == ""
	case r.Behind:
		return false
	case s.At == RollingBack:
		return r.Published.Split.Equal(s.Split)
	default:
		return r.Published.Candidate == candidate && r.Published.Seed == s.Seed && r.Published.Split.Equal(s.Split)
	}
}

// note keeps the versions of the routing files once all of them are as the state asks for.
func (s *State) note(o Observation) {
	if len(s.Versions) > 0 || len(o.Rings) == 0 || slices.ContainsFunc(o.Rings, func(r Ring) bool { return !s.published(r) }) {
		return
	}
	s.Versions = map[string]Version{}
	for _, r := range o.Rings {
		s.Versions[r.Name] = r.Published.Version
	}
}

// acknowledged says whether the routing files are as the state asks for, and of each of some datacenters a quorum of the
// consumers has them. Consumers that were judged against an older file are not counted.
func acknowledged(s State, o Observation, datacenters []string, quorum int) bool {
	if len(s.Versions) == 0 || slices.ContainsFunc(o.Rings, func(r Ring) bool { return !s.published(r) }) {
		return false
	}
	for _, name := range datacenters {
		found := false
		for _, f := range o.Fleets {
			if f.Datacenter != name || f.Total == 0 {
				continue
			}
			if found = true; f.Version.Compare(s.Versions[f.Ring]) < 0 || f.Current*whole < f.Total*quorum {
				return false
			}
		}
		if !found {
			return false
		}
	}
	return len(datacenters) > 0
}

// complete says whether all consumers that have to have the split have it; before retirement that is all without a quorum.
func (m machine) complete(s State, o Observation) bool {
	quorum := o.Spec.Acknowledgement.Quorum
	if s.Retirement() {
		quorum = whole
	}
	return m.acknowledged(s, o, s.watched(o), quorum)
}

// convergence keeps since when consumers lack the split.
func (m machine) convergence(s *State, o Observation, now time.Time) {
	switch s.At {
	case Pending, Queued, Succeeded, RolledBack:
		return
	}
	s.note(o)
	lacking := !m.complete(*s, o)
	if s.At == RollingBack {
		lacking = len(s.unreached(o)) > 0
	}
	switch {
	case !lacking:
		s.Unconverged = time.Time{}
	case s.Unconverged.IsZero():
		s.Unconverged = now
	}
}

// stale lists the consumers that lack the split, the first ones by name, for people.
func (s State) stale(o Observation) string {
	if len(s.Versions) == 0 {
		return "the routing file is not published"
	}
	watched := s.watched(o)
	var shown []string
	total := 0
	for _, f := range o.Fleets {
		if f.Current < f.Total && slices.Contains(watched, f.Datacenter) {
			total += f.Total - f.Current
			shown = append(shown, f.Stale...)
		}
	}
	slices.Sort(shown)
	if len(shown) > maxShownDetails {
		shown = shown[:maxShownDetails]
	}
	return fmt.Sprintf("%d consumers lack it: %s", total, strings.Join(shown, ", "))
}

// unreached returns the datacenters that a rollback has lowered and whose consumers have not all said that they know, sorted.
func (s State) unreached(o Observation) []string {
	var names []string
	for name := range s.Split {
		if !acknowledged(s, o, []string{name}, whole) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
