// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestLogGammaBelowKnown: with an integer shape k it is the probability of at least k events in a Poisson process.
func TestLogGammaBelowKnown(t *testing.T) {
	for _, k := range []int{1, 2, 7, 40, 160, 999} {
		for _, z := range []float64{-4, -1, 0, 1, 3, 5} {
			x := float64(k) + z*math.Sqrt(float64(k))
			if x <= 0 {
				continue
			}
			above, lgamma := 0.0, 0.0
			for j := range k {
				if j > 0 {
					lgamma += math.Log(float64(j))
				}
				above += math.Exp(float64(j)*math.Log(x) - x - lgamma)
			}
			if got := -math.Expm1(logGammaBelow(float64(k), x)); math.Abs(got-above) > 1e-11 {
				t.Errorf("k %d, x %.2f: above with %.14f, want %.14f", k, x, got, above)
			}
		}
	}
	for _, z := range []float64{-4, -2, 0, 2, 4} { // The approximation for many points goes on where the exact one stops.
		const k = 1000
		x := k + z*math.Sqrt(k)
		exact, approximate := logGammaBelow(k, x), logGammaBelow(math.Nextafter(k, 2*k), x)
		if math.Abs(exact-approximate) > 1e-3*math.Max(1, math.Abs(exact)) {
			t.Errorf("z %.0f: %.9f, approximately %.9f", z, exact, approximate)
		}
	}
}

// TestTieFactorsAgreeWithASmallKeySpace: rings of 2^16 positions have as many ties as those of 2^32 with 65,536 times as many
// points, which would take too long to build.
func TestTieFactorsAgreeWithASmallKeySpace(t *testing.T) {
	const positions, backends, points, seeds = 1 << 16, 16, 1000, 300
	const ties = float64(backends*points) / positions
	var mean [backends]float64
	largest := 0.0
	for seed := range uint64(seeds) {
		ratios := tiedRatios(rand.New(rand.NewPCG(seed, 3)), positions, backends, points)
		top := 0.0
		for i, r := range ratios {
			mean[i] += r / seeds
			top = max(top, r)
		}
		largest += top / seeds
	}
	for i, got := range mean {
		if want := tieFactor(ties, (float64(i)+0.5)/backends); math.Abs(got-want) > 0.01 {
			t.Errorf("backend %d: %.4f of its share, want %.4f", i, got, want)
		}
	}
	list := []shareClass{{count: backends, points: points, scale: 1}}
	if want := expectedMax(list, ties); math.Abs(largest-want) > 0.005 {
		t.Errorf("max/avg %.4f, predicted %.4f", largest, want)
	}
}

// tiedRatios returns share over target of every backend of a ring in which the first of tied points wins.
func tiedRatios(rnd *rand.Rand, positions, backends, points int) []float64 {
	owner := make([]int, positions)
	for p := range owner {
		owner[p] = -1
	}
	for i := range backends {
		for range points {
			if p := rnd.IntN(positions); owner[p] < 0 {
				owner[p] = i
			}
		}
	}
	ratios := make([]float64, backends)
	next := 0
	for p := range 2 * positions {
		at := 2*positions - 1 - p
		if o := owner[at%positions]; o >= 0 {
			next = o
		}
		if at < positions {
			ratios[next] += float64(backends) / float64(positions)
		}
	}
	return ratios
}

func TestTieFactorKnown(t *testing.T) {
	const ties = 2048 * 100_000 / float64(KeySpace)
	if got := tieFactor(ties, 0.05); math.Abs(got-1.0216) > 0.0001 {
		t.Errorf("the first tenth gets %.4f of its share", got)
	}
	sum := 0.0
	for i := range 1000 {
		sum += tieFactor(ties, (float64(i)+0.5)/1000) / 1000
	}
	if math.Abs(sum-1) > 1e-6 || tieFactor(0, 0.3) != 1 {
		t.Errorf("the factors have the mean %.7f", sum)
	}
}
