// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// TestLoadWeightsLocked: from the moment that a RingMigration has the ring its candidate stays the same, whatever the load; even where spec
// changes the weights together with the algorithm and the ring before cannot follow.
func TestLoadWeightsLocked(t *testing.T) {
	for name, budget := range map[string]string{"no budget": "", "a budget": "1%"} {
		t.Run(name, func(t *testing.T) {
			s := weighing(5)
			s.ChangePolicy, s.Membership.MaxMovement = v1alpha1.ChangeMigrate, budget
			c := newCluster(t, s)
			c.seen.WeightSets = []v1alpha1.WeightSet{weightSet(1, map[int]int32{0: 7000, 1: 12000})}
			c.step()
			c.edit(func(s *v1alpha1.HashRingSpec) {
				s.Algorithm = v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV3, PointsPerWeight: 160, WeightUnit: 1000, MaxImbalance: "5%"}
				for i := range s.Backends {
					s.Backends[i].Weight = ptr.To(int32(1000 + 100*i))
				}
			})
			c.after(minute)
			candidate := c.ring.Status.Candidate.Digest
			c.lock(v1alpha1.LockLocked, candidate)
			c.seen.WeightSets = []v1alpha1.WeightSet{weightSet(2, map[int]int32{0: 5000, 4: 20000})}
			c.after(minute)
			if got := c.ring.Status.Candidate.Digest; got != candidate {
				t.Fatalf("the candidate is another one: %s, not %s", got, candidate)
			}
			c.wantLoad("load 1 true")

			c.lock(v1alpha1.LockSplit, candidate, 0)
			c.after(minute)
			if got := c.file().Candidate; got == nil || got.Digest != candidate {
				t.Fatalf("published beside the ring is %+v", got)
			}
			c.want(v1alpha1.ConditionMigrationRequired, metav1.ConditionTrue, v1alpha1.ReasonAlgorithmChanged, "is its candidate")
			if f := c.condition(v1alpha1.ConditionMigrationRequired).Message; strings.Contains(f, "this waits") {
				t.Error(f)
			}
			c.lock(v1alpha1.LockPromoted, candidate)
			c.after(minute)
			c.lock(v1alpha1.LockRetired, candidate)
			c.after(minute)
			c.wantLoad("load 1 true")

			// Free again, the ring follows.
			c.ring.Status.Migration = nil
			c.edit(func(s *v1alpha1.HashRingSpec) { s.Membership.MaxMovement = "" })
			c.after(minute)
			c.wantLoad("load 2 true")
		})
	}
}

// TestLoadWeightsOfLockEnd: factors that end while a RingMigration has the ring stay until it is free.
func TestLoadWeightsOfLockEnd(t *testing.T) {
	s := weighing(5)
	s.ChangePolicy = v1alpha1.ChangeMigrate
	c := newCluster(t, s)
	c.seen.WeightSets = []v1alpha1.WeightSet{weightSet(1, map[int]int32{0: 7000})}
	c.step()
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Algorithm.PointsPerWeight = 4 })
	c.after(minute)
	c.lock(v1alpha1.LockLocked, c.ring.Status.Candidate.Digest)
	c.seen.WeightSets = nil
	c.after(minute)
	c.wantWeights(70, 100, 100, 100, 100)
	c.ring.Status.Migration = nil
	c.after(minute)
	c.wantWeights(100, 100, 100, 100, 100)
	c.wantLoad("none")
}

// TestLockWithoutLoadWeights: a policy that begins while a RingMigration has the ring begins when it is free.
func TestLockWithoutLoadWeights(t *testing.T) {
	s := weighing(5)
	s.ChangePolicy = v1alpha1.ChangeMigrate
	c := newCluster(t, s)
	c.step()
	c.lock(v1alpha1.LockLocked, "")
	c.seen.WeightSets = []v1alpha1.WeightSet{weightSet(1, map[int]int32{0: 7000})}
	c.after(minute)
	c.wantWeights(100, 100, 100, 100, 100)
	c.wantLoad("none")
	c.ring.Status.Migration = nil
	c.after(minute)
	c.wantWeights(70, 100, 100, 100, 100)
}

func TestCoarseWeights(t *testing.T) {
	small := func(weight int32) func(*v1alpha1.HashRingSpec) {
		return func(s *v1alpha1.HashRingSpec) {
			s.Algorithm.PointsPerWeight = 160
			for i := range s.Backends {
				s.Backends[i].Weight = ptr.To(weight)
			}
		}
	}
	for name, tc := range map[string]struct {
		edit    func(*v1alpha1.HashRingSpec)
		weights map[int]int32
		want    string
	}{
		"no factor":        {small(1), nil, ""},
		"exact":            {small(1), map[int]int32{0: 20000}, ""},
		"within 5 %":       {small(10), map[int]int32{0: 10500}, ""},               // 10.5, and gets 11: 4.8 %.
		"beyond 5 %":       {small(8), map[int]int32{0: 10600}, "1 of 1 backends"}, // 8.48, and gets 8: 5.7 %.
		"weight 1":         {small(1), map[int]int32{2: 8000, 1: 13000}, "2 of 2 backends with a factor of WeightPolicy load miss it by more than 5 %, because weights are whole numbers: 10.0.0.1:8080 has weight 1, and gets 1; weights 20 times as large in all backends would do (20 for that one), with spec.algorithm.pointsPerWeight 8 (it is 160)"},
		"the least factor": {small(1), map[int]int32{0: 1000}, "weights 100 times as large in all backends would do (100 for that one), with spec.algorithm.pointsPerWeight 1 (it is 160)"},
		"V3": {func(s *v1alpha1.HashRingSpec) {
			small(2)(s)
			s.Algorithm = v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV3, PointsPerWeight: 160, WeightUnit: 2, MaxImbalance: "5%"}
		}, map[int]int32{0: 8000}, "weights 10 times as large in all backends would do (20 for that one), with spec.algorithm.weightUnit 20 so"},
	} {
		t.Run(name, func(t *testing.T) {
			s := weighing(3)
			tc.edit(&s)
			c := newCluster(t, s)
			c.seen.WeightSets = []v1alpha1.WeightSet{weightSet(1, tc.weights)}
			c.step()
			got := ""
			for _, w := range c.ring.Status.Warnings {
				if w.Reason == v1alpha1.WarningCoarseWeights {
					got = w.Message
				}
			}
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q\nwant %q", got, tc.want)
			}
		})
	}
}
