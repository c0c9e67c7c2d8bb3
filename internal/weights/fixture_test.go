// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"fmt"
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/balance"
	"github.com/ringwright/ringwright/internal/loadreport"
)

var epochStart = time.Unix(1_800_000_000, 0).UTC()

// newPolicy is shop/checkout as the API server completes one with targetRef alone.
func newPolicy(change ...func(*v1alpha1.WeightPolicy)) *v1alpha1.WeightPolicy {
	p := &v1alpha1.WeightPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "checkout", UID: "policy-uid", Generation: 3, CreationTimestamp: metav1.NewTime(epochStart.Add(-time.Hour)),
		},
		Spec: v1alpha1.WeightPolicySpec{
			TargetRef: v1alpha1.WeightTarget{Kind: v1alpha1.TargetService, Name: "checkout"},
			Load: v1alpha1.LoadMeasurement{
				Metric: v1alpha1.MetricCPU, ErrorPenalty: "2",
				Sources: []v1alpha1.LoadSource{{Type: v1alpha1.SourceLRS}, {Type: v1alpha1.SourcePush}},
			},
			Strategy: v1alpha1.WeightStrategy{Type: v1alpha1.StrategyPID},
			Rollout:  v1alpha1.WeightRollout{From: v1alpha1.RolloutFrom{Type: v1alpha1.StrategyEqual}, Percent: ptr.To[int32](100)},
			Limits: v1alpha1.WeightLimits{
				MinWeight: "0.1", MaxWeight: "8", MaxStep: "50%", ColdStartWeight: "0.1", MinReporting: "50%",
			},
			Publish:  v1alpha1.WeightPublication{EDS: v1alpha1.EDSPublication{Mode: v1alpha1.EDSAuto}},
			Deletion: v1alpha1.WeightDeletion{Tombstone: ptr.To(metav1.Duration{Duration: 72 * time.Hour})},
		},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

// newEndpoints are n ready pods, pod-000 and so on, in the zones a and b by turns.
func newEndpoints(n int) []Endpoint {
	endpoints := make([]Endpoint, n)
	for i := range endpoints {
		endpoints[i] = Endpoint{
			ID: fmt.Sprintf("uid-%06d", i), Pod: fmt.Sprintf("pod-%06d", i), PodUID: fmt.Sprintf("uid-%06d", i),
			Address: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), Port: 8080, Zone: string(rune('a' + i%2)), Ready: true,
		}
	}
	return endpoints
}

// fleet has the loop of an owner run on a clock of its own.
type fleet struct {
	t         testing.TB
	now       time.Time
	policy    *v1alpha1.WeightPolicy
	endpoints []Endpoint
	h         *holding
	// speed is that of an endpoint; load is what it has with a weight of 1, 0.5 at speed 1.
	speed func(i int) float64
	// silent has nobody report.
	silent bool
}

func newFleet(t testing.TB, n int, change ...func(*v1alpha1.WeightPolicy)) *fleet {
	t.Helper()
	return &fleet{
		t: t, now: epochStart, policy: newPolicy(change...), endpoints: newEndpoints(n),
		h:     &holding{policy: types.NamespacedName{Namespace: "shop", Name: "checkout"}, epoch: 1},
		speed: func(i int) float64 { return 1 + float64(i%3)/2 },
	}
}

func (f *fleet) cycle() cycle {
	f.t.Helper()
	config, err := configOf(&f.policy.Spec)
	if err != nil {
		f.t.Fatal(err)
	}
	c := cycle{now: f.now, policy: f.policy, config: config, endpoints: f.endpoints}
	for i, e := range f.endpoints {
		if f.silent {
			break
		}
		weight := 1.0
		if units, ok := f.h.served[e.ID]; ok {
			weight = balance.FromUnits(units)
		}
		c.readings = append(c.readings, loadreport.Reading{
			Endpoint: e.ID, Source: v1alpha1.SourcePush, Start: f.now.Add(-5 * time.Second), End: f.now,
			CPU: 0.5 * weight / f.speed(i), InFlight: math.NaN(), Custom: math.NaN(), Requests: 1000, Errors: 0,
		})
	}
	return c
}

// look goes on by an interval and looks.
func (f *fleet) look() bool {
	f.t.Helper()
	f.now = f.now.Add(10 * time.Second)
	changed, err := f.h.advance(f.cycle())
	if err != nil {
		f.t.Fatal(err)
	}
	f.h.spec = f.policy
	return changed
}

// settle looks until the weights are those that the speeds ask for.
func (f *fleet) settle() Served {
	f.t.Helper()
	for range 40 {
		f.look()
	}
	if o := f.h.overview(); !(o.maxOverAverage < 1.03) {
		f.t.Fatalf("it has not settled: maxOverAverage is %v", o.maxOverAverage)
	}
	return f.h.served
}

// largestChange is that of a weight of endpoints that both have.
func largestChange(before, after Served) float64 {
	change := 0.0
	for id, units := range before {
		if now, ok := after[id]; ok {
			change = max(change, math.Abs(float64(now)/float64(units)-1))
		}
	}
	return change
}
