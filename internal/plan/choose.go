// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// Members says who waits to join or to leave the ring.
type Members struct {
	// Clocks are the delays that run, Due those that are over: the status keeps these until the ring is published that they are
	// for. Both are in the order of the identities.
	Clocks, Due []v1alpha1.MemberTransition
	// Reference is how many backends the ring had before it lost some, After how many it will have.
	Reference, After int
	// Placed says that the desired ring has all of these members, so that whoever is due is on it, or off it.
	Placed bool
	// Next is when the first delay is over; the zero time where none runs, or those that do wait for a source to be read.
	Next time.Time
	// PendingMoved is how many positions of the key space have another owner once all delays are over; nil without Next, and where
	// no ring would be left.
	PendingMoved *uint64
}

// maxCasualPoints is how many points two rings may have together for their movement to be found out where nothing depends on
// it: opening recipes of more takes seconds.
const maxCasualPoints = 32 << 20

// chooser finds the ring that is to be published.
type chooser struct {
	ring     *v1alpha1.HashRing
	builder  Builder
	seen     Observation
	now      time.Time
	decision *Decision
	composer *composer
	roster   roster
	base     *baseRing
	// load are the factors on the weights.
	load *LoadWeights
	// last is the routing file that is published, slot that of its ring, and pair its candidate; nil where there is none.
	last routing.File
	slot routing.Slot
	pair *pair
	// wanted is who is on the ring that spec asks for, where what is published is frozen; nil where spec asks for none.
	wanted *membership
}

// choose returns the ring that is to be published, and writes down in d why it is that one. It is nil where nothing is to be
// published or kept up to date: then there is a refusal.
func choose(d *Decision, r *v1alpha1.HashRing, b Builder, seen Observation, now time.Time) *Desired {
	c := &chooser{
		ring: r, builder: b, seen: seen, now: now, decision: d, base: readBase(seen.Published),
		last: lastRouting(seen), slot: lastSlot(r.Status, seen), pair: lastPair(r.Status, seen),
	}
	if c.base.exists() && c.base.config.Identity != identities[r.Spec.Identity] {
		// A HashRing of this name was deleted and made again. The same backends have other names there: nothing can be compared.
		c.base, c.seen.Published, c.pair = nil, nil, nil
	}
	c.roster = takeRoster(r.Spec, seen.Sources)
	d.Problems = c.roster.problems
	c.load = takeLoadWeights(r, seen.WeightSets, c.roster, r.Status.Migration != nil || c.pair != nil, now)
	d.Load = c.load
	if c.frozen() {
		return c.freeze()
	}
	desired, err := c.choose()
	if err != nil {
		d.Refusal = asRefusal(err)
		desired = c.lastGood()
	}
	if desired != nil {
		desired.Slot = c.slot
	}
	return desired
}

func (c *chooser) choose() (*Desired, error) {
	var err error
	if c.ring.Spec.PinnedRevision != nil {
		return c.pinned()
	}
	if c.composer, err = c.newComposer(); err != nil {
		return nil, err
	}
	if !c.base.exists() && c.roster.unread() {
		return nil, &Refusal{
			Reason: v1alpha1.ReasonSourcesUnread, Waits: true, Message: "the first ring waits for every source: " + c.roster.problems[0].Message,
		}
	}
	members, err := c.members()
	if err != nil {
		return nil, err
	}
	// Delays run on where the ring of these members is refused: it may be one that fits when they are over.
	c.decision.Members = &Members{
		Clocks: members.clocks, Due: members.due, Reference: members.reference, After: weighted(members.backends), Next: members.next,
	}
	return c.fromMembers(members)
}

// newComposer returns the composer of spec with the factors on its weights.
func (c *chooser) newComposer() (*composer, error) {
	composer, err := newComposer(c.ring.Spec)
	if err == nil {
		composer.load = c.load
	}
	return composer, err
}

// members decides who is on the ring, and whether that is held.
func (c *chooser) members() (membership, error) {
	m := c.planMembers(false)
	revision, _ := lastPublished(c.ring.Status, c.seen)
	hold, err := m.hold(c.ring.Spec, revision)
	switch {
	case err != nil:
		return m, err
	case hold == nil && wasHeld(c.ring.Status):
		// Some are back. The others get the whole delay from now on: they are likely to come back too, and their clocks ran while
		// nothing could be removed.
		return c.planMembers(true), nil
	case hold == nil:
		return m, nil
	case hold.Token != "" && c.ring.Annotations[v1alpha1.AnnotationRelease] == hold.Token:
		return c.released()
	}
	c.decision.Hold = hold
	m.backends = c.heldBackends(m)
	return m, nil
}

// heldBackends returns the members of a held ring: none is removed. Where that is not enough, because others were drained, the
// published ring stays as it is.
func (c *chooser) heldBackends(m membership) []ring.Backend {
	if !c.staysHeld(m) {
		return m.kept
	}
	backends := slices.Clone(c.base.backends())
	for i := range backends {
		backends[i].Features = c.base.featuresOf(backends[i], c.ring.Spec)
	}
	return backends
}

// staysHeld says that the published ring stays as it is, whatever the weights are to be.
func (c *chooser) staysHeld(m membership) bool {
	return c.decision.Hold != nil && c.decision.Hold.Reason != v1alpha1.ReasonMovementBudget && weighted(m.kept) < minBackends(c.ring.Spec)
}

// released returns the members without those that are lost.
func (c *chooser) released() (membership, error) {
	spec := *c.ring.Spec.DeepCopy()
	spec.Membership.LeaveDelay = &metav1.Duration{}
	ring := *c.ring
	ring.Spec = spec
	m := planMembers(&ring, c.roster, c.base, c.composer.backend, c.now)
	hold, err := m.hold(spec, 0)
	if err == nil && hold != nil && hold.Reason != v1alpha1.ReasonSuddenLoss { // That is what was released.
		c.decision.Hold = hold
		m.backends = c.heldBackends(m)
	}
	return m, err
}

// planMembers decides with the clocks of the status, or with fresh ones for those that leave.
func (c *chooser) planMembers(fresh bool) membership {
	ring := *c.ring
	if fresh {
		ring.Status.Members = slices.DeleteFunc(slices.Clone(ring.Status.Members), func(m v1alpha1.MemberTransition) bool {
			return m.State == v1alpha1.MemberLeaving
		})
	}
	return planMembers(&ring, c.roster, c.base, c.composer.backend, c.now)
}

// wasHeld says that a loss was held until now.
func wasHeld(s v1alpha1.HashRingStatus) bool {
	return s.Hold != nil && (s.Hold.Reason == v1alpha1.ReasonSuddenLoss || s.Hold.Reason == v1alpha1.ReasonBelowMinimum)
}

// fromMembers returns the ring of members: under the published algorithm while a change of that waits.
func (c *chooser) fromMembers(m membership) (*Desired, error) {
	if err := c.enoughToBegin(m); err != nil {
		return nil, err
	}
	config := c.composer.config
	waits := c.base.exists() && c.base.config.Algorithm != config.Algorithm && c.ring.Spec.ChangePolicy != v1alpha1.ChangeImmediate
	if waits {
		config = c.underPublished(config)
	}
	config.Backends = m.backends
	desired, err := c.desired(config)
	if err != nil {
		return nil, err
	}
	wanted := desired
	desired, err = c.withinBudget(desired)
	if err != nil {
		return nil, err
	}
	c.decision.Members.Placed = c.decision.Hold == nil && desired == wanted
	c.load.Placed = desired == wanted && !c.staysHeld(m)
	desired.Warnings = append(c.coarseWeights(m.backends), desired.Warnings...)
	c.describePending(m, desired, config)
	if waits {
		if err := c.proposeAlgorithm(desired, m.backends); err != nil {
			c.decision.Refusal = asRefusal(err) // What is published is kept up to date all the same.
		}
	}
	return desired, nil
}

// enoughToBegin refuses a first ring of too few backends. Where they come from Services, they are likely to be on their way.
func (c *chooser) enoughToBegin(m membership) error {
	n, least := weighted(m.backends), minBackends(c.ring.Spec)
	if c.base.exists() || n >= least {
		return nil
	}
	refusal := &Refusal{Reason: v1alpha1.ReasonBelowMinimum, Waits: len(c.ring.Spec.BackendsFrom) > 0, Message: fmt.Sprintf(
		"%d backends of a weight above 0 are there, spec.membership.minBackends is %d", n, least)}
	if n == 0 {
		refusal.Reason = v1alpha1.ReasonNoBackends
		refusal.Message = fmt.Sprintf("%s: none of %d backends has a weight above 0", c.composer.field(), len(m.backends))
	}
	return refusal
}

func (c *chooser) desired(config ring.Config) (*Desired, error) {
	var previous []byte
	if c.seen.Published != nil {
		previous = c.seen.Published.Recipe
	}
	return c.composer.desired(c.builder, config, previous, c.roster, c.base, c.last)
}

// percentOf formats a number of positions as a part of the key space.
func percentOf(positions uint64) string {
	return decimal(float64(positions)/ring.KeySpace*100, 2) + "%"
}
