// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/ringwright/ringwright/internal/listen"
)

// The names of the listeners.
const (
	nameLocal    = "local"
	nameUnix     = "unix"
	nameStatus   = "status"
	nameGRPC     = "grpc"
	nameGRPCUnix = "grpc-unix"
	nameProxy    = "proxy"
)

// endpoints opens all listeners that the configuration names. Where one cannot be opened, none is open.
func (h *handler) endpoints(ctx context.Context, config Config) ([]*endpoint, error) {
	var list []*endpoint
	for _, open := range []func(context.Context, Config) (*endpoint, error){
		h.localEndpoint, h.unixEndpoint, h.statusEndpoint, h.grpcEndpoint, h.grpcUnixEndpoint, h.proxyEndpoint,
	} {
		e, err := open(ctx, config)
		if err != nil {
			for _, opened := range list {
				err = errors.Join(err, opened.listener.Close(), opened.server.Close())
			}
			return nil, err
		}
		if e != nil {
			list = append(list, e)
		}
	}
	return list, nil
}

// localEndpoint is for the programs beside the agent. Whoever can reach loopback is one.
func (h *handler) localEndpoint(ctx context.Context, config Config) (*endpoint, error) {
	if config.Listen == Off {
		return nil, nil
	}
	inner, err := listenTCP(ctx, config.Listen)
	if err != nil {
		return nil, err
	}
	may := admin
	if !isLoopback(inner.Addr()) {
		may = lookups
		h.warn("listening beyond loopback, on %s: whoever can connect can ask", inner.Addr())
	}
	return h.httpEndpoint(nameLocal, inner, config, may), nil
}

func (h *handler) unixEndpoint(ctx context.Context, config Config) (*endpoint, error) {
	if config.UnixSocket == "" {
		return nil, nil
	}
	inner, err := listenUnix(ctx, config.UnixSocket, config)
	if err != nil {
		return nil, err
	}
	return h.httpEndpoint(nameUnix, inner, config, admin), nil
}

// statusEndpoint is for kubelet, Prometheus and the operator, which come from outside the pod, where anybody may: it has few
// connections, and those that come are served before those that wait.
func (h *handler) statusEndpoint(ctx context.Context, config Config) (*endpoint, error) {
	if config.StatusListen == "" {
		return nil, nil
	}
	inner, err := listenTCP(ctx, config.StatusListen)
	if err != nil {
		return nil, err
	}
	return &endpoint{
		name: nameStatus, lingers: true,
		listener: listen.New(inner, listen.Limits{Connections: config.StatusMaxConnections, Refuse: refuseHTTP}),
		server:   keepNewest(newHTTPServer(h.routes(statusOnly), config.Logger, statusTimeouts), config.StatusMaxConnections),
	}, nil
}

func (h *handler) httpEndpoint(name string, inner net.Listener, config Config, may access) *endpoint {
	return &endpoint{
		name: name, lingers: true,
		listener: listen.New(inner, listen.Limits{Connections: config.MaxConnections, Refuse: refuseHTTP}),
		server:   newHTTPServer(h.routes(may), config.Logger, defaultTimeouts),
	}
}

func (h *handler) grpcEndpoint(ctx context.Context, config Config) (*endpoint, error) {
	if config.GRPCListen == "" {
		return nil, nil
	}
	inner, err := listenTCP(ctx, config.GRPCListen)
	if err != nil {
		return nil, err
	}
	if !isLoopback(inner.Addr()) {
		h.warn("listening beyond loopback, on %s: whoever can connect can ask", inner.Addr())
	}
	return h.newGRPCEndpoint(nameGRPC, inner, config), nil
}

func (h *handler) grpcUnixEndpoint(ctx context.Context, config Config) (*endpoint, error) {
	if config.GRPCUnixSocket == "" {
		return nil, nil
	}
	inner, err := listenUnix(ctx, config.GRPCUnixSocket, config)
	if err != nil {
		return nil, err
	}
	return h.newGRPCEndpoint(nameGRPCUnix, inner, config), nil
}

// newGRPCEndpoint has no words for who is refused: a client of gRPC takes a connection that is closed at once for what it is.
func (h *handler) newGRPCEndpoint(name string, inner net.Listener, config Config) *endpoint {
	return &endpoint{
		name:     name,
		listener: listen.New(inner, listen.Limits{Connections: config.MaxConnections}),
		server:   newGRPCServer(h),
	}
}

// warn logs what is wrong from the start and keeps it for the status.
func (h *handler) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	h.warnings = append(h.warnings, text)
	h.log.Warn(text)
}

func listenTCP(ctx context.Context, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", address, err)
	}
	return listener, nil
}

func listenUnix(ctx context.Context, path string, config Config) (net.Listener, error) {
	listener, err := listen.Unix(ctx, path, config.SocketMode)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	return listener, nil
}

// isLoopback says whether a listener can be reached from this host only.
func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
