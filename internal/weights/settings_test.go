// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/balance"
)

func seconds(n int) *metav1.Duration {
	return ptr.To(metav1.Duration{Duration: time.Duration(n) * time.Second})
}

func TestDefaultsOfSources(t *testing.T) {
	type times struct{ Interval, StaleAfter time.Duration }
	for name, test := range map[string]struct {
		source v1alpha1.LoadSource
		want   times
	}{
		"LRS":              {v1alpha1.LoadSource{Type: v1alpha1.SourceLRS}, times{5 * time.Second, 20 * time.Second}},
		"Push":             {v1alpha1.LoadSource{Type: v1alpha1.SourcePush}, times{5 * time.Second, 20 * time.Second}},
		"ORCA":             {v1alpha1.LoadSource{Type: v1alpha1.SourceORCA}, times{5 * time.Second, 20 * time.Second}},
		"Prometheus":       {v1alpha1.LoadSource{Type: v1alpha1.SourcePrometheus}, times{15 * time.Second, 45 * time.Second}},
		"Metrics":          {v1alpha1.LoadSource{Type: v1alpha1.SourceMetrics}, times{15 * time.Second, 45 * time.Second}},
		"interval is set":  {v1alpha1.LoadSource{Type: v1alpha1.SourceMetrics, Interval: seconds(60)}, times{time.Minute, 3 * time.Minute}},
		"staleAfter is":    {v1alpha1.LoadSource{Type: v1alpha1.SourceLRS, StaleAfter: seconds(7)}, times{5 * time.Second, 7 * time.Second}},
		"both are":         {v1alpha1.LoadSource{Type: v1alpha1.SourceLRS, Interval: seconds(2), StaleAfter: seconds(3)}, times{2 * time.Second, 3 * time.Second}},
		"of a short one":   {v1alpha1.LoadSource{Type: v1alpha1.SourceLRS, Interval: seconds(1)}, times{time.Second, 20 * time.Second}},
		"of one of 7 s":    {v1alpha1.LoadSource{Type: v1alpha1.SourceLRS, Interval: seconds(7)}, times{7 * time.Second, 21 * time.Second}},
		"of an unknown as": {v1alpha1.LoadSource{Type: "Later"}, times{5 * time.Second, 20 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, times{interval(test.source), staleAfter(test.source)}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestConfigOf(t *testing.T) {
	balanced, _ := balance.Profile(balance.ProfileBalanced)
	ring, _ := balance.Profile(balance.ProfileRing)
	for name, test := range map[string]struct {
		change func(*v1alpha1.WeightPolicySpec)
		want   func(*balance.Config)
	}{
		"targetRef alone": {func(*v1alpha1.WeightPolicySpec) {}, func(*balance.Config) {}},
		"a HashRing has its own profile": {
			func(s *v1alpha1.WeightPolicySpec) { s.TargetRef.Kind = v1alpha1.TargetHashRing }, func(c *balance.Config) {
				metric, stale := c.Metric, max(ring.StaleAfter, 20*time.Second)
				*c = ring
				c.Metric, c.StaleAfter = metric, stale
				c.MinWeight, c.GuardedMinWeight, c.MaxWeight, c.ColdStartWeight = 0.1, 0.1/10, 8, 0.1
				c.MaxStep, c.MinReporting, c.ErrorPenalty = min(ring.MaxStep, math.Log1p(0.5)), 0.5, 2
			},
		},
		"limits": {func(s *v1alpha1.WeightPolicySpec) {
			s.Limits = v1alpha1.WeightLimits{MinWeight: "0.2", MaxWeight: "4", MaxStep: "10%", ColdStartWeight: "0.3", MinReporting: "80%"}
			s.Load.ErrorPenalty = "2.5"
		}, func(c *balance.Config) {
			c.MinWeight, c.GuardedMinWeight, c.MaxWeight, c.ColdStartWeight = 0.2, 0.02, 4, 0.3
			c.MaxStep, c.MinReporting, c.ErrorPenalty = math.Log1p(0.1), 0.8, 2.5
		}},
		"the slowest source says what is stale": {func(s *v1alpha1.WeightPolicySpec) {
			s.Load.Sources = append(s.Load.Sources, v1alpha1.LoadSource{Type: v1alpha1.SourcePrometheus, StaleAfter: seconds(300)})
		}, func(c *balance.Config) { c.StaleAfter = 5 * time.Minute }},
		"a profile's own step is smaller": {func(s *v1alpha1.WeightPolicySpec) { s.Strategy.Profile = v1alpha1.ProfileCautious }, func(c *balance.Config) {
			cautious, _ := balance.Profile(balance.ProfileCautious)
			c.Kp, c.KpFar, c.MaxStep = cautious.Kp, cautious.KpFar, cautious.MaxStep
		}},
		"metric": {func(s *v1alpha1.WeightPolicySpec) { s.Load.Metric = v1alpha1.MetricMax }, func(c *balance.Config) { c.Metric = balance.MetricMax }},
		"the literal PID": {func(s *v1alpha1.WeightPolicySpec) {
			s.Strategy.Profile = v1alpha1.ProfileCustom
			s.Strategy.PID = &v1alpha1.PIDGains{Kp: "0.4", Ki: "0.05", Kd: "0.1", Interval: seconds(30)}
		}, func(c *balance.Config) {
			custom, _ := balance.Profile(balance.ProfileCustom)
			limits := *c
			*c = custom
			c.Kp, c.KpFar, c.Ki, c.Kd, c.Interval = 0.4, 0.4, 0.05, 0.1, 30*time.Second
			c.MinWeight, c.GuardedMinWeight, c.MaxWeight, c.ColdStartWeight = 0.1, 0.1/10, 8, 0.1
			c.MaxStep, c.MinReporting, c.ErrorPenalty, c.Metric = limits.MaxStep, 0.5, 2, balance.MetricCPU
			c.StaleAfter = 30 * time.Second // No less than the interval, or updates would have holes.
		}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := newPolicy().Spec
			test.change(&spec)
			want := balanced
			want.MinWeight, want.GuardedMinWeight, want.MaxWeight, want.ColdStartWeight = 0.1, 0.1/10, 8, 0.1
			want.MaxStep, want.MinReporting, want.ErrorPenalty = math.Log1p(0.5), 0.5, 2
			want.StaleAfter = max(balanced.StaleAfter, 20*time.Second)
			test.want(&want)
			got, err := configOf(&spec)
			if err != nil {
				t.Fatal(err)
			}
			near := cmp.Comparer(func(a, b float64) bool { return a == b || math.Abs(a-b) < 1e-12 })
			if diff := cmp.Diff(want, got, near); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestErrorsOfSettings(t *testing.T) {
	for want, change := range map[string]func(*v1alpha1.WeightPolicySpec){
		`spec.strategy.profile: "Wild" is not one of`:          func(s *v1alpha1.WeightPolicySpec) { s.Strategy.Profile = "Wild" },
		`spec.limits.minWeight: "x" is not a number`:           func(s *v1alpha1.WeightPolicySpec) { s.Limits.MinWeight = "x" },
		`spec.limits.maxWeight: "NaN" is not a number`:         func(s *v1alpha1.WeightPolicySpec) { s.Limits.MaxWeight = "NaN" },
		`spec.limits.maxWeight: "1e999" is not a number`:       func(s *v1alpha1.WeightPolicySpec) { s.Limits.MaxWeight = "1e999" },
		`spec.limits.coldStartWeight: "" is not a number`:      func(s *v1alpha1.WeightPolicySpec) { s.Limits.ColdStartWeight = "" },
		`spec.limits.maxStep: "0.5" is not a percentage`:       func(s *v1alpha1.WeightPolicySpec) { s.Limits.MaxStep = "0.5" },
		`spec.limits.minReporting: "half" is not a percentage`: func(s *v1alpha1.WeightPolicySpec) { s.Limits.MinReporting = "half" },
		`spec.load.errorPenalty: "-" is not a number`:          func(s *v1alpha1.WeightPolicySpec) { s.Load.ErrorPenalty = "-" },
		`spec.strategy.pid.kp: "p" is not a number`:            func(s *v1alpha1.WeightPolicySpec) { s.Strategy.PID = &v1alpha1.PIDGains{Kp: "p", Ki: "i", Kd: "d"} },
		`spec.strategy.pid.ki: "i" is not a number`:            func(s *v1alpha1.WeightPolicySpec) { s.Strategy.PID = &v1alpha1.PIDGains{Kp: "1", Ki: "i", Kd: "d"} },
		`spec.strategy.pid.kd: "d" is not a number`:            func(s *v1alpha1.WeightPolicySpec) { s.Strategy.PID = &v1alpha1.PIDGains{Kp: "1", Ki: "0", Kd: "d"} },
		`spec: `: func(s *v1alpha1.WeightPolicySpec) { s.Limits.MaxWeight = "0.5" },
	} {
		spec := newPolicy().Spec
		change(&spec)
		if _, err := configOf(&spec); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := staticWeights(&v1alpha1.StaticWeights{Endpoints: []v1alpha1.StaticWeight{{Name: "pod-1", Weight: "much"}}}); err == nil ||
		err.Error() != `spec.strategy.staticWeights[pod-1].weight: "much" is not a number` {
		t.Errorf("got %v", err)
	}
}
