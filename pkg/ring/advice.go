// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Prediction is what can be expected of a ring before it is built, over all identities that its backends could have. See
// [Predict].
type Prediction struct {
	// Algorithm is the one that the prediction is for.
	Algorithm Algorithm
	// Backends is how many have a weight above 0, Points how many points they get.
	Backends int
	Points   uint64
	// CV is the coefficient of variation of the ratio of share to target. It contains what the tie order of V1 and V2 adds,
	// and not what the trims of V3 take away.
	CV float64
	// RandomMaxOverAverage is the expected largest ratio of points at random places: neither ties nor trims change it.
	RandomMaxOverAverage float64
	// MaxOverAverage is the largest ratio that the algorithm gives: with V1 and V2 the expected one, tie order included;
	// with V3 what trimming reaches in about nine of ten rings, in the worst of the declared views.
	MaxOverAverage float64
	// TieBias is how much of its share the first backend in ring order has too much because it wins its ties; 0 with V3.
	TieBias float64
	// Collisions is how many points are expected to lose a tie.
	Collisions float64
	// Bytes is the expected length of the snapshot with its points, RecipeBytes that of its recipe.
	Bytes, RecipeBytes uint64
}

// Advice answers how many points a limit of the imbalance takes. See [Advise].
type Advice struct {
	// Prediction is that of the fewest points that reach the limit or, where none do, of those that come closest.
	Prediction
	// MaxImbalance is the limit that was asked for, in millionths.
	MaxImbalance uint32
	// Reached says that the predicted largest ratio is within the limit.
	Reached bool
}

// Predict returns what theory expects of the ring that [Build] makes of c, and costs next to nothing beside building it.
//
// The share of a backend with k of n points at random places follows the beta distribution of k and n-k, and the shares of all
// backends together a Dirichlet distribution: that of independent gamma variables X of shapes k, each divided by their sum. The
// sum is independent of the quotients, so the expected largest ratio of share to target is exactly that of max X/k:
// the integral of 1 - ΠF(kx), F being the distribution function of X. It is computed numerically.
//
// Points have 32 bits, so n points share positions. Under V1 and V2 the first backend in ring order wins: a backend behind a
// part r of the points keeps exp(-λr) of its own, with λ = n/2^32, and its expected share is multiplied by
// λ·exp(-λr)/(1-exp(-λ)). Weights are taken to be spread evenly over the ring order.
//
// What the trims of V3 reach is no theory but was measured, for limits from 0.1 to 20 %, on rings of 3 to 2048 backends of equal
// weight and of weights 1 to 10: about nine of ten come to an excess of 35·(1 + (g/80)² + (10/g)²)·log2(N)/g³, or to MaxImbalance
// where that is more; g³ = m²·a, with m points of the lightest backend and a of all on average. Weights far below WeightUnit
// were not measured.
//
// Against the mean of many rings that were built, the excess of max/avg was off by 2.5 % at the most, of which much is the
// sample, and Bytes by 1 %; with 64 views by 2 %. A single ring scatters around that mean: the excess of 2048 backends by a tenth, that of two backends
// by three quarters. Addresses that follow each other have chains that are alike, so with a handful of points for each they
// do not count as random. Not predicted are backends on the fixed point and in another's shadow.
//
// The points are not limited to Config.MaxPoints, but to [HardMaxPoints]. Errors: those of Build, and [ErrNoBackend] where no
// backend has a weight.
func Predict(c Config) (Prediction, error) {
	c.MaxPoints = HardMaxPoints
	f, err := newForecast(c)
	if err != nil {
		return Prediction{}, err
	}
	return f.predict(f.table.algorithm), nil
}

// Advise returns the fewest points for each unit of weight with which the ring of c keeps to maxImbalance, which is the excess of
// the largest ratio in millionths, 1 to 1,000,000. It does not read PointsPerWeight and MaxImbalance of c.Algorithm.
//
// V1 has [V1PointsPerWeight] points and no choice, so the advice says what they give. Under V2 more points stop helping: from
// some number on the tie order costs more than they gain. The search ends at Config.MaxPoints and MaxPointsPerWeight.
//
// Errors: those of Build, where not even one point for each unit of weight keeps to Config.MaxPoints too, and [ErrNoBackend].
func Advise(c Config, maxImbalance uint32) (Advice, error) {
	if maxImbalance < 1 || maxImbalance > million {
		return Advice{}, &ConfigError{"maxImbalance", fmt.Sprint(maxImbalance), fmt.Sprintf("not within 1 to %d millionths", million)}
	}
	c.Algorithm.PointsPerWeight = 1
	switch c.Algorithm.Version {
	case V1:
		c.Algorithm.PointsPerWeight = V1PointsPerWeight
	case V3:
		c.Algorithm.MaxImbalance = maxImbalance
	}
	f, err := newForecast(c)
	if err != nil {
		return Advice{}, err
	}
	var p Prediction
	if c.Algorithm.Version == V1 {
		p = f.predict(f.table.algorithm)
	} else {
		p = f.search(c.MaxPoints, maxImbalance)
	}
	return Advice{Prediction: p, MaxImbalance: maxImbalance, Reached: p.within(maxImbalance)}, nil
}

// within says that the largest ratio is within the limit; an excess of V3 that is the limit counts as within.
func (p Prediction) within(maxImbalance uint32) bool {
	const rounding = 1e-9
	return p.MaxOverAverage <= 1+float64(maxImbalance)/million+rounding
}

// forecast is a validated config whose points are not placed.
type forecast struct {
	table *table
	// weights are those above 0, each with how many backends have it, ascending: of all backends, then of each declared view.
	weights [][]weightCount
	// fixedBytes is what the snapshot holds beside the points and trims.
	fixedBytes int
}

type weightCount struct {
	weight uint32
	count  int
}

// newForecast validates c as Build does.
func newForecast(c Config) (*forecast, error) {
	t, err := newTable(c)
	if err != nil {
		return nil, err
	}
	f := &forecast{table: t, weights: [][]weightCount{t.countWeights(t.membersOf(0))}}
	if len(f.weights[0]) == 0 {
		return nil, ErrNoBackend
	}
	sections := 2
	f.fixedBytes = headerBytes + trailerBytes + align(len(t.encodeBackends()))
	if len(t.features) > 0 {
		sections++
		f.fixedBytes += align(len(t.encodeFeatures()))
	}
	if t.algorithm.Version == V3 {
		sections++
		f.fixedBytes += align(len(encodeViews(make([]declaredView, len(t.views)))))
		for _, set := range t.views[1:] {
			f.weights = append(f.weights, t.countWeights(t.membersOf(set)))
		}
	}
	f.fixedBytes += tableEntry * sections
	return f, nil
}

// countWeights returns the weights of the members.
func (t *table) countWeights(members bitmap) []weightCount {
	var weights []uint32
	for i, w := range t.weights {
		if members.has(i) {
			weights = append(weights, w)
		}
	}
	slices.Sort(weights)
	var counts []weightCount
	for _, w := range weights {
		if last := len(counts) - 1; last < 0 || counts[last].weight != w {
			counts = append(counts, weightCount{weight: w})
		}
		counts[len(counts)-1].count++
	}
	return counts
}

// shareClass is a number of backends of about the same number of points.
type shareClass struct {
	// count is how many there are, points how many points each has on average.
	count, points float64
	// scale is the part of the points over the part of the weights: 1 but where V3 rounds.
	scale float64
}

// classes groups backends whose points agree in the first five bits, so that any number of different weights costs the same.
func classes(weights []weightCount, a Algorithm) []shareClass {
	var list []shareClass
	var allPoints, allWeight, points, weight float64
	for i, w := range weights {
		n, count := a.quota(w.weight), float64(w.count)
		if i == 0 || magnitude(n) != magnitude(a.quota(weights[i-1].weight)) {
			list = append(list, shareClass{})
			points, weight = 0, 0
		}
		allPoints, points = allPoints+count*float64(n), points+count*float64(n)
		allWeight, weight = allWeight+count*float64(w.weight), weight+count*float64(w.weight)
		last := &list[len(list)-1]
		last.count += count
		last.points, last.scale = points/last.count, points/weight
	}
	for i := range list {
		list[i].scale *= allWeight / allPoints
	}
	return list
}

// magnitude is the same for numbers of the same length with the same first five bits.
func magnitude(n uint64) uint64 {
	const kept, lengths = 5, 64
	length := bits.Len64(n)
	return n>>max(length-kept, 0)*lengths + uint64(length)
}

// points returns how many points an algorithm gives to all backends.
func (f *forecast) points(a Algorithm) uint64 {
	n := uint64(0)
	for _, w := range f.weights[0] {
		n += a.quota(w.weight) * uint64(w.count)
	}
	return n
}

func (f *forecast) predict(a Algorithm) Prediction {
	p := Prediction{Algorithm: a, Points: f.points(a)}
	for _, w := range f.weights[0] {
		p.Backends += w.count
	}
	ties := float64(p.Points) / KeySpace
	p.Collisions = expectedCollisions(float64(p.Points))
	all := classes(f.weights[0], a)
	p.RandomMaxOverAverage = expectedMax(all, 0)
	p.MaxOverAverage = p.RandomMaxOverAverage
	points := float64(align(int(PackedBytes(uint32(p.Points), len(f.table.ids)))))
	bytes := float64(f.fixedBytes) + points
	if a.Version == V3 {
		p.CV = predictCV(all, 0)
		p.MaxOverAverage = 1
		for _, weights := range f.weights {
			view := classes(weights, a)
			p.MaxOverAverage = max(p.MaxOverAverage, trimmedMax(view, a))
			bytes += trimBytes(view, a, float64(p.Points))
		}
	} else {
		p.CV = predictCV(all, ties)
		p.TieBias = tieFactor(ties, 0) - 1
		if p.TieBias > 0 && p.Backends > 1 {
			p.MaxOverAverage = expectedMax(all, ties)
		}
	}
	p.Bytes, p.RecipeBytes = uint64(math.Round(bytes)), uint64(math.Round(bytes-points+fingerprintBytes))
	return p
}

// search returns the prediction of the fewest points that are within the limit or, where none are, that come closest to it.
func (f *forecast) search(limit uint64, maxImbalance uint32) Prediction {
	at := func(points uint32) Prediction {
		a := f.table.algorithm
		a.PointsPerWeight = points
		return f.predict(a)
	}
	best := f.mostPoints(limit)
	if f.table.algorithm.Version == V2 {
		// Random places want more points, the tie order fewer: there is one minimum.
		best = lowest(1, best, func(points uint32) float64 { return at(points).MaxOverAverage })
	}
	low, high := uint32(1), best
	if !at(best).within(maxImbalance) {
		return at(best)
	}
	for low < high {
		if middle := low + (high-low)/2; at(middle).within(maxImbalance) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return at(low)
}

// mostPoints returns the largest PointsPerWeight that keeps to the limit of points, which 1 does.
func (f *forecast) mostPoints(limit uint64) uint32 {
	if limit == 0 {
		limit = DefaultMaxPoints
	}
	a := f.table.algorithm
	low, high := uint32(1), uint32(MaxPointsPerWeight)
	for low < high {
		a.PointsPerWeight = low + (high-low+1)/2
		if f.points(a) <= limit {
			low = a.PointsPerWeight
		} else {
			high = a.PointsPerWeight - 1
		}
	}
	return low
}

// lowest returns where a function that falls and then rises is lowest.
func lowest(low, high uint32, f func(uint32) float64) uint32 {
	for high-low > 2 {
		third := (high - low) / 3
		if f(low+third) <= f(high-third) {
			high -= third
		} else {
			low += third
		}
	}
	best := low
	for x := low + 1; x <= high; x++ {
		if f(x) < f(best) {
			best = x
		}
	}
	return best
}
