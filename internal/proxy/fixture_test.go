// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"

	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/ringwright/ringwright/internal/materialize"
	"github.com/ringwright/ringwright/internal/proxy"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// A server that has refused the rest of a request waits half a second, so that its answer arrives.
		goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// fleet is a published ring of named backends, and the proxy in front of it.
type fleet struct {
	t          testing.TB
	dir        string
	generation int64
	client     *ringclient.Client
	proxy      *proxy.Proxy
	server     *http.Server
	// url is that of the proxy, http is a client of it that keeps connections and follows nothing.
	url  string
	host string
	http *http.Client
}

// ringOf builds a ring of named backends of equal weight; every one has feature "eu", and the first alone "ssd".
func ringOf(t testing.TB, ids ...string) *ring.Ring {
	t.Helper()
	c := ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 160}, Identity: ring.IdentityName,
		Features: []string{"eu", "idle", "ssd"},
	}
	for i, id := range ids {
		b := ring.Backend{ID: id, Weight: 1, Features: []string{"eu"}}
		if i == 0 {
			b.Features = append(b.Features, "ssd")
		}
		c.Backends = append(c.Backends, b)
	}
	r, err := ring.Build(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// publish writes the next generation of the ring.
func (f *fleet) publish(r *ring.Ring, addresses map[string]string) {
	f.t.Helper()
	f.publishBoth(r, nil, addresses)
}

// publishBoth gives half of the keys to a candidate, where there is one.
func (f *fleet) publishBoth(r, candidate *ring.Ring, addresses map[string]string) {
	f.t.Helper()
	f.generation++
	file := routing.File{
		APIVersion: routing.APIVersion, Ring: "cdn/edge", Generation: f.generation,
		Stable:    routing.Reference{Slot: routing.SlotA, Digest: r.Digest(), Version: r.Algorithm().Version.String(), Revision: 7},
		Addresses: addresses,
	}
	slotB := ring.EmptySlot()
	if candidate != nil {
		version := candidate.Algorithm().Version.String()
		file.Candidate = &routing.Reference{Slot: routing.SlotB, Digest: candidate.Digest(), Version: version, Revision: 8}
		file.Split = &routing.Split{Seed: 1, BasisPoints: map[string]int{routing.AnyDatacenter: routing.MaxBasisPoints / 2}}
		slotB = candidate.Snapshot()
	}
	encoded, err := file.Encode()
	if err != nil {
		f.t.Fatal(err)
	}
	files := map[string][]byte{routing.FileName: encoded, routing.SlotA.FileName(): r.Snapshot(), routing.SlotB.FileName(): slotB}
	if err := materialize.Write(f.dir, files); err != nil {
		f.t.Fatal(err)
	}
	if f.client != nil {
		eventually(f.t, "the new generation", func() bool { return f.client.State().Generation() == f.generation })
	}
}

// config returns defaults whose times suit a test.
func config() proxy.Config {
	c := proxy.DefaultConfig()
	c.DialTimeout, c.ResponseTimeout, c.IdleTimeout = 500*time.Millisecond, 2*time.Second, 2*time.Second
	c.DecisionHeader = "X-Decision"
	return c
}

// newFleet publishes a ring of the addresses' backends and serves it.
func newFleet(t testing.TB, c proxy.Config, addresses map[string]string, ids ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.TempDir()}
	f.publish(ringOf(t, ids...), addresses)
	f.serve(c)
	return f
}

func (f *fleet) serve(c proxy.Config) {
	f.t.Helper()
	client, err := ringclient.Open(f.dir, ringclient.Options{PollInterval: time.Hour, WaitForRing: true})
	if err != nil {
		f.t.Fatal(err)
	}
	f.client = client
	if f.proxy, err = proxy.New(client, c); err != nil {
		f.t.Fatal(err)
	}
	listener := listen(f.t)
	f.host, f.url = listener.Addr().String(), "http://"+listener.Addr().String()
	f.server = f.proxy.Server()
	served := make(chan error, 1)
	go func() { served <- f.server.Serve(listener) }()
	f.http = &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	f.t.Cleanup(func() {
		f.http.CloseIdleConnections()
		_ = f.server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			f.t.Error(err)
		}
		_ = f.proxy.Close()
		_ = client.Close()
	})
}

// key returns a path whose owner is the backend, and whose next one is, where it is given, the second.
func (f *fleet) key(id string, next ...string) string {
	f.t.Helper()
	for i := range 100_000 {
		path := fmt.Sprintf("/%d", i)
		d, err := f.client.Lookup([]byte(path), nil, 1+len(next))
		if err != nil {
			f.t.Fatal(err)
		}
		if d[0].ID() == id && (len(next) == 0 || d[1].ID() == next[0]) {
			return path
		}
	}
	f.t.Fatalf("no key of %s", id)
	return ""
}

// answer is what a test looks at.
type answer struct {
	status  int
	header  http.Header
	body    string
	trailer http.Header
}

func (f *fleet) do(method, path string, body io.Reader, headers ...string) (answer, error) {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, body)
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	response, err := f.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(content), response.Trailer}, err
}

func (f *fleet) get(path string, headers ...string) answer {
	f.t.Helper()
	a, err := f.do(http.MethodGet, path, nil, headers...)
	if err != nil {
		f.t.Fatal(err)
	}
	return a
}

// problem is the body of an error of the proxy.
type problem struct{ Error, Field, Value, Limit string }

func (a answer) problem(t testing.TB) problem {
	t.Helper()
	var p problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s %q: %v", a.status, a.header.Get("Content-Type"), a.body, err)
	}
	return p
}

// value returns the sum of the metric's series that have all the labels, given as name and value in turn.
func (f *fleet) value(name string, labels ...string) float64 {
	f.t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(f.proxy)
	families, err := registry.Gather()
	if err != nil {
		f.t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() != "ringwright_proxy_"+name {
			continue
		}
	series:
		for _, m := range family.GetMetric() {
			have := map[string]string{}
			for _, pair := range m.GetLabel() {
				have[pair.GetName()] = pair.GetValue()
			}
			for i := 0; i+1 < len(labels); i += 2 {
				if have[labels[i]] != labels[i+1] {
					continue series
				}
			}
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// backend serves a handler and returns its address.
func backend(t testing.TB, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.Listener.Addr().String()
}

// named answers with a name.
func named(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }
}

// refusing returns an address where nobody listens.
func refusing(t testing.TB) string {
	t.Helper()
	l := listen(t)
	defer l.Close()
	return l.Addr().String()
}

// raw serves each connection with a function that reads and writes bytes; it is closed afterwards. Connections count from 1.
func raw(t testing.TB, serve func(n int, c net.Conn, in *bufio.Reader)) string {
	t.Helper()
	l := listen(t)
	var running sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	running.Add(1)
	go func() {
		defer running.Done()
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			running.Add(1)
			go func() {
				defer running.Done()
				defer c.Close()
				serve(n, c, bufio.NewReader(c))
			}()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	return l.Addr().String()
}

// reset closes a connection so that the peer gets an error.
func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// eventually waits until a condition holds; what says for what.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}

// dial connects to the proxy for a test that writes bytes.
func (f *fleet) dial() (net.Conn, *bufio.Reader) {
	f.t.Helper()
	c, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", f.host)
	if err != nil {
		f.t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	f.t.Cleanup(func() { _ = c.Close() })
	return c, bufio.NewReader(c)
}

// send writes bytes and reads the answer to them.
func send(t testing.TB, c net.Conn, in *bufio.Reader, text string) (*http.Response, error) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		return nil, err
	}
	return http.ReadResponse(in, nil)
}

// quiet logs nothing.
var quiet = log.New(io.Discard, "", 0)
