// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
)

// trimmed returns a V3 spec of n backends and the features f0 to f<features-1>, of which each backend has all but a few.
func trimmed(n, features int) v1alpha1.HashRingSpec {
	s := spec(n)
	s.Algorithm = v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV3, PointsPerWeight: 40, WeightUnit: 1}
	for f := range features {
		name := fmt.Sprintf("f%d", f)
		s.Features = append(s.Features, v1alpha1.Feature{Name: name, Selector: metav1.LabelSelector{MatchLabels: map[string]string{name: "yes"}}})
	}
	for i := range s.Backends {
		s.Backends[i].Labels = map[string]string{}
		for f := range features {
			if i%(f+5) != 0 {
				s.Backends[i].Labels[fmt.Sprintf("f%d", f)] = "yes"
			}
		}
	}
	return s
}

func build(t *testing.T, s v1alpha1.HashRingSpec) *ring.Ring {
	t.Helper()
	d, err := plan.Build(s)
	if err != nil {
		t.Fatal(err)
	}
	return open(t, d)
}

func TestAlgorithmOfV3(t *testing.T) {
	for name, row := range map[string]struct {
		algorithm v1alpha1.Algorithm
		want      ring.Algorithm
	}{
		"defaults":  {v1alpha1.Algorithm{WeightUnit: 1}, ring.Algorithm{WeightUnit: 1, MaxImbalance: 10_000}},
		"a unit":    {v1alpha1.Algorithm{WeightUnit: 625, MaxImbalance: "1.0%"}, ring.Algorithm{WeightUnit: 625, MaxImbalance: 10_000}},
		"half":      {v1alpha1.Algorithm{WeightUnit: 1, MaxImbalance: "0.5%"}, ring.Algorithm{WeightUnit: 1, MaxImbalance: 5_000}},
		"least":     {v1alpha1.Algorithm{WeightUnit: 1, MaxImbalance: "0.0001%"}, ring.Algorithm{WeightUnit: 1, MaxImbalance: 1}},
		"most":      {v1alpha1.Algorithm{WeightUnit: 1, MaxImbalance: "100%"}, ring.Algorithm{WeightUnit: 1, MaxImbalance: 1_000_000}},
		"uneven":    {v1alpha1.Algorithm{WeightUnit: 1, MaxImbalance: "12.3456%"}, ring.Algorithm{WeightUnit: 1, MaxImbalance: 123_456}},
		"most, too": {v1alpha1.Algorithm{WeightUnit: 1_000_000, MaxImbalance: "1%"}, ring.Algorithm{WeightUnit: 1_000_000, MaxImbalance: 10_000}},
	} {
		t.Run(name, func(t *testing.T) {
			s := trimmed(3, 0)
			row.algorithm.Version, row.algorithm.PointsPerWeight = v1alpha1.AlgorithmV3, 40
			row.want.Version, row.want.PointsPerWeight = ring.V3, 40
			s.Algorithm = row.algorithm
			if diff := cmp.Diff(row.want, build(t, s).Algorithm()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFormatImbalance(t *testing.T) {
	for millionths, want := range map[uint32]string{1: "0.0001%", 5_000: "0.5%", 10_000: "1%", 123_456: "12.3456%", 1_000_000: "100%"} {
		if got := plan.FormatImbalance(millionths); got != want {
			t.Errorf("%d millionths: %s, want %s", millionths, got, want)
		}
	}
}

func TestViews(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*v1alpha1.HashRingSpec)
		want   [][]string
	}{
		"all":    {func(*v1alpha1.HashRingSpec) {}, [][]string{nil, {"f0"}, {"f1"}, {"f0", "f1"}}},
		"listed": {func(s *v1alpha1.HashRingSpec) { list(s, "f1", "f1 f0") }, [][]string{nil, {"f1"}, {"f0", "f1"}}},
		"none":   {func(s *v1alpha1.HashRingSpec) { list(s) }, [][]string{nil}},
		"V2": {func(s *v1alpha1.HashRingSpec) {
			list(s, "f1")
			s.Algorithm.Version = v1alpha1.AlgorithmV2
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := trimmed(20, 2)
			row.change(&s)
			if diff := cmp.Diff(row.want, build(t, s).Views()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := len(build(t, trimmed(30, 6)).Views()); got != 64 {
		t.Errorf("6 features have %d views, want 64", got)
	}
}

// list sets views to those whose features the texts name.
func list(s *v1alpha1.HashRingSpec, views ...string) {
	s.Views = v1alpha1.ViewsListed
	for _, v := range views {
		s.ViewList = append(s.ViewList, strings.Fields(v))
	}
}

func TestRefusalsOfV3(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*v1alpha1.HashRingSpec)
		want   string
	}{
		"no imbalance":    {func(s *v1alpha1.HashRingSpec) { s.Algorithm.MaxImbalance = "0%" }, `spec.algorithm.maxImbalance must be 0.0001% to 100% with at most 4 decimals; got "0%"`},
		"too much":        {func(s *v1alpha1.HashRingSpec) { s.Algorithm.MaxImbalance = "100.0001%" }, `got "100.0001%"`},
		"five decimals":   {func(s *v1alpha1.HashRingSpec) { s.Algorithm.MaxImbalance = "1.00000%" }, `got "1.00000%"`},
		"no percentage":   {func(s *v1alpha1.HashRingSpec) { s.Algorithm.MaxImbalance = "1" }, `got "1"`},
		"negative":        {func(s *v1alpha1.HashRingSpec) { s.Algorithm.MaxImbalance = "-1%" }, `got "-1%"`},
		"no unit":         {func(s *v1alpha1.HashRingSpec) { s.Algorithm.WeightUnit = 0 }, `spec.algorithm.weightUnit: "0": not within 1 to 1000000`},
		"too many views":  {func(s *v1alpha1.HashRingSpec) { *s = trimmed(3, 7) }, "spec.views: All makes 128 views of 7 features, the limit is 64 views, of 6 features: set spec.views to Listed"},
		"unknown feature": {func(s *v1alpha1.HashRingSpec) { list(s, "f0", "tape") }, `spec.viewList[1]: "tape": not a declared feature`},
		"a unit of V2": {func(s *v1alpha1.HashRingSpec) {
			s.Algorithm.Version, s.Algorithm.WeightUnit = v1alpha1.AlgorithmV2, 625
		}, "spec.algorithm.weightUnit must be 1 with version V2; got 625"},
	} {
		t.Run(name, func(t *testing.T) {
			s := trimmed(3, 2)
			row.change(&s)
			_, err := plan.Build(s)
			var refusal *plan.Refusal
			if !errors.As(err, &refusal) || refusal.Reason != v1alpha1.ReasonInvalidSpec || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got  %v\nwant %s", err, row.want)
			}
		})
	}
}

// TestStatusOfV3: every figure, worked out by another way than the code's where there is one.
func TestStatusOfV3(t *testing.T) {
	s := trimmed(60, 2)
	s.Algorithm.MaxImbalance, s.Algorithm.WeightUnit = "0.5%", 2
	for i := range s.Backends {
		*s.Backends[i].Weight = 2
	}
	c := newCluster(t, s)
	d := c.step()
	want := v1alpha1.ActiveAlgorithm{Version: v1alpha1.AlgorithmV3, PointsPerWeight: 40, WeightUnit: 2, MaxImbalance: "0.5%"}
	if diff := cmp.Diff(want, c.ring.Status.Active.Algorithm); diff != "" {
		t.Errorf("algorithm (-want +got):\n%s", diff)
	}
	worst, features := 0.0, []string(nil)
	for _, names := range [][]string{nil, {"f0"}, {"f1"}, {"f0", "f1"}} {
		v, err := open(t, d.Desired).View(names...)
		if err != nil {
			t.Fatal(err)
		}
		average := float64(ring.KeySpace) / float64(v.Len()) // All weights are equal.
		if over := float64(slices.Max(v.Shares())) / average; over > worst {
			worst, features = over, names
		}
	}
	wantWorst := &v1alpha1.ViewBalance{Features: features, MaxOverAverage: fmt.Sprintf("%.3f", worst)}
	if diff := cmp.Diff(wantWorst, c.ring.Status.Balance.WorstView); diff != "" || worst <= 1 || worst > 1.005 {
		t.Errorf("worst view, at %f (-want +got):\n%s", worst, diff)
	}
	if w := c.ring.Status.Warnings; len(w) != 0 {
		t.Errorf("warnings %+v", w)
	}
}

func TestImbalanceOverLimit(t *testing.T) {
	s := trimmed(60, 1)
	s.Algorithm.MaxImbalance = "0.1%"
	for i := range s.Backends {
		delete(s.Backends[i].Labels, "f0")
		if i < 2 {
			s.Backends[i].Labels["f0"] = "yes"
		}
	}
	*s.Backends[1].Weight = 1_000 // So that the other has 4 points in its view and cannot be brought near its share.
	s.Algorithm.WeightUnit = 100
	c := newCluster(t, s)
	c.step()
	c.wantConditions("Ready=True/RingPublished", "Published=True/RingPublished")
	var over []v1alpha1.Warning
	for _, w := range c.ring.Status.Warnings {
		if w.Reason == v1alpha1.WarningImbalanceOverLimit && strings.HasPrefix(w.Message, "in view f0 ") {
			over = append(over, w)
		}
	}
	if len(over) != 1 || !strings.Contains(over[0].Message, "the busiest of 2 backends stays ") || !strings.Contains(over[0].Message, "maxImbalance 0.1%") {
		t.Fatalf("warnings %+v", c.ring.Status.Warnings)
	}
	v, err := build(t, s).View("f0")
	if err != nil {
		t.Fatal(err)
	}
	figure := fmt.Sprintf("stays %.2f", (v.Stats().MaxOverAverage-1)*100)
	if !strings.Contains(over[0].Message, figure) {
		t.Errorf("message %q does not say %q", over[0].Message, figure)
	}
}

func TestFieldWithoutEffect(t *testing.T) {
	s := trimmed(20, 1)
	s.Algorithm.MaxImbalance = "2%"
	list(&s, "f0")
	c := newCluster(t, s)
	c.step()
	if len(c.ring.Status.Warnings) != 0 || c.ring.Status.Balance.WorstView == nil {
		t.Errorf("V3: warnings %+v, worst view %v", c.ring.Status.Warnings, c.ring.Status.Balance.WorstView)
	}
	c.now = c.now.Add(minute)
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Algorithm.Version = v1alpha1.AlgorithmV2 })
	c.step()
	want := []v1alpha1.Warning{{
		Reason:  v1alpha1.WarningFieldWithoutEffect,
		Message: "spec.algorithm.maxImbalance, spec.views, spec.viewList: set, and without effect with version V2, which does not trim; V3 does",
	}}
	if diff := cmp.Diff(want, c.ring.Status.Warnings); diff != "" {
		t.Errorf("V2 (-want +got):\n%s", diff)
	}
	if a := c.ring.Status.Active.Algorithm; a.WeightUnit != 0 || a.MaxImbalance != "" || c.ring.Status.Balance.WorstView != nil {
		t.Errorf("V2 has %+v, worst view %v", a, c.ring.Status.Balance.WorstView)
	}
}

// TestWhatFitsFitsV3 builds with the number that the message proposes, and with a fifth more, which must not fit.
func TestWhatFitsFitsV3(t *testing.T) {
	for name, row := range map[string]struct {
		spec   v1alpha1.HashRingSpec
		weight func(i int) int32
		field  string
		set    func(*v1alpha1.HashRingSpec, int32)
		more   func(int32) int32
	}{
		"points":               {trimmed(1000, 0), one, "pointsPerWeight", setPoints, moreBy(5)},
		"points of many views": {trimmed(1000, 4), one, "pointsPerWeight", setPoints, moreBy(4)},
		"a unit": {trimmed(500, 1), func(i int) int32 { return int32(10_000 + i) }, "weightUnit",
			func(s *v1alpha1.HashRingSpec, n int32) { s.Algorithm.WeightUnit = n }, func(n int32) int32 { return n - n/5 - 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			s := row.spec
			s.Algorithm.PointsPerWeight = 900
			s.Publication.Encoding = v1alpha1.EncodingPoints
			for i := range s.Backends {
				s.Backends[i].Weight = ptr.To(row.weight(i))
			}
			_, err := plan.Build(s)
			var refusal *plan.Refusal
			if !errors.As(err, &refusal) || refusal.Reason != v1alpha1.ReasonSnapshotTooLarge {
				t.Fatal(err)
			}
			var proposed int32
			_, rest, _ := strings.Cut(refusal.Message, "spec.algorithm."+row.field+" ")
			if _, err := fmt.Sscan(rest, &proposed); err != nil {
				t.Fatalf("%q: %v", refusal.Message, err)
			}
			row.set(&s, proposed)
			if _, err := plan.Build(s); err != nil {
				t.Errorf("the proposed %d: %v", proposed, err)
			}
			row.set(&s, row.more(proposed))
			if _, err := plan.Build(s); err == nil {
				t.Errorf("much more than the proposed %d fits: %d", proposed, row.more(proposed))
			}
		})
	}
}

// TestTooLargeIsRefusedBeforeTrimming: a million points in 64 views would take many seconds, only to be refused. As a recipe they
// would fit, but for the limit of what is trimmed.
func TestTooLargeIsRefusedBeforeTrimming(t *testing.T) {
	s := trimmed(4096, 6)
	s.Algorithm.PointsPerWeight = 250
	s.Publication.Encoding = v1alpha1.EncodingPoints
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := plan.Build(s)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "has 1024000 points") {
		t.Error(err)
	}
	s.Publication.Encoding = v1alpha1.EncodingAuto
	s.Algorithm.PointsPerWeight = 257
	_, err = plan.Build(s)
	if err == nil || !strings.Contains(err.Error(), "has 1052672 points, at most 1048576 are trimmed, which V3 does: spec.algorithm.pointsPerWeight 256 would fit") {
		t.Error(err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 16<<20 {
		t.Errorf("%d bytes were allocated, so the points were built", allocated)
	}
}

func one(int) int32 { return 1 }

func setPoints(s *v1alpha1.HashRingSpec, n int32) { s.Algorithm.PointsPerWeight = n }

func moreBy(part int32) func(int32) int32 { return func(n int32) int32 { return n + n/part + 1 } }
