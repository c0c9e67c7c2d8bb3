// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

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
