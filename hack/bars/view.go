// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"

	"github.com/ringwright/ringwright/internal/sixbyte"
	"github.com/ringwright/ringwright/pkg/ring"
)

// viewSlowdown returns how many times as long a look-up takes in the view of one backend in every few, or, where that is
// negative, of all but one in every few, as in a ring of those backends alone.
func viewSlowdown(every int) func() (float64, error) {
	return func() (float64, error) {
		c := backends(fleetBackends, 1, fleetPoints)
		alone := c
		alone.Backends, alone.Features = nil, nil
		for i := range c.Backends {
			c.Backends[i].Features = nil
			if every > 0 && i%every == 0 || every < 0 && i%-every != 0 {
				alone.Backends = append(alone.Backends, c.Backends[i])
				c.Backends[i].Features = c.Features
			}
		}
		r, err := ring.Build(c)
		if err != nil {
			return 0, err
		}
		v, err := r.View(c.Features...)
		if err != nil {
			return 0, err
		}
		separate, err := ring.Build(alone)
		if err != nil {
			return 0, err
		}
		x, y := uint32(1), uint32(1)
		inView := func(n int) error {
			for range n {
				owner, err := v.Owner(x)
				if err != nil {
					return err
				}
				x = sixbyte.Next(x, owner)
			}
			return nil
		}
		inSeparate := func(n int) error {
			for range n {
				owner, err := separate.Owner(y)
				if err != nil {
					return err
				}
				y = sixbyte.Next(y, owner)
			}
			return nil
		}
		return speedup(lookupRounds, lookupWay(inSeparate), lookupWay(inView))
	}
}

// viewsMemory returns what part of the memory of 32 separate rings of 6-byte points one ring with all their views takes.
func viewsMemory() (float64, error) {
	c := backends(fleetBackends, 1, fleetPoints)
	c.Features = nil
	for f := range features {
		c.Features = append(c.Features, fmt.Sprintf("f%d", f))
	}
	chance := rand.New(rand.NewPCG(1, 2))
	for i := range c.Backends {
		c.Backends[i].Features = nil
		for _, f := range c.Features {
			if chance.Float64() < 0.95 {
				c.Backends[i].Features = append(c.Backends[i].Features, f)
			}
		}
	}
	r, err := ring.Build(c)
	if err != nil {
		return 0, err
	}
	held, separate := r.HeldBytes(), 0
	for set := range 1 << features {
		var names []string
		for f, name := range c.Features {
			if set>>f&1 != 0 {
				names = append(names, name)
			}
		}
		v, err := r.View(names...)
		if err != nil {
			return 0, err
		}
		held += v.HeldBytes()
		separate += 6 * v.Len() * fleetPoints
	}
	return float64(held) / float64(separate), nil
}

// movement holds two rings of 2048 backends that differ in one, packed and as 6-byte points.
type movement struct {
	from, to       *ring.View
	plain, plainTo sixbyte.Ring
	index          []int
}

func newMovement() (*movement, error) {
	before, after := backends(fleetBackends, 1, fleetPoints), backends(fleetBackends+1, 1, fleetPoints)
	after.Backends = after.Backends[1:]
	m := &movement{plain: sixbyte.New(before), plainTo: sixbyte.New(after)}
	for i := range after.Backends {
		m.index = append(m.index, i+1)
	}
	m.index[len(m.index)-1] = -1
	var err error
	if m.from, err = wholeView(before); err != nil {
		return nil, err
	}
	m.to, err = wholeView(after)
	return m, err
}

func wholeView(c ring.Config) (*ring.View, error) {
	r, err := ring.Build(c)
	if err != nil {
		return nil, err
	}
	return r.View()
}

// movementSlowdown returns how many times as long Compare takes as a plain merge of two sorted arrays.
func movementSlowdown() (float64, error) {
	m, err := newMovement()
	if err != nil {
		return 0, err
	}
	var packed, plain uint64
	ratio, err := speedup(compareRounds,
		way{work: func() error { plain = sixbyte.Moved(m.plain, m.plainTo, m.index); return nil }},
		way{work: func() error { packed = ring.Compare(m.from, m.to).Total; return nil }})
	if err == nil && packed != plain {
		return 0, fmt.Errorf("%d positions move by Compare, %d by the merge", packed, plain)
	}
	return ratio, err
}

// movementMilliseconds returns how long the quickest of some comparisons took: the others waited for the machine.
func movementMilliseconds() (float64, error) {
	m, err := newMovement()
	if err != nil {
		return 0, err
	}
	runtime.GC()
	took, err := quickest(compareRounds, func() error { ring.Compare(m.from, m.to); return nil })
	return took.Seconds() * 1000, err
}
