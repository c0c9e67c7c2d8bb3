// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/proxy"
)

// TestDialerRefusesOthers: whatever a transport would be made to ask for.
func TestDialerRefusesOthers(t *testing.T) {
	f := newFleet(t, config(), map[string]string{"a": backend(t, dump)}, "a")
	own, other := backend(t, dump), backend(t, dump)
	if err := f.proxy.DialAs(t.Context(), own, other); !errors.Is(err, proxy.ErrForeignAddress) {
		t.Errorf("another address: %v", err)
	}
	if err := f.proxy.DialAs(t.Context(), own, own); errors.Is(err, proxy.ErrForeignAddress) {
		t.Errorf("its own: %v", err)
	}
}

func TestTargetOf(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1:8080": "10.0.0.1:8080", "10.0.0.1": "10.0.0.1:81", "[::1]:80": "[::1]:80", "[::1]": "[::1]:81", "::1": "[::1]:81",
		"cache-1": "cache-1:81", "cache-1:80": "cache-1:80", "": "", ":80": "", "a:": "", "kä": "", "a b": "",
	} {
		if got := proxy.TargetOf(address, 81); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}

// TestPassOverGrows: with each failure in a row but not with those that come together, up to the limit, from the beginning after
// an answer.
func TestPassOverGrows(t *testing.T) {
	f := newFleet(t, config(), map[string]string{"a": backend(t, dump)}, "a")
	const s = time.Second
	got := f.proxy.PassOvers(time.Unix(1000, 0), 0, s/10, 2*s, 10*s, 20*s, 40*s, -60*s, 61*s)
	for i, want := range []time.Duration{s, 0, 2 * s, 4 * s, 8 * s, 10 * s, s} {
		if got[i] < want*8/10 || got[i] > want*12/10 {
			t.Errorf("failure %d: passed over for %v, want about %v", i, got[i], want)
		}
	}
}

// TestSentEvidence: nothing was sent only if no byte was written to any connection.
func TestSentEvidence(t *testing.T) {
	for _, row := range []struct {
		writes []int
		want   bool
	}{{nil, false}, {[]int{0}, false}, {[]int{1}, true}, {[]int{1, 0}, true}, {[]int{0, 0}, false}, {[]int{0, 1}, true}} {
		if got := proxy.Sent(row.writes...); got != row.want {
			t.Errorf("%v: %v", row.writes, got)
		}
	}
}

// TestReplay: a body that was sent is sent again from its beginning, where all of what was read of it was kept.
func TestReplay(t *testing.T) {
	const kept = 8 << 10
	for _, row := range []struct {
		size, status int
	}{{kept, 200}, {64 << 10, 502}} {
		var taken atomic.Int32
		bad := raw(t, func(_ int, c net.Conn, in *bufio.Reader) {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			taken.Add(1)
			_, _ = io.CopyN(io.Discard, r.Body, int64(row.size))
			reset(c)
		})
		c := config()
		c.ReplayBytes = kept
		f := newFleet(t, c, map[string]string{"a": bad, "b": backend(t, func(w http.ResponseWriter, r *http.Request) {
			content, _ := io.ReadAll(r.Body) // All of it first: a server takes no more once it answers.
			_, _ = w.Write(content)
		})}, "a", "b")
		body := strings.Repeat("0123456789abcdef", row.size/16)
		a, err := f.do(http.MethodPut, f.key("a"), strings.NewReader(body))
		if err != nil || a.status != row.status || taken.Load() != 1 {
			t.Errorf("%d bytes: %d, %v, taken %d times", row.size, a.status, err, taken.Load())
		}
		if row.status == 200 && a.body != body {
			t.Errorf("the second backend got %d bytes", len(a.body))
		}
		if row.status != 200 && f.value("retries_refused_total", "reason", "body") != 1 {
			t.Error("not counted")
		}
	}
}

// TestAttempts bounds how often anything is tried.
func TestAttempts(t *testing.T) {
	for _, attempts := range []int{1, 2, 4} {
		c := config()
		c.Attempts = attempts
		ids := []string{"a", "b", "c"}
		f := newFleet(t, c, map[string]string{"a": refusing(t), "b": refusing(t), "c": refusing(t)}, ids...)
		if a := f.get("/"); a.status != 502 {
			t.Errorf("%+v", a)
		}
		if n := f.value("attempts_total"); n != float64(min(attempts, len(ids))) {
			t.Errorf("%v attempts, want %d", n, min(attempts, len(ids)))
		}
	}
}

// TestNoRetryAfterHints: a backend that sent anything is not replaced.
func TestNoRetryAfterHints(t *testing.T) {
	var taken atomic.Int32
	f := newFleet(t, config(), map[string]string{"a": raw(t, func(_ int, c net.Conn, in *bufio.Reader) {
		if _, err := http.ReadRequest(in); err == nil {
			taken.Add(1)
			_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
		}
	}), "b": backend(t, named("b"))}, "a", "b")
	if a := f.get(f.key("a")); a.status != 502 || taken.Load() != 1 {
		t.Errorf("%+v, taken %d times", a, taken.Load())
	}
	if f.value("retries_refused_total", "reason", "broken") != 1 {
		t.Error("not counted")
	}
}
