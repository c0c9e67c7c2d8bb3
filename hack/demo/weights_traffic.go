// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/xds"
)

const (
	shopClients = 4
	// shopRate is how many requests a second all clients send together, whatever becomes of them.
	shopRate = 2000
	// burst is how often they send what is due. After a pause of the whole machine no more than those of maxCatchUp are.
	burst, maxCatchUp = 2 * time.Millisecond, 100 * time.Millisecond
	requestTimeout    = 10 * time.Second
)

// failedRequest is a request that failed.
type failedRequest struct {
	began time.Time
	err   error
}

// openLoop sends requests at a rate, and does not wait for answers before it sends more.
type openLoop struct {
	sent    atomic.Int64
	clients atomic.Pointer[[]healthpb.HealthClient]
	cancel  context.CancelFunc
	done    sync.WaitGroup
	mu      sync.Mutex
	failed  []failedRequest
}

// use has the requests that begin from now on go through other connections.
func (o *openLoop) use(conns []*grpc.ClientConn) {
	clients := make([]healthpb.HealthClient, len(conns))
	for i, conn := range conns {
		clients[i] = healthpb.NewHealthClient(conn)
	}
	o.clients.Store(&clients)
}

// begin sends requests until stop is called.
func (o *openLoop) begin(ctx context.Context) {
	ctx, o.cancel = context.WithCancel(ctx)
	o.done.Go(func() {
		ticker := time.NewTicker(burst)
		defer ticker.Stop()
		due := time.Now()
		for turn := 0; ctx.Err() == nil; <-ticker.C {
			now := time.Now()
			if now.Sub(due) > maxCatchUp {
				due = now.Add(-maxCatchUp)
			}
			for ; due.Before(now); due = due.Add(time.Second / shopRate) {
				clients := *o.clients.Load()
				turn++
				o.done.Go(func() { o.send(ctx, clients[turn%len(clients)]) })
			}
		}
	})
}

func (o *openLoop) send(ctx context.Context, to healthpb.HealthClient) {
	o.sent.Add(1)
	began := time.Now()
	sendCtx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := to.Check(sendCtx, &healthpb.HealthCheckRequest{}); err != nil && ctx.Err() == nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.failed = append(o.failed, failedRequest{began, err})
	}
}

// failures returns those that failed so far.
func (o *openLoop) failures() []failedRequest {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

func (o *openLoop) count() int { return len(o.failures()) }

// stop ends them. It may be called at any time.
func (o *openLoop) stop() {
	if o.cancel != nil {
		o.cancel()
		o.done.Wait()
	}
}

// dialEqual returns connections that send each server as many requests as any other.
func (w *weightsDemo) dialEqual() ([]*grpc.ClientConn, error) {
	var addresses []resolver.Address
	for _, s := range w.servers {
		addresses = append(addresses, resolver.Address{Addr: fmt.Sprintf("127.0.0.1:%d", s.port)})
	}
	return w.dial("list:///"+shopName, func(int) (resolver.Builder, error) {
		list := manual.NewBuilderWithScheme("list")
		list.InitialState(resolver.State{Addresses: addresses})
		return list, nil
	}, grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`))
}

// dialXDS returns connections that do as the balancer says.
func (w *weightsDemo) dialXDS() ([]*grpc.ClientConn, error) {
	return w.dial(fmt.Sprintf("xds:///%s/%s", shopNamespace, shopName), func(client int) (resolver.Builder, error) {
		// A program has this in the file that GRPC_XDS_BOOTSTRAP names; here are several clients in one program.
		return xds.NewXDSResolverWithConfigForTesting(fmt.Appendf(nil, `{
			"xds_servers": [{"server_uri": %q, "channel_creds": [{"type": "insecure"}], "server_features": ["xds_v3", "ignore_resource_deletion"]}],
			"node": {"id": "client-%d"}
		}`, w.listen, client))
	})
}

func (w *weightsDemo) dial(target string, builder func(client int) (resolver.Builder, error), options ...grpc.DialOption) ([]*grpc.ClientConn, error) {
	var conns []*grpc.ClientConn
	for i := range shopClients {
		b, err := builder(i)
		if err != nil {
			return nil, err
		}
		conn, err := grpc.NewClient(target, append(options, grpc.WithResolvers(b), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithIdleTimeout(0))...)
		if err != nil {
			return nil, err
		}
		conns = append(conns, conn)
		w.conns = append(w.conns, conn)
	}
	return conns, nil
}
