// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ringwright/ringwright/internal/balance"
)

// group divides the endpoints into those that balance each other. Where spec.locality came or went, endpoints take what is known of them
// along into their new groups.
func (h *holding) group(c cycle) map[string][]Endpoint {
	byZone := len(c.policy.Spec.Locality) > 0
	groups := byGroup(c.endpoints, byZone)
	if byZone != h.byZone {
		h.states = regroup(c, h.states, groups, h.served)
	}
	h.byZone = byZone
	return groups
}

// regroup returns states of other groups of the same endpoints.
func regroup(c cycle, before map[string]balance.State, groups map[string][]Endpoint, served Served) map[string]balance.State {
	known := map[string]balance.Stored{}
	for _, state := range before {
		for _, s := range state.Store() {
			known[s.ID] = s
		}
	}
	states := make(map[string]balance.State, len(groups))
	for zone, endpoints := range groups {
		var stored []balance.Stored
		var published []balance.Weight
		for _, e := range endpoints {
			s, ok := known[e.ID]
			if !ok {
				continue
			}
			stored = append(stored, s)
			if units, ok := served[e.ID]; ok {
				published = append(published, balance.Weight{ID: e.ID, Weight: balance.FromUnits(units)})
			}
		}
		if len(stored) > 0 {
			states[zone] = balance.Restore(c.now, stored, published)
		}
	}
	return states
}

// rest goes on without any endpoint: what is known of the last ones stays, for when they come back.
func (h *holding) rest(c cycle) {
	h.advanced = nil
	h.results, h.readings, h.measured = nil, nil, measured{maxOverAverage: math.NaN()}
	if h.due(c) {
		h.updatedAt = c.now
	}
	h.step(c)
}

// advanced is what advance depends on besides endpoints and readings.
type advanced struct {
	generation int64
	uid        types.UID
	pinned     int64
}

// same says that there is nothing to advance: events about endpoints often change nothing that counts, and to look at a hundred thousand takes time.
func (h *holding) same(c cycle) bool {
	return !h.due(c) && h.advanced != nil && *h.advanced == advanced{c.policy.Generation, c.policy.UID, h.pin.revision} && slices.Equal(h.endpoints, c.endpoints)
}

// unlooked says that weights were taken over and no endpoint of them was seen yet.
func (h *holding) unlooked() bool { return len(h.endpoints) == 0 && len(h.served) > 0 }

// step goes on with the rollout, and says whether it is at another step than before.
func (h *holding) step(c cycle) bool {
	before := h.rollout
	rollout := advanceRollout(c.policy, before, h.measured, c.now)
	h.measured.updated = false
	h.rollout = &rollout
	return before == nil || before.Digest != rollout.Digest || before.Step != rollout.Step || before.Aborted != rollout.Aborted
}
