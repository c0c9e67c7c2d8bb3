// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/proto"

	balancerv1 "github.com/ringwright/ringwright/api/balancer/v1"
	"github.com/ringwright/ringwright/internal/loadreport"
)

const (
	// maxRequestBytes is how large a request to a replica is: less than the 4 MiB that gRPC servers take.
	maxRequestBytes = 3 << 20
	// keepConn is how long a connection is kept that is idle and that nobody asks for.
	keepConn = 10 * time.Minute
)

// ForwarderOptions say how to reach other replicas.
type ForwarderOptions struct {
	// TokenFile has the token of this replica's service account. It is read for each call, for the kubelet changes it.
	TokenFile string
	// Credentials are those of the transport, default insecure.
	Credentials credentials.TransportCredentials
	// Timeout is for one batch, default 5s.
	Timeout time.Duration
}

// GRPCForwarder reaches other replicas by the service Replicas.
type GRPCForwarder struct {
	options ForwarderOptions

	mu    sync.Mutex
	conns map[string]*conn
}

type conn struct {
	*grpc.ClientConn
	used time.Time
}

// NewForwarder returns one.
func NewForwarder(o ForwarderOptions) *GRPCForwarder {
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	if o.Credentials == nil {
		o.Credentials = insecure.NewCredentials()
	}
	return &GRPCForwarder{options: o, conns: map[string]*conn{}}
}

// Forward implements Forwarder.
func (f *GRPCForwarder) Forward(ctx context.Context, address string, reports []loadreport.Report) error {
	conn, err := f.Conn(address)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.options.Timeout)
	defer cancel()
	replicas := balancerv1.NewReplicasClient(conn)
	request, size := &balancerv1.ReportRequest{}, 0
	for i, r := range reports {
		one := encode(r)
		request.Reports = append(request.Reports, one)
		size += proto.Size(one) + 8
		if size < maxRequestBytes && i < len(reports)-1 {
			continue
		}
		// What is refused is counted there.
		if _, err := replicas.Report(ctx, request); err != nil {
			return fmt.Errorf("sending reports to %s: %w", address, err)
		}
		request, size = &balancerv1.ReportRequest{}, 0
	}
	return nil
}

// Conn returns the connection to a replica, for any call with the same credentials. It is closed by Close, and once it is idle and nobody has
// asked for it in a while.
func (f *GRPCForwarder) Conn(address string) (*grpc.ClientConn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	for other, c := range f.conns {
		if now.Sub(c.used) > keepConn && c.GetState() == connectivity.Idle {
			_ = c.Close()
			delete(f.conns, other)
		}
	}
	if c := f.conns[address]; c != nil {
		c.used = now
		return c.ClientConn, nil
	}
	client, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(f.options.Credentials),
		grpc.WithPerRPCCredentials(fileToken(f.options.TokenFile)),
		grpc.WithNoProxy(),
		grpc.WithIdleTimeout(keepConn),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
	)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	f.conns[address] = &conn{client, now}
	return client, nil
}

// Close closes all connections.
func (f *GRPCForwarder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	for address, c := range f.conns {
		err = errors.Join(err, c.Close())
		delete(f.conns, address)
	}
	return err
}

// fileToken is the token in a file, for each call.
type fileToken string

// GetRequestMetadata reads it.
func (f fileToken) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	content, err := os.ReadFile(string(f))
	if err != nil {
		return nil, fmt.Errorf("reading the token of this replica: %w", err)
	}
	return map[string]string{"authorization": "Bearer " + strings.TrimSpace(string(content))}, nil
}

// RequireTransportSecurity leaves it to the cluster's network: the token is for the balancer's audience only.
func (fileToken) RequireTransportSecurity() bool { return false }
