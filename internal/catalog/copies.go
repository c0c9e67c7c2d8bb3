// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Name is the name of the ConfigMap with the catalog.
const Name = "ringwright-catalog"

// copyTime is the form in which the name of a copy ends: the time at which it was taken, in UTC.
const copyTime = "20060102t150405z"

// CopyName returns the name of the copy that is taken at now.
func CopyName(now time.Time) string { return Name + "-" + now.UTC().Format(copyTime) }

// CopyTime returns when the copy of that name was taken; ok is false where it is not the name of one.
func CopyTime(name string) (taken time.Time, ok bool) {
	text, found := strings.CutPrefix(name, Name+"-")
	taken, err := time.Parse(copyTime, text)
	return taken, found && err == nil
}

// Copy is a copy that is kept.
type Copy struct {
	Name string
	// Digest is that of its payload.
	Digest string
}

// Policy says how many copies there are.
type Policy struct {
	// Keep is how many are kept, 0 for none.
	Keep int
	// Interval is how old the newest one is at the least before the next one is taken.
	Interval time.Duration
}

// Copies is what to do about copies.
type Copies struct {
	// Take is the name of the copy to take; "" for none.
	Take string
	// Drop are the names of those to delete once that is taken.
	Drop []string
	// Wait is how long the next copy is to wait for; 0 where there is nothing to wait for.
	Wait time.Duration
}

// PlanCopies plans which copies of the catalog are taken and dropped, where its payload has that digest. A copy in the
// future was taken by a clock that was ahead: it counts as one that is kept, and for nothing else.
func PlanCopies(c Catalog, digest string, kept []Copy, policy Policy, now time.Time) Copies {
	kept = slices.DeleteFunc(slices.Clone(kept), func(k Copy) bool { _, ok := CopyTime(k.Name); return !ok })
	slices.SortFunc(kept, func(a, b Copy) int { return cmp.Compare(a.Name, b.Name) }) // By time.
	var plan Copies
	room := policy.Keep
	if room > 0 {
		plan.Take, plan.Wait = next(c, digest, kept, policy, now)
	}
	if plan.Take != "" {
		room--
	}
	for _, k := range kept[:max(len(kept)-room, 0)] {
		plan.Drop = append(plan.Drop, k.Name)
	}
	return plan
}

// next returns the name of the copy to take now, or how long to wait for it.
func next(c Catalog, digest string, kept []Copy, policy Policy, now time.Time) (string, time.Duration) {
	for _, k := range slices.Backward(kept) {
		taken, _ := CopyTime(k.Name)
		switch age := now.Sub(taken); {
		case age < 0:
			continue
		case k.Digest == digest:
			return "", 0
		case age < max(policy.Interval, time.Second): // Names tell seconds apart.
			return "", max(policy.Interval, time.Second) - age
		}
		return CopyName(now), 0
	}
	if len(c.Rings)+len(c.Tombstones)+len(c.WeightPolicies)+len(c.WeightTombstones) == 0 {
		return "", 0 // There is nothing yet to go back to.
	}
	return CopyName(now), 0
}
