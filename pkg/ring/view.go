// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"iter"
	"slices"
	"unsafe"
)

// View is a ring restricted to the backends that have all of a set of features. Under V1 and V2 it answers exactly as a ring
// built from those backends alone would, ties included; under V3 it leaves out what was trimmed for this set of features.
type View struct {
	ring *Ring
	// members are the placed backends of the view.
	members bitmap
	// size is how many there are, and zones in how many zones.
	size, zones int
	// points are searched: those of the ring, or a copy of the view's own.
	points *packed
	// whole says that every owner in points is a member, so that nothing needs to be looked up in members.
	whole bool
	// trimmed holds the positions in points that are left out; nil where none is.
	trimmed bitmap
}

// UnknownFeatureError says that a view was asked for with a feature that the ring does not declare.
type UnknownFeatureError struct {
	// Name is the feature that was asked for, Declared those that there are.
	Name     string
	Declared []string
}

// Error names the feature and those that the ring declares.
func (e *UnknownFeatureError) Error() string {
	if len(e.Declared) == 0 {
		return fmt.Sprintf("unknown feature %q: the ring declares none", e.Name)
	}
	return fmt.Sprintf("unknown feature %q: the ring declares %q", e.Name, e.Declared)
}

// View returns the view of the backends that have all the named features; without a name, of all backends. It is meant to be
// kept: it costs a bit for every backend and, under V3, a bit for every point where any is trimmed. A view of few points gets
// a copy of them, which takes the time to walk over the ring, while the copies of a ring's views take no more memory than
// half of its points; HeldBytes tells how much a view holds. The error is an [UnknownFeatureError].
func (r *Ring) View(features ...string) (*View, error) {
	v, err := r.TransientView(features...)
	if err == nil {
		v.materialise()
	}
	return v, err
}

// TransientView is [Ring.View] for a view that is not kept: it never copies points.
func (r *Ring) TransientView(features ...string) (*View, error) {
	v := &View{ring: r, members: slices.Clone(r.placed), points: &r.packed}
	set := uint64(0)
	for _, name := range features {
		f := slices.IndexFunc(r.features, func(f feature) bool { return f.name == name })
		if f < 0 {
			return nil, &UnknownFeatureError{Name: name, Declared: r.Features()}
		}
		v.members.and(r.features[f].members)
		set |= 1 << f
	}
	if d, ok := r.declared(set); ok && len(d.trims) > 0 {
		v.trimmed = newBitmap(r.PointCount())
		for _, pos := range d.trims {
			v.trimmed.set(int(pos))
		}
	}
	v.size, v.zones = v.members.count(), v.countZones()
	v.whole = v.size == r.placed.count()
	return v, nil
}

// HeldBytes returns how much memory the view takes beside its ring, in bytes.
func (v *View) HeldBytes() int {
	n := int(unsafe.Sizeof(*v)) + 8*(len(v.members)+len(v.trimmed))
	if v.points != &v.ring.packed {
		n += v.points.heldBytes()
	}
	return n
}

// holds says that the point at pos, of that owner, is one of the view.
func (v *View) holds(pos uint32, owner int) bool {
	return (v.whole || v.members.has(owner)) && (v.trimmed == nil || !v.trimmed.has(int(pos)))
}

// Len returns how many backends can own a key in this view: its members that have a point.
func (v *View) Len() int { return v.size }

// Has says whether backend i can own a key in this view.
func (v *View) Has(i int) bool { return v.members.has(i) }

// Owner returns the backend that owns the position hash in this view. The error is [ErrNoBackend] where the view has no
// point. It does not allocate; it passes over the points of other backends, so a view of one backend in k looks at about
// k points.
func (v *View) Owner(hash uint32) (int, error) {
	if v.size == 0 {
		return 0, ErrNoBackend
	}
	p := v.points
	pos, entry := p.find(hash)
	switch owner := int(entry & p.ownerMask); {
	case v.trimmed != nil:
		return v.firstHeld(pos), nil
	case v.whole:
		return owner, nil
	default:
		return v.firstMember(pos, owner), nil
	}
}

// firstHeld returns the owner of the first point from pos on that is one of the view.
func (v *View) firstHeld(pos uint32) int {
	for {
		if owner := v.points.owner(pos); v.holds(pos, owner) {
			return owner
		}
		pos = v.points.closed(pos + 1)
	}
}

// firstMember returns the owner of the first point from pos on that is a member's; owner is that of pos. Whether one is
// cannot be predicted, so two are looked at for each branch.
func (v *View) firstMember(pos uint32, owner int) int {
	p := v.points
	for {
		next := p.owner(pos + 1) // Behind the last point the first is repeated.
		is, nextIs := v.members.bit(owner), v.members.bit(next)
		if is|nextIs != 0 {
			return next ^ (owner^next)&-int(is)
		}
		if pos += 2; pos >= p.points {
			pos -= p.points
		}
		owner = p.owner(pos)
	}
}

// AppendOwners appends to dst up to n distinct backends of the view in ring order from hash on: the owner, then those
// that would own the key if the ones before were gone. Backends for which skip returns true are passed over; a nil skip
// passes over none. Fewer than n are appended where the view has no more. Up to 64 owners it allocates only to grow dst,
// beyond that as Successors does.
func (v *View) AppendOwners(dst []int, hash uint32, n int, skip func(backend int) bool) []int {
	if n > maxScanned {
		return v.appendMany(dst, hash, n, skip)
	}
	if v.size == 0 || n <= 0 {
		return dst
	}
	first := len(dst)
	// Few owners are compared with each other faster than a set of all backends is cleared.
	var passed [maxScanned]int
	skipped := 0
	p := v.points
	pos, _ := p.find(hash)
	for range p.points {
		owner := p.owner(pos)
		if v.holds(pos, owner) && !slices.Contains(dst[first:], owner) && !slices.Contains(passed[:skipped], owner) {
			switch {
			case skip == nil || !skip(owner):
				dst = append(dst, owner)
			case skipped < len(passed):
				passed[skipped] = owner
				skipped++
			default: // Too many to remember: it is asked about again.
			}
			if len(dst)-first == n || len(dst)-first+skipped == v.size {
				break
			}
		}
		if pos++; pos == p.points {
			pos = 0
		}
	}
	return dst
}

// maxScanned is up to how many owners are compared one by one.
const maxScanned = 64

func (v *View) appendMany(dst []int, hash uint32, n int, skip func(backend int) bool) []int {
	last := len(dst) + n
	for owner := range v.Successors(hash) {
		if skip != nil && skip(owner) {
			continue
		}
		if dst = append(dst, owner); len(dst) == last {
			break // Before the next one is looked for: it may be half a ring away.
		}
	}
	return dst
}

// seenOnStack is for how many backends [View.Successors] keeps what it has yielded on the stack.
const seenOnStack = 4096

// Successors yields every backend of the view once, in ring order from hash on. It allocates one bit a backend where the
// ring has more than 4096.
func (v *View) Successors(hash uint32) iter.Seq[int] {
	return func(yield func(int) bool) {
		if v.size == 0 {
			return
		}
		var buf [seenOnStack / 64]uint64
		seen := bitmap(buf[:])
		if v.ring.Len() > seenOnStack {
			seen = newBitmap(v.ring.Len())
		}
		p := v.points
		pos, _ := p.find(hash)
		for left := v.size; left > 0; {
			owner := p.owner(pos)
			if v.holds(pos, owner) && !seen.has(owner) {
				seen.set(owner)
				left--
				if !yield(owner) {
					return
				}
			}
			if pos++; pos == p.points {
				pos = 0
			}
		}
	}
}

// Points yields the owner of every position at which the ring has a point, in ring order from hash on, once around:
// backends repeat, and points that lose a tie are left out. It behaves as the node iterator of pingora-ketama does, save
// that it ends.
func (r *Ring) Points(hash uint32) iter.Seq[int] {
	return func(yield func(int) bool) {
		if r.packed.points == 0 {
			return
		}
		c := r.packed.cursorFrom(hash)
		var last point
		first := true
		for range r.packed.points {
			pos := c.position()
			p := c.next()
			if !first && p.hash() == last.hash() || r.all != nil && !r.all.holds(pos, p.backend()) {
				continue
			}
			last, first = p, false
			if !yield(p.backend()) {
				return
			}
		}
	}
}

// Ring returns the ring that the view restricts.
func (v *View) Ring() *Ring { return v.ring }
