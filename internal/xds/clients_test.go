// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"math"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	weightedv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/client_side_weighted_round_robin/v3"
	leastv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	pickv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/pick_first/v3"
	localityv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// reshape changes the clusters that a server serves from then on.
func reshape(s *Server, change func(*clusterv3.Cluster)) {
	build := s.caches[0].build
	s.caches[0].build = func(p *policy, v view) types.Resource {
		c := build(p, v).(*clusterv3.Cluster)
		change(c)
		return c
	}
}

// policyOf sets a load balancing policy as the newer field has it.
func policyOf(m proto.Message) func(*clusterv3.Cluster) {
	return func(c *clusterv3.Cluster) { c.LoadBalancingPolicy = lbPolicy(m) }
}

func lbPolicy(m proto.Message) *clusterv3.LoadBalancingPolicy {
	return &clusterv3.LoadBalancingPolicy{Policies: []*clusterv3.LoadBalancingPolicy_Policy{{
		TypedExtensionConfig: &corev3.TypedExtensionConfig{Name: string(proto.MessageName(m)), TypedConfig: pack(m)},
	}}}
}

func perLocality(m proto.Message) func(*clusterv3.Cluster) {
	return policyOf(&localityv3.WrrLocality{EndpointPickingPolicy: lbPolicy(m)})
}

// behaviour is a line of the table of clients.
type behaviour struct {
	policy string
	change func(*clusterv3.Cluster)
	mode   v1alpha1.EDSMode
	// gets says what the requests follow: weights, equal, ORCA, or one.
	gets string
	// off is how far the part of a backend may be from what it should be: at 4,000 requests five standard deviations of a choice by chance
	// are 0.039, and a ring of 1024 points is off by some hundredths besides.
	off float64
}

var behaviours = []behaviour{
	{"round_robin", func(*clusterv3.Cluster) {}, v1alpha1.EDSLocalityPerEndpoint, "weights", 0.039},
	{"round_robin", func(c *clusterv3.Cluster) { c.LbPolicy = clusterv3.Cluster_ROUND_ROBIN }, v1alpha1.EDSEndpointWeight, "equal", 0.01},
	{"ring_hash", ring, v1alpha1.EDSLocalityPerEndpoint, "weights", 0.08},
	{"ring_hash", ring, v1alpha1.EDSEndpointWeight, "weights", 0.08},
	{"least_request", func(c *clusterv3.Cluster) { c.LbPolicy = clusterv3.Cluster_LEAST_REQUEST }, v1alpha1.EDSLocalityPerEndpoint, "equal", 0.039},
	{"least_request", func(c *clusterv3.Cluster) { c.LbPolicy = clusterv3.Cluster_LEAST_REQUEST }, v1alpha1.EDSEndpointWeight, "equal", 0.039},
	{"least_request in wrr_locality", perLocality(&leastv3.LeastRequest{}), v1alpha1.EDSLocalityPerEndpoint, "weights", 0.039},
	{"least_request in wrr_locality", perLocality(&leastv3.LeastRequest{}), v1alpha1.EDSEndpointWeight, "equal", 0.039},
	{"client_side_weighted_round_robin in wrr_locality", perLocality(orcaWeights), v1alpha1.EDSLocalityPerEndpoint, "weights", 0.039},
	{"client_side_weighted_round_robin in wrr_locality", perLocality(orcaWeights), v1alpha1.EDSEndpointWeight, "ORCA", 0.039},
	{"pick_first", policyOf(&pickv3.PickFirst{}), v1alpha1.EDSLocalityPerEndpoint, "one", 0},
	{"pick_first", policyOf(&pickv3.PickFirst{}), v1alpha1.EDSEndpointWeight, "one", 0},
}

var orcaWeights = &weightedv3.ClientSideWeightedRoundRobin{
	BlackoutPeriod: durationpb.New(time.Millisecond), WeightUpdatePeriod: durationpb.New(100 * time.Millisecond),
}

func ring(c *clusterv3.Cluster) {
	c.LbPolicy = clusterv3.Cluster_RING_HASH
	c.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{}}
}

func TestClientsFollowWeights(t *testing.T) {
	for _, b := range behaviours {
		t.Run(b.policy+"/"+string(b.mode), func(t *testing.T) {
			s := New(Options{Identifier: "one"})
			reshape(s, b.change)
			s.Synced()
			at, _ := serve(t, s, "127.0.0.1:0")
			backends := startBackends(t, 4)
			// What they say of their load asks for the reverse of the weights.
			for i, backend := range backends {
				backend.cpu.Store(int64(250 * (i + 1)))
			}
			set(t, s, Assignment{Policy: "shop/checkout", Mode: b.mode, Endpoints: endpointsOf(backends, 4000, 8000, 12000, 16000)})
			client := dial(t, at, "client", "zone-a")
			want := map[string][]float64{
				"weights": {0.1, 0.2, 0.3, 0.4}, "equal": {0.25, 0.25, 0.25, 0.25}, "ORCA": {0.48, 0.24, 0.16, 0.12},
			}[b.gets]
			if b.gets == "one" {
				onlyOne(t, shares(t, client, 200, backends...))
				return
			}
			reached(t, client, backends...)
			if b.gets == "ORCA" { // It follows after a while.
				eventually(t, "the client follows the load", func() bool { return farthest(shares(t, client, 1000, backends...), want) < 0.08 })
			}
			got := shares(t, client, 4000, backends...)
			t.Logf("%s: %.3f", b.gets, got)
			if off := farthest(got, want); off > b.off {
				t.Errorf("the backends had %.3f of the requests; want %.3f within %.3f", got, want, b.off)
			}
		})
	}
}

func farthest(got, want []float64) float64 {
	off := 0.0
	for i := range want {
		off = max(off, math.Abs(got[i]-want[i]))
	}
	return off
}

func onlyOne(t *testing.T, parts []float64) {
	t.Helper()
	for _, part := range parts {
		if part != 0 && part != 1 {
			t.Errorf("the backends had %.3f of the requests; want all at one", parts)
		}
	}
}
