// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"

	"github.com/ringwright/ringwright/pkg/ring"
)

// refPoint and refRing are the plainest ring there is: every point in a sorted slice, one byte-wise CRC a point.
type refPoint struct {
	hash uint32
	id   string
	rank int
}

type refRing []refPoint

// newRefRing places the backends of c for which keep is true.
func newRefRing(c ring.Config, keep func(ring.Backend) bool) refRing {
	backends := slices.Clone(c.Backends)
	slices.SortFunc(backends, func(a, b ring.Backend) int { return refCompare(c.Identity, a.ID, b.ID) })
	var points refRing
	for rank, b := range backends {
		if !keep(b) {
			continue
		}
		input := refHashInput(c.Identity, b.ID)
		hash := uint32(0)
		for range b.Weight * c.Algorithm.PointsPerWeight {
			hash = crc32.ChecksumIEEE(append(slices.Clone(input), byte(hash), byte(hash>>8), byte(hash>>16), byte(hash>>24)))
			points = append(points, refPoint{hash, b.ID, rank})
		}
	}
	slices.SortFunc(points, func(a, b refPoint) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.rank, b.rank)) })
	return slices.Compact(points)
}

func refHashInput(identity ring.Identity, id string) []byte {
	if identity == ring.IdentityName {
		return []byte(id)
	}
	ap := netip.MustParseAddrPort(id)
	host := ap.Addr().String()
	if identity == ring.IdentityNGINX && ap.Addr().Is6() {
		host = "[" + host + "]"
	}
	return fmt.Appendf(nil, "%s\x00%d", host, ap.Port())
}

func refCompare(identity ring.Identity, a, b string) int {
	if identity == ring.IdentityName {
		return strings.Compare(a, b)
	}
	return netip.MustParseAddrPort(a).Compare(netip.MustParseAddrPort(b))
}

// owners returns the distinct backends in ring order from hash on.
func (r refRing) owners(hash uint32) []string {
	var owners []string
	seen := make([]bool, 1<<16) // By rank: comparing with every owner so far made this the slowest test of all.
	start, _ := slices.BinarySearchFunc(r, hash, func(p refPoint, h uint32) int { return cmp.Compare(p.hash, h) })
	for i := range r {
		if p := r[(start+i)%len(r)]; !seen[p.rank] {
			seen[p.rank] = true
			owners = append(owners, p.id)
		}
	}
	return owners
}

// randomConfig returns a small ring of any kind: every identity, weights with zeros, zones and features.
func randomConfig(rnd *rand.Rand) ring.Config {
	c := ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 1 + rnd.Uint32N(60)},
		Identity:  []ring.Identity{ring.IdentityAddress, ring.IdentityNGINX, ring.IdentityName}[rnd.IntN(3)],
		Features:  []string{"eu", "gpu", "ssd"}[:rnd.IntN(4)],
	}
	if rnd.IntN(4) == 0 {
		c.Algorithm = ring.Algorithm{Version: ring.V1, PointsPerWeight: 160}
	}
	for i := range rnd.IntN(40) {
		b := ring.Backend{ID: randomID(rnd, c.Identity, i), Weight: rnd.Uint32N(4), Zone: []string{"", "a", "b"}[rnd.IntN(3)]}
		for _, f := range c.Features {
			if rnd.IntN(2) == 0 {
				b.Features = append(b.Features, f)
			}
		}
		c.Backends = append(c.Backends, b)
	}
	return c
}

func randomID(rnd *rand.Rand, identity ring.Identity, i int) string {
	if identity == ring.IdentityName {
		return fmt.Sprintf("cache-%d", i)
	}
	if rnd.IntN(3) == 0 {
		return fmt.Sprintf("[2001:db8::%x]:%d", rnd.Uint32N(1<<16)|1, 1000+i)
	}
	return fmt.Sprintf("10.0.%d.%d:%d", rnd.Uint32N(256), rnd.Uint32N(256), 1000+i)
}

// fleet returns n backends of one weight with addresses 10.x.y.z:8080.
func fleet(n int, version ring.Version, pointsPerWeight uint32) ring.Config {
	c := ring.Config{Algorithm: ring.Algorithm{Version: version, PointsPerWeight: pointsPerWeight}, Identity: ring.IdentityAddress}
	for i := range n {
		c.Backends = append(c.Backends, ring.Backend{ID: fmt.Sprintf("10.%d.%d.%d:8080", i>>16, i>>8&255, i&255), Weight: 1})
	}
	return c
}
