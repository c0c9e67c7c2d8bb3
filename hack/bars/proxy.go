// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/ringwright/ringwright/internal/materialize"
	keymovement "github.com/ringwright/ringwright/internal/movement"
	"github.com/ringwright/ringwright/internal/proxy"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

const (
	// proxyClients is how many connections ask at a time.
	proxyClients = 8
	proxyRounds  = 25
	// proxyBytes is about how much a round carries, proxyRequests how many requests it has at most.
	proxyBytes    = 64 << 20
	proxyRequests = 3000
)

// proxyRatio returns the throughput of the proxy with answers of so many bytes, as a part of that of httputil.ReverseProxy with
// one fixed target. Clients and backends do as little as they can, so that what is compared are the proxies.
func proxyRatio(size int) func() (float64, error) {
	return func() (ratio float64, err error) {
		bench, err := newProxyBench(size)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, bench.close()) }()
		load := func(address string) way {
			ask := func(requests int) error { return bench.ask(address, requests) }
			requests := min(proxyRequests, proxyBytes/size)
			return way{warm: func() error { return ask(requests / 10) }, work: func() error { return ask(requests) }}
		}
		return speedup(proxyRounds, load(bench.ring), load(bench.fixed))
	}
}

// proxyBench is two proxies before one backend. The ring has no others: with several, each has connections of its own, and the
// time that their goroutines take would be compared with one fixed target's.
type proxyBench struct {
	dir, ring, fixed string
	size             int
	answer           []byte
	backend          net.Listener
	client           *ringclient.Client
	proxy            *proxy.Proxy
	servers          []*http.Server
	clients          map[string][]*proxyClient
}

func newProxyBench(size int) (*proxyBench, error) {
	b := &proxyBench{size: size, clients: make(map[string][]*proxyClient)}
	b.answer = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n", size)
	b.answer = append(b.answer, bytes.Repeat([]byte{'x'}, size)...)
	for _, step := range []func() error{b.listen, b.publish, b.serve} {
		if err := step(); err != nil {
			return nil, errors.Join(err, b.close())
		}
	}
	return b, nil
}

// listen starts the backend.
func (b *proxyBench) listen() (err error) {
	b.backend, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := b.backend.Accept()
			if err != nil {
				return
			}
			go b.reply(c)
		}
	}()
	return nil
}

// reply answers every request on a connection, none of which has a body.
func (b *proxyBench) reply(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if len(line) > len("\r\n") {
			continue
		}
		if _, err := c.Write(b.answer); err != nil {
			return
		}
	}
}

// publish writes the ring into a directory and opens it.
func (b *proxyBench) publish() error {
	config := ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 160}, Identity: ring.IdentityAddress,
		Backends: []ring.Backend{{ID: b.backend.Addr().String(), Weight: 1}},
	}
	r, err := ring.Build(config)
	if err != nil {
		return err
	}
	file := routing.File{
		APIVersion: routing.APIVersion, Ring: "bars/proxy", Generation: 1,
		Stable: routing.Reference{Slot: routing.SlotA, Digest: r.Digest(), Version: r.Algorithm().Version.String()},
	}
	encoded, err := file.Encode()
	if err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "bars"); err != nil {
		return err
	}
	files := map[string][]byte{routing.FileName: encoded, routing.SlotA.FileName(): r.Snapshot(), routing.SlotB.FileName(): ring.EmptySlot()}
	if err := materialize.Write(b.dir, files); err != nil {
		return err
	}
	b.client, err = ringclient.Open(b.dir, ringclient.Options{})
	return err
}

// serve starts both proxies.
func (b *proxyBench) serve() (err error) {
	config := proxy.DefaultConfig()
	config.Movement = keymovement.New() // As the agent has it.
	if b.proxy, err = proxy.New(b.client, config); err != nil {
		return err
	}
	if b.ring, err = b.start(b.proxy.Server()); err != nil {
		return err
	}
	plain := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: b.backend.Addr().String()})
			r.SetXForwarded()
			r.Out.Host = r.In.Host
		},
		Transport:  &http.Transport{MaxIdleConnsPerHost: 2 * proxyClients, DisableCompression: true},
		BufferPool: new(buffers),
	}
	server := b.proxy.Server() // With the same limits for clients.
	server.Handler = plain
	b.fixed, err = b.start(server)
	return err
}

// buffers spare the plain proxy a new buffer for each answer, as the other spares itself.
type buffers struct{ pool sync.Pool }

// Get returns a buffer of the size that httputil.ReverseProxy takes without a pool.
func (b *buffers) Get() []byte {
	if buffer, ok := b.pool.Get().(*[32 << 10]byte); ok {
		return buffer[:]
	}
	return make([]byte, 32<<10)
}

// Put takes a buffer back.
func (b *buffers) Put(buffer []byte) { b.pool.Put((*[32 << 10]byte)(buffer)) }

func (b *proxyBench) start(server *http.Server) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	b.servers = append(b.servers, server)
	go func() { _ = server.Serve(listener) }() // A server that does not serve fails the requests.
	return listener.Addr().String(), nil
}

func (b *proxyBench) close() error {
	var failed error
	for _, clients := range b.clients {
		for _, c := range clients {
			failed = errors.Join(failed, c.Close())
		}
	}
	for _, server := range b.servers {
		failed = errors.Join(failed, server.Close())
	}
	if b.proxy != nil {
		failed = errors.Join(failed, b.proxy.Close())
	}
	if b.client != nil {
		failed = errors.Join(failed, b.client.Close())
	}
	if b.backend != nil {
		failed = errors.Join(failed, b.backend.Close())
	}
	return errors.Join(failed, os.RemoveAll(b.dir))
}

// ask sends requests over the clients' connections and reads the answers.
func (b *proxyBench) ask(address string, requests int) error {
	if b.clients[address] == nil {
		for range proxyClients {
			c, err := net.Dial("tcp", address)
			if err != nil {
				return err
			}
			b.clients[address] = append(b.clients[address], &proxyClient{c, bufio.NewReaderSize(c, 64<<10), 0})
		}
	}
	var running sync.WaitGroup
	failed := make([]error, proxyClients)
	for i, c := range b.clients[address] {
		running.Go(func() {
			for range (requests + proxyClients - 1) / proxyClients {
				if failed[i] = c.ask(b.size); failed[i] != nil {
					return
				}
			}
		})
	}
	running.Wait()
	return errors.Join(failed...)
}

// proxyClient is a connection to a proxy.
type proxyClient struct {
	net.Conn
	in   *bufio.Reader
	sent int
}

// ask sends one request and reads an answer of so many bytes.
func (c *proxyClient) ask(size int) error {
	c.sent++
	if _, err := fmt.Fprintf(c, "GET /images/%d.jpg?width=%d HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: bars\r\nAccept: */*\r\n\r\n", c.sent, size); err != nil {
		return err
	}
	for first := true; ; first = false {
		line, err := c.in.ReadSlice('\n')
		switch {
		case err != nil:
			return err
		case first && !strings.HasPrefix(string(line), "HTTP/1.1 200 "):
			return fmt.Errorf("the proxy answered %q", line)
		case len(line) > len("\r\n"):
			continue
		}
		_, err = io.CopyN(io.Discard, c.in, int64(size))
		return err
	}
}
