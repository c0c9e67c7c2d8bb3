// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
)

// describeFrozen writes down what the decision says beside what is published: which candidate the RingMigration goes to, whether spec
// still wants it, and what waits behind it.
func (c *chooser) describeFrozen(course course, d *Desired) error {
	f := &Frozen{Paired: d.Candidate != nil}
	if lock := c.ring.Status.Migration; lock != nil {
		f.Holder = lock.Name
	}
	c.decision.Frozen = f
	stable, err := ring.ReadConfig(course.stable.Recipe)
	if err != nil {
		return err
	}
	if err := c.describeMove(course, d); err != nil {
		return err
	}
	if d.Candidate == nil {
		if c.wanted != nil && c.decision.Candidate == nil { // Else that is what waits.
			f.Waits = changes(stable, c.wantedConfig())
		}
		return nil
	}
	candidate, err := ring.ReadConfig(d.Candidate.Ring.Recipe())
	if err != nil {
		return err
	}
	if c.wanted != nil {
		if c.takenBack(stable, candidate) {
			c.decision.Candidate = nil
			return nil
		}
		f.Waits = changes(candidate, c.wantedConfig())
	}
	return c.describePaired(d, stable, candidate)
}

// describeMove finds out what a promotion moves.
func (c *chooser) describeMove(course course, d *Desired) error {
	if course.stable == c.seen.Published {
		return nil
	}
	before, err := c.rebuild(c.seen.Published)
	if err != nil {
		return err
	}
	moved, err := c.builder.Movement(before, d.Ring)
	c.decision.Moved = &moved
	return err
}

// describePaired makes the candidate that is published the one of the decision.
func (c *chooser) describePaired(d *Desired, stable, candidate ring.Config) error {
	moved, err := c.builder.Movement(d.Ring, d.Candidate.Ring)
	if err != nil {
		return err
	}
	reason := v1alpha1.ReasonMovementBudget
	if stable.Algorithm != candidate.Algorithm {
		reason = v1alpha1.ReasonAlgorithmChanged
	}
	c.decision.Candidate = &Candidate{
		Ring: d.Candidate.Ring, Declared: d.Candidate.Declared, Revision: d.Candidate.Revision, Reason: reason, Moved: moved,
		Slot: otherSlot(d.slot()), WeightLost: weightLost(stable, d.Down),
	}
	return nil
}

// weightLost returns the part of the weight of a ring that those who are down have, in percent.
func weightLost(config ring.Config, down []string) string {
	lost, total := uint64(0), uint64(0)
	for _, b := range config.Backends {
		total += uint64(b.Weight)
		if _, found := slices.BinarySearch(down, b.ID); found {
			lost += uint64(b.Weight)
		}
	}
	return decimal(float64(lost)/float64(max(total, 1))*100, 2) + "%"
}

func (c *chooser) wantedConfig() ring.Config {
	config := c.composer.config
	config.Backends = c.wanted.backends
	return config
}

// takenBack says that spec asks for the published ring again: for its algorithm, and where the candidate has the same, for all of it but
// for backends that have left since.
func (c *chooser) takenBack(stable, candidate ring.Config) bool {
	wanted := c.wantedConfig()
	if stable.Algorithm != candidate.Algorithm {
		return wanted.Algorithm == stable.Algorithm
	}
	if c.decision.Hold != nil || len(changes(stable, wanted)) > 0 {
		return false
	}
	placed := placedOf(wanted)
	stays := placedOf(candidate)
	for _, b := range stable.Backends {
		_, still := placed[b.ID]
		_, left := stays[b.ID]
		if b.Weight > 0 && !still && !left {
			return false // The candidate was made without it, and spec still is.
		}
	}
	return true
}

func placedOf(config ring.Config) map[string]ring.Backend {
	placed := make(map[string]ring.Backend, len(config.Backends))
	for _, b := range config.Backends {
		if b.Weight > 0 {
			placed[b.ID] = b
		}
	}
	return placed
}

// changes says in words what a ring has to become, but for backends that leave or are drained: those are passed over.
func changes(from, to ring.Config) []string {
	var list []string
	if from.Algorithm != to.Algorithm {
		list = append(list, fmt.Sprintf("algorithm %s with %d points for each unit of weight", to.Algorithm.Version, to.Algorithm.PointsPerWeight))
	} else if !slices.Equal(viewsOf(from), viewsOf(to)) {
		list = append(list, "other features or views")
	}
	had := placedOf(from)
	var join, weigh, differ []string
	for _, b := range to.Backends {
		if b.Weight == 0 {
			continue
		}
		switch before, placed := had[b.ID]; {
		case !placed:
			join = append(join, b.ID)
		case before.Weight != b.Weight:
			weigh = append(weigh, b.ID)
		case before.Zone != b.Zone || !slices.Equal(sortedNames(before.Features), sortedNames(b.Features)):
			differ = append(differ, b.ID)
		}
	}
	for _, change := range []struct {
		what string
		ids  []string
	}{{"to join", join}, {"with another weight", weigh}, {"with other features or another zone", differ}} {
		if len(change.ids) > 0 {
			slices.Sort(change.ids)
			list = append(list, fmt.Sprintf("%d backends %s (%s)", len(change.ids), change.what, listOf(change.ids)))
		}
	}
	return list
}

// viewsOf returns features and views in an order that does not depend on how they are written.
func viewsOf(config ring.Config) []string {
	list := []string{strings.Join(sortedNames(config.Features), ",")}
	for _, view := range config.Views {
		if len(view) > 0 { // That of all backends need not be declared.
			list = append(list, strings.Join(sortedNames(view), ","))
		}
	}
	slices.Sort(list[1:])
	return slices.Compact(list)
}

func sortedNames(names []string) []string {
	return slices.Sorted(slices.Values(names))
}
