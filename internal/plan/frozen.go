// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// Frozen says that what is published stays as it is until a RingMigration is over.
type Frozen struct {
	// Holder is the name of the RingMigration; "" where none has the lock, and a candidate is published all the same.
	Holder string
	// Paired says that a candidate is published.
	Paired bool
	// Waits are the changes that spec asks for beyond what is published.
	Waits []string
}

// course is what is published while that is frozen.
type course struct {
	// stable is the ring that answers, in slot; candidate is in the other one, and nil for none.
	stable    *Published
	slot      routing.Slot
	candidate *Beside
	// keepsOther is as in [Desired].
	keepsOther bool
}

// frozen says that what is published stays as it is: a RingMigration has gone beyond taking the lock, or a candidate was left published.
func (c *chooser) frozen() bool {
	switch lock := c.ring.Status.Migration; {
	case !c.base.exists():
		return false
	case lock == nil:
		return c.pair != nil && !c.abandoned()
	default:
		return lock.Phase != v1alpha1.LockLocked
	}
}

// abandoned says that spec asks for the algorithm of the published ring again, while nobody has the lock who could take the candidate
// back.
func (c *chooser) abandoned() bool {
	composer, err := newComposer(c.ring.Spec)
	if err != nil || composer.config.Algorithm != c.base.config.Algorithm {
		return false
	}
	candidate := c.seen.Kept[c.pair.candidate.Digest]
	if candidate == nil {
		return true
	}
	config, err := ring.ReadConfig(candidate.Recipe)
	return err == nil && config.Algorithm != c.base.config.Algorithm
}

// freeze returns what is published while that is frozen: nil where it cannot be found again. The decision then says why.
func (c *chooser) freeze() *Desired {
	c.wanted = c.wantedMembers()
	course, err := c.course()
	var desired *Desired
	if err == nil {
		desired, err = c.carry(course)
	}
	if err == nil {
		err = c.describeFrozen(course, desired)
	}
	if err != nil {
		c.decision.Refusal = asRefusal(err)
	}
	return desired
}

// wantedMembers returns who is on the ring that spec asks for. It is nil, and there is a refusal, where spec asks for none. Delays run,
// and those that are over stay so: nobody joins or leaves a ring that is frozen.
func (c *chooser) wantedMembers() *membership {
	if pinned := c.ring.Spec.PinnedRevision; pinned != nil {
		c.decision.Refusal = &Refusal{Reason: v1alpha1.ReasonMigrationInProgress, Message: fmt.Sprintf(
			"spec.pinnedRevision %d: %s, and both rings stay as they are; roll the migration back first", *pinned, c.holder())}
		return nil
	}
	var members membership
	composer, err := c.newComposer()
	if err == nil {
		c.composer = composer
		members, err = c.members()
	}
	if err != nil {
		c.decision.Refusal = asRefusal(err)
		return nil
	}
	c.decision.Members = &Members{
		Clocks: members.clocks, Due: members.due, Reference: members.reference, After: weighted(members.backends), Next: members.next,
	}
	return &members
}

// holder says who has frozen the ring.
func (c *chooser) holder() string {
	if lock := c.ring.Status.Migration; lock != nil {
		return fmt.Sprintf("RingMigration %s has the ring", lock.Name)
	}
	return "a candidate is published, and no RingMigration has the ring"
}

// course returns what is to be published. What a RingMigration asks for and cannot be found is not published, and what is stays.
func (c *chooser) course() (course, error) {
	_, digest := lastPublished(c.ring.Status, c.seen)
	last := course{stable: c.seen.Published, slot: c.slot}
	if last.stable.Digest != digest {
		return last, refusef(v1alpha1.ReasonRevisionNotFound, "%s, and the published ring %s is kept nowhere any more", c.holder(), digest)
	}
	lock := c.ring.Status.Migration
	switch {
	case lock == nil:
		return c.asPublished(last)
	case lock.Phase == v1alpha1.LockSplit:
		return c.split(last, lock)
	default:
		return c.promoted(last, lock)
	}
}

// asPublished adds the candidate that is published.
func (c *chooser) asPublished(last course) (course, error) {
	if c.pair == nil {
		return last, nil
	}
	last.candidate = c.keptRing(c.pair.candidate.Digest)
	if last.candidate == nil {
		return last, refusef(v1alpha1.ReasonRevisionNotFound, "%s, and its candidate %s is kept nowhere any more: it can only go back",
			c.holder(), c.pair.candidate.Digest)
	}
	last.candidate.Split = c.pair.split
	return last, nil
}

// keptRing returns the ring of a digest; nil where it is not kept.
func (c *chooser) keptRing(digest string) *Beside {
	published := c.seen.Kept[digest]
	if published == nil {
		return nil
	}
	config, err := ring.ReadConfig(published.Recipe)
	if err != nil || config.Identity != identities[c.ring.Spec.Identity] {
		return nil
	}
	built, err := c.rebuild(published)
	if err != nil || built.Digest() != digest {
		return nil
	}
	return &Beside{Ring: built, Declared: published.Declared}
}

// split returns both rings of a lock and its split: the candidate is one that is kept, or the one that spec gives now.
func (c *chooser) split(last course, lock *v1alpha1.RingLock) (course, error) {
	var candidate *Beside
	if lock.Candidate != last.stable.Digest {
		candidate = c.keptRing(lock.Candidate)
	}
	if candidate == nil && c.wanted != nil {
		candidate = c.propose(*c.wanted, lock.Candidate)
	}
	if candidate == nil && noShare(lock) { // A rollback asks for that. It must not wait for a ring that no key needs.
		return last, nil
	}
	if candidate == nil {
		return c.asPublished(last)
	}
	if n, limit := len(candidate.Ring.Chunks()), chunks(c.ring.Spec); n > limit && !c.isPublished(lock.Candidate) {
		c.decision.Refusal = &Refusal{Reason: v1alpha1.ReasonSnapshotTooLarge, Message: fmt.Sprintf(
			"the candidate that RingMigration %s goes to takes %d ConfigMaps, spec.publication.chunks allows %d for each slot", lock.Name, n, limit)}
		return c.asPublished(last)
	}
	candidate.Split = splitOf(lock)
	last.candidate = candidate
	return last, nil
}

// noShare says that a lock sends no key to the candidate.
func noShare(lock *v1alpha1.RingLock) bool {
	return !slices.ContainsFunc(lock.Split, func(share v1alpha1.DatacenterShare) bool { return share.BasisPoints > 0 })
}

func (c *chooser) isPublished(candidate string) bool {
	return c.pair != nil && c.pair.candidate.Digest == candidate
}

// propose builds the candidate that spec gives now, and returns it if it has the digest. If nothing is published beside the ring, it is
// what a RingMigration can take.
func (c *chooser) propose(wanted membership, digest string) *Beside {
	scratch, decision := *c, Decision{Members: &Members{}}
	scratch.decision = &decision
	if _, err := scratch.fromMembers(wanted); err != nil || decision.Refusal != nil {
		return nil // The RingMigration goes back, and then it is said.
	}
	proposed := decision.Candidate
	if c.pair == nil {
		c.decision.Candidate = proposed
	}
	if proposed == nil || proposed.Ring.Digest() != digest {
		return nil
	}
	return &Beside{Ring: proposed.Ring, Declared: proposed.Declared}
}

// splitOf translates the split of a lock. Of two shares of a datacenter, which nobody writes, the lower one counts.
func splitOf(lock *v1alpha1.RingLock) *routing.Split {
	split := &routing.Split{Seed: uint32(lock.Seed), BasisPoints: make(map[string]int, len(lock.Split))}
	for _, share := range lock.Split {
		points := int(share.BasisPoints)
		if known, twice := split.BasisPoints[share.Datacenter]; twice {
			points = min(points, known)
		}
		split.BasisPoints[share.Datacenter] = points
	}
	return split
}

// promoted returns the candidate of a lock as the ring that answers, if it is that or the published candidate.
func (c *chooser) promoted(last course, lock *v1alpha1.RingLock) (course, error) {
	last.keepsOther = lock.Phase != v1alpha1.LockRetired
	switch {
	case last.stable.Digest == lock.Candidate:
		return last, nil
	case !c.isPublished(lock.Candidate):
		return c.asPublished(last)
	}
	if c.keptRing(lock.Candidate) == nil {
		return c.asPublished(last)
	}
	last.stable, last.slot = c.seen.Kept[lock.Candidate], c.pair.candidate.Slot
	return last, nil
}

// carry returns how a course is published.
func (c *chooser) carry(course course) (*Desired, error) {
	d, err := c.keep(course.stable)
	if err != nil {
		return nil, err
	}
	d.Slot, d.Candidate, d.KeepsOther = course.slot, course.candidate, course.keepsOther
	configs := []ring.Config{}
	stable, err := ring.ReadConfig(course.stable.Recipe)
	if err != nil {
		return nil, err
	}
	configs = append(configs, stable)
	if d.Candidate != nil {
		candidate, err := ring.ReadConfig(d.Candidate.Ring.Recipe())
		if err != nil {
			return nil, err
		}
		configs = append(configs, candidate)
		d.Chunks = max(d.Chunks, len(d.Candidate.Ring.Chunks()))
	}
	d.Addresses, d.Down = c.dialledOf(configs)
	return d, nil
}

// dialledOf returns where the backends of rings that are frozen are dialled, and which are down: beside those that cannot serve, those
// that spec has taken out or drained, because no ring without them follows. The last ring says who was on it when it was made: what that
// lacks is none that has left since.
func (c *chooser) dialledOf(configs []ring.Config) (map[string]string, []string) {
	var ids []string
	for _, config := range configs {
		ids = append(ids, idsOf(config.Backends)...)
	}
	slices.Sort(ids)
	addresses, down := dialled(c.ring.Spec, c.roster, c.base, c.last, slices.Compact(ids))
	if c.decision.Hold != nil || c.wanted == nil { // Then nobody is removed either.
		return addresses, down
	}
	for _, b := range configs[len(configs)-1].Backends {
		if b.Weight > 0 && c.isOut(b.ID) {
			down = append(down, b.ID)
		}
	}
	slices.Sort(down)
	return maps.Clone(addresses), slices.Compact(down)
}

// isOut says that neither spec nor a source has a backend any more, or that its weight is 0 there.
func (c *chooser) isOut(id string) bool {
	m := c.roster.find(id)
	if m == nil {
		return !c.roster.unread()
	}
	return !m.unknown && !m.badWeight && weight(m.backend) == 0
}
