// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// sortedEndpoints returns endpoints sorted by ID, without duplicates. Those that are the same as the old ones need not be
// compared with each other: their IDs are usually the same strings, at which nobody has to look.
func sortedEndpoints(list []Endpoint, old []EndpointState) []Endpoint {
	inOrder, i, before := true, 0, false
	for j := range list {
		for i < len(old) && old[i].ID != list[j].ID && old[i].ID < list[j].ID {
			i++
		}
		known := i < len(old) && old[i].ID == list[j].ID
		if known {
			i++
		}
		if j > 0 && (!known || !before) && list[j-1].ID >= list[j].ID {
			inOrder = false
			break
		}
		before = known
	}
	if inOrder {
		return list
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Endpoint) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), cmp.Compare(readyFirst(a), readyFirst(b)))
	})
	return slices.CompactFunc(list, func(a, b Endpoint) bool { return a.ID == b.ID })
}

func readyFirst(e Endpoint) int {
	if e.Ready {
		return 0
	}
	return 1
}

// members returns the states of the endpoints that there are now, with weights that have a mean of 1 over the ready ones.
func members(c Config, old []EndpointState, list []Endpoint) []EndpointState {
	sameIDs := func() bool {
		return slices.EqualFunc(list, old, func(a Endpoint, b EndpointState) bool { return sameString(a.ID, b.ID) || a.ID == b.ID })
	}
	same := sameIDs()
	if !same {
		list = sortedEndpoints(list, old)
		same = sameIDs()
	}
	if same {
		now := slices.Clone(old)
		for i := range now {
			now[i].Ready = list[i].Ready
		}
		level(c, now)
		return now
	}
	now, joined, i := make([]EndpointState, len(list)), []int(nil), 0
	told := 0.0 // The sum of the weights that made up all traffic before.
	for j, e := range list {
		for i < len(old) && old[i].ID != e.ID && old[i].ID < e.ID {
			told += readyWeight(old[i])
			i++
		}
		if i < len(old) && old[i].ID == e.ID {
			told += readyWeight(old[i])
			now[j] = old[i]
			now[j].Ready = e.Ready
			i++
			continue
		}
		now[j] = EndpointState{ID: e.ID, Ready: e.Ready, Silent: true}
		joined = append(joined, j)
	}
	for ; i < len(old); i++ {
		told += readyWeight(old[i])
	}
	welcome(c, now, joined, told)
	level(c, now)
	return now
}

func readyWeight(e EndpointState) float64 {
	if !e.Ready {
		return 0
	}
	return e.Weight
}

// welcome gives endpoints that joined their weight: that of a cold start, in means of those that were there. When so many have
// been exchanged that those who stay would get more than a step more of the traffic, the new ones get what that leaves over;
// and the weight 1 when nobody was there.
func welcome(c Config, now []EndpointState, joined []int, told float64) {
	stay, staying, coming := 0.0, 0, 0
	for i := range now {
		if now[i].Weight > 0 && now[i].Ready {
			stay += now[i].Weight
			staying++
		}
	}
	for _, j := range joined {
		if now[j].Ready {
			coming++
		}
	}
	weight, cold := 1.0, staying > 0
	if cold {
		mean := stay / float64(staying)
		weight = c.ColdStartWeight * mean
		if coming > 0 {
			left := (told/math.Exp(c.MaxStep) - stay) / float64(coming)
			weight = min(max(weight, left), mean)
		}
	}
	for _, j := range joined {
		now[j].Weight, now[j].Cold = weight, cold
	}
}

// level brings the weights of the ready endpoints to a mean of 1 within the limits.
func level(c Config, list []EndpointState) {
	if isLevel(c, list) {
		return
	}
	ready := make([]limited, 0, len(list))
	for i, e := range list {
		if e.Ready {
			low := c.MinWeight
			if e.Guarded || e.Weight < low {
				low = c.GuardedMinWeight
			}
			ready = append(ready, limited{index: int32(i), weight: sane(e.Weight), low: low, high: c.MaxWeight})
		}
	}
	spread(ready, float64(len(ready)))
	for _, l := range ready {
		list[l.index].Weight = l.weight
	}
}

// isLevel says that nothing has to be done, which is the case whenever no endpoint came or went.
func isLevel(c Config, list []EndpointState) bool {
	sum, n := 0.0, 0
	for i := range list {
		if e := &list[i]; e.Ready {
			if within := e.Weight >= c.GuardedMinWeight && e.Weight <= c.MaxWeight; !within {
				return false
			}
			sum += e.Weight
			n++
		}
	}
	return math.Abs(sum-float64(n)) <= 1e-10*float64(n)
}
