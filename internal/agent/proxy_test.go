// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"io"
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
