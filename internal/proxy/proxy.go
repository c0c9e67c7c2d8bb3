// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"log"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

// clientIdleTimeout is how long a client's connection is kept without a request.
const clientIdleTimeout = 2 * time.Minute

// Proxy routes requests by a client's ring. It is an http.Handler and a prometheus.Collector.
type Proxy struct {
	client      *ringclient.Client
	config      Config
	template    *Template
	byPath      *Template
	credentials *credentials // nil without TLS
	metrics     *metrics
	dialer      dialer
	table       table
	tunnels     tunnels
	replay      budget
	buffers     bufferPool
	errorLog    *log.Logger
	inFlight    atomic.Int64
	// stop asks the goroutine to end, done says that it has.
	stop, done chan struct{}
	closing    sync.Once
}

// New returns a proxy that routes by the ring of client, which stays the caller's. The error names the flag, the value and the
// limit of what cannot be used in config.
func New(client *ringclient.Client, config Config) (*Proxy, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Proxy{
		client: client, config: config, stop: make(chan struct{}), done: make(chan struct{}),
		table:  table{endpoints: make(map[place]*endpoint)},
		replay: budget{most: config.ReplayTotal},
	}
	p.dialer = dialer{timeout: config.DialTimeout, idle: config.IdleTimeout, most: int64(config.MaxConnections), makeRoom: p.table.closeIdle}
	var err error
	if p.template, err = ParseTemplate(config.Key); err != nil {
		return nil, err
	}
	if p.byPath, err = ParseTemplate("${path}"); err != nil {
		return nil, err
	}
	if config.TLS.Enabled {
		if p.credentials, err = newCredentials(config.TLS); err != nil {
			return nil, err
		}
	}
	p.metrics = p.newMetrics()
	p.errorLog = slog.NewLogLogger(config.Logger.Handler(), slog.LevelDebug)
	go p.follow()
	return p, nil
}

// Server returns a server for the proxy with the limits of its configuration: for headers, and for clients that send none. It
// has no limit for the time of a request, which the proxy bounds step by step. The caller serves and shuts down.
func (p *Proxy) Server() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(p.config.HTTP2)
	return &http.Server{
		Handler:           p,
		Protocols:         protocols,
		ReadHeaderTimeout: p.config.HeaderTimeout,
		IdleTimeout:       clientIdleTimeout,
		MaxHeaderBytes:    p.config.MaxHeaderBytes,
		ErrorLog:          p.errorLog,
		// Else "OPTIONS *" would be answered before the proxy sees it.
		DisableGeneralOptionsHandler: true,
	}
}

// InFlight returns how many requests are running, tunnels included.
func (p *Proxy) InFlight() int64 { return p.inFlight.Load() }

// WaitForTunnels returns when no tunnel is open, or when ctx ends. Call it after the server was shut down, and then Close.
func (p *Proxy) WaitForTunnels(ctx context.Context) {
	ended := make(chan struct{})
	go func() { p.tunnels.running.Wait(); close(ended) }() // Close ends what it waits for.
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// Close ends tunnels, which the shutdown of a server leaves open, waits for that, and closes the connections that no request
// uses. Call it after the server was shut down: requests that still run are answered, and need new connections if they need any.
// It can be called more than once and always returns nil.
func (p *Proxy) Close() error {
	p.closing.Do(func() { close(p.stop) })
	<-p.done
	p.tunnels.close()
	p.table.close()
	return nil
}

// bufferPool is where httputil.ReverseProxy has the buffers from that it copies answers with.
type bufferPool struct{ pool sync.Pool }

// copyBytes is large enough that an answer of a megabyte takes few calls, and small enough for some thousands at a time.
const copyBytes = 64 << 10

// Get returns a buffer.
func (b *bufferPool) Get() []byte {
	if buffer, ok := b.pool.Get().(*[copyBytes]byte); ok {
		return buffer[:]
	}
	return make([]byte, copyBytes)
}

// Put takes a buffer back.
func (b *bufferPool) Put(buffer []byte) { b.pool.Put((*[copyBytes]byte)(buffer)) }
