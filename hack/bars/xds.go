// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ringwright/ringwright/internal/xds"
)

const (
	xdsStreams   = 1000
	xdsEndpoints = 1000
	xdsUpdates   = 5
	xdsPatience  = time.Minute
)

// xdsSeconds returns how long an update of all weights takes at worst from Set until the last of the clients has it, each with a connection
// of its own over loopback, incrementally or not.
func xdsSeconds(delta bool) func() (float64, error) {
	return func() (seconds float64, err error) {
		bench, err := newXDSBench()
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, bench.close()) }()
		if err := bench.open(delta); err != nil {
			return 0, err
		}
		worst := time.Duration(0)
		for range xdsUpdates {
			began := time.Now()
			if err := bench.update(); err != nil {
				return 0, err
			}
			worst = max(worst, time.Since(began))
		}
		return worst.Seconds(), nil
	}
}

// xdsBench is a server and its clients.
type xdsBench struct {
	server   *xds.Server
	grpc     *grpc.Server
	address  string
	ended    chan error
	cancel   context.CancelFunc
	ctx      context.Context
	conns    []*grpc.ClientConn
	received chan error
	version  int64
}

func newXDSBench() (*xdsBench, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &xdsBench{
		server: xds.New(xds.Options{Identifier: "bars"}), grpc: grpc.NewServer(), address: listener.Addr().String(),
		ended: make(chan error, 1), received: make(chan error, 2*xdsStreams),
	}
	b.ctx, b.cancel = context.WithTimeout(context.Background(), xdsPatience)
	b.server.Register(b.grpc)
	b.server.Synced()
	go func() { b.ended <- b.grpc.Serve(listener) }()
	return b, b.set()
}

// set serves other weights than before.
func (b *xdsBench) set() error {
	b.version++
	a := xds.Assignment{Policy: "bars/xds", Version: b.version, Endpoints: make([]xds.Endpoint, xdsEndpoints)}
	for i := range a.Endpoints {
		a.Endpoints[i] = xds.Endpoint{
			ID: fmt.Sprintf("3f2a9c1e-0000-4000-8000-%012d", i), Address: fmt.Sprintf("10.0.%d.%d", i>>8, i&255), Port: 8080,
			Zone: "zone-a", Weight: 10000 + uint32(b.version), Ready: true,
		}
	}
	return b.server.Set(a)
}

// open connects the clients, which say that they are gRPC: the endpoints take the most bytes for them.
func (b *xdsBench) open(delta bool) error {
	for i := range xdsStreams {
		conn, err := grpc.NewClient(b.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		b.conns = append(b.conns, conn)
		client := discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
		node := &corev3.Node{Id: fmt.Sprintf("client-%d", i), UserAgentName: "gRPC Go"}
		if delta {
			go func() { b.received <- b.followDelta(client, node) }()
		} else {
			go func() { b.received <- b.follow(client, node) }()
		}
	}
	return b.wait()
}

// update serves other weights and waits until all clients have them.
func (b *xdsBench) update() error {
	if err := b.set(); err != nil {
		return err
	}
	return b.wait()
}

func (b *xdsBench) wait() error {
	for range xdsStreams {
		select {
		case err := <-b.received:
			if err != nil {
				return err
			}
		case <-b.ctx.Done():
			return errors.New("not all clients had the update in time")
		}
	}
	return nil
}

// follow acknowledges what it is sent.
func (b *xdsBench) follow(client discoveryv3.AggregatedDiscoveryServiceClient, node *corev3.Node) error {
	stream, err := client.StreamAggregatedResources(b.ctx)
	if err != nil {
		return err
	}
	request := &discoveryv3.DiscoveryRequest{Node: node, TypeUrl: resource.EndpointType, ResourceNames: []string{"bars/xds"}}
	for {
		if err := stream.Send(request); err != nil {
			return err
		}
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		request = &discoveryv3.DiscoveryRequest{
			TypeUrl: resource.EndpointType, ResourceNames: request.ResourceNames, VersionInfo: response.VersionInfo, ResponseNonce: response.Nonce,
		}
		b.received <- nil
	}
}

// followDelta does so incrementally.
func (b *xdsBench) followDelta(client discoveryv3.AggregatedDiscoveryServiceClient, node *corev3.Node) error {
	stream, err := client.DeltaAggregatedResources(b.ctx)
	if err != nil {
		return err
	}
	request := &discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: resource.EndpointType, ResourceNamesSubscribe: []string{"bars/xds"}}
	for {
		if err := stream.Send(request); err != nil {
			return err
		}
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		request = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType, ResponseNonce: response.Nonce}
		b.received <- nil
	}
}

func (b *xdsBench) close() error {
	b.cancel()
	var failed error
	for _, conn := range b.conns {
		failed = errors.Join(failed, conn.Close())
	}
	b.server.Close()
	b.grpc.Stop()
	return errors.Join(failed, <-b.ended)
}
