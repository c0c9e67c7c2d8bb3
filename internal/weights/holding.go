// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"cmp"
	"math"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/balance"
	"github.com/ringwright/ringwright/internal/loadreport"
)

// The pace of what goes to the API server, and of records.
const (
	storeInterval     = time.Minute
	statusInterval    = 30 * time.Second
	configMapInterval = 30 * time.Second
	recordInterval    = 10 * time.Minute
	// writeTimeout is what the writes of a look may take: the next policy waits for them.
	writeTimeout = 10 * time.Second
)

// holding is what the owner of a policy remembers while it owns it. All that may not be lost is in the WeightSets and the status.
type holding struct {
	// mu is held while the policy is looked at.
	mu     sync.Mutex
	policy types.NamespacedName
	// spec is the policy as it was last looked at.
	spec  *v1alpha1.WeightPolicy
	uid   types.UID
	epoch int64
	// version and served are what clients are told.
	version   int64
	served    Served
	changedAt time.Time
	// announced says that it is announced with this epoch: until then replicas have what was stored.
	announced bool
	// byZone says that the groups are zones, and states and results are those of the groups of endpoints that balance each other.
	byZone  bool
	states  map[string]balance.State
	results map[string]balance.Result
	// updatedAt is when the groups were last updated. The endpoints are the last that there were, and empty says that there are none now.
	updatedAt time.Time
	endpoints []Endpoint
	empty     bool
	// advanced is what the last advance was made with.
	advanced *advanced
	readings map[string]loadreport.Reading
	measured measured
	// coarse says why factors cannot be expressed by the weights of a HashRing.
	coarse  string
	rollout *v1alpha1.RolloutStatus
	pin     pin
	record  recorded
	stored  storedSets
	// fileName is the ConfigMap that was last written, unpublished why it could not be.
	fileName    string
	unpublished *targetError
	pace        pace
}

// pace is when things were last written.
type pace struct{ configMap, status time.Time }

// cycle is what is known when a policy is looked at.
type cycle struct {
	now       time.Time
	policy    *v1alpha1.WeightPolicy
	config    balance.Config
	endpoints []Endpoint
	readings  []loadreport.Reading
}

// due says whether it is time to compute weights.
func (h *holding) due(c cycle) bool { return c.now.Sub(h.updatedAt) >= c.config.Interval }

// advance computes what is to be served now. It says whether clients have to be told.
func (h *holding) advance(c cycle) (changed bool, err error) {
	spec := &c.policy.Spec
	if h.empty = len(c.endpoints) == 0; h.empty {
		h.rest(c)
		return false, nil
	}
	if h.same(c) {
		return false, nil
	}
	groups := h.group(c)
	if h.due(c) {
		h.update(c, groups)
		h.updatedAt = c.now
	} else {
		h.follow(c, groups)
	}
	stepped := h.step(c)
	next, byGroup := make(Served, len(c.endpoints)), map[string][]balance.Weight{}
	for zone, endpoints := range groups {
		weights, err := h.serve(spec, endpoints, h.states[zone], percentOf(spec.Rollout, *h.rollout), c.config.ColdStartWeight)
		if err != nil {
			return false, err
		}
		if spec.TargetRef.Kind == v1alpha1.TargetHashRing {
			weights = balance.Settled(h.told(endpoints), weights, balance.PublishFrom)
		}
		byGroup[zone] = weights
		h.units(next, endpoints, weights, c.config.ColdStartWeight)
	}
	h.endpoints, h.advanced = c.endpoints, &advanced{generation: c.policy.Generation, uid: c.policy.UID, pinned: h.pin.revision}
	if changed = stepped || !sameEndpoints(h.served, next) || worthTelling(h.served, next); !changed {
		return false, nil
	}
	h.served, h.version, h.changedAt = next, h.version+1, c.now
	for zone, weights := range byGroup {
		h.states[zone] = h.states[zone].Publish(c.now, weights)
	}
	return true, nil
}

// update has the controllers of all groups look at the readings. While weights are kept as they are, it only measures.
func (h *holding) update(c cycle, groups map[string][]Endpoint) {
	reports := map[string][]balance.Report{}
	h.readings = make(map[string]loadreport.Reading, len(c.readings))
	h.measured = measured{maxOverAverage: math.NaN()}
	for _, r := range c.readings {
		h.readings[r.Endpoint] = r
	}
	states := make(map[string]balance.State, len(groups))
	h.results = make(map[string]balance.Result, len(groups))
	for zone, endpoints := range groups {
		for _, e := range endpoints {
			if r, ok := h.readings[e.ID]; ok {
				reports[zone] = append(reports[zone], reportOf(r))
				h.measured.count(r)
			}
		}
		state, result := balance.Update(c.config, h.states[zone], balance.Input{Now: c.now, Endpoints: balanced(endpoints), Reports: reports[zone]})
		if h.kept(c) {
			state = follow(c, h.states[zone], endpoints)
		}
		states[zone], h.results[zone] = state, result
		if result.Skipped == balance.SkipNone && !h.kept(c) {
			h.measured.updated = true
		}
		if math.IsNaN(h.measured.maxOverAverage) || result.MaxOverAverage > h.measured.maxOverAverage {
			h.measured.maxOverAverage = result.MaxOverAverage
		}
	}
	h.states = states
}

// follow takes endpoints that came and went into all groups, between updates.
func (h *holding) follow(c cycle, groups map[string][]Endpoint) {
	states := make(map[string]balance.State, len(groups))
	for zone, endpoints := range groups {
		states[zone] = follow(c, h.states[zone], endpoints)
	}
	h.states = states
}

// follow takes endpoints that came and went into a state, whose weights stay.
func follow(c cycle, state balance.State, endpoints []Endpoint) balance.State {
	state, _ = balance.Update(c.config, state, balance.Input{Now: c.now, Endpoints: balanced(endpoints)})
	return state
}

// kept says whether weights stay as they are, whatever the load.
func (h *holding) kept(c cycle) bool { return c.policy.Spec.Suspend || h.pin.weight != nil }

func (m *measured) count(r loadreport.Reading) {
	if !math.IsNaN(r.Requests) {
		m.requests += r.Requests
	}
	if !math.IsNaN(r.Errors) {
		m.errors += r.Errors
	}
}

// reportOf gives a reading to the controller.
func reportOf(r loadreport.Reading) balance.Report {
	return balance.Report{
		Endpoint: r.Endpoint, Start: r.Start, End: r.End,
		CPU: r.CPU, InFlight: r.InFlight, Custom: r.Custom, Requests: r.Requests, Errors: r.Errors,
	}
}

// metric returns the figure of a reading that the policy balances: with Max, where two figures have different units, the CPU.
func (h *holding) metric(r loadreport.Reading) float64 {
	kind := v1alpha1.MetricCPU
	if h.spec != nil {
		kind = h.spec.Spec.Load.Metric
	}
	switch kind {
	case v1alpha1.MetricInFlight:
		return r.InFlight
	case v1alpha1.MetricCustom:
		return r.Custom
	default:
		return r.CPU
	}
}

// nextLook returns in how long the policy has to be looked at again.
func (h *holding) nextLook(c cycle) time.Duration {
	return max(cmp.Or(c.config.Interval, time.Second)-c.now.Sub(h.updatedAt), 100*time.Millisecond)
}

// secondsOf is a time as the API server keeps it.
func secondsOf(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
