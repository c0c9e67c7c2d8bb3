// SPDX-License-Identifier: Apache-2.0

package ring

import "math"

// tieFactor is what the tie order of V1 and V2 multiplies the expected share of a backend with, behind a part r of the points;
// ties is the number of points over that of positions.
func tieFactor(ties, r float64) float64 {
	if ties == 0 {
		return 1
	}
	return ties * math.Exp(-ties*r) / -math.Expm1(-ties)
}

// predictCV returns the coefficient of variation of the ratios: the variance of the beta distribution of each share, and that
// of the tie factors, which is (ties/2)·coth(ties/2) - 1.
func predictCV(list []shareClass, ties float64) float64 {
	var n, backends, variance float64
	for _, c := range list {
		n += c.count * c.points
		backends += c.count
	}
	for _, c := range list {
		p := c.points / n
		variance += c.count * (c.scale*c.scale*(1-p)/(p*(n+1)) + (c.scale-1)*(c.scale-1))
	}
	variance /= backends
	if ties > 0 && backends > 1 {
		variance += max(ties/2/math.Tanh(ties/2)-1, 0)
	}
	return math.Sqrt(variance)
}

const (
	// integrationSteps cut the range in which the largest ratio lies, about twenty standard deviations, finely.
	integrationSteps = 320
	// tieRanks are the places in the ring order for which the tie factor is computed at the most; fewer where it differs little
	// from one to the next, compared with how shares scatter.
	tieRanks, fewTieRanks = 64, 4
)

// expectedMax returns the expected largest ratio of share to target: see [Predict] for how.
func expectedMax(list []shareClass, ties float64) float64 {
	backends, fewest := 0.0, math.Inf(1)
	lowScale, highScale := math.Inf(1), 0.0
	for _, c := range list {
		backends += c.count
		fewest = min(fewest, c.points)
		lowScale, highScale = min(lowScale, c.scale), max(highScale, c.scale)
	}
	if backends == 1 {
		return 1
	}
	factors := tieFactors(ties, math.Sqrt(fewest), backends)
	const negligible = 35 // exp(-35) is far below what counts.
	low := lowScale * factors[len(factors)-1] * chernoff(fewest, negligible, -1)
	high := highScale * factors[0] * chernoff(fewest, negligible+math.Log(backends), 1)
	step := (high - low) / integrationSteps
	sum := 0.0
	for i := 1; i <= integrationSteps; i++ {
		below := logAllBelow(list, factors, low+float64(i)*step)
		weight := 1.0
		if i == integrationSteps {
			weight = 0.5
		}
		sum += weight * math.Exp(below)
	}
	return high - step*sum
}

// tieFactors returns the factors of evenly spread places in the ring order, descending; 1 alone where there are no ties. The
// reciprocal of scatter is the coefficient of variation of a share.
func tieFactors(ties, scatter, backends float64) []float64 {
	const negligible, perDeviation = 1e-6, 8
	if ties < negligible {
		return []float64{1}
	}
	factors := make([]float64, int(min(backends, tieRanks, fewTieRanks+perDeviation*ties*scatter)))
	for i := range factors {
		factors[i] = tieFactor(ties, (float64(i)+0.5)/float64(len(factors)))
	}
	return factors
}

// logAllBelow returns the logarithm of the probability that every ratio is at most x.
func logAllBelow(list []shareClass, factors []float64, x float64) float64 {
	sum := 0.0
	for _, c := range list {
		for _, f := range factors {
			sum += c.count / float64(len(factors)) * logGammaBelow(c.points, c.points*x/(c.scale*f))
		}
	}
	return sum
}

// chernoff returns the x on one side of 1 beyond which a gamma variable of shape k, divided by k, lies with a probability of at
// most exp(-bound): that is where k(x - 1 - ln x) = bound.
func chernoff(k, bound, side float64) float64 {
	inside, outside := 1.0, 0.0
	if side > 0 {
		outside = 2 + 2*bound/k + 2*math.Sqrt(2*bound/k)
	}
	const halvings = 60
	for range halvings {
		x := (inside + outside) / 2
		if k*(x-1-math.Log(x)) < bound {
			inside = x
		} else {
			outside = x
		}
	}
	return outside
}

// logGammaBelow returns the logarithm of the probability that a gamma variable of shape k is at most x.
func logGammaBelow(k, x float64) float64 {
	const manyPoints = 1000
	switch {
	case x <= 0:
		return math.Inf(-1)
	case k > manyPoints:
		// Wilson and Hilferty: the cube root is as good as normal.
		z := (math.Cbrt(x/k) - 1 + 1/(9*k)) * 3 * math.Sqrt(k)
		if z > 0 {
			return math.Log1p(-math.Erfc(z/math.Sqrt2) / 2)
		}
		return math.Log(math.Erfc(-z/math.Sqrt2) / 2)
	case x < k+1:
		return math.Log(gammaSeries(k, x))
	default:
		return math.Log1p(-gammaFraction(k, x))
	}
}

// gammaDensity returns x^k·exp(-x)/Γ(k).
func gammaDensity(k, x float64) float64 {
	lgamma, _ := math.Lgamma(k)
	return math.Exp(k*math.Log(x) - x - lgamma)
}

// gammaSeries returns the lower regularised incomplete gamma function by its power series, for x < k+1.
func gammaSeries(k, x float64) float64 {
	term := 1 / k
	sum := term
	for n := k + 1; term > sum*1e-16; n++ {
		term *= x / n
		sum += term
	}
	return sum * gammaDensity(k, x)
}

// gammaFraction returns the upper one by its continued fraction, evaluated from the front by Lentz's method, for x >= k+1.
func gammaFraction(k, x float64) float64 {
	const tiny, enough, most = 1e-300, 1e-15, 10_000
	b := x + 1 - k
	c, d := 1/tiny, 1/b
	h := d
	for i := 1.0; i < most; i++ {
		a := -i * (i - k)
		b += 2
		if d = a*d + b; math.Abs(d) < tiny {
			d = tiny
		}
		if c = b + a/c; math.Abs(c) < tiny {
			c = tiny
		}
		d = 1 / d
		h *= d * c
		if math.Abs(d*c-1) < enough {
			break
		}
	}
	return h * gammaDensity(k, x)
}

// trimmedMax returns the largest ratio that trimming reaches in about nine of ten rings. Few points reach less because the arcs
// that could be given away are too large. The numbers are fitted to what was measured, see [Predict].
func trimmedMax(list []shareClass, a Algorithm) float64 {
	fewest, points, backends := math.Inf(1), 0.0, 0.0
	for _, c := range list {
		fewest = min(fewest, c.points)
		points += c.count * c.points
		backends += c.count
	}
	if backends <= 1 {
		return 1
	}
	const base, many, few = 35, 80, 10
	g := math.Cbrt(fewest * fewest * points / backends)
	reached := 1 + base*(1+g*g/(many*many)+few*few/(g*g))*math.Log2(backends)/(g*g*g)
	return min(max(reached, 1+float64(a.MaxImbalance)/million), expectedMax(list, 0))
}

// trimBytes returns what the list of trims of a view takes. The number of trims is measured, as that of trimmedMax is, and right
// within a quarter; a trim takes a byte, and another where the one before it is more than 127 points away.
func trimBytes(list []shareClass, a Algorithm, points float64) float64 {
	limit, trims := float64(a.MaxImbalance)/million, 0.0
	for _, c := range list {
		// The more of a share lies above the limit, the more has to go; coarse points need some more to come close.
		excess := limit * math.Sqrt(c.points)
		density := math.Exp(-excess * excess / 2)
		above := density - excess*math.Sqrt(math.Pi/2)*math.Erfc(excess/math.Sqrt2)
		coarse := 1.1 / (1 + limit*c.points*c.points/4)
		trims += c.count * min((1.2+0.055*math.Sqrt(c.points))*above+coarse*density, c.points/trimBudget)
	}
	return trims * (1 + math.Pow(1-min(trims/points, 1), 128))
}
