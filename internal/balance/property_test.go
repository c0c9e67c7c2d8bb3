// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// odd returns figures of all kinds.
func odd(chance *rand.Rand) float64 {
	switch chance.IntN(40) {
	case 0:
		return math.NaN()
	case 1:
		return math.Inf(1 - 2*chance.IntN(2))
	case 2:
		return -chance.Float64()
	case 3:
		return 0
	case 4:
		return 1e300
	case 5:
		return math.MaxFloat64
	case 6:
		return math.SmallestNonzeroFloat64
	case 7:
		return math.Pow(10, 40*chance.Float64()-20)
	default:
		return chance.Float64()
	}
}

func randomInput(chance *rand.Rand, now time.Time) Input {
	in := Input{Now: now}
	for range chance.IntN(12) {
		in.Endpoints = append(in.Endpoints, Endpoint{fmt.Sprint("e", chance.IntN(14)), chance.IntN(6) > 0})
	}
	for range chance.IntN(60) {
		end := now.Add(-time.Duration(chance.IntN(40)-4) * time.Second)
		in.Reports = append(in.Reports, Report{
			Endpoint: fmt.Sprint("e", chance.IntN(18)), Start: end.Add(time.Duration(4-chance.IntN(20)) * time.Second), End: end,
			CPU: odd(chance), InFlight: odd(chance), Custom: odd(chance), Requests: odd(chance), Errors: odd(chance),
		})
	}
	return in
}

func randomConfig(chance *rand.Rand) Config {
	names := ProfileNames()
	c, _ := Profile(names[chance.IntN(len(names))])
	c.Metric = []Metric{MetricCPU, MetricInFlight, MetricMax, MetricCustom}[chance.IntN(4)]
	if chance.IntN(3) == 0 {
		c.Kp, c.KpFar, c.Ki, c.Kd = 3*chance.Float64(), 3*chance.Float64(), chance.Float64(), chance.Float64()
	}
	if chance.IntN(6) == 0 {
		c.MinLoad = 0.6
	}
	if chance.IntN(3) == 0 {
		c.MinReporting, c.MinLoad, c.MinWeight, c.MaxWeight = 0, 0, 1, 1+chance.Float64()
	}
	return c
}

// checkWeights: positive, finite, within the limits, with a mean of 1.
func checkWeights(c Config, weights []Weight) error {
	sum := 0.0
	for _, w := range weights {
		if !(w.Weight >= c.GuardedMinWeight*(1-1e-9) && w.Weight <= c.MaxWeight*(1+1e-9)) {
			return fmt.Errorf("%s has the weight %v, limits are %v and %v", w.ID, w.Weight, c.GuardedMinWeight, c.MaxWeight)
		}
		sum += w.Weight
	}
	if n := float64(len(weights)); n > 0 && math.Abs(sum/n-1) > 1e-9 {
		return fmt.Errorf("the mean is %v", sum/n)
	}
	return nil
}

// checkState: nothing that is remembered is not a number.
func checkState(s State) error {
	for _, e := range s.Endpoints {
		for _, x := range []float64{e.Weight, float64(e.Integral), float64(e.LastError), float64(e.Cost), float64(e.Probe.Load), float64(e.Probe.Weight), float64(e.Probe.Own), float64(e.Trusted)} {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return fmt.Errorf("%+v", e)
			}
		}
	}
	for _, x := range []float64{s.Noise, s.Trend, s.Evidence.Sum, s.Evidence.Count} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("noise %v, trend %v, evidence %+v", s.Noise, s.Trend, s.Evidence)
		}
	}
	return nil
}

// TestAnyInput: whatever is reported, by whom and when, weights are weights; and the order of the input makes no difference.
func TestAnyInput(t *testing.T) {
	happened := map[SkipReason]int{}
	for seed := range uint64(400) {
		chance := rand.New(rand.NewPCG(seed, 1))
		c := randomConfig(chance)
		var s State
		now := epoch
		for step := range 25 {
			in := randomInput(chance, now)
			before := fmt.Sprintf("%v", s)
			next, r := Update(c, s, in)
			if after := fmt.Sprintf("%v", s); after != before {
				t.Fatalf("seed %d, step %d: the old state was changed", seed, step)
			}
			shuffled := Input{now, slices.Clone(in.Endpoints), slices.Clone(in.Reports)}
			chance.Shuffle(len(shuffled.Endpoints), func(i, j int) {
				shuffled.Endpoints[i], shuffled.Endpoints[j] = shuffled.Endpoints[j], shuffled.Endpoints[i]
			})
			chance.Shuffle(len(shuffled.Reports), func(i, j int) {
				shuffled.Reports[i], shuffled.Reports[j] = shuffled.Reports[j], shuffled.Reports[i]
			})
			again, r2 := Update(c, s, shuffled)
			if fmt.Sprint(next, r) != fmt.Sprint(again, r2) {
				t.Fatalf("seed %d, step %d: another order of the input\n%v %+v\n%v %+v", seed, step, next, r, again, r2)
			}
			s = next
			if err := checkWeights(c, s.Weights()); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if err := checkState(s); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			happened[r.Skipped]++
			if chance.IntN(2) == 0 {
				s = s.Publish(now, Blend(Equal(s.Weights()), s.Weights(), odd(chance)*100))
			}
			if chance.IntN(10) == 0 {
				s = Restore(now, s.Store(), nil)
			}
			now = now.Add(time.Duration(chance.IntN(25)-4) * time.Second) // The clock goes back at times.
		}
	}
	for _, reason := range []SkipReason{SkipNone, SkipNoEndpoints, SkipFewReports, SkipLowTraffic, SkipNothingNew} {
		if happened[reason] < 20 {
			t.Errorf("%q happened %d times: the test does not show what it should", reason, happened[reason])
		}
	}
	t.Log(happened)
}

// TestBlendOfAnything: weights of any source.
func TestBlendOfAnything(t *testing.T) {
	chance := rand.New(rand.NewPCG(3, 3))
	random := func() (list []Weight) {
		for range chance.IntN(8) {
			list = append(list, Weight{fmt.Sprint("e", chance.IntN(9)), odd(chance)})
		}
		return list
	}
	for range 5000 {
		from, to := random(), random()
		mixed := Blend(from, to, 150*chance.Float64()-25)
		sum := 0.0
		for i, w := range mixed {
			if !(w.Weight > 0 && w.Weight <= float64(len(mixed))) || i > 0 && mixed[i-1].ID >= w.ID {
				t.Fatalf("%v and %v: %v", from, to, mixed)
			}
			sum += w.Weight
		}
		if len(mixed) > 0 && math.Abs(sum/float64(len(mixed))-1) > 1e-9 {
			t.Fatalf("%v and %v: %v has the sum %v", from, to, mixed, sum)
		}
		if x := Change(from, to); math.IsNaN(x) || x < 0 {
			t.Fatalf("%v and %v: change %v", from, to, x)
		}
		settled := Settled(from, to, 0.03)
		if !slices.EqualFunc(settled, normalised(to), func(a, b Weight) bool { return a.ID == b.ID && math.Abs(a.Weight/b.Weight-1) <= 0.0301/0.97 }) {
			t.Fatalf("%v and %v: settled %v", from, to, settled)
		}
	}
}
