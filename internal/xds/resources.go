// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"math"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	managerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

const (
	// cpuMetric and the prefixes are how LRS calls the figures of an OrcaLoadReport.
	cpuMetric         = "cpu_utilization"
	namedPrefix       = "named_metrics."
	utilizationPrefix = "utilization."
	// grpcRing is the largest ring that gRPC builds by default.
	grpcRing = 4096
)

// ads is the stream that a client has open.
func ads() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
}

// pack encodes what cannot fail to be encoded: a message without strings from outside but names that were checked.
func pack(m proto.Message) *anypb.Any {
	packed, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return packed
}

// listener is what a gRPC client that dials xds:///namespace/name asks for first.
func (p *policy) listener() *listenerv3.Listener {
	return &listenerv3.Listener{
		Name: p.Policy,
		ApiListener: &listenerv3.ApiListener{ApiListener: pack(&managerv3.HttpConnectionManager{
			StatPrefix: p.Policy,
			RouteSpecifier: &managerv3.HttpConnectionManager_Rds{Rds: &managerv3.Rds{
				ConfigSource: ads(), RouteConfigName: p.Policy,
			}},
			HttpFilters: []*managerv3.HttpFilter{{
				Name:       "envoy.filters.http.router",
				ConfigType: &managerv3.HttpFilter_TypedConfig{TypedConfig: pack(&routerv3.Router{})},
			}},
		})},
	}
}

// route sends everything to the cluster.
func (p *policy) route() *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{
		Name: p.Policy,
		VirtualHosts: []*routev3.VirtualHost{{
			Name: p.Policy, Domains: []string{"*"},
			Routes: []*routev3.Route{{
				Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
				Action: &routev3.Route_Route{Route: &routev3.RouteAction{
					ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: p.Policy},
				}},
			}},
		}},
	}
}

// cluster has its endpoints from the same stream. A limit for requests is set because gRPC and Envoy have one of 1024 without.
func (p *policy) cluster(v view) *clusterv3.Cluster {
	c := &clusterv3.Cluster{
		Name:                 p.Policy,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads(), ServiceName: p.Policy},
		LbPolicy:             clusterv3.Cluster_ROUND_ROBIN,
		CommonLbConfig: &clusterv3.Cluster_CommonLbConfig{
			LocalityConfigSpecifier: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig_{
				LocalityWeightedLbConfig: &clusterv3.Cluster_CommonLbConfig_LocalityWeightedLbConfig{},
			},
		},
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
			MaxRequests: wrapperspb.UInt32(math.MaxUint32),
		}}},
	}
	if v.grpc && p.Mode == v1alpha1.EDSEndpointWeight { // Of gRPC's policies it is the one that honours the weights of endpoints.
		c.LbPolicy = clusterv3.Cluster_RING_HASH
		c.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{
			MinimumRingSize: wrapperspb.UInt64(grpcRing),
		}}
	}
	if p.ReportInterval > 0 {
		c.LrsServer = &corev3.ConfigSource{
			ResourceApiVersion:    corev3.ApiVersion_V3,
			ConfigSourceSpecifier: &corev3.ConfigSource_Self{Self: &corev3.SelfConfigSource{}},
		}
		c.LrsReportEndpointMetrics = []string{cpuMetric}
		if p.CustomMetric != "" {
			c.LrsReportEndpointMetrics = append(c.LrsReportEndpointMetrics, namedPrefix+p.CustomMetric, utilizationPrefix+p.CustomMetric)
		}
	}
	return c
}
