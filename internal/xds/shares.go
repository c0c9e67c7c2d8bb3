// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

const (
	maxZones     = 64
	maxZoneShare = 10_000
	// ruleTotal is about what the weights of the endpoints that are ready sum up to under a rule. It leaves each zone some thousand times its
	// share, and room for those that are not ready: all weights of a priority together must be below 2^32.
	ruleTotal = 1_000_000_000
)

// weighted is an endpoint with the weight that clients are given.
type weighted struct {
	Endpoint
	share uint32
}

// usable says that the endpoint takes new requests.
func (e Endpoint) usable() bool { return e.Ready && !e.Draining }

// priorities returns the endpoints that a client is given under a rule, nil for none, by priority. A priority without endpoints is left out:
// clients reject gaps. Within a priority the endpoints that are usable have exactly the shares that their zone and weights give them, whether
// a client adds weights up by zone or not.
func priorities(endpoints []Endpoint, rule *v1alpha1.LocalityRule) [][]weighted {
	if rule == nil {
		return nonEmpty([][]weighted{natural(endpoints)})
	}
	byZone := make(map[string][]Endpoint)
	for _, e := range endpoints {
		byZone[e.Zone] = append(byZone[e.Zone], e)
	}
	list := [][]weighted{split(byZone, rule.To)}
	for _, zone := range rule.Failover {
		list = append(list, natural(byZone[zone]))
	}
	return nonEmpty(list)
}

func nonEmpty(list [][]weighted) [][]weighted {
	return slices.DeleteFunc(list, func(p []weighted) bool { return len(p) == 0 })
}

// natural gives each endpoint its weight, and less where the sum would be too large for clients.
func natural(endpoints []Endpoint) []weighted {
	var sum uint64
	for _, e := range endpoints {
		sum += uint64(e.Weight)
	}
	return spread(endpoints, min(sum, math.MaxUint32))
}

// split gives each zone its share of the whole, and the endpoints of a zone theirs of that.
func split(byZone map[string][]Endpoint, to map[string]v1alpha1.ZoneShare) []weighted {
	var shares uint64
	for _, share := range to {
		shares += uint64(share)
	}
	var list []weighted
	for _, zone := range sortedZones(to) {
		list = append(list, zoneWeights(byZone[zone], ruleTotal/shares*uint64(to[zone]))...)
	}
	return list
}

// zoneWeights splits the total of a zone between its endpoints that are usable. The others have what is in proportion, up to as much again.
func zoneWeights(endpoints []Endpoint, total uint64) []weighted {
	var usable, others []Endpoint
	var usableSum, otherSum float64
	for _, e := range endpoints {
		if e.usable() {
			usable, usableSum = append(usable, e), usableSum+float64(e.Weight)
		} else {
			others, otherSum = append(others, e), otherSum+float64(e.Weight)
		}
	}
	othersTotal := total
	if otherSum < usableSum {
		othersTotal = uint64(float64(total) * (otherSum / usableSum))
	}
	list := append(spread(usable, total), spread(others, othersTotal)...)
	slices.SortFunc(list, func(a, b weighted) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// spread splits a total between endpoints in proportion to their weights.
func spread(endpoints []Endpoint, total uint64) []weighted {
	weights := make([]uint32, len(endpoints))
	for i, e := range endpoints {
		weights[i] = e.Weight
	}
	list := make([]weighted, len(endpoints))
	for i, share := range apportion(weights, total) {
		list[i] = weighted{endpoints[i], share}
	}
	return list
}

// apportion splits a total below 2^32 into whole numbers in proportion to the weights: rounded down, and those with the largest remainders up,
// so that they sum up to it. None is 0, and what that takes is taken from the largest. With more weights than the total all are 1.
func apportion(weights []uint32, total uint64) []uint32 {
	var sum uint64
	for _, w := range weights {
		sum += uint64(w)
	}
	if sum == total {
		return slices.Clone(weights)
	}
	parts, remainders := make([]uint32, len(weights)), make([]uint64, len(weights))
	order := make([]int, len(weights))
	left := total
	for i, w := range weights {
		product := uint64(w) * total
		parts[i], remainders[i], order[i] = uint32(product/sum), product%sum, i
		left -= product / sum
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(remainders[j], remainders[i]) })
	for _, i := range order[:min(left, uint64(len(order)))] {
		parts[i]++
	}
	lift(parts)
	return parts
}

// lift raises every 0 to 1 at the cost of the largest.
func lift(parts []uint32) {
	var owed uint32
	for i, part := range parts {
		if part == 0 {
			parts[i] = 1
			owed++
		}
	}
	if owed == 0 {
		return
	}
	order := make([]int, len(parts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(parts[j], parts[i]) })
	for _, i := range order {
		pays := min(owed, parts[i]-1)
		parts[i] -= pays
		owed -= pays
	}
}

func sortedZones(to map[string]v1alpha1.ZoneShare) []string { return slices.Sorted(maps.Keys(to)) }
