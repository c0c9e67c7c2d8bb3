// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ringwright/ringwright/pkg/ring"
)

// scattered returns n backends with weights 1 to heaviest in turn and addresses that have nothing to do with each other. The
// points of consecutive ones have: CRC-32 is linear, so as long as they are few they are not as good as random.
func scattered(n int, seed uint64, heaviest uint32, a ring.Algorithm) ring.Config {
	rnd := rand.New(rand.NewPCG(seed, 17))
	c := ring.Config{Algorithm: a, Identity: ring.IdentityAddress, MaxPoints: ring.HardMaxPoints}
	for i := range n {
		id := fmt.Sprintf("10.%d.%d.%d:%d", rnd.Uint32N(256), rnd.Uint32N(256), rnd.Uint32N(256), 1024+rnd.Uint32N(60000))
		c.Backends = append(c.Backends, ring.Backend{ID: id, Weight: 1 + uint32(i)%heaviest})
	}
	return c
}

func plain(pointsPerWeight uint32) ring.Algorithm {
	return ring.Algorithm{Version: ring.V2, PointsPerWeight: pointsPerWeight}
}

func trimmedTo(maxImbalance, pointsPerWeight uint32) ring.Algorithm {
	return ring.Algorithm{Version: ring.V3, PointsPerWeight: pointsPerWeight, WeightUnit: 1, MaxImbalance: maxImbalance}
}

func mustPredict(t *testing.T, c ring.Config) ring.Prediction {
	t.Helper()
	p, err := ring.Predict(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustAdvise(t *testing.T, c ring.Config, maxImbalance uint32) ring.Advice {
	t.Helper()
	a, err := ring.Advise(c, maxImbalance)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// within says that got differs from want by at most a part of want.
func within(got, want, part float64) bool { return math.Abs(got-want) <= part*want }

// TestPredictionsAgreeWithRings: the error of the excess is within three standard errors of the mean, and never above 4 %.
func TestPredictionsAgreeWithRings(t *testing.T) {
	worst := 0.0
	for _, test := range []struct {
		backends, seeds           int
		pointsPerWeight, heaviest uint32
	}{
		{2, 4000, 40, 1},
		{5, 2000, 16, 1},
		{10, 1000, 160, 1},
		{10, 1000, 40, 10},
		{100, 800, 1, 1},
		{100, 800, 4, 1},
		{100, 400, 40, 1},
		{100, 200, 160, 1},
		{100, 400, 10, 10},
		{500, 60, 40, 1},
		{2048, 40, 10, 1},
		{2048, 20, 40, 1},
	} {
		if testing.Short() && test.backends > 100 {
			continue
		}
		name := fmt.Sprintf("%d backends of weights 1 to %d, %d points", test.backends, test.heaviest, test.pointsPerWeight)
		var excess, squares, variance, bytes float64
		for seed := range test.seeds {
			r := mustBuild(t, scattered(test.backends, uint64(seed), test.heaviest, plain(test.pointsPerWeight)))
			s := r.Stats()
			excess += s.MaxOverAverage - 1
			squares += (s.MaxOverAverage - 1) * (s.MaxOverAverage - 1)
			variance += s.CV * s.CV
			bytes += float64(len(r.Snapshot()))
		}
		seeds := float64(test.seeds)
		excess, variance, bytes = excess/seeds, variance/seeds, bytes/seeds
		standardError := math.Sqrt((squares/seeds - excess*excess) / seeds)
		p := mustPredict(t, scattered(test.backends, 0, test.heaviest, plain(test.pointsPerWeight)))
		if want, ok := map[int]float64{2: 0.75, 2048: 0.1}[test.backends]; ok && !within(standardError*math.Sqrt(seeds)/excess, want, 0.3) {
			t.Errorf("%s: the excess scatters by %.3f of itself", name, standardError*math.Sqrt(seeds)/excess)
		}
		off := (p.MaxOverAverage - 1 - excess) / excess
		worst = max(worst, math.Abs(off))
		if math.Abs(off) > min(0.04, 3*standardError/excess) {
			t.Errorf("%s: max/avg predicted %.4f, measured %.4f ± %.4f", name, p.MaxOverAverage, 1+excess, standardError)
		}
		if !within(p.CV, math.Sqrt(variance), 0.03) {
			t.Errorf("%s: CV predicted %.5f, measured %.5f", name, p.CV, math.Sqrt(variance))
		}
		if !within(float64(p.Bytes), bytes, 0.01) {
			t.Errorf("%s: %d bytes predicted, %.0f measured", name, p.Bytes, bytes)
		}
		t.Logf("%s: max/avg predicted %.4f, measured %.4f: %+.1f %% of the excess, standard error %.1f %%", name,
			p.MaxOverAverage, 1+excess, 100*off, 100*standardError/excess)
	}
	t.Logf("the largest error is %.1f %% of the excess", 100*worst)
}

// TestExpectedMaxKnown: of N exponential variables the expected largest is the N-th harmonic number.
func TestExpectedMaxKnown(t *testing.T) {
	harmonic := 0.0
	for n := 1; n <= 3000; n++ {
		harmonic += 1 / float64(n)
		if n > 4 && n != 50 && n != 3000 {
			continue
		}
		if p := mustPredict(t, fleet(n, ring.V2, 1)); !within(p.RandomMaxOverAverage, harmonic, 1e-5) {
			t.Errorf("%d backends of one point: %.8f, want %.8f", n, p.RandomMaxOverAverage, harmonic)
		}
	}
	// Of two gamma variables of shape k the expected difference is known: max/avg is 1 + C(2k,k)/4^k.
	for k, binomial := 1, 0.5; k <= 5000; k++ {
		if k == 10 || k == 999 || k == 1001 || k == 5000 {
			if p := mustPredict(t, fleet(2, ring.V2, uint32(k))); !within(p.RandomMaxOverAverage-1, binomial, 1e-4) {
				t.Errorf("2 backends of %d points: an excess of %.8f, want %.8f", k, p.RandomMaxOverAverage-1, binomial)
			}
		}
		binomial *= float64(2*k+1) / float64(2*k+2)
	}
}

func TestPredictOfManyPoints(t *testing.T) {
	p := mustPredict(t, scattered(2048, 0, 1, plain(100_000)))
	for name, pair := range map[string][2]float64{
		"CV":                       {p.CV, 0.0141},
		"max/avg of random places": {p.RandomMaxOverAverage, 1.0109},
		"max/avg":                  {p.MaxOverAverage, 1.0313},
		"tie bias":                 {p.TieBias, 0.0240},
	} {
		if math.Abs(pair[0]-pair[1]) > 0.0001 {
			t.Errorf("%s: %.4f, want %.4f", name, pair[0], pair[1])
		}
	}
	c := scattered(2048, 0, 1, trimmedTo(10_000, 100_000))
	if p := mustPredict(t, c); p.TieBias != 0 || math.Abs(p.CV-0.00316) > 0.00001 {
		t.Errorf("V3: tie bias %.4f, CV %.5f", p.TieBias, p.CV)
	}
}

// TestAdvisedTrimsReachTheLimit in about nine of ten rings; with six tenths of the points they seldom do, so the advice is not wasteful.
func TestAdvisedTrimsReachTheLimit(t *testing.T) {
	for _, limit := range []uint32{1000, 10_000, 50_000} {
		for _, backends := range []int{3, 10, 32, 100, 500, 2048} {
			if testing.Short() && backends > 100 {
				continue
			}
			for _, heaviest := range []uint32{1, 10} {
				a := mustAdvise(t, scattered(backends, 0, heaviest, trimmedTo(1, 1)), limit)
				reached, bytes, seeds := 0, 0.0, min(30, 12000/backends)
				for seed := range seeds {
					r := mustBuild(t, scattered(backends, uint64(seed), heaviest, a.Algorithm))
					bytes += float64(len(r.Snapshot())) / float64(seeds)
					if r.Stats().MaxOverAverage <= 1+float64(limit)/1e6 {
						reached++
					}
				}
				name := fmt.Sprintf("%d backends of weights 1 to %d, %d points for %d millionths", backends, heaviest, a.Algorithm.PointsPerWeight, limit)
				if !a.Reached || float64(reached) < 0.85*float64(seeds) {
					t.Errorf("%s: promised %v, reached by %d of %d rings", name, a.Reached, reached, seeds)
				}
				if !within(float64(a.Bytes), bytes, 0.02) {
					t.Errorf("%s: %d bytes predicted, %.0f measured", name, a.Bytes, bytes)
				}
				t.Logf("%s: %d of %d, %d bytes predicted, %.0f measured", name, reached, seeds, a.Bytes, bytes)
			}
		}
	}
	tooFew := 0
	for seed := range uint64(40) {
		c := scattered(100, seed, 1, trimmedTo(10_000, 18)) // 30 are advised.
		if mustBuild(t, c).Stats().MaxOverAverage > 1.01 {
			tooFew++
		}
	}
	if tooFew < 30 {
		t.Errorf("with 18 points %d of 40 rings do not reach 1 %%", tooFew)
	}
}

// TestAdviceIsTheFewest: one point less is too few, in the terms of the prediction.
func TestAdviceIsTheFewest(t *testing.T) {
	for _, a := range []ring.Algorithm{plain(1), trimmedTo(1, 1)} {
		for _, limit := range []uint32{10_000, 50_000, 200_000} {
			c := scattered(100, 0, 10, a)
			got := mustAdvise(t, c, limit)
			if !got.Reached || got.MaxOverAverage > 1+float64(limit)/1e6+1e-9 {
				t.Fatalf("%s, %d millionths: %+v", a.Version, limit, got)
			}
			c.Algorithm = got.Algorithm
			if p := mustPredict(t, c); p != got.Prediction {
				t.Errorf("%s: advised %+v, predicted %+v", a.Version, got.Prediction, p)
			}
			c.Algorithm.PointsPerWeight--
			if p := mustPredict(t, c); p.MaxOverAverage <= 1+float64(limit)/1e6 {
				t.Errorf("%s: %d points are enough for %d millionths too", a.Version, c.Algorithm.PointsPerWeight, limit)
			}
		}
	}
}

func TestAdviceThatCannotBeReached(t *testing.T) {
	v1 := mustAdvise(t, scattered(2048, 0, 1, ring.Algorithm{Version: ring.V1}), 50_000)
	if v1.Reached || v1.Algorithm.PointsPerWeight != 160 || !within(v1.MaxOverAverage, 1.295, 0.001) {
		t.Errorf("V1: %+v", v1)
	}
	if v1 := mustAdvise(t, scattered(2048, 0, 1, ring.Algorithm{Version: ring.V1}), 300_000); !v1.Reached {
		t.Errorf("V1: %+v", v1)
	}
	// More points would only make it worse.
	v2 := mustAdvise(t, scattered(2048, 0, 1, plain(1)), 10_000)
	if v2.Reached || !within(v2.MaxOverAverage, 1.0232, 0.001) || !within(float64(v2.Algorithm.PointsPerWeight), 38_600, 0.03) {
		t.Errorf("V2: %+v", v2)
	}
	for _, points := range []uint32{v2.Algorithm.PointsPerWeight / 2, 2 * v2.Algorithm.PointsPerWeight} {
		if p := mustPredict(t, scattered(2048, 0, 1, plain(points))); p.MaxOverAverage <= v2.MaxOverAverage {
			t.Errorf("V2: %d points give %.4f", points, p.MaxOverAverage)
		}
	}
	// The configured limit of points comes first.
	c := scattered(100, 0, 1, plain(1))
	c.MaxPoints = 5_050
	if got := mustAdvise(t, c, 10_000); got.Reached || got.Points != 5_000 {
		t.Errorf("with at most 5050 points: %+v", got)
	}
	c.Algorithm = trimmedTo(1, 1)
	c.MaxPoints = 1_050
	if got := mustAdvise(t, c, 10_000); got.Reached || got.Points != 1_000 || got.MaxOverAverage < 1.1 {
		t.Errorf("with at most 1050 points: %+v", got)
	}
}

// TestAdviceIsDeterministic, whatever the order of the backends.
func TestAdviceIsDeterministic(t *testing.T) {
	for _, a := range []ring.Algorithm{{Version: ring.V1}, plain(1), trimmedTo(1, 1)} {
		c := scattered(300, 5, 7, a)
		first := mustAdvise(t, c, 30_000)
		slices.Reverse(c.Backends)
		if again := mustAdvise(t, c, 30_000); again != first {
			t.Errorf("%+v, then %+v", first, again)
		}
	}
}

// TestPredictOfViews: the worst declared view counts, here that of the light backends, and each has a list of trims.
func TestPredictOfViews(t *testing.T) {
	c := scattered(200, 0, 2, trimmedTo(10_000, 12))
	c.Features = []string{"light"}
	for i := range c.Backends {
		if c.Backends[i].Weight == 1 {
			c.Backends[i].Features = []string{"light"}
		}
	}
	whole := mustPredict(t, c)
	c.Views = [][]string{{"light"}}
	views := mustPredict(t, c)
	if views.MaxOverAverage <= whole.MaxOverAverage || views.Bytes <= whole.Bytes {
		t.Errorf("whole %+v, with the view of the light %+v", whole, views)
	}
	if r := mustBuild(t, c); !within(float64(views.Bytes), float64(len(r.Snapshot())), 0.02) {
		t.Errorf("%d bytes predicted, %d measured", views.Bytes, len(r.Snapshot()))
	}
}

// TestPredictedRecipeBytes are exact but for the trims of V3.
func TestPredictedRecipeBytes(t *testing.T) {
	for version, tolerance := range map[ring.Version]float64{ring.V1: 0, ring.V2: 0, ring.V3: 0.02} {
		c := scattered(300, 0, 10, ring.Algorithm{Version: version, PointsPerWeight: ring.V1PointsPerWeight})
		if version == ring.V3 {
			c.Algorithm.WeightUnit, c.Algorithm.MaxImbalance = 1, 10_000
		}
		got, want := float64(mustPredict(t, c).RecipeBytes), float64(len(mustBuild(t, c).Recipe()))
		if !within(got, want, tolerance) {
			t.Errorf("%s: %.0f bytes predicted, %.0f measured", version, got, want)
		}
	}
}

// TestPredictOfManyViews: the lists of trims, a third of them of two bytes here, are then a fifth of the snapshot.
func TestPredictOfManyViews(t *testing.T) {
	c := scattered(100, 0, 1, trimmedTo(10_000, 160))
	for f := range 6 {
		c.Features = append(c.Features, fmt.Sprintf("f%d", f))
	}
	for i := range c.Backends {
		c.Backends[i].Features = c.Features
	}
	for set := 1; set < 64; set++ {
		var view []string
		for f, name := range c.Features {
			if set>>f&1 != 0 {
				view = append(view, name)
			}
		}
		c.Views = append(c.Views, view)
	}
	p, r := mustPredict(t, c), mustBuild(t, c)
	if !within(float64(p.Bytes), float64(len(r.Snapshot())), 0.02) {
		t.Errorf("%d bytes predicted, %d measured", p.Bytes, len(r.Snapshot()))
	}
}

func TestPredictSmallRings(t *testing.T) {
	one := mustPredict(t, fleet(1, ring.V2, 160))
	if one.MaxOverAverage != 1 || one.CV != 0 || one.Backends != 1 || one.Points != 160 {
		t.Errorf("one backend: %+v", one)
	}
	c := fleet(3, ring.V2, 160)
	c.Backends[0].Weight, c.Backends[1].Weight = 0, 0
	if p := mustPredict(t, c); p.MaxOverAverage != 1 || p.Backends != 1 {
		t.Errorf("one of three: %+v", p)
	}
	c.Backends[2].Weight = 0
	if _, err := ring.Predict(c); !errors.Is(err, ring.ErrNoBackend) {
		t.Errorf("none: %v", err)
	}
	if a := mustAdvise(t, fleet(1, ring.V2, 1), 1); !a.Reached || a.Points != 1 {
		t.Errorf("advice for one: %+v", a)
	}
}

func TestAdviceRefuses(t *testing.T) {
	for want, test := range map[string]struct {
		change func(*ring.Config)
		limit  uint32
	}{
		`maxImbalance: "0": not within 1 to 1000000 millionths`:       {func(*ring.Config) {}, 0},
		`maxImbalance: "1000001": not within 1 to 1000000 millionths`: {func(*ring.Config) {}, 1_000_001},
		`algorithm.version: "V4": not one of V1, V2, V3`:              {func(c *ring.Config) { c.Algorithm.Version = 4 }, 1},
	} {
		c := fleet(3, ring.V2, 160)
		test.change(&c)
		if _, err := ring.Advise(c, test.limit); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	c := fleet(3, ring.V2, 160)
	c.MaxPoints = 2
	var tooMany *ring.TooManyPointsError
	if _, err := ring.Advise(c, 1); !errors.As(err, &tooMany) || tooMany.Limit != 2 {
		t.Errorf("got %v", err)
	}
}
