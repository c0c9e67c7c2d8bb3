// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// TestClientsFollowZones has a client go from a split between two zones to one of them, and to the failover, as endpoints become unready.
func TestClientsFollowZones(t *testing.T) {
	for _, mode := range []v1alpha1.EDSMode{v1alpha1.EDSLocalityPerEndpoint, v1alpha1.EDSEndpointWeight} {
		t.Run(string(mode), func(t *testing.T) {
			s, at := start(t, Options{})
			backends := startBackends(t, 4)
			a := Assignment{
				Policy: "shop/checkout", Mode: mode, Endpoints: endpointsOf(backends, 10000, 30000, 7000, 5),
				Locality: []v1alpha1.LocalityRule{{
					From: "zone-a", To: map[string]v1alpha1.ZoneShare{"zone-a": 60, "zone-b": 40}, Failover: []string{"zone-x", "zone-c"},
				}},
			}
			a.Endpoints[2].Zone, a.Endpoints[3].Zone = "zone-b", "zone-c"
			set(t, s, a)
			client := dial(t, at, "client", "zone-a")
			reached(t, client, backends[:3]...)
			want := func(when string, parts ...float64) {
				t.Helper()
				off := 0.056 // Five standard deviations of a choice by chance.
				if mode == v1alpha1.EDSEndpointWeight {
					off = 0.08 // It is a ring.
				}
				if got := shares(t, client, 2000, backends...); farthest(got, parts) > off {
					t.Errorf("%s: the backends had %.3f of the requests; want %.3f", when, got, parts)
				}
			}
			want("split", 0.15, 0.45, 0.4, 0)

			without := func(version int64, reached int, change func([]Endpoint)) {
				next := a
				next.Version, next.Endpoints = version, endpointsOf(backends, 10000, 30000, 7000, 5)
				next.Endpoints[2].Zone, next.Endpoints[3].Zone = "zone-b", "zone-c"
				change(next.Endpoints)
				set(t, s, next)
				eventually(t, "the client is told", func() bool { return shares(t, client, 100, backends...)[reached] == 0 })
			}
			without(2, 1, func(e []Endpoint) { e[1].Ready = false })
			want("one of zone-a is not ready", 0.6, 0, 0.4, 0)
			without(3, 2, func(e []Endpoint) { e[2].Draining = true })
			want("zone-b drains", 0.25, 0.75, 0, 0)
			without(4, 0, func(e []Endpoint) { e[0].Ready, e[1].Ready, e[2].Ready = false, false, false })
			want("failover", 0, 0, 0, 1)
			if n := testutil.CollectAndCount(s.metrics.rejections); n != 0 {
				t.Errorf("the client rejected what it was sent, of %d types", n)
			}
		})
	}
}
