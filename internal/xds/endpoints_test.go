// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"fmt"
	"math"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	managerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// fleet makes n endpoints in three zones, all with the weight.
func fleet(n int, weight uint32) []Endpoint {
	endpoints := make([]Endpoint, n)
	for i := range endpoints {
		endpoints[i] = Endpoint{
			ID: fmt.Sprintf("pod-%06d", i), Address: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), Port: 8080,
			Zone: []string{"zone-a", "zone-b", "zone-c"}[i%3], Weight: weight, Ready: true,
		}
	}
	return endpoints
}

func mustPolicy(t *testing.T, a Assignment) *policy {
	t.Helper()
	if a.Policy == "" {
		a.Policy = "shop/checkout"
	}
	p, err := newPolicy(a)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// render writes an assignment in short: priority, zone, sub-zone, weight, and per endpoint its address, weight and health.
func render(a *endpointv3.ClusterLoadAssignment) []string {
	var lines []string
	for _, l := range a.GetEndpoints() {
		line := fmt.Sprintf("%d %s/%s %d:", l.GetPriority(), l.GetLocality().GetZone(), l.GetLocality().GetSubZone(), l.GetLoadBalancingWeight().GetValue())
		for _, e := range l.GetLbEndpoints() {
			line += fmt.Sprintf(" %s", e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
			if w := e.GetLoadBalancingWeight(); w != nil {
				line += fmt.Sprintf("=%d", w.GetValue())
			}
			if e.GetHealthStatus() != corev3.HealthStatus_HEALTHY {
				line += " " + e.GetHealthStatus().String()
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func TestEndpoints(t *testing.T) {
	four := []Endpoint{
		{ID: "d", Address: "10.0.0.4", Port: 80, Zone: "zone-b", Weight: 5000, Ready: true},
		{ID: "c", Address: "::ffff:10.0.0.3", Port: 80, Zone: "zone-b", Weight: 15000, Ready: true},
		{ID: "b", Address: "2001:db8:0::2", Port: 80, Zone: "zone-a", Weight: 10000},
		{ID: "a", Address: "10.0.0.1", Port: 80, Zone: "zone-a", Weight: 10000, Ready: true},
	}
	draining := append([]Endpoint{{ID: "e", Address: "10.0.0.5", Port: 80, Zone: "zone-c", Weight: 1, Ready: true, Draining: true}}, four...)
	rules := []v1alpha1.LocalityRule{{
		From: "zone-a", To: map[string]v1alpha1.ZoneShare{"zone-a": 80, "zone-b": 20}, Failover: []string{"zone-x", "zone-c"},
	}}
	for name, c := range map[string]struct {
		a    Assignment
		view view
		want []string
	}{
		"Envoy": {Assignment{Endpoints: four}, view{zone: "zone-a"}, []string{
			"0 zone-a/ 10000: 10.0.0.1=10000 2001:db8::2=10000 UNHEALTHY", "0 zone-b/ 20000: 10.0.0.3=15000 10.0.0.4=5000",
		}},
		"gRPC": {Assignment{Endpoints: draining, Mode: v1alpha1.EDSAuto}, view{grpc: true}, []string{
			"0 zone-a/a 10000: 10.0.0.1", "0 zone-b/c 15000: 10.0.0.3", "0 zone-b/d 5000: 10.0.0.4",
		}},
		"gRPC with weights on endpoints": {Assignment{Endpoints: draining, Mode: v1alpha1.EDSEndpointWeight}, view{grpc: true}, []string{
			"0 / 30000: 10.0.0.1=10000 10.0.0.3=15000 10.0.0.4=5000",
		}},
		"Envoy with localities": {Assignment{Endpoints: draining, Mode: v1alpha1.EDSLocalityPerEndpoint}, view{}, []string{
			"0 zone-a/a 10000: 10.0.0.1=10000", "0 zone-a/b 10000: 2001:db8::2=10000 UNHEALTHY", "0 zone-b/c 15000: 10.0.0.3=15000",
			"0 zone-b/d 5000: 10.0.0.4=5000", "0 zone-c/e 1: 10.0.0.5=1 DRAINING",
		}},
		"a rule, Envoy": {Assignment{Endpoints: draining, Locality: rules}, view{zone: "zone-a"}, []string{
			"0 zone-a/ 800000000: 10.0.0.1=800000000 2001:db8::2=800000000 UNHEALTHY",
			"0 zone-b/ 200000000: 10.0.0.3=150000000 10.0.0.4=50000000",
			"1 zone-c/ 1: 10.0.0.5=1 DRAINING",
		}},
		"a rule, gRPC": {Assignment{Endpoints: draining, Locality: rules}, view{zone: "zone-a", grpc: true}, []string{
			"0 zone-a/a 800000000: 10.0.0.1", "0 zone-b/c 150000000: 10.0.0.3", "0 zone-b/d 50000000: 10.0.0.4",
		}},
		"a rule, another zone": {Assignment{Endpoints: four, Locality: rules}, view{zone: "zone-b", grpc: true}, []string{
			"0 zone-a/a 10000: 10.0.0.1", "0 zone-b/c 15000: 10.0.0.3", "0 zone-b/d 5000: 10.0.0.4",
		}},
		"only failover is left": {Assignment{Endpoints: draining[:1], Locality: rules}, view{zone: "zone-a"}, []string{
			"0 zone-c/ 1: 10.0.0.5=1 DRAINING",
		}},
		"nobody": {Assignment{}, view{grpc: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, render(mustPolicy(t, c.a).assignment(c.view))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestEnvoyAcceptsResources runs the constraints that Envoy generates from its own definitions, and those that it and gRPC check besides.
func TestEnvoyAcceptsResources(t *testing.T) {
	uneven := fleet(300, 1)
	for i := range uneven {
		uneven[i].Weight, uneven[i].Ready, uneven[i].Draining = []uint32{1, 100, 1_000_000, math.MaxUint32}[i%4], i%5 > 0, i%7 == 0
	}
	six := fleet(3, 10000)
	six[0].Address, six[1].Address, six[2].Address = "2001:db8::1", "::1", "fe80::1"
	unready := fleet(100, 10000)
	for i := range unready {
		unready[i].Ready = false
	}
	to := func(zones ...string) map[string]v1alpha1.ZoneShare {
		shares := make(map[string]v1alpha1.ZoneShare)
		for i, zone := range zones {
			shares[zone] = []v1alpha1.ZoneShare{1, 10000, 77}[i%3]
		}
		return shares
	}
	rules := [][]v1alpha1.LocalityRule{
		nil,
		{{From: "zone-a", To: to("zone-a", "zone-b")}},
		{{From: "zone-a", To: to("zone-c"), Failover: []string{"zone-a", "nowhere", "zone-b"}}},
		{{From: "zone-a", To: to("nowhere"), Failover: []string{"elsewhere"}}},
	}
	for name, endpoints := range map[string][]Endpoint{
		"none": nil, "one": fleet(1, 1), "1,000": fleet(1000, 10000), "IPv6": six, "uneven": uneven, "heavy": fleet(300, math.MaxUint32),
		"not ready": unready, "100,000": fleet(MaxEndpoints, 1_000_000),
	} {
		for _, mode := range []v1alpha1.EDSMode{v1alpha1.EDSAuto, v1alpha1.EDSEndpointWeight, v1alpha1.EDSLocalityPerEndpoint} {
			for i, locality := range rules {
				if len(endpoints) == MaxEndpoints && (i != 1 || mode != v1alpha1.EDSAuto) {
					continue // They take long.
				}
				for _, v := range []view{{}, {grpc: true}, {zone: "zone-a"}, {zone: "zone-a", grpc: true}} {
					p := mustPolicy(t, Assignment{Endpoints: endpoints, Mode: mode, Locality: locality, ReportInterval: 5e9, CustomMetric: "depth"})
					valid(t, p, v)
					if t.Failed() {
						t.Fatalf("%s endpoints, mode %q, %v, %+v", name, mode, locality, v)
					}
				}
			}
		}
	}
}

type validated interface {
	proto.Message
	ValidateAll() error
}

func valid(t *testing.T, p *policy, v view) {
	t.Helper()
	manager := &managerv3.HttpConnectionManager{}
	if err := p.listener().GetApiListener().GetApiListener().UnmarshalTo(manager); err != nil {
		t.Error(err)
	}
	assignment := p.assignment(v)
	for _, m := range []validated{p.listener(), manager, p.route(), p.cluster(v), assignment} {
		if err := m.ValidateAll(); err != nil {
			t.Errorf("%T: %v", m, err)
		}
	}
	// Besides: no sum of weights above 2^32-1 in a locality or a priority, no weight of 0, no priority left out, nothing twice.
	sums, seen, last := make(map[uint32]uint64), make(map[string]bool), uint32(0)
	for _, l := range assignment.GetEndpoints() {
		if l.GetPriority() > last+1 || len(sums) == 0 && l.GetPriority() != 0 {
			t.Errorf("priority %d follows %d", l.GetPriority(), last)
		}
		last = l.GetPriority()
		sums[last] += uint64(l.GetLoadBalancingWeight().GetValue())
		var sum uint64
		for _, e := range l.GetLbEndpoints() {
			sum += uint64(e.GetLoadBalancingWeight().GetValue())
			if e.GetLoadBalancingWeight() != nil && e.GetLoadBalancingWeight().GetValue() == 0 {
				t.Error("an endpoint has weight 0")
			}
			address := e.GetEndpoint().GetAddress().GetSocketAddress().String()
			if seen[address] {
				t.Errorf("%s is there twice", address)
			}
			seen[address] = true
		}
		place := fmt.Sprint(last, l.GetLocality().GetZone(), "/", l.GetLocality().GetSubZone())
		if l.GetLoadBalancingWeight().GetValue() == 0 || sum > math.MaxUint32 || sums[last] > math.MaxUint32 || seen[place] {
			t.Errorf("locality %s: weight %d, endpoints %d, priority so far %d", place, l.GetLoadBalancingWeight().GetValue(), sum, sums[last])
		}
		seen[place] = true
	}
}

// TestZonesSplitExactly adds up what each zone gets, with the weights of localities and without.
func TestZonesSplitExactly(t *testing.T) {
	endpoints := fleet(997, 1)
	for i := range endpoints {
		endpoints[i].Weight = uint32(100 + i*i%79_901)
		endpoints[i].Ready = i%10 > 0
	}
	rule := v1alpha1.LocalityRule{From: "zone-a", To: map[string]v1alpha1.ZoneShare{"zone-a": 70, "zone-b": 23, "zone-c": 7}}
	p := mustPolicy(t, Assignment{Endpoints: endpoints, Locality: []v1alpha1.LocalityRule{rule}})
	for _, v := range []view{{zone: "zone-a"}, {zone: "zone-a", grpc: true}} {
		byLocality, flat := make(map[string]uint64), make(map[string]uint64)
		var all, allFlat uint64
		for _, l := range p.assignment(v).GetEndpoints() {
			byLocality[l.GetLocality().GetZone()] += uint64(l.GetLoadBalancingWeight().GetValue())
			all += uint64(l.GetLoadBalancingWeight().GetValue())
			for _, e := range l.GetLbEndpoints() {
				if e.GetHealthStatus() == corev3.HealthStatus_HEALTHY {
					flat[l.GetLocality().GetZone()] += uint64(e.GetLoadBalancingWeight().GetValue())
					allFlat += uint64(e.GetLoadBalancingWeight().GetValue())
				}
			}
		}
		for zone, share := range rule.To {
			if byLocality[zone]*100 != uint64(share)*all {
				t.Errorf("%+v: %s has %d of %d; want %d %%", v, zone, byLocality[zone], all, share)
			}
			if !v.grpc && flat[zone]*100 != uint64(share)*allFlat {
				t.Errorf("%+v: %s has %d of %d without localities; want %d %%", v, zone, flat[zone], allFlat, share)
			}
		}
	}
}

func TestApportion(t *testing.T) {
	for name, c := range map[string]struct {
		weights []uint32
		total   uint64
		want    []uint32
	}{
		"as they are":             {[]uint32{1, 2, 3}, 6, []uint32{1, 2, 3}},
		"remainders":              {[]uint32{1, 1, 1}, 100, []uint32{34, 33, 33}},
		"the largest":             {[]uint32{math.MaxUint32, math.MaxUint32}, math.MaxUint32, []uint32{1 << 31, 1<<31 - 1}},
		"none is 0":               {[]uint32{1, 1, 1_000_000}, 1000, []uint32{1, 1, 998}},
		"fewer than there are":    {[]uint32{5, 5, 5}, 2, []uint32{1, 1, 1}},
		"several pay for the one": {[]uint32{1, 1, 1, 9, 9}, 6, []uint32{1, 1, 1, 1, 2}},
		"nobody":                  {nil, 7, []uint32{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, apportion(c.weights, c.total)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
