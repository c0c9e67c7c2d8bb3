// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// DefaultLeaveDelay is spec.membership.leaveDelay where spec does not set it; the schema has the same default.
const DefaultLeaveDelay = 5 * time.Minute

// membership is who is on the ring and who waits to come or to go.
//
// Its state is what is published and the clocks in the status: nothing is kept in memory, so that a restart changes nothing.
type membership struct {
	// backends are those that the ring is to have, if nothing holds it.
	backends []ring.Backend
	// kept are the same, without the removal of any.
	kept []ring.Backend
	// eventual are those that it will have once all delays are over.
	eventual []ring.Backend
	// clocks are the delays that run, due those that are over, both in the order of the identities.
	clocks, due []v1alpha1.MemberTransition
	// next is when the first of them is over; the zero time where none runs.
	next time.Time
	// lost are the backends with a weight, there and on the published ring, that are gone, do not serve or are no longer declared, sorted;
	// undeclared is how many of them are the latter.
	lost       []string
	undeclared int
	// drained are those that the published ring has with a weight and that have none any more.
	drained []string
	// placed is how many backends of the published ring have a weight.
	placed int
	// reference is how many backends the ring had before it lost some: what spec.membership.maxRemoved is a part of.
	reference int
	// removes says that backends lacks one that kept has.
	removes bool
}

// clockReader takes the time of one pass over the members.
type clockReader struct {
	known map[string]v1alpha1.MemberTransition
	now   time.Time
	list  []v1alpha1.MemberTransition
	due   []v1alpha1.MemberTransition
	next  time.Time
	// joining is how many clocks of backends that join were looked at.
	joining int
}

// over says whether the delay of a backend is over. Its clock is kept or started; of those that join, which are asked for in the order
// of their identities, [MaxBackends] have one: more cannot be on a ring, and the status has no room for more.
func (c *clockReader) over(id string, state v1alpha1.MemberState, delay time.Duration) bool {
	if state == v1alpha1.MemberJoining && delay > 0 {
		if c.joining++; c.joining > MaxBackends {
			return false
		}
	}
	clock, ok := c.known[id]
	if !ok || clock.State != state || clock.Since.After(c.now) { // One of a clock that is ahead tells nothing.
		clock = v1alpha1.MemberTransition{ID: id, State: state, Since: metav1.NewMicroTime(c.now.Truncate(time.Microsecond))}
	}
	due := clock.Since.Add(delay)
	if !due.After(c.now) {
		if delay > 0 {
			c.due = append(c.due, clock)
		}
		return true
	}
	c.list = append(c.list, clock)
	if c.next.IsZero() || due.Before(c.next) {
		c.next = due
	}
	return false
}

func sorted(clocks []v1alpha1.MemberTransition) []v1alpha1.MemberTransition {
	slices.SortFunc(clocks, func(a, b v1alpha1.MemberTransition) int { return strings.Compare(a.ID, b.ID) })
	return clocks
}

// setReference finds out what a loss is measured against. It is the largest number of backends that served since the first of
// the present losses, so that pods which replace others make up for them; a removal that was carried out lowers it. It is kept in
// the status; where that was lost, all that are on the ring count.
func (m *membership) setReference(last *v1alpha1.BackendCounts) {
	kept := weighted(m.kept)
	m.reference = kept
	if last != nil && last.Reference > 0 {
		m.reference = min(max(int(last.Reference), m.left()), kept)
	}
}

// left is how many backends serve.
func (m *membership) left() int { return weighted(m.kept) - len(m.lost) }

// memberPlanner decides on each backend in turn.
type memberPlanner struct {
	spec    v1alpha1.HashRingSpec
	roster  roster
	base    *baseRing
	compose func(v1alpha1.Backend) ring.Backend
	clocks  *clockReader
	out     membership
}

// planMembers decides who is to be placed.
func planMembers(r *v1alpha1.HashRing, all roster, base *baseRing, compose func(v1alpha1.Backend) ring.Backend, now time.Time) membership {
	clocks := &clockReader{now: now, known: make(map[string]v1alpha1.MemberTransition, len(r.Status.Members))}
	for _, clock := range r.Status.Members {
		clocks.known[clock.ID] = clock
	}
	p := memberPlanner{spec: r.Spec, roster: all, base: base, compose: compose, clocks: clocks}
	for i := range all.members {
		p.present(&all.members[i])
	}
	for _, b := range base.backends() {
		if all.find(b.ID) == nil {
			p.absent(b)
		}
	}
	out := p.out
	out.clocks, out.due, out.next, out.placed = sorted(clocks.list), sorted(clocks.due), clocks.next, base.placed()
	out.setReference(r.Status.Backends)
	slices.Sort(out.lost)
	slices.Sort(out.drained)
	return out
}

// present decides on a backend that spec or a source has.
func (p *memberPlanner) present(m *member) {
	b := p.compose(m.backend)
	published, placed := p.base.find(b.ID)
	if placed && m.unknown { // A pod that is not known yet must not cost the backend its features.
		b.Weight, b.Features, b.Zone = published.Weight, p.base.featuresOf(published, p.spec), published.Zone
	}
	if placed && m.badWeight {
		b.Weight = published.Weight
	}
	if placed && published.Weight > 0 && b.Weight == 0 {
		p.out.drained = append(p.out.drained, b.ID)
	}
	switch {
	case m.declared || placed && m.health == ready:
		p.stays(b)
	case placed && p.roster.unread():
		p.waits(b, published.Weight > 0 && b.Weight > 0)
	case placed:
		p.leaves(b, published.Weight > 0 && b.Weight > 0) // One that is drained at the same time is no loss.
	case m.health == ready && !m.unknown && !m.otherFamily:
		p.joins(b)
	}
}

// absent decides on a backend of the published ring that neither spec nor a source has any more.
func (p *memberPlanner) absent(published ring.Backend) {
	b := published
	b.Features = p.base.featuresOf(published, p.spec)
	switch {
	case p.base.declared(b.ID) || len(p.spec.BackendsFrom) == 0: // Somebody took it out of spec.
		p.goes(b, published.Weight > 0)
		if published.Weight > 0 {
			p.out.undeclared++
		}
	case p.roster.unread():
		p.waits(b, published.Weight > 0)
	default:
		p.leaves(b, published.Weight > 0)
	}
}

func (p *memberPlanner) stays(b ring.Backend) {
	p.out.backends = append(p.out.backends, b)
	p.out.kept = append(p.out.kept, b)
	p.out.eventual = append(p.out.eventual, b)
}

// waits keeps a backend while a source cannot be read as it was when all could: on the ring, and lost where it was. Its delay ends
// at the earliest when they can be read again.
func (p *memberPlanner) waits(b ring.Backend, weighs bool) {
	p.stays(b)
	clock, ok := p.clocks.known[b.ID]
	if !ok || clock.State != v1alpha1.MemberLeaving {
		return
	}
	p.clocks.list = append(p.clocks.list, clock)
	if weighs {
		p.out.lost = append(p.out.lost, b.ID)
	}
}

// goes removes a backend now.
func (p *memberPlanner) goes(b ring.Backend, weighs bool) {
	if weighs {
		p.out.lost = append(p.out.lost, b.ID)
	}
	p.out.kept = append(p.out.kept, b)
	p.out.removes = true
}

func (p *memberPlanner) leaves(b ring.Backend, weighs bool) {
	if p.clocks.over(b.ID, v1alpha1.MemberLeaving, leaveDelay(p.spec)) {
		p.goes(b, weighs)
		return
	}
	if weighs {
		p.out.lost = append(p.out.lost, b.ID)
	}
	p.out.kept = append(p.out.kept, b)
	p.out.backends = append(p.out.backends, b)
}

func (p *memberPlanner) joins(b ring.Backend) {
	if !p.base.exists() || p.clocks.over(b.ID, v1alpha1.MemberJoining, joinDelay(p.spec)) {
		p.stays(b)
		return
	}
	p.out.eventual = append(p.out.eventual, b)
}

func leaveDelay(spec v1alpha1.HashRingSpec) time.Duration {
	if spec.Membership.LeaveDelay == nil {
		return DefaultLeaveDelay
	}
	return spec.Membership.LeaveDelay.Duration
}

func joinDelay(spec v1alpha1.HashRingSpec) time.Duration {
	if spec.Membership.JoinDelay == nil {
		return 0
	}
	return spec.Membership.JoinDelay.Duration
}

// weighted returns how many of the backends own keys.
func weighted(backends []ring.Backend) int {
	n := 0
	for _, b := range backends {
		if b.Weight > 0 {
			n++
		}
	}
	return n
}

// dialled returns what routing.json says of the backends of a ring: where those whose identity is a name are dialled, and
// which are down. An address that nobody knows any more is the one that was published last.
func dialled(spec v1alpha1.HashRingSpec, all roster, base *baseRing, last routing.File, ids []string) (addresses map[string]string, down []string) {
	named := spec.Identity == v1alpha1.IdentityName
	addresses = map[string]string{}
	for _, id := range ids {
		m := all.find(id)
		address := last.Addresses[id]
		if m != nil {
			address = dialAddress(m.backend)
		}
		if named && address != "" {
			addresses[id] = address
		}
		gone := m == nil && len(spec.BackendsFrom) > 0 && !all.unread()
		undeclared := gone && base.exists() && base.declared(id) // It may run all the same, and is on the ring because it is held.
		if m == nil && all.unread() {                            // Whoever was down still is, as far as anybody knows.
			gone = slices.Contains(last.Down, id)
		}
		if gone && !undeclared || m != nil && m.health == notServing || named && address == "" {
			down = append(down, id)
		}
	}
	slices.Sort(down)
	if len(addresses) == 0 {
		addresses = nil
	}
	return maps.Clone(addresses), down
}

// declaredIDs returns the sorted identities of spec.backends where there are sources beside them, so that the one that is
// taken out of spec is told from the endpoint that is gone. One that was taken out and is on the ring all the same, because that is held,
// is still one of them.
func declaredIDs(spec v1alpha1.HashRingSpec, all roster, base *baseRing, onRing []string) []string {
	if len(spec.BackendsFrom) == 0 {
		return nil
	}
	var ids []string
	for _, b := range spec.Backends {
		ids = append(ids, identity(spec.Identity, b))
	}
	for _, id := range onRing {
		if base.exists() && base.declared(id) && all.find(id) == nil {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, cmp.Compare)
	return ids
}
