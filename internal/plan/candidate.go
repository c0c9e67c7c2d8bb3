// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// Candidate is a ring that was built and waits.
type Candidate struct {
	Ring   *Ring
	Reason v1alpha1.ConditionReason
	// Declared is as in [Desired].
	Declared []string
	// Revision is the number that it would have, or has.
	Revision int64
	// Moved is how many positions of the key space it gives another owner.
	Moved uint64
	// Slot is where it is published, WeightLost the part of the published ring's weight that readers pass over meanwhile, in percent;
	// both "" where it is not.
	Slot       routing.Slot
	WeightLost string
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
		c.decision.Candidate = &Candidate{Ring: desired.Ring, Declared: desired.Declared, Reason: v1alpha1.ReasonMovementBudget, Moved: moved}
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
	c.decision.Candidate = &Candidate{Ring: proposed.Ring, Declared: proposed.Declared, Reason: v1alpha1.ReasonAlgorithmChanged, Moved: moved}
	return nil
}

// describePending says what those who wait will move.
func (c *chooser) describePending(m membership, desired *Desired, config ring.Config) {
	if m.next.IsZero() { // Nobody waits, or nobody knows for how long, because a source cannot be read.
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
