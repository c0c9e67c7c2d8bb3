// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/ringwright/ringwright/internal/listen"
	"github.com/ringwright/ringwright/internal/proxy"
)

// proxyServer is the server of the reverse proxy.
type proxyServer struct {
	*http.Server
	proxy    *proxy.Proxy
	draining atomic.Bool
}

// addProxy makes the reverse proxy, where there is a listener for it.
func (h *handler) addProxy(config Config) error {
	if config.ProxyListen == "" {
		return nil
	}
	routes, err := proxy.New(h.client, config.Proxy)
	if err != nil {
		return err
	}
	h.metrics.registry.MustRegister(routes)
	s := &proxyServer{Server: routes.Server(), proxy: routes}
	s.Handler = http.HandlerFunc(s.route)
	h.proxy = s
	return nil
}

// route asks each connection to end after its answer while the agent drains.
func (s *proxyServer) route(w http.ResponseWriter, r *http.Request) {
	if s.draining.Load() && r.ProtoMajor == 1 {
		w.Header()["Connection"] = closeConnection
	}
	s.proxy.ServeHTTP(w, r)
}

// Draining makes answers ask for the end of their connections.
func (s *proxyServer) Draining() { s.draining.Store(true) }

// Shutdown lets the running requests end, and then closes tunnels and the connections to backends.
func (s *proxyServer) Shutdown(ctx context.Context) error {
	err := s.Server.Shutdown(ctx)
	_ = s.proxy.Close() // It always returns nil.
	return err
}

// proxyEndpoint is for the programs that know nothing about rings.
func (h *handler) proxyEndpoint(ctx context.Context, config Config) (*endpoint, error) {
	if h.proxy == nil {
		return nil, nil
	}
	inner, err := listenTCP(ctx, config.ProxyListen)
	if err != nil {
		return nil, err
	}
	if !isLoopback(inner.Addr()) {
		h.warn("the proxy listens beyond loopback, on %s: whoever can connect reaches the backends", inner.Addr())
	}
	return &endpoint{
		name: nameProxy, lingers: true, server: h.proxy,
		listener: listen.New(inner, listen.Limits{Connections: config.MaxConnections, Refuse: refuseHTTP}),
	}, nil
}
