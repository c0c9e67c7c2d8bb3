// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// MaxEndpoints is how many endpoints a policy has at most.
const MaxEndpoints = 100_000

// policy is an assignment that was found good, with its endpoints in the order of their IDs. It does not change.
type policy struct {
	Assignment
	// byAddress is made when the first report asks for it: most clients name endpoints by their IDs.
	byAddress func() map[netip.AddrPort]string

	mu sync.Mutex
	// built are the endpoints as clients are given them, which several zones share.
	built map[variant]*endpointv3.ClusterLoadAssignment
}

// newPolicy checks an assignment.
func newPolicy(a Assignment) (*policy, error) {
	namespace, name, ok := strings.Cut(a.Policy, "/")
	switch {
	case !ok || namespace == "" || name == "" || strings.Contains(name, "/"):
		return nil, fmt.Errorf("policy must be namespace/name; got %q", a.Policy)
	case a.Mode != "" && a.Mode != v1alpha1.EDSAuto && a.Mode != v1alpha1.EDSEndpointWeight && a.Mode != v1alpha1.EDSLocalityPerEndpoint:
		return nil, fmt.Errorf("mode must be Auto, EndpointWeight or LocalityPerEndpoint; got %q", a.Mode)
	case a.ReportInterval < 0:
		return nil, fmt.Errorf("the interval of reports must be at least 0; got %s", a.ReportInterval)
	case !utf8.ValidString(a.Policy) || !utf8.ValidString(a.CustomMetric):
		return nil, fmt.Errorf("policy and custom metric must be UTF-8; got %q and %q", a.Policy, a.CustomMetric)
	case len(a.Endpoints) > MaxEndpoints:
		return nil, fmt.Errorf("a policy has at most %d endpoints; got %d", MaxEndpoints, len(a.Endpoints))
	}
	if err := checkLocality(a.Locality); err != nil {
		return nil, err
	}
	a.Endpoints = slices.Clone(a.Endpoints)
	slices.SortFunc(a.Endpoints, func(x, y Endpoint) int { return cmp.Compare(x.ID, y.ID) })
	if err := checkEndpoints(a.Endpoints); err != nil {
		return nil, err
	}
	p := &policy{Assignment: a, built: make(map[variant]*endpointv3.ClusterLoadAssignment)}
	p.byAddress = sync.OnceValue(p.addresses)
	return p, nil
}

func checkLocality(rules []v1alpha1.LocalityRule) error {
	from := make(map[string]bool, len(rules))
	for i, r := range rules {
		if from[r.From] {
			return fmt.Errorf("locality[%d].from must be another zone than those before; got %q again", i, r.From)
		}
		from[r.From] = true
		for _, zone := range sortedZones(r.To) {
			if share := r.To[zone]; share < 1 || share > maxZoneShare {
				return fmt.Errorf("locality[%d].to[%s] must be from 1 to %d; got %d", i, zone, maxZoneShare, share)
			}
		}
		if len(r.To) > maxZones {
			return fmt.Errorf("locality[%d].to has at most %d zones; got %d", i, maxZones, len(r.To))
		}
	}
	return nil
}

// checkEndpoints takes them sorted, and writes addresses as all of them are written: clients reject what has an address twice.
func checkEndpoints(endpoints []Endpoint) error {
	seen := make(map[netip.AddrPort]string, len(endpoints))
	for i := range endpoints {
		e := &endpoints[i]
		address, err := netip.ParseAddr(e.Address)
		switch {
		case e.ID == "":
			return fmt.Errorf("an endpoint must have an ID; the one at %q has none", e.Address)
		case !utf8.ValidString(e.ID) || !utf8.ValidString(e.Zone):
			return fmt.Errorf("the ID and the zone of an endpoint must be UTF-8; got %q and %q", e.ID, e.Zone)
		case i > 0 && endpoints[i-1].ID == e.ID:
			return fmt.Errorf("the IDs of endpoints must differ; got %q again", e.ID)
		case err != nil || address.Zone() != "":
			return fmt.Errorf("the address of endpoint %s must be an IP address without a zone; got %q", e.ID, e.Address)
		case e.Port < 1 || e.Port > 65535:
			return fmt.Errorf("the port of endpoint %s must be from 1 to 65535; got %d", e.ID, e.Port)
		case e.Weight < 1:
			return fmt.Errorf("the weight of endpoint %s must be at least 1; got 0", e.ID)
		}
		at := netip.AddrPortFrom(address.Unmap(), uint16(e.Port))
		if other, ok := seen[at]; ok {
			return fmt.Errorf("endpoints must have different addresses; %s and %s have %s", other, e.ID, at)
		}
		seen[at] = e.ID
		e.Address = at.Addr().String()
	}
	return nil
}

// addresses returns the IDs of endpoints.
func (p *policy) addresses() map[netip.AddrPort]string {
	byAddress := make(map[netip.AddrPort]string, len(p.Endpoints))
	for _, e := range p.Endpoints {
		byAddress[netip.AddrPortFrom(netip.MustParseAddr(e.Address), uint16(e.Port))] = e.ID
	}
	return byAddress
}

// has says whether an endpoint is the policy's.
func (p *policy) has(id string) bool {
	_, found := slices.BinarySearchFunc(p.Endpoints, id, func(e Endpoint, id string) int { return cmp.Compare(e.ID, id) })
	return found
}

// stale returns an error where p is older than what is served.
func (p *policy) stale(served *policy) error {
	if cmp.Or(cmp.Compare(p.Epoch, served.Epoch), cmp.Compare(p.Version, served.Version)) >= 0 {
		return nil
	}
	return &StaleError{Policy: p.Policy, Epoch: p.Epoch, Version: p.Version, ServedEpoch: served.Epoch, ServedVersion: served.Version}
}

// sameCluster says whether clients are given the same cluster and asked for the same reports.
func (p *policy) sameCluster(q *policy) bool {
	return p.Mode == q.Mode && p.ReportInterval == q.ReportInterval && p.CustomMetric == q.CustomMetric
}

// sameEndpoints says whether clients are given the same endpoints.
func (p *policy) sameEndpoints(q *policy) bool {
	return p.Mode == q.Mode && slices.Equal(p.Endpoints, q.Endpoints) && reflect.DeepEqual(p.Locality, q.Locality)
}

// rule returns the index of the rule for the clients of a zone, -1 where there is none.
func (p *policy) rule(zone string) int {
	return slices.IndexFunc(p.Locality, func(r v1alpha1.LocalityRule) bool { return r.From == zone })
}
