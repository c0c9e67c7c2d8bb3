// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/pkg/ring"
)

// weighing is a spec whose backends have the weight 100.
func weighing(n int) v1alpha1.HashRingSpec {
	s := spec(n)
	s.Algorithm = v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV2, PointsPerWeight: 2}
	for i := range s.Backends {
		s.Backends[i].Weight = ptr.To(int32(100))
	}
	return s
}

// backendID is the ID of the backend of spec with this number.
func backendID(i int) string { return fmt.Sprintf("10.0.0.%d:8080", i) }

// weightSet gives backends weights, by their numbers.
func weightSet(version int64, weights map[int]int32) v1alpha1.WeightSet {
	s := v1alpha1.WeightSet{
		ObjectMeta: metav1.ObjectMeta{Name: "load-0", Namespace: "cdn"},
		Policy:     v1alpha1.PolicyIdentity{Name: "load", UID: "uid-p", Ring: "edge"}, Version: version, Sets: 1,
		UpdatedAt: metav1.NewTime(start.Add(time.Duration(version) * time.Second)),
	}
	for i, weight := range weights {
		s.Endpoints = append(s.Endpoints, v1alpha1.WeightedEndpoint{ID: backendID(i), Weight: weight})
	}
	return s
}

// with returns a WeightSet with some fields changed.
func with(s v1alpha1.WeightSet, change func(*v1alpha1.WeightSet)) v1alpha1.WeightSet {
	change(&s)
	return s
}

// weights are those of the published ring, in the order of the backends' IDs.
func (c *cluster) weights() []uint32 {
	c.t.Helper()
	backends := c.config().Backends
	slices.SortFunc(backends, func(a, b ring.Backend) int { return compareIDs(a.ID, b.ID) })
	list := make([]uint32, len(backends))
	for i, b := range backends {
		list[i] = b.Weight
	}
	return list
}

func compareIDs(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return slices.Compare([]byte(a), []byte(b))
}

func (c *cluster) wantWeights(want ...uint32) {
	c.t.Helper()
	if diff := cmp.Diff(want, c.weights()); diff != "" {
		c.t.Errorf("weights of the published ring (-want +got):\n%s", diff)
	}
}

// wantLoad checks what the status says of the factors, as "policy version applied".
func (c *cluster) wantLoad(want string) {
	c.t.Helper()
	got := "none"
	if l := c.ring.Status.LoadWeights; l != nil {
		got = fmt.Sprintf("%s %d %t", l.Policy, l.Version, l.Applied)
	}
	if got != want {
		c.t.Errorf("status.loadWeights is %q, want %q", got, want)
	}
}

func TestLoadFactors(t *testing.T) {
	ends := func(d time.Duration) func(*v1alpha1.WeightSet) {
		return func(s *v1alpha1.WeightSet) { s.TombstoneUntil = ptr.To(metav1.NewTime(start.Add(d))) }
	}
	part := func(name string, sets int32) func(*v1alpha1.WeightSet) {
		return func(s *v1alpha1.WeightSet) { s.Name, s.Sets = name, sets }
	}
	other := func(s *v1alpha1.WeightSet) { s.Policy.Name, s.Policy.UID, s.Name = "other", "uid-o", "other-0" }
	half := weightSet(3, map[int]int32{0: 5000})
	for name, tc := range map[string]struct {
		edit func(*v1alpha1.HashRingSpec)
		sets []v1alpha1.WeightSet
		want []uint32
		load string
	}{
		"no sets":         {want: []uint32{100, 100, 100}, load: "none"},
		"rounded":         {sets: []v1alpha1.WeightSet{weightSet(3, map[int]int32{0: 5049, 1: 5050, 2: 19999})}, want: []uint32{50, 51, 200}, load: "load 3 true"},
		"unknown is 1":    {sets: []v1alpha1.WeightSet{weightSet(3, map[int]int32{1: 12345, 9: 20000})}, want: []uint32{100, 123, 100}, load: "load 3 true"},
		"bounded":         {sets: []v1alpha1.WeightSet{weightSet(3, map[int]int32{0: 999, 1: 80001, 2: 1_000_000})}, want: []uint32{10, 800, 800}, load: "load 3 true"},
		"empty":           {sets: []v1alpha1.WeightSet{weightSet(3, nil)}, want: []uint32{100, 100, 100}, load: "load 3 true"},
		"another ring":    {sets: []v1alpha1.WeightSet{with(half, func(s *v1alpha1.WeightSet) { s.Policy.Ring = "edge2" })}, want: []uint32{100, 100, 100}, load: "none"},
		"one is missing":  {sets: []v1alpha1.WeightSet{with(half, part("load-0", 2))}, want: []uint32{100, 100, 100}, load: "none"},
		"another version": {sets: []v1alpha1.WeightSet{with(half, part("load-0", 2)), with(weightSet(4, nil), part("load-1", 2))}, want: []uint32{100, 100, 100}, load: "none"},
		"both are there": {
			sets: []v1alpha1.WeightSet{with(half, part("load-0", 2)), with(weightSet(3, map[int]int32{2: 20000}), part("load-1", 2))},
			want: []uint32{50, 100, 200}, load: "load 3 true",
		},
		"one is left over": {
			sets: []v1alpha1.WeightSet{half, with(weightSet(2, map[int]int32{2: 20000}), part("load-1", 2))},
			want: []uint32{50, 100, 100}, load: "load 3 true",
		},
		"the newer one": {
			sets: []v1alpha1.WeightSet{weightSet(9, map[int]int32{1: 20000}), with(half, other)}, want: []uint32{100, 200, 100}, load: "load 9 true",
		},
		"one that is there before one that is gone": {
			sets: []v1alpha1.WeightSet{with(weightSet(9, map[int]int32{1: 20000}), ends(time.Hour)), with(half, other)},
			want: []uint32{50, 100, 100}, load: "other 3 true",
		},
		"gone":           {sets: []v1alpha1.WeightSet{with(half, ends(time.Hour))}, want: []uint32{50, 100, 100}, load: "load 3 true"},
		"gone and ended": {sets: []v1alpha1.WeightSet{with(half, ends(0))}, want: []uint32{100, 100, 100}, load: "none"},
		"drained": {
			edit: func(s *v1alpha1.HashRingSpec) { s.Backends[0].Weight = ptr.To(int32(0)) },
			sets: []v1alpha1.WeightSet{weightSet(3, map[int]int32{0: 80000})}, want: []uint32{0, 100, 100}, load: "load 3 true",
		},
		"at least 1": {
			edit: func(s *v1alpha1.HashRingSpec) { s.Backends[0].Weight = ptr.To(int32(2)) },
			sets: []v1alpha1.WeightSet{weightSet(3, map[int]int32{0: 1000})}, want: []uint32{1, 100, 100}, load: "load 3 true",
		},
		"the default weight": {
			edit: func(s *v1alpha1.HashRingSpec) { s.Backends[0].Weight = nil },
			sets: []v1alpha1.WeightSet{weightSet(3, map[int]int32{0: 80000})}, want: []uint32{8, 100, 100}, load: "load 3 true",
		},
		"at most what a weight can be": {
			edit: func(s *v1alpha1.HashRingSpec) {
				for i := range s.Backends {
					s.Backends[i].Weight = ptr.To(int32(ring.MaxWeight))
				}
				s.Algorithm = v1alpha1.Algorithm{Version: v1alpha1.AlgorithmV3, PointsPerWeight: 10, WeightUnit: ring.MaxWeight, MaxImbalance: "100%"}
			},
			sets: []v1alpha1.WeightSet{weightSet(3, map[int]int32{0: 80000})}, want: []uint32{1e6, 1e6, 1e6}, load: "load 3 true",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := weighing(3)
			if tc.edit != nil {
				tc.edit(&s)
			}
			for range 2 {
				c := newCluster(t, s)
				c.seen.WeightSets = tc.sets
				c.step()
				c.wantWeights(tc.want...)
				c.wantLoad(tc.load)
				slices.Reverse(tc.sets) // The order does not count.
			}
		})
	}
}

// TestLoadFactorsAreEffects: a ring with factors is the same as one whose spec has the weights.
func TestLoadFactorsAreEffects(t *testing.T) {
	c := newCluster(t, weighing(3))
	c.seen.WeightSets = []v1alpha1.WeightSet{weightSet(3, map[int]int32{0: 5000, 1: 10001})}
	c.step()
	s := weighing(3)
	s.Backends[0].Weight = ptr.To(int32(50))
	plain := newCluster(t, s)
	plain.step()
	if c.ring.Status.Active.Digest != plain.ring.Status.Active.Digest {
		t.Error("another ring")
	}
	// Factors that give the same weights are no new revision.
	c.seen.WeightSets = []v1alpha1.WeightSet{weightSet(4, map[int]int32{0: 5001})}
	c.after(minute)
	c.wantNumbers(1, 1)
	c.wantLoad("load 4 true")
}

// TestLoadWeightsMove: a change of factors is published as any other: a few keys move, it waits for minInterval, and for nothing else.
func TestLoadWeightsMove(t *testing.T) {
	c := newCluster(t, weighing(10))
	c.step()
	c.seen.WeightSets = []v1alpha1.WeightSet{weightSet(1, map[int]int32{0: 9500})}
	if d := c.after(time.Second); d.Wait == 0 {
		t.Error("it does not wait for minInterval")
	}
	c.wantLoad("load 1 false")
	c.after(minute)
	c.wantNumbers(2, 2)
	c.wantLoad("load 1 true")
	if got := c.ring.Status.Active.Movement; got < "0.10%" || got > "1.50%" || len(got) != 5 {
		t.Errorf("%s of the key space moved", got)
	}
	if got := c.weights(); got[0] != 95 {
		t.Errorf("weights %v", got)
	}
}

// TestLoadWeightsKept: WeightSets that are being written count when all are there, until then those before do; and one that is deleted
// counts no more.
func TestLoadWeightsKept(t *testing.T) {
	c := newCluster(t, weighing(3))
	two := func(version int64, n int, weights map[int]int32) v1alpha1.WeightSet {
		return with(weightSet(version, weights), func(s *v1alpha1.WeightSet) { s.Name, s.Sets = fmt.Sprintf("load-%d", n), 2 })
	}
	c.seen.WeightSets = []v1alpha1.WeightSet{two(1, 0, map[int]int32{0: 5000}), two(1, 1, map[int]int32{2: 20000})}
	c.step()
	c.wantWeights(50, 100, 200)
	c.seen.WeightSets[0] = two(2, 0, map[int]int32{0: 6000})
	c.after(minute)
	c.wantWeights(50, 100, 200)
	c.wantLoad("load 1 true")
	c.seen.WeightSets[1] = two(2, 1, map[int]int32{2: 30000})
	c.after(minute)
	c.wantWeights(60, 100, 300)
	c.wantLoad("load 2 true")
	c.seen.WeightSets = c.seen.WeightSets[:1] // Somebody deletes one.
	c.after(minute)
	c.wantWeights(60, 100, 300)
	c.seen.WeightSets = nil
	c.after(minute)
	c.wantWeights(100, 100, 100)
	c.wantLoad("none")
}

// TestLoadWeightsTombstone: the factors of a policy that is gone end with the tombstone, at which somebody looks again.
func TestLoadWeightsTombstone(t *testing.T) {
	c := newCluster(t, weighing(3))
	until := start.Add(time.Hour)
	c.seen.WeightSets = []v1alpha1.WeightSet{with(weightSet(1, map[int]int32{0: 5000}), func(s *v1alpha1.WeightSet) { s.TombstoneUntil = ptr.To(metav1.NewTime(until)) })}
	d := c.step()
	c.wantWeights(50, 100, 100)
	if !d.Load.Until.Equal(until) || !c.ring.Status.LoadWeights.TombstoneUntil.Equal(ptr.To(metav1.NewTime(until.Truncate(time.Second)))) {
		t.Errorf("ends at %s, the status says %s", d.Load.Until, c.ring.Status.LoadWeights.TombstoneUntil)
	}
	c.now = until.Add(-time.Nanosecond)
	c.step()
	c.wantWeights(50, 100, 100)
	c.now = until
	d = c.step()
	c.wantWeights(100, 100, 100)
	if !d.Load.Until.IsZero() {
		t.Errorf("somebody looks again at %s", d.Load.Until)
	}
}

// TestLoadWeightsBudget: factors that would move too much are the candidate, as any reweighting.
func TestLoadWeightsBudget(t *testing.T) {
	s := weighing(5)
	s.ChangePolicy, s.Membership.MaxMovement = v1alpha1.ChangeMigrate, "1%"
	c := newCluster(t, s)
	c.step()
	c.seen.WeightSets = []v1alpha1.WeightSet{weightSet(1, map[int]int32{0: 2000})}
	c.after(minute)
	c.wantWeights(100, 100, 100, 100, 100)
	c.wantLoad("load 1 false")
	c.want(v1alpha1.ConditionHeld, metav1.ConditionTrue, v1alpha1.ReasonMovementBudget, "maxMovement 1%")
	c.after(minute)
	c.wantLoad("load 1 false")
	c.seen.WeightSets = []v1alpha1.WeightSet{weightSet(2, map[int]int32{0: 9800})}
	c.after(minute)
	c.wantWeights(98, 100, 100, 100, 100)
	c.wantLoad("load 2 true")
}

// TestLoadWeightsPinned: a pinned revision has the weights that it had.
func TestLoadWeightsPinned(t *testing.T) {
	s := weighing(3)
	s.HistoryLimit = ptr.To(int32(5))
	c := newCluster(t, s)
	c.step()
	c.seen.WeightSets = []v1alpha1.WeightSet{weightSet(1, map[int]int32{0: 5000})}
	c.after(minute)
	c.wantLoad("load 1 true")
	c.edit(func(s *v1alpha1.HashRingSpec) { s.PinnedRevision = ptr.To(int64(1)) })
	c.after(minute)
	c.wantWeights(100, 100, 100)
	c.wantLoad("load 1 false")
}

// TestLoadWeightsRefused: where spec is refused, the factors go on to be those of the ring that stays.
func TestLoadWeightsRefused(t *testing.T) {
	c := newCluster(t, weighing(3))
	c.seen.WeightSets = []v1alpha1.WeightSet{weightSet(1, map[int]int32{0: 5000})}
	c.step()
	c.edit(func(s *v1alpha1.HashRingSpec) { s.Backends[1].Name = s.Backends[0].Name })
	c.after(minute)
	c.wantWeights(50, 100, 100)
	c.wantLoad("load 1 true")
}
