// SPDX-License-Identifier: Apache-2.0

package ringclient

// Force says what a client uses instead of the split. It is for emergencies, and for one reader: the operator does not count it as
// one that follows.
type Force uint8

const (
	// ForceNone follows the split.
	ForceNone Force = iota
	// ForceStable gives every key to the stable ring.
	ForceStable
	// ForceCandidate gives every key to the candidate, where there is one.
	ForceCandidate
)

// String returns "stable", "candidate", or "" for ForceNone.
func (f Force) String() string {
	switch f {
	case ForceStable:
		return Stable.String()
	case ForceCandidate:
		return Candidate.String()
	default:
		return ""
	}
}

// SetForce makes all lookups from now on use what is given instead of the split, until it is set to ForceNone. States that were
// taken before do not change. The error is an [OptionError].
func (c *Client) SetForce(force Force) error {
	if _, err := (Options{Force: force}).complete(); err != nil {
		return err
	}
	c.swapping.Lock()
	defer c.swapping.Unlock()
	c.force = force
	if s := c.state.Load(); s != nil {
		c.state.Store(s.forced(force))
	}
	if force == ForceNone {
		c.options.Logger.Info("the split is followed")
	} else {
		c.options.Logger.Warn("the split is overridden", "force", force.String())
	}
	return nil
}
