// SPDX-License-Identifier: Apache-2.0

package ringclient

import (
	"maps"
	"sync/atomic"

	"github.com/ringwright/ringwright/pkg/ring"
)

// MaxCachedViews is how many views of one ring are kept, beside that of all backends. A lookup in a view beyond that
// builds the view for itself: it answers the same and costs a bit for every backend, with V3 a bit for every point.
const MaxCachedViews = 256

// A set of features is one word, a bit for each.
const _ = uint(64 - ring.MaxFeatures)

// viewCache keeps the views of a ring by their sets of features. Reading it takes no lock: a view that is added replaces
// the whole map, which happens at most MaxCachedViews times.
type viewCache struct {
	ring  *ring.Ring
	names []string
	// bits gives the position of each name in names.
	bits  map[string]uint
	whole *ring.View
	kept  atomic.Pointer[map[uint64]*ring.View]
}

func newViewCache(r *ring.Ring) (*viewCache, error) {
	whole, err := r.View()
	if err != nil {
		return nil, err
	}
	c := &viewCache{ring: r, names: r.Features(), bits: make(map[string]uint), whole: whole}
	for i, name := range c.names {
		c.bits[name] = uint(i)
	}
	c.kept.Store(&map[uint64]*ring.View{})
	return c, nil
}

// view returns the view of the backends that have all the features, in any order, repeated or not. The error is a
// [ring.UnknownFeatureError]. It does not allocate for a view that is kept.
func (c *viewCache) view(features []string) (*ring.View, error) {
	var set uint64
	for _, name := range features {
		bit, declared := c.bits[name]
		if !declared {
			return nil, &ring.UnknownFeatureError{Name: name, Declared: c.ring.Features()}
		}
		set |= 1 << bit
	}
	if set == 0 {
		return c.whole, nil
	}
	if v, found := (*c.kept.Load())[set]; found {
		return v, nil
	}
	return c.build(set)
}

// build returns a new view and keeps it where there is room.
func (c *viewCache) build(set uint64) (*ring.View, error) {
	var features []string
	for i, name := range c.names {
		if set>>i&1 != 0 {
			features = append(features, name)
		}
	}
	view := c.ring.View
	if len(*c.kept.Load()) >= MaxCachedViews {
		view = c.ring.TransientView
	}
	built, err := view(features...)
	if err != nil {
		return nil, err
	}
	for {
		kept := c.kept.Load()
		if other, found := (*kept)[set]; found {
			return other, nil
		}
		if len(*kept) >= MaxCachedViews {
			return built, nil
		}
		next := maps.Clone(*kept)
		next[set] = built
		if c.kept.CompareAndSwap(kept, &next) {
			return built, nil
		}
	}
}

// warm builds the views that another ring's cache keeps, so that the first lookups in them do not have to. What this ring does not
// declare is left out.
func (c *viewCache) warm(from *viewCache) {
	for set := range *from.kept.Load() {
		var features []string
		for i, name := range from.names {
			if set>>i&1 != 0 {
				features = append(features, name)
			}
		}
		_, _ = c.view(features) // A feature that is gone is told to those who ask for it.
	}
}

// bytes returns how much memory the views take.
func (c *viewCache) bytes() int64 {
	n := c.whole.HeldBytes()
	for _, v := range *c.kept.Load() {
		n += v.HeldBytes()
	}
	return int64(n)
}
