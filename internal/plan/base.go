// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
)

// baseRing is the ring that is published, without its points. A nil one is no ring.
type baseRing struct {
	published *Published
	config    ring.Config
	index     map[string]int
}

// readBase reads what is published; nil where nothing is, or nothing that can be read.
func readBase(published *Published) *baseRing {
	if published == nil {
		return nil
	}
	config, err := ring.ReadConfig(published.Recipe)
	if err != nil {
		return nil
	}
	base := &baseRing{published: published, config: config, index: make(map[string]int, len(config.Backends))}
	for i, b := range config.Backends {
		base.index[b.ID] = i
	}
	return base
}

func (b *baseRing) exists() bool { return b != nil }

func (b *baseRing) backends() []ring.Backend {
	if b == nil {
		return nil
	}
	return b.config.Backends
}

func (b *baseRing) placed() int { return weighted(b.backends()) }

// declared says that a backend was published because spec.backends had it.
func (b *baseRing) declared(id string) bool {
	_, found := slices.BinarySearch(b.published.Declared, id)
	return found
}

// featuresOf returns the features of a published backend that spec still has.
func (b *baseRing) featuresOf(backend ring.Backend, spec v1alpha1.HashRingSpec) []string {
	var list []string
	for _, name := range backend.Features {
		if slices.ContainsFunc(spec.Features, func(f v1alpha1.Feature) bool { return f.Name == name }) {
			list = append(list, name)
		}
	}
	return list
}

func (b *baseRing) find(id string) (ring.Backend, bool) {
	if b == nil {
		return ring.Backend{}, false
	}
	i, ok := b.index[id]
	if !ok {
		return ring.Backend{}, false
	}
	return b.config.Backends[i], true
}
