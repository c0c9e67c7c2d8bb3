// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/agent"
	"github.com/ringwright/ringwright/internal/proxy"
	"github.com/ringwright/ringwright/pkg/routing"
)

// TestProxyEndpoint: the proxy has a listener of the agent and drains as the others do.
func TestProxyEndpoint(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("served " + r.URL.Path))
	}))
	defer backend.Close()
	dir := t.TempDir()
	addresses := map[string]string{"one": backend.Listener.Addr().String()}
	publishFile(t, dir, routing.File{Generation: 1, Addresses: addresses}, names(t, "one"), nil)
	r := start(t, agent.Config{Dir: dir, ProxyListen: "127.0.0.1:0", Proxy: proxy.DefaultConfig(), DrainDelay: 300 * time.Millisecond})
	checkProbe(t, r.url("proxy")+"/a", http.StatusOK, "served /a")
	checkProbe(t, r.url("local")+"/metrics", http.StatusOK, `ringwright_agent_connections{listener="proxy"} 1`)
	r.stop()
	eventually(t, "the drain", func() bool {
		answer, err := http.Get(r.url("proxy") + "/a")
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK && answer.Close
	})
	if err := <-r.ended; err != nil {
		t.Errorf("the stop: %v", err)
	}
}
