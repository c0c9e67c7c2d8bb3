// SPDX-License-Identifier: Apache-2.0

package ring

// Build places the backends of c and returns the ring.
//
// The result does not depend on the order of c.Backends or c.Features, nor on the number of processors, of which large
// rings take all. Its time is linear in the number of points; while it runs it holds the points in 8 bytes each, the result, and some hundred bytes
// for each backend. V3 takes besides, for each view, 28 bytes a point while it is trimmed, as many views at a time as there
// are processors, and for each trim the time to look at all points of one backend. Errors: [ConfigError],
// [DuplicateError], [TooManyPointsError].
func Build(c Config) (*Ring, error) {
	t, err := newTable(c)
	if err != nil {
		return nil, err
	}
	points := t.place()
	return Open(t.encode(points, t.trim(points, c.Previous)))
}

// point is a hash and, in the low 32 bits, the backend that has it: ordered as the ring is.
type point uint64

func newPoint(hash uint32, backend int) point { return point(hash)<<32 | point(uint32(backend)) }

func (p point) hash() uint32 { return uint32(p >> 32) }
func (p point) backend() int { return int(uint32(p)) }

// chainPoints returns how many points the chain of backend i gets. A chain on the fixed point repeats itself from the first
// point on, so it is cut there, whatever the weight.
func (t *table) chainPoints(i int) uint32 {
	points := t.quota(i)
	if t.sums[i] == FixedPoint {
		points = min(points, 1)
	}
	return uint32(points)
}
