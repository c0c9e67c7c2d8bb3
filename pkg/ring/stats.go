// SPDX-License-Identifier: Apache-2.0

package ring

import "math"

// KeySpace is the number of positions on a ring, the unit in which shares are counted.
const KeySpace = 1 << 32

// Shares returns the share of every backend in ring order, in positions of the key space: exact arc lengths that add up
// to KeySpace, or all zero where the ring has no point. The caller owns the slice. Linear in the number of points.
func (r *Ring) Shares() []uint64 {
	shares := make([]uint64, r.Len())
	v, err := r.View()
	if err == nil {
		v.addShares(shares)
	}
	return shares
}

// Shares returns the share of every backend of the ring in this view, as [Ring.Shares] does; it is zero for backends
// that are no members.
func (v *View) Shares() []uint64 {
	shares := make([]uint64, v.ring.Len())
	v.addShares(shares)
	return shares
}

func (v *View) addShares(shares []uint64) {
	if v.size == 0 {
		return
	}
	var first, last point
	seen := false
	for s := v.points.scan(); s.next(); {
		for k, p := range s.points {
			if !v.holds(s.first+uint32(k), p.backend()) {
				continue
			}
			if !seen {
				first, last, seen = p, p, true
				continue
			}
			// A tied point is no distance away from the winner, so it adds nothing to its own backend.
			shares[p.backend()] += uint64(p.hash() - last.hash())
			last = p
		}
	}
	shares[first.backend()] += KeySpace - uint64(last.hash()-first.hash())
}

// Stats describes how evenly a ring or view spreads the key space. Ratios are against each backend's target, which is
// its weight over the sum of the weights.
type Stats struct {
	// Backends is how many have a point.
	Backends int
	// Points is how many points the ring or view has.
	Points int
	// Collisions is how many of them lose a tie and so own nothing.
	Collisions int
	// MaxOverAverage and MinOverAverage are the largest and smallest ratio of a share to its target; 1 is perfect.
	MaxOverAverage, MinOverAverage float64
	// CV is the coefficient of variation of that ratio.
	CV float64
	// PredictedCV is what theory expects of points that are spread at random: sqrt((N-1)/(kN+1)) for N backends of k points
	// each, and the same in terms of points where weights differ.
	PredictedCV float64
	// PredictedCollisions is n - 2^32·(1-(1-2^-32)^n), what theory expects of n points.
	PredictedCollisions float64
}

// Stats returns the statistics of the whole ring.
func (r *Ring) Stats() Stats {
	v, err := r.View()
	if err != nil {
		return Stats{}
	}
	return v.Stats()
}

// Stats returns the statistics of the view. Linear in the number of points.
func (v *View) Stats() Stats {
	counts, collisions := v.countPoints()
	s := Stats{Backends: v.size, Collisions: collisions, MinOverAverage: math.Inf(1)}
	weight := 0.0
	for i, n := range counts {
		s.Points += n
		if n > 0 {
			weight += float64(v.ring.Weight(i))
		}
	}
	if s.Points == 0 {
		return Stats{}
	}
	shares := v.Shares()
	variance, predicted := 0.0, 0.0
	for i, n := range counts {
		if n == 0 {
			continue
		}
		ratio := float64(shares[i]) / KeySpace * weight / float64(v.ring.Weight(i))
		s.MaxOverAverage, s.MinOverAverage = max(s.MaxOverAverage, ratio), min(s.MinOverAverage, ratio)
		variance += (ratio - 1) * (ratio - 1)
		// The share of n out of all points follows a beta distribution, whose relative variance this is.
		p := float64(n) / float64(s.Points)
		predicted += (1 - p) / (p * float64(s.Points+1))
	}
	s.CV = math.Sqrt(variance / float64(s.Backends))
	s.PredictedCV = math.Sqrt(predicted / float64(s.Backends))
	s.PredictedCollisions = expectedCollisions(float64(s.Points))
	return s
}

// countPoints returns the number of points of every member, and how many points in all lose a tie.
func (v *View) countPoints() (counts []int, collisions int) {
	counts = make([]int, v.ring.Len())
	var last point
	seen := false
	for s := v.points.scan(); s.next(); {
		for k, p := range s.points {
			if !v.holds(s.first+uint32(k), p.backend()) {
				continue
			}
			if seen && p.hash() == last.hash() {
				collisions++
			}
			counts[p.backend()]++
			last, seen = p, true
		}
	}
	return counts, collisions
}

// expectedCollisions computes n - m·(1-(1-1/m)^n) for m = 2^32 without losing the digits that matter.
func expectedCollisions(n float64) float64 {
	return n + KeySpace*math.Expm1(n*math.Log1p(-1.0/KeySpace))
}
