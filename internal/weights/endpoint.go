// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"cmp"
	"net"
	"slices"
	"strconv"

	"github.com/ringwright/ringwright/internal/balance"
)

// MaxEndpoints is how many endpoints a target has at most.
const MaxEndpoints = 100_000

// Endpoint is a server of a target.
type Endpoint struct {
	// ID is the UID of its pod, or its address and port where there is no pod; the ID of the backend of a HashRing.
	ID string
	// Pod is the name of its pod, and PodUID the pod's UID; "" where there is none.
	Pod, PodUID string
	// Node is the name of the pod's node.
	Node string
	// Address is an IP address or a host name, and Port the TCP port.
	Address string
	Port    int32
	Zone    string
	// Ready endpoints get traffic.
	Ready bool
}

// HostPort returns the address and port.
func (e Endpoint) HostPort() string { return net.JoinHostPort(e.Address, strconv.Itoa(int(e.Port))) }

// Name is what people call it, as in static weights: the pod, else the ID.
func (e Endpoint) Name() string { return cmp.Or(e.Pod, e.ID) }

// sortEndpoints sorts by ID, and keeps one endpoint of each, a ready one if there is one.
func sortEndpoints(endpoints []Endpoint) []Endpoint {
	slices.SortFunc(endpoints, func(a, b Endpoint) int {
		if c := cmp.Compare(a.ID, b.ID); c != 0 {
			return c
		}
		if a.Ready != b.Ready {
			if a.Ready {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.HostPort(), b.HostPort())
	})
	return slices.CompactFunc(endpoints, func(a, b Endpoint) bool { return a.ID == b.ID })
}

// byGroup divides endpoints, sorted by ID, into those that balance each other: by zone where locality says where requests go, else all of
// them under "".
func byGroup(endpoints []Endpoint, byZone bool) map[string][]Endpoint {
	if !byZone {
		return map[string][]Endpoint{"": endpoints}
	}
	groups := map[string][]Endpoint{}
	for _, e := range endpoints {
		groups[e.Zone] = append(groups[e.Zone], e)
	}
	return groups
}

func balanced(endpoints []Endpoint) []balance.Endpoint {
	list := make([]balance.Endpoint, len(endpoints))
	for i, e := range endpoints {
		list[i] = balance.Endpoint{ID: e.ID, Ready: e.Ready}
	}
	return list
}
