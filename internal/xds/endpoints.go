// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// layout is a way to write endpoints with their weights.
type layout uint8

const (
	// byZone has a locality for each zone. Its weight is the sum of its endpoints' that are usable, so that a client that splits by locality
	// and one that does not come to the same.
	byZone layout = iota
	// byEndpoint has a locality for each endpoint, whose ID is the sub-zone.
	byEndpoint
	// together has one locality: gRPC multiplies the weights of an endpoint and of its locality.
	together
)

// variant is what the endpoints of a policy that a client is given depend on.
type variant struct {
	// rule is the index of the rule of the client's zone, -1 for none.
	rule   int
	layout layout
	// grpc says that endpoints that take no requests are left out: gRPC does not use them, and a locality must not be without.
	grpc bool
}

// variantFor returns what a client is given.
func (p *policy) variantFor(v view) variant {
	kind := variant{rule: p.rule(v.zone), grpc: v.grpc}
	switch {
	case p.Mode == v1alpha1.EDSLocalityPerEndpoint, v.grpc && p.Mode != v1alpha1.EDSEndpointWeight:
		kind.layout = byEndpoint
	case v.grpc:
		kind.layout = together
	}
	return kind
}

// assignment returns the endpoints that a client is given. The caller must not change it.
func (p *policy) assignment(v view) *endpointv3.ClusterLoadAssignment {
	kind := p.variantFor(v)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.built[kind] == nil {
		p.built[kind] = p.build(kind)
	}
	return p.built[kind]
}

// empty says that nothing is kept of what clients were given.
func (p *policy) empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.built) == 0
}

// forget drops what clients were given.
func (p *policy) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.built)
}

func (p *policy) build(kind variant) *endpointv3.ClusterLoadAssignment {
	endpoints := p.Endpoints
	if kind.grpc {
		endpoints = slices.DeleteFunc(slices.Clone(endpoints), func(e Endpoint) bool { return !e.usable() })
	}
	var rule *v1alpha1.LocalityRule
	if kind.rule >= 0 {
		rule = &p.Locality[kind.rule]
	}
	all := &endpointv3.ClusterLoadAssignment{ClusterName: p.Policy}
	for priority, list := range priorities(endpoints, rule) {
		for _, group := range kind.layout.groups(list) {
			all.Endpoints = append(all.Endpoints, kind.locality(group, uint32(priority)))
		}
	}
	return all
}

// groups splits the endpoints of a priority into localities. Zones are in the order of their names.
func (l layout) groups(list []weighted) [][]weighted {
	switch l {
	case byEndpoint:
		return slices.Collect(slices.Chunk(list, 1))
	case together:
		return [][]weighted{list}
	}
	zones := make(map[string]v1alpha1.ZoneShare)
	byZone := make(map[string][]weighted)
	for _, e := range list {
		zones[e.Zone] = 0
		byZone[e.Zone] = append(byZone[e.Zone], e)
	}
	groups := make([][]weighted, 0, len(zones))
	for _, zone := range sortedZones(zones) {
		groups = append(groups, byZone[zone])
	}
	return groups
}

// locality writes one group, which is not empty.
func (kind variant) locality(group []weighted, priority uint32) *endpointv3.LocalityLbEndpoints {
	out := &endpointv3.LocalityLbEndpoints{Locality: &corev3.Locality{}, Priority: priority}
	switch kind.layout {
	case byZone:
		out.Locality.Zone = group[0].Zone
	case byEndpoint:
		out.Locality.Zone, out.Locality.SubZone = group[0].Zone, group[0].ID
	}
	var usable, all uint32
	out.LbEndpoints = make([]*endpointv3.LbEndpoint, len(group))
	for i, e := range group {
		out.LbEndpoints[i] = kind.endpoint(e)
		all += e.share
		if e.usable() {
			usable += e.share
		}
	}
	if usable == 0 {
		usable = all // Nobody goes there, but 0 is no weight.
	}
	out.LoadBalancingWeight = wrapperspb.UInt32(usable)
	return out
}

// endpoint writes one endpoint. One that is alone in its locality has no weight of its own for gRPC, whose ring_hash would square it.
func (kind variant) endpoint(e weighted) *endpointv3.LbEndpoint {
	out := &endpointv3.LbEndpoint{
		HealthStatus: corev3.HealthStatus_HEALTHY,
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address: e.Address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(e.Port)},
			}}},
		}},
	}
	switch {
	case e.Draining:
		out.HealthStatus = corev3.HealthStatus_DRAINING
	case !e.Ready:
		out.HealthStatus = corev3.HealthStatus_UNHEALTHY
	}
	if !kind.grpc || kind.layout != byEndpoint {
		out.LoadBalancingWeight = wrapperspb.UInt32(e.share)
	}
	return out
}
