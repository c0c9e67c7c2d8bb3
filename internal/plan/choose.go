// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// Candidate is a ring that was built and waits.
type Candidate struct {
	Ring   *Ring
	Reason v1alpha1.ConditionReason
	// Revision is the number that it would have.
	Revision int64
	// Moved is how many positions of the key space it gives another owner.
	Moved uint64
}

// Members says who waits to join or to leave the ring.
type Members struct {
	// Clocks are the delays that run, Due those that are over: the status keeps these until the ring is published that they are
	// for. Both are in the order of the identities.
	Clocks, Due []v1alpha1.MemberTransition
	// Reference is how many backends the ring had before it lost some, After how many it will have.
	Reference, After int
	// Placed says that the desired ring has all of these members, so that whoever is due is on it, or off it.
	Placed bool
	// Next is when the first delay is over; the zero time where none runs.
	Next time.Time
	// PendingMoved is how many positions of the key space have another owner once all delays are over; nil where none runs, or
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
	// last is the routing file that is published.
	last routing.File
}

// choose returns the ring that is to be published, and writes down in d why it is that one. It is nil where nothing is to be
// published or kept up to date: then there is a refusal.
func choose(d *Decision, r *v1alpha1.HashRing, b Builder, seen Observation, now time.Time) *Desired {
	c := &chooser{ring: r, builder: b, seen: seen, now: now, decision: d, base: readBase(seen.Published), last: lastRouting(seen)}
	if c.base.exists() && c.base.config.Identity != identities[r.Spec.Identity] {
		// A HashRing of this name was deleted and made again. The same backends have other names there: nothing can be compared.
		c.base, c.seen.Published = nil, nil
	}
	c.roster = takeRoster(r.Spec, seen.Sources)
	d.Problems = c.roster.problems
	desired, err := c.choose()
	if err != nil {
		d.Refusal = asRefusal(err)
		return c.lastGood()
	}
	return desired
}

func (c *chooser) choose() (*Desired, error) {
	var err error
	if c.ring.Spec.PinnedRevision != nil {
		return c.pinned()
	}
	if c.composer, err = newComposer(c.ring.Spec); err != nil {
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
	if weighted(m.kept) >= minBackends(c.ring.Spec) {
		return m.kept
	}
	backends := slices.Clone(c.base.backends())
	for i := range backends {
		backends[i].Features = c.base.featuresOf(backends[i], c.ring.Spec)
	}
	return backends
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

// underPublished returns config with the algorithm of the published ring, and the views that are left of that.
func (c *chooser) underPublished(config ring.Config) ring.Config {
	config.Algorithm, config.Views, config.MaxPoints = c.base.config.Algorithm, nil, maxPoints(c.base.config.Algorithm.Version)
	for _, view := range c.base.config.Views {
		if !slices.ContainsFunc(view, func(name string) bool { return !slices.Contains(config.Features, name) }) {
			config.Views = append(config.Views, view)
		}
	}
	return config
}

func (c *chooser) desired(config ring.Config) (*Desired, error) {
	var previous []byte
	if c.seen.Published != nil {
		previous = c.seen.Published.Recipe
	}
	return c.composer.desired(c.builder, config, previous, c.roster, c.base, c.last)
}

// withinBudget returns desired, or where it moves more than spec.membership.maxMovement allows, the published ring with
// desired as the candidate.
func (c *chooser) withinBudget(desired *Desired) (*Desired, error) {
	if !c.base.exists() || desired.Ring.Digest() == c.seen.Published.Digest {
		return desired, nil
	}
	budget := c.ring.Spec.Membership.MaxMovement
	limited := budget != "" && c.ring.Spec.ChangePolicy != v1alpha1.ChangeImmediate
	limit, err := parsePercent("spec.membership.maxMovement", budget, "100%")
	if err != nil {
		return nil, err
	}
	before, err := c.rebuild(c.seen.Published)
	if err != nil || !limited && before.PointCount()+desired.Ring.PointCount() > maxCasualPoints {
		return desired, nil //nolint:nilerr // What cannot be built again cannot be kept either.
	}
	moved, err := c.builder.Movement(before, desired.Ring)
	if err != nil {
		return nil, err
	}
	worst, view := moved, []string(nil)
	if limited {
		if worst, view, err = c.builder.WorstMovement(before, desired.Ring); err != nil {
			return nil, err
		}
	}
	if limited && worst*million > uint64(limit)*ring.KeySpace {
		c.decision.Candidate = &Candidate{Ring: desired.Ring, Reason: v1alpha1.ReasonMovementBudget, Moved: moved}
		if c.decision.Hold == nil { // A loss is what somebody has to look at first.
			c.decision.Hold = &Hold{
				Reason: v1alpha1.ReasonMovementBudget, Blocks: true,
				Message: fmt.Sprintf("the change would move %s of the key space%s, more than spec.membership.maxMovement %s: it is the candidate; a higher maxMovement or changePolicy Immediate lets it through",
					percentOf(worst), inView(view), budget),
			}
		}
		return c.keep(c.seen.Published)
	}
	c.decision.Moved = &moved
	return desired, nil
}

func inView(features []string) string {
	if len(features) == 0 {
		return ""
	}
	return " in the view of " + strings.Join(features, ",")
}

// proposeAlgorithm makes the ring under the algorithm of spec the candidate.
func (c *chooser) proposeAlgorithm(active *Desired, backends []ring.Backend) error {
	config := c.composer.config
	config.Backends = backends
	proposed, err := c.desired(config)
	if err != nil {
		return err
	}
	moved, err := c.builder.Movement(active.Ring, proposed.Ring)
	if err != nil {
		return err
	}
	if hold := c.decision.Hold; hold != nil && hold.Reason == v1alpha1.ReasonMovementBudget {
		hold.Message = fmt.Sprintf("beside the change of algorithm, the change of backends or features would move more of the key space than spec.membership.maxMovement %s: both are the candidate",
			c.ring.Spec.Membership.MaxMovement)
	}
	c.decision.Candidate = &Candidate{Ring: proposed.Ring, Reason: v1alpha1.ReasonAlgorithmChanged, Moved: moved}
	return nil
}

// describePending says what those who wait will move.
func (c *chooser) describePending(m membership, desired *Desired, config ring.Config) {
	if len(m.clocks) == 0 {
		return
	}
	config.Backends = m.eventual
	eventual, err := c.desired(config)
	if err != nil || eventual.Ring.PointCount()+desired.Ring.PointCount() > maxCasualPoints {
		return
	}
	if moved, err := c.builder.Movement(desired.Ring, eventual.Ring); err == nil {
		c.decision.Members.PendingMoved = &moved
	}
}

// pinned returns the ring of spec.pinnedRevision.
func (c *chooser) pinned() (*Desired, error) {
	pinned, record := *c.ring.Spec.PinnedRevision, c.seen.Pinned
	if last, digest := lastPublished(c.ring.Status, c.seen); record == nil && last == pinned && c.seen.Published != nil && c.seen.Published.Digest == digest {
		record = c.seen.Published // Its record is written again.
	}
	if record == nil {
		return nil, refusef(v1alpha1.ReasonRevisionNotFound, "spec.pinnedRevision %d is not kept; revisions that are: %s", pinned, c.kept())
	}
	if config, err := ring.ReadConfig(record.Recipe); err == nil && config.Identity != identities[c.ring.Spec.Identity] {
		return nil, refusef(v1alpha1.ReasonRevisionNotFound, "spec.pinnedRevision %d was published with another identity than spec.identity %s",
			pinned, c.ring.Spec.Identity)
	}
	desired, err := c.keep(record)
	if err != nil {
		return nil, fmt.Errorf("building revision %d again: %w", pinned, err)
	}
	c.decision.Hold = &Hold{
		Reason: v1alpha1.ReasonPinned, Blocks: true,
		Message: fmt.Sprintf("spec.pinnedRevision says that revision %d is published, whatever the rest of spec asks for", pinned),
	}
	return desired, nil
}

// kept lists the revisions of the history.
func (c *chooser) kept() string {
	var list []string
	for _, o := range c.seen.History {
		if o.Holder == Ours {
			list = append(list, strconv.FormatInt(o.Revision, 10))
		}
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// lastGood returns the published ring where spec is refused: what was edited or deleted is restored, and who is down, and where
// backends are dialled, stays up to date. It is nil where there is none, or nothing is left to write it from.
func (c *chooser) lastGood() *Desired {
	_, digest := lastPublished(c.ring.Status, c.seen)
	if c.seen.Published == nil || c.seen.Published.Digest != digest {
		return nil
	}
	desired, err := c.keep(c.seen.Published)
	if err != nil {
		return nil
	}
	return desired
}

// keep returns a ring that was published before, to be published as it was. Who is down, and where backends are dialled, is
// as it is now.
func (c *chooser) keep(p *Published) (*Desired, error) {
	built, err := c.rebuild(p)
	if err != nil {
		return nil, err
	}
	config, err := ring.ReadConfig(p.Recipe)
	if err != nil {
		return nil, err
	}
	d := &Desired{
		Ring: built, Drained: len(config.Backends) - weighted(config.Backends), Declared: p.Declared,
		Chunks: max(chunks(c.ring.Spec), len(built.Chunks())),
	}
	d.Addresses, d.Down = dialled(c.ring.Spec, c.roster, c.base, c.last, idsOf(config.Backends))
	return d, nil
}

// rebuild returns a ring that was published before, byte for byte.
func (c *chooser) rebuild(p *Published) (*Ring, error) {
	return c.builder.Build(Request{
		Recipe: p.Recipe, Encoding: p.encoding(), Chunks: v1alpha1.MaxChunks, Config: ring.Config{MaxPoints: MaxPoints},
	})
}

// lastRouting returns the routing file that is published, if nobody has edited it.
func lastRouting(seen Observation) routing.File {
	if !seen.Routing.intact() {
		return routing.File{}
	}
	file, err := routing.Parse([]byte(seen.Routing.Text))
	if err != nil {
		return routing.File{}
	}
	return file
}

// percentOf formats a number of positions as a part of the key space.
func percentOf(positions uint64) string {
	return decimal(float64(positions)/ring.KeySpace*100, 2) + "%"
}
