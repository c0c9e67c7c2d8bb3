// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/ringwright/ringwright/internal/listen"
	"github.com/ringwright/ringwright/internal/proxy"
)

// proxyServer is a reverse proxy with its server.
type proxyServer struct {
	*http.Server
	proxy *proxy.Proxy
}

// Shutdown lets the running requests and tunnels end, until ctx does. Tunnels that are left then are no requests that failed.
func (s *proxyServer) Shutdown(ctx context.Context) error {
	if err := s.Server.Shutdown(ctx); err != nil {
		return err
	}
	s.proxy.WaitForTunnels(ctx)
	return s.proxy.Close()
}

// Close ends them.
func (s *proxyServer) Close() error { return errors.Join(s.Server.Close(), s.proxy.Close()) }

// proxyEndpoint is for programs that know nothing about rings.
func (h *handler) proxyEndpoint(ctx context.Context, config Config) (*endpoint, error) {
	if config.ProxyListen == "" {
		return nil, nil
	}
	inner, err := listenTCP(ctx, config.ProxyListen)
	if err != nil {
		return nil, err
	}
	if !isLoopback(inner.Addr()) {
		h.warn("the proxy listens beyond loopback, on %s: whoever can connect can send requests to the backends", inner.Addr())
	}
	config.Proxy.Movement = h.movement
	p, err := proxy.New(h.client, config.Proxy)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making the proxy: %w", err), inner.Close())
	}
	h.metrics.here.MustRegister(p)
	server := p.Server()
	server.Handler = h.closing(server.Handler)
	return &endpoint{
		name: nameProxy, lingers: true,
		listener: listen.New(inner, listen.Limits{Connections: config.MaxConnections, Refuse: refuseHTTP}),
		server:   &proxyServer{server, p},
	}, nil
}

// closing asks each connection to end after its answer while the agent drains.
func (h *handler) closing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.draining.Load() && r.ProtoMajor == 1 {
			w.Header()["Connection"] = closeConnection
		}
		next.ServeHTTP(w, r)
	})
}
