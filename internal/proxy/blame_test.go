// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/proxy"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// errorsOf returns what is counted of the backends that one of the two rings gave.
func (f *fleet) errorsOf(role ringclient.Role) uint64 {
	n := uint64(0)
	for _, r := range f.client.Stats().Rings {
		if r.Role == role {
			n += r.Errors
		}
	}
	return n
}

// saying answers each request of a connection with bytes, and then closes it.
func saying(text string) func(int, net.Conn, *bufio.Reader) {
	return func(_ int, c net.Conn, in *bufio.Reader) {
		if _, err := http.ReadRequest(in); err == nil {
			_, _ = io.WriteString(c, text)
		}
	}
}

// TestBlame: what a backend does wrong counts as one error of its ring, what others do as none.
func TestBlame(t *testing.T) {
	hang := func(_ int, _ net.Conn, in *bufio.Reader) { _, _ = io.Copy(io.Discard, in) }
	for name, row := range map[string]struct {
		address func(t *testing.T) string // nil for a backend that has none
		change  func(c *proxy.Config)
		body    io.Reader
		want    uint64
	}{
		"refuses":       {address: func(t *testing.T) string { return refusing(t) }, want: 1},
		"no address":    {want: 1},
		"never accepts": {address: func(t *testing.T) string { return hangingAddress(t) }, want: 1},
		"resets":        {address: func(t *testing.T) string { return raw(t, saying("")) }, want: 1},
		"breaks off in the header": {
			address: func(t *testing.T) string { return raw(t, saying("HTTP/1.1 200 OK\r\nContent-Le")) }, want: 1,
		},
		"breaks off in the body": {
			address: func(t *testing.T) string { return raw(t, saying("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123")) }, want: 1,
		},
		"never answers": {address: func(t *testing.T) string { return raw(t, hang) }, want: 1},
		"never answers within the time for all": {
			address: func(t *testing.T) string { return raw(t, hang) },
			change:  func(c *proxy.Config) { c.Timeout, c.ResponseTimeout = 50*time.Millisecond, time.Minute }, want: 1,
		},
		"client never sends within the time for all": {
			address: func(t *testing.T) string { return raw(t, hang) }, body: resting{t.Context()},
			change: func(c *proxy.Config) { c.Timeout = 50 * time.Millisecond }, want: 0,
		},
		"answers 500": {address: func(t *testing.T) string {
			return backend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
		}, want: 0},
		"answers":      {address: func(t *testing.T) string { return backend(t, named("a")) }, want: 0},
		"body too big": {address: func(t *testing.T) string { return backend(t, named("a")) }, body: io.MultiReader(strings.NewReader("12345678")), change: func(c *proxy.Config) { c.MaxBody = 4 }, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := config()
			c.Attempts, c.DialTimeout, c.ResponseTimeout = 1, 100*time.Millisecond, 100*time.Millisecond
			if row.change != nil {
				row.change(&c)
			}
			addresses := map[string]string{}
			if row.address != nil {
				addresses["a"] = row.address(t)
			}
			f := newFleet(t, c, addresses, "a")
			method := http.MethodGet
			if row.body != nil {
				method = http.MethodPut
			}
			_, _ = f.do(method, "/", row.body) // What comes of it, other tests see.
			eventually(t, "the request to end", func() bool { return f.proxy.InFlight() == 0 })
			if got := f.errorsOf(ringclient.Stable); got != row.want {
				t.Errorf("%d errors, want %d", got, row.want)
			}
			if got := f.value("backend_errors_total", "role", "stable"); got != float64(row.want) {
				t.Errorf("%v errors in the metrics, want %d", got, row.want)
			}
		})
	}
}

// resting is a body that never comes.
type resting struct{ ctx context.Context }

func (r resting) Read([]byte) (int, error) { <-r.ctx.Done(); return 0, r.ctx.Err() }

// TestBlameIsByRing: each backend that is tried counts once, for the ring that gave it.
func TestBlameIsByRing(t *testing.T) {
	c := config()
	c.Attempts = 2
	addresses := map[string]string{"a": refusing(t), "b": refusing(t), "c": refusing(t), "d": refusing(t)}
	f := &fleet{t: t, dir: t.TempDir()}
	f.publishBoth(ringOf(t, "a", "b"), ringOf(t, "c", "d"), addresses)
	f.serve(c)
	if a := f.get(f.key("a")); a.status != 502 {
		t.Fatalf("%+v", a)
	}
	if stable, candidate := f.errorsOf(ringclient.Stable), f.errorsOf(ringclient.Candidate); stable != 2 || candidate != 0 {
		t.Errorf("%d errors of the stable ring, %d of the candidate", stable, candidate)
	}
	f.get(f.key("c"))
	if stable, candidate := f.errorsOf(ringclient.Stable), f.errorsOf(ringclient.Candidate); stable != 2 || candidate != 2 {
		t.Errorf("then %d errors of the stable ring, %d of the candidate", stable, candidate)
	}
	if all := f.client.Stats().Errors; all != 4 {
		t.Errorf("%d errors in all", all)
	}
}

// TestClientThatLeaves is to blame for that itself.
func TestClientThatLeaves(t *testing.T) {
	started := make(chan struct{}, 1)
	slow := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "body" {
			_, _ = io.WriteString(w, "begin")
			_ = http.NewResponseController(w).Flush()
		}
		started <- struct{}{}
		<-r.Context().Done()
	})
	f := newFleet(t, config(), map[string]string{"a": slow}, "a")
	for _, path := range []string{"/", "/?body"} {
		client, _ := f.dial()
		if _, err := io.WriteString(client, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-started
		_ = client.Close()
		eventually(t, "the request to end", func() bool { return f.proxy.InFlight() == 0 })
		if n := f.errorsOf(ringclient.Stable); n != 0 {
			t.Errorf("%s: %d errors", path, n)
		}
	}
}
