// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/proxy"
)

// plainHTTP2 serves a handler over HTTP/2 without TLS.
func plainHTTP2(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.Listener.Addr().String()
}

// TestStalledAnswerLeavesOthers: of answers that share a connection of HTTP/2 without TLS, one that stalls is broken off alone.
func TestStalledAnswerLeavesOthers(t *testing.T) {
	stalled, release := make(chan struct{}), make(chan struct{})
	c := config()
	c.HTTP2, c.IdleTimeout = true, 300*time.Millisecond
	f := newFleet(t, c, map[string]string{"a": plainHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/stalls" {
			close(stalled)
			<-r.Context().Done()
			return
		}
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-release:
				_, _ = io.WriteString(w, "end")
				return
			case <-r.Context().Done():
				return
			case <-tick.C:
				_, _ = io.WriteString(w, ".")
				_ = http.NewResponseController(w).Flush()
			}
		}
	})}, "a")
	broken := make(chan error, 1)
	go func() {
		_, err := f.do(http.MethodGet, "/stalls", nil)
		broken <- err
	}()
	<-stalled
	type result struct {
		answer
		err error
	}
	whole := make(chan result, 1)
	go func() {
		a, err := f.do(http.MethodGet, "/moves", nil)
		whole <- result{a, err}
	}()
	if err := <-broken; err == nil {
		t.Error("the answer that stalled looks whole")
	}
	if n := f.value("backend_connections"); n != 1 {
		t.Errorf("%v connections: the test shows nothing", n)
	}
	close(release)
	if got := <-whole; got.err != nil || len(got.body) < 4 || got.body[len(got.body)-3:] != "end" {
		t.Errorf("the other one: %q, %v", got.body, got.err)
	}
}

// TestStoppedTimerStays: a timer that has fired as it was stopped is not set again.
func TestStoppedTimerStays(t *testing.T) {
	if proxy.LooksAfterStop() {
		t.Error("it runs")
	}
}
