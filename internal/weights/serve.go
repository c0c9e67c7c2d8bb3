// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"maps"
	"math"
	"slices"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/balance"
)

// Served are the weights that clients are told, by the IDs of endpoints; 10000 is the mean.
type Served map[string]uint32

// pin has the weights of an earlier time, which are served whatever the controller computes. A nil weight asks for none.
type pin struct {
	revision int64
	weight   func(id string) (int32, bool)
}

// served returns what clients are told of the endpoints of a group, which are sorted by ID: the controller's weights, mixed with those of
// the strategy that the rollout comes from. Suspended weights stay, and pinned ones are those of their time; endpoints that they do not
// know get cold.
func (h *holding) serve(spec *v1alpha1.WeightPolicySpec, endpoints []Endpoint, state balance.State, percent int32, cold float64) ([]balance.Weight, error) {
	computed := state.Weights()
	switch {
	case h.pin.weight != nil:
		return fixed(endpoints, cold, func(e Endpoint) (uint32, bool) {
			weight, ok := h.pin.weight(e.ID)
			return uint32(max(weight, 0)), ok
		}), nil
	case spec.Suspend && len(h.served) > 0:
		return fixed(endpoints, cold, func(e Endpoint) (uint32, bool) { weight, ok := h.served[e.ID]; return weight, ok }), nil
	}
	to, err := strategyWeights(spec.Strategy.Type, spec.Strategy.StaticWeights, endpoints, computed)
	if err != nil {
		return nil, err
	}
	from, err := strategyWeights(spec.Rollout.From.Type, spec.Rollout.From.StaticWeights, endpoints, computed)
	if err != nil {
		return nil, err
	}
	return balance.Blend(from, to, float64(percent)), nil
}

// strategyWeights returns the weights that a strategy gives to the endpoints of computed.
func strategyWeights(strategy v1alpha1.StrategyType, static *v1alpha1.StaticWeights, endpoints []Endpoint, computed []balance.Weight) ([]balance.Weight, error) {
	switch strategy {
	case v1alpha1.StrategyEqual:
		return balance.Equal(computed), nil
	case v1alpha1.StrategyStatic:
		byName, err := staticWeights(static)
		if err != nil {
			return nil, err
		}
		return named(endpoints, computed, byName), nil
	default:
		return computed, nil
	}
}

// named returns the weights that byName gives, 1 where it gives none, with a mean of 1.
func named(endpoints []Endpoint, computed []balance.Weight, byName map[string]float64) []balance.Weight {
	names := make(map[string]string, len(endpoints))
	for _, e := range endpoints {
		names[e.ID] = e.Name()
	}
	weights := slices.Clone(computed)
	for i := range weights {
		weight, ok := byName[names[weights[i].ID]]
		if !ok {
			weight = 1
		}
		weights[i].Weight = weight
	}
	return balance.Blend(weights, weights, 100) // The mean becomes 1.
}

// fixed returns weights that do not follow the load, for the endpoints that are ready.
func fixed(endpoints []Endpoint, cold float64, weight func(Endpoint) (uint32, bool)) []balance.Weight {
	var weights []balance.Weight
	for _, e := range endpoints {
		if !e.Ready {
			continue
		}
		w := balance.Weight{ID: e.ID, Weight: cold}
		if units, ok := weight(e); ok {
			w.Weight = balance.FromUnits(units)
		}
		weights = append(weights, w)
	}
	return weights
}

// maxUnits is the largest weight that a WeightSet and a record take, 100 means. A mean of 1 is given up for it where one endpoint is to have
// nearly everything.
const maxUnits = 100 * v1alpha1.WeightScale

// units adds weights as clients are told them to served. An endpoint that is not ready keeps what it had.
func (h *holding) units(served Served, endpoints []Endpoint, weights []balance.Weight, cold float64) {
	for _, w := range weights {
		served[w.ID] = min(balance.Units(w.Weight), maxUnits)
	}
	for _, e := range endpoints {
		if _, ok := served[e.ID]; ok {
			continue
		}
		if before, ok := h.served[e.ID]; ok {
			served[e.ID] = before
		} else {
			served[e.ID] = balance.Units(cold)
		}
	}
}

// sameEndpoints says whether two sets of weights are of the same endpoints.
func sameEndpoints(a, b Served) bool {
	if len(a) != len(b) {
		return false
	}
	for id := range a {
		if _, ok := b[id]; !ok {
			return false
		}
	}
	return true
}

// told returns what clients were told of endpoints.
func (h *holding) told(endpoints []Endpoint) []balance.Weight {
	var told []balance.Weight
	for _, e := range endpoints {
		if units, ok := h.served[e.ID]; ok {
			told = append(told, balance.Weight{ID: e.ID, Weight: balance.FromUnits(units)})
		}
	}
	return told
}

// worthTelling says whether a weight has changed so much that clients have to be told.
func worthTelling(before, after Served) bool {
	for id, units := range after {
		if change := math.Abs(float64(units)/float64(before[id]) - 1); change > balance.PublishFrom {
			return true
		}
	}
	return false
}

// ids returns the IDs of weights, sorted.
func (s Served) ids() []string { return slices.Sorted(maps.Keys(s)) }
