// SPDX-License-Identifier: Apache-2.0

package weights_test

import (
	"context"
	"maps"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// edsClient is a client of one resource, as Envoy is, which goes to another replica when one ends.
type edsClient struct {
	name      string
	addresses []string
	cancel    context.CancelFunc
	done      sync.WaitGroup

	mu      sync.Mutex
	byPort  map[int32]uint32
	changes []map[int32]uint32
}

func newEDSClient(name string, addresses ...string) *edsClient {
	ctx, cancel := context.WithCancel(context.Background())
	c := &edsClient{name: name, addresses: addresses, cancel: cancel, byPort: map[int32]uint32{}}
	c.done.Go(func() {
		for turn := 0; ctx.Err() == nil; turn++ {
			_ = c.follow(ctx, addresses[turn%len(addresses)]) // The next one is tried.
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	return c
}

func (c *edsClient) close() {
	c.cancel()
	c.done.Wait()
}

// weights are the latest, by port.
func (c *edsClient) weights() map[int32]uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.byPort)
}

// history are all that have come since the beginning.
func (c *edsClient) history() []map[int32]uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changes
}

func (c *edsClient) follow(ctx context.Context, address string) error {
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	Expect(err).NotTo(HaveOccurred())
	defer conn.Close()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		return err
	}
	request := &discoveryv3.DiscoveryRequest{
		Node: &corev3.Node{Id: "envoy-1", UserAgentName: "envoy"}, TypeUrl: resource.EndpointType, ResourceNames: []string{c.name},
	}
	for {
		if err := stream.Send(request); err != nil {
			return err
		}
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, packed := range response.GetResources() {
			assignment := &endpointv3.ClusterLoadAssignment{}
			if err := packed.UnmarshalTo(assignment); err != nil {
				return err
			}
			c.take(assignment)
		}
		request = &discoveryv3.DiscoveryRequest{
			TypeUrl: resource.EndpointType, ResourceNames: []string{c.name}, VersionInfo: response.GetVersionInfo(), ResponseNonce: response.GetNonce(),
		}
	}
}

func (c *edsClient) take(assignment *endpointv3.ClusterLoadAssignment) {
	weights := map[int32]uint32{}
	for _, locality := range assignment.GetEndpoints() {
		for _, e := range locality.GetLbEndpoints() {
			if e.GetHealthStatus() == corev3.HealthStatus_UNHEALTHY {
				continue
			}
			weights[int32(e.GetEndpoint().GetAddress().GetSocketAddress().GetPortValue())] = e.GetLoadBalancingWeight().GetValue()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byPort = weights
	c.changes = append(c.changes, weights)
}
