// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/agent"
	"github.com/ringwright/ringwright/internal/proxy"
	"github.com/ringwright/ringwright/pkg/routing"
)

// TestProxy runs an agent whose proxy is its only listener beside that for the status. What it routes shows in its metrics, and at
// the stop a request that runs gets its answer, on a connection that ends.
func TestProxy(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(arrived)
			<-release
		}
		_, _ = io.WriteString(w, "from one: "+r.URL.Path)
	}))
	t.Cleanup(backend.Close)
	dir := t.TempDir()
	address := strings.TrimPrefix(backend.URL, "http://")
	publishFile(t, dir, routing.File{Generation: 1, Addresses: map[string]string{"one": address}}, names(t, "one"), nil)
	config := proxy.DefaultConfig()
	config.Key = "${path}"
	r := start(t, agent.Config{
		Dir: dir, Listen: agent.Off, StatusListen: "127.0.0.1:0", ProxyListen: "127.0.0.1:0", Proxy: config, ShutdownTimeout: time.Minute,
	})
	if got := get(t, r.url("proxy")+"/object"); got.status != http.StatusOK || got.body != "from one: /object" {
		t.Errorf("%d %s", got.status, got.body)
	}
	metrics := get(t, r.url("status")+"/metrics").body
	for _, line := range []string{
		`ringwright_client_selections_total{revision="7",role="stable"} 1`, `ringwright_agent_connections{listener="proxy"}`, "ringwright_proxy_",
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("no %q in the metrics", line)
		}
	}
	slow := make(chan response, 1)
	go func() { slow <- get(t, r.url("proxy")+"/slow") }()
	<-arrived
	r.stop()
	eventually(t, "the listener to close", func() bool {
		answer, err := http.Get(r.url("status") + "/readyz")
		if err == nil {
			_ = answer.Body.Close()
		}
		return err != nil
	})
	close(release)
	if got := <-slow; got.status != http.StatusOK || got.body != "from one: /slow" {
		t.Errorf("the request that ran at the stop: %d %s", got.status, got.body)
	}
	if err := <-r.ended; err != nil {
		t.Errorf("the stop: %v", err)
	}
}

func TestProxyFlagsAreChecked(t *testing.T) {
	for args, want := range map[string]string{
		"--proxy-key=${nothing}":  "--proxy-key",
		"--proxy-attempts=0":      "--proxy-attempts is 0, not 1 to",
		"--proxy-dial-timeout=0s": "--proxy-dial-timeout is 0s",
	} {
		if err := agent.CheckArgs([]string{"--dir=x", "--proxy-listen=127.0.0.1:0", args}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want one that says %q", args, err, want)
		}
	}
}

// TestProxyFlagsNeedAListener: what has no effect is refused.
func TestProxyFlagsNeedAListener(t *testing.T) {
	const want = "--proxy-http2 is given without --proxy-listen"
	if err := agent.CheckArgs([]string{"--dir=x", "--proxy-key=${path}", "--proxy-http2"}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want one that says %q", err, want)
	}
	if err := agent.CheckArgs([]string{"--dir=x", "--proxy-key=${path}", "--proxy-listen="}); err == nil {
		t.Error("an empty address is a listener")
	}
}

// TestProxyBeyondLoopback warns as the other listeners do, and does not on loopback.
func TestProxyBeyondLoopback(t *testing.T) {
	for address, warns := range map[string]bool{"127.0.0.1:0": false, ":0": true} {
		dir := t.TempDir()
		publish(t, dir, 1, names(t, "one"))
		r := start(t, agent.Config{Dir: dir, StatusListen: "127.0.0.1:0", ProxyListen: address, Proxy: proxy.DefaultConfig()})
		if got := strings.Contains(get(t, r.url("status")+"/v1/status").body, "the proxy listens beyond loopback"); got != warns {
			t.Errorf("%s: warned %v", address, got)
		}
	}
}

// TestTunnelsGetTheTimeToEnd: one that goes on after the stop was asked for ends by itself.
func TestTunnelsGetTheTimeToEnd(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, in, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(conn, in)
		_ = conn.Close()
	}))
	t.Cleanup(backend.Close)
	dir := t.TempDir()
	address := strings.TrimPrefix(backend.URL, "http://")
	publishFile(t, dir, routing.File{Generation: 1, Addresses: map[string]string{"one": address}}, names(t, "one"), nil)
	r := start(t, agent.Config{
		Dir: dir, Listen: agent.Off, ProxyListen: "127.0.0.1:0", Proxy: proxy.DefaultConfig(), ShutdownTimeout: time.Minute,
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url("proxy"), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	in := bufio.NewReader(conn)
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	if answer, err := http.ReadResponse(in, nil); err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(answer, err)
	}
	r.stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 26 { // Longer than connections are waited for before the shutdown, which is a second.
		<-tick.C
		_, _ = io.WriteString(conn, "still here\n")
		if line, err := in.ReadString('\n'); err != nil || line != "still here\n" {
			t.Fatalf("the tunnel ended: %q, %v", line, err)
		}
	}
	_ = conn.Close()
	if err := <-r.ended; err != nil {
		t.Errorf("the stop: %v", err)
	}
}
