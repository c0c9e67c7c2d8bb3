// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
)

// The factors on weights in ten-thousandths. MinLoadFactor and MaxLoadFactor bound them whatever a WeightSet says.
const (
	UnitLoadFactor = 10_000
	MinLoadFactor  = 1_000
	MaxLoadFactor  = 80_000
)

// LoadWeights are the factors on the backends' weights.
//
// They are those of the WeightSets, but stay those of the status while a RingMigration has the ring, whose candidate must stay the same,
// and while the WeightSets are not complete: they are written one after another.
type LoadWeights struct {
	// Policy is the WeightPolicy that they are from, "" where there are none; Version that of its WeightSets.
	Policy  string
	Version int64
	// Until is when the next WeightSet of a policy that is gone ends; the zero time where none does.
	Until time.Time
	// TombstoneUntil is when these end; nil where their policy is there.
	TombstoneUntil *metav1.Time
	// Placed says that the desired ring has them.
	Placed bool

	factors map[string]int32
}

// takeLoadWeights returns the factors that count now. Frozen says that those of the status do.
func takeLoadWeights(r *v1alpha1.HashRing, sets []v1alpha1.WeightSet, all roster, frozen bool, now time.Time) *LoadWeights {
	present := presentSets(r, sets, now)
	last := lastLoadWeights(r.Status.LoadWeights)
	chosen := newestComplete(present)
	switch {
	case frozen:
		last.Until = nextEnd(present)
		return last
	case chosen != nil:
		taken := &LoadWeights{Policy: chosen[0].Policy.Name, Version: chosen[0].Version, TombstoneUntil: chosen[0].TombstoneUntil}
		taken.factors, taken.Until = factorsOf(chosen, all), nextEnd(present)
		return taken
	case slices.ContainsFunc(present, func(s *v1alpha1.WeightSet) bool { return s.Policy.Name == last.Policy }):
		last.Until = nextEnd(present)
		return last
	default:
		return &LoadWeights{Until: nextEnd(present)}
	}
}

// presentSets returns the WeightSets of a ring that have not ended.
func presentSets(r *v1alpha1.HashRing, sets []v1alpha1.WeightSet, now time.Time) []*v1alpha1.WeightSet {
	var present []*v1alpha1.WeightSet
	for i := range sets {
		s := &sets[i]
		if s.Policy.Ring == r.Name && (s.TombstoneUntil == nil || s.TombstoneUntil.After(now)) {
			present = append(present, s)
		}
	}
	slices.SortFunc(present, func(a, b *v1alpha1.WeightSet) int { return strings.Compare(a.Name, b.Name) })
	return present
}

// nextEnd returns when the first of some WeightSets ends; the zero time where none does.
func nextEnd(sets []*v1alpha1.WeightSet) time.Time {
	var next time.Time
	for _, s := range sets {
		if s.TombstoneUntil != nil && (next.IsZero() || s.TombstoneUntil.Time.Before(next)) {
			next = s.TombstoneUntil.Time
		}
	}
	return next
}

// newestComplete returns the WeightSets that belong together and of which none is missing: of a policy that is there before those of one
// that is gone, and of those the newest. It is nil where there are none.
func newestComplete(sets []*v1alpha1.WeightSet) []*v1alpha1.WeightSet {
	type together struct {
		uid     string
		version int64
		sets    int32
	}
	groups := map[together][]*v1alpha1.WeightSet{}
	for _, s := range sets {
		key := together{s.Policy.UID, s.Version, s.Sets}
		groups[key] = append(groups[key], s)
	}
	var best []*v1alpha1.WeightSet
	for key, group := range groups {
		if len(group) == int(key.sets) && (best == nil || compareSets(group[0], best[0]) > 0) {
			best = group
		}
	}
	return best
}

// compareSets says which of two WeightSets, of different policies or versions, counts: the larger one.
func compareSets(a, b *v1alpha1.WeightSet) int {
	alive := func(s *v1alpha1.WeightSet) int {
		if s.TombstoneUntil == nil {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(alive(a), alive(b)), a.UpdatedAt.Compare(b.UpdatedAt.Time), cmp.Compare(a.Version, b.Version),
		strings.Compare(a.Policy.UID, b.Policy.UID), cmp.Compare(a.Sets, b.Sets))
}

// factorsOf returns the factors of the backends that there are and that have a weight of their own. Of one that WeightSets do not know it is 1.
func factorsOf(sets []*v1alpha1.WeightSet, all roster) map[string]int32 {
	factors := map[string]int32{}
	for _, s := range sets {
		for _, e := range s.Endpoints {
			m := all.find(e.ID)
			factor := min(max(e.Weight, MinLoadFactor), MaxLoadFactor)
			if m != nil && weight(m.backend) > 0 && factor != UnitLoadFactor {
				factors[e.ID] = factor
			}
		}
	}
	return factors
}

// lastLoadWeights returns those of the status.
func lastLoadWeights(s *v1alpha1.LoadWeights) *LoadWeights {
	l := &LoadWeights{}
	if s == nil {
		return l
	}
	l.Policy, l.Version, l.TombstoneUntil, l.factors = s.Policy, s.Version, s.TombstoneUntil, map[string]int32{}
	for _, f := range s.Factors {
		l.factors[f.ID] = min(max(f.Factor, MinLoadFactor), MaxLoadFactor)
	}
	return l
}

// apply returns the weight of a backend. A drained one stays so.
func (l *LoadWeights) apply(id string, declared uint32) uint32 {
	if l == nil || declared == 0 {
		return declared
	}
	factor, ok := l.factors[id]
	if !ok {
		return declared
	}
	exact := uint64(declared) * uint64(factor)
	return uint32(min(max((exact+UnitLoadFactor/2)/UnitLoadFactor, 1), ring.MaxWeight))
}

// status returns what the status says of the factors; carriedOut says that the desired ring is published.
func (l *LoadWeights) status(last *v1alpha1.LoadWeights, carriedOut, pinned bool) *v1alpha1.LoadWeights {
	if l.Policy == "" {
		return nil
	}
	stayed := last != nil && last.Applied && last.Policy == l.Policy && last.Version == l.Version && !pinned
	s := &v1alpha1.LoadWeights{
		Policy: l.Policy, Version: l.Version, Applied: carriedOut && l.Placed || stayed, TombstoneUntil: l.TombstoneUntil,
	}
	for id, factor := range l.factors {
		s.Factors = append(s.Factors, v1alpha1.LoadFactor{ID: id, Factor: factor})
	}
	slices.SortFunc(s.Factors, func(a, b v1alpha1.LoadFactor) int { return strings.Compare(a.ID, b.ID) })
	s.Factors = s.Factors[:min(len(s.Factors), MaxBackends)] // More backends are refused anyway.
	return s
}
