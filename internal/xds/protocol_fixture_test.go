// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/anypb"
)

// connect returns a connection to a server.
func connect(t *testing.T, at string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

func nodeOf(id, zone, agent string) *corev3.Node {
	return &corev3.Node{Id: id, Locality: &corev3.Locality{Zone: zone}, UserAgentName: agent}
}

// sotwStream is a client that speaks the protocol by hand.
type sotwStream struct {
	t *testing.T
	discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	last map[string]*discoveryv3.DiscoveryResponse
}

func openSotw(t *testing.T, at string) *sotwStream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(connect(t, at)).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &sotwStream{t, stream, make(map[string]*discoveryv3.DiscoveryResponse)}
}

// ask sends a request, which acknowledges what came last.
func (s *sotwStream) ask(node *corev3.Node, typeURL string, names ...string) {
	s.t.Helper()
	last := s.last[typeURL]
	if err := s.Send(&discoveryv3.DiscoveryRequest{
		Node: node, TypeUrl: typeURL, ResourceNames: names, VersionInfo: last.GetVersionInfo(), ResponseNonce: last.GetNonce(),
	}); err != nil {
		s.t.Fatal(err)
	}
}

// next returns the next answer, which must be of the type.
func (s *sotwStream) next(typeURL string) *discoveryv3.DiscoveryResponse {
	s.t.Helper()
	r, err := s.Recv()
	if err != nil {
		s.t.Fatal(err)
	}
	if r.GetTypeUrl() != typeURL {
		s.t.Fatalf("got an answer of type %s; want %s", r.GetTypeUrl(), typeURL)
	}
	s.last[typeURL] = r
	return r
}

// assignments decodes endpoints.
func assignments(t *testing.T, resources []*anypb.Any) []string {
	t.Helper()
	var lines []string
	for _, r := range resources {
		a := &endpointv3.ClusterLoadAssignment{}
		if err := r.UnmarshalTo(a); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, a.GetClusterName()+" "+strings.Join(render(a), "; "))
	}
	slices.Sort(lines)
	return lines
}

func one(policy string, version int64, weight uint32) Assignment {
	return Assignment{Policy: policy, Version: version, Endpoints: fleet(1, weight)}
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got %q; want %q", got, want)
	}
}

type deltaStream struct {
	t *testing.T
	discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
}

func openDelta(t *testing.T, at string) *deltaStream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(connect(t, at)).DeltaAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &deltaStream{t, stream}
}

func (d *deltaStream) ask(r *discoveryv3.DeltaDiscoveryRequest) {
	d.t.Helper()
	if err := d.Send(r); err != nil {
		d.t.Fatal(err)
	}
}

func (d *deltaStream) next() *discoveryv3.DeltaDiscoveryResponse {
	d.t.Helper()
	r, err := d.Recv()
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}
