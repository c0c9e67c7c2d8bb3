// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/balance"
)

// annotationConfigMap is on the first WeightSet of a policy: the name of the ConfigMap that its weights were written to, so that it is found
// when the policy is gone.
const annotationConfigMap = "ringwright.dev/weights-config-map"

// setName is the name of the i-th WeightSet of a policy.
func setName(policy string, i int) string { return policy + "-" + strconv.Itoa(i) }

// setIndex is the place of a WeightSet among those of its policy, -1 where the name is of another form.
func setIndex(set *v1alpha1.WeightSet) int {
	digits, ok := strings.CutPrefix(set.Name, set.Policy.Name+"-")
	if i, err := strconv.Atoi(digits); ok && err == nil && i >= 0 && strconv.Itoa(i) == digits {
		return i
	}
	return -1
}

// ownSets leaves out what carries the label of a policy and is none of its WeightSets, such as a copy under another name.
func ownSets(policy string, sets []v1alpha1.WeightSet) []v1alpha1.WeightSet {
	return slices.DeleteFunc(sets, func(s v1alpha1.WeightSet) bool { return s.Policy.Name != policy || setIndex(&s) < 0 })
}

// Complete returns those of the WeightSets of one policy that belong together, in their order, or nil where some are missing: sets are
// written one after the other, and a replica may die in between.
func Complete(sets []v1alpha1.WeightSet) []v1alpha1.WeightSet {
	sets = slices.DeleteFunc(slices.Clone(sets), func(s v1alpha1.WeightSet) bool { return setIndex(&s) < 0 })
	slices.SortFunc(sets, func(a, b v1alpha1.WeightSet) int { return cmp.Compare(setIndex(&a), setIndex(&b)) })
	if len(sets) == 0 || len(sets) < int(sets[0].Sets) {
		return nil
	}
	sets = sets[:sets[0].Sets]
	for i := range sets {
		if setIndex(&sets[i]) != i || sets[i].Version != sets[0].Version {
			return nil
		}
	}
	return sets
}

// restored is what WeightSets remember of a policy.
type restored struct {
	served   Served
	states   map[string]balance.State
	version  int64
	storedAt time.Time
}

// restore reads the WeightSets of a policy. Where some are missing it takes what is there: a weight of a minute ago is better than none.
func restore(sets []v1alpha1.WeightSet, byZone bool, now time.Time) restored {
	r := restored{served: Served{}, states: map[string]balance.State{}}
	stored, published := map[string][]balance.Stored{}, map[string][]balance.Weight{}
	for i := range sets {
		r.version, r.storedAt = max(r.version, sets[i].Version), later(r.storedAt, sets[i].UpdatedAt.Time)
		for _, e := range sets[i].Endpoints {
			zone := ""
			if byZone {
				zone = e.Zone
			}
			r.served[e.ID] = uint32(max(e.Weight, 1))
			published[zone] = append(published[zone], balance.Weight{ID: e.ID, Weight: balance.FromUnits(uint32(max(e.Weight, 1)))})
			stored[zone] = append(stored[zone], balance.Stored{
				ID: e.ID, Units: uint32(max(cmp.Or(e.Computed, e.Weight), 1)),
				IntegralMillionths: e.Integral, ErrorMillionths: e.LastError, Cold: e.State == v1alpha1.EndpointCold,
			})
		}
	}
	for zone := range stored {
		r.states[zone] = balance.Restore(now, stored[zone], published[zone])
	}
	return r
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// sets writes what has to be kept of a policy.
func (h *holding) sets(policy *v1alpha1.WeightPolicy, holder string, now time.Time) []v1alpha1.WeightSet {
	endpoints := h.weighted()
	n := max(1, (len(endpoints)+v1alpha1.MaxWeightSetEndpoints-1)/v1alpha1.MaxWeightSetEndpoints)
	sets := make([]v1alpha1.WeightSet, n)
	for i := range sets {
		part := endpoints[i*v1alpha1.MaxWeightSetEndpoints : min(len(endpoints), (i+1)*v1alpha1.MaxWeightSetEndpoints)]
		sets[i] = v1alpha1.WeightSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: policy.Namespace, Name: setName(policy.Name, i), Labels: setLabels(policy)},
			Policy: v1alpha1.PolicyIdentity{
				Name: policy.Name, UID: string(policy.UID), Tombstone: policy.Spec.Deletion.Tombstone, Ring: ringOf(policy),
			},
			Epoch: h.epoch, Holder: holder, Version: h.version, Sets: int32(n), UpdatedAt: secondsOf(now), Endpoints: part,
		}
	}
	if name := fileOf(policy); name != "" {
		sets[0].Annotations = map[string]string{annotationConfigMap: name}
	}
	sets[0].Noise = h.noise()
	return sets
}

// noise is that of the group whose reports are the noisiest, in millionths.
func (h *holding) noise() int64 {
	noise := 0.0
	for _, state := range h.states {
		noise = max(noise, state.Noise)
	}
	return int64(math.Round(noise * 1e6))
}

// ringOf is the HashRing that a policy is for, "" for none.
func ringOf(policy *v1alpha1.WeightPolicy) string {
	if policy.Spec.TargetRef.Kind == v1alpha1.TargetHashRing {
		return policy.Spec.TargetRef.Name
	}
	return ""
}

func setLabels(policy *v1alpha1.WeightPolicy) map[string]string {
	labels := map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedByRingwright, v1alpha1.LabelWeightPolicy: policy.Name,
	}
	if ring := ringOf(policy); ring != "" {
		labels[v1alpha1.LabelWeightRing] = ring
	}
	return labels
}

// weighted describes all endpoints, in the order of their IDs.
func (h *holding) weighted() []v1alpha1.WeightedEndpoint {
	states, stored := map[string]balance.EndpointState{}, map[string]balance.Stored{}
	for _, state := range h.states {
		for _, e := range state.Endpoints {
			states[e.ID] = e
		}
		for _, s := range state.Store() {
			stored[s.ID] = s
		}
	}
	weighted := make([]v1alpha1.WeightedEndpoint, 0, len(h.endpoints))
	for _, e := range h.endpoints {
		s := stored[e.ID]
		w := v1alpha1.WeightedEndpoint{
			ID: e.ID, Name: e.Pod, Address: e.Address, Port: e.Port, Zone: e.Zone,
			Weight: int32(max(h.served[e.ID], 1)), Computed: int32(min(s.Units, maxUnits)), Integral: s.IntegralMillionths, LastError: s.ErrorMillionths,
			State: stateOf(e, states[e.ID]),
		}
		if w.Computed == w.Weight {
			w.Computed = 0
		}
		h.describeReading(&w)
		weighted = append(weighted, w)
	}
	return weighted
}

// describeReading adds what was last reported.
func (h *holding) describeReading(w *v1alpha1.WeightedEndpoint) {
	r, ok := h.readings[w.ID]
	if !ok {
		return
	}
	w.Source, w.ReportedAt = r.Source, ptr.To(secondsOf(r.End))
	if figure := h.metric(r); !math.IsNaN(figure) && !math.IsInf(figure, 0) {
		w.Utilization = int64(math.Round(min(figure, 1e9) * 1e4))
	}
}

// stateOf says what the controller makes of an endpoint: the first of several that is so.
func stateOf(e Endpoint, s balance.EndpointState) v1alpha1.EndpointState {
	switch {
	case !e.Ready:
		return v1alpha1.EndpointNotReady
	case s.Guarded:
		return v1alpha1.EndpointGuarded
	case s.Cold:
		return v1alpha1.EndpointCold
	case s.Silent:
		return v1alpha1.EndpointSilent
	case s.Clamped:
		return v1alpha1.EndpointClamped
	default:
		return v1alpha1.EndpointBalanced
	}
}
