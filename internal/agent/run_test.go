// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"cmp"
	"context"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/agent"
	"github.com/ringwright/ringwright/pkg/ring"
)

// running is an agent in this process.
type running struct {
	// addresses are those of the listeners, by name.
	addresses map[string]string
	stop      context.CancelFunc
	ended     chan error
}

// start runs an agent until it is stopped or the test ends. Unless the configuration says otherwise, it listens on a free port.
func start(t testing.TB, config agent.Config) *running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &running{addresses: map[string]string{}, stop: stop, ended: make(chan error, 1)}
	listening := make(chan struct{})
	config.Listen, config.Version = cmp.Or(config.Listen, "127.0.0.1:0"), "v1.2.3"
	want := 0
	for _, address := range []string{config.Listen, config.UnixSocket, config.StatusListen, config.GRPCListen, config.GRPCUnixSocket, config.ProxyListen} {
		if address != "" && address != agent.Off {
			want++
		}
	}
	config.Listening = func(name string, address net.Addr) {
		r.addresses[name] = address.String()
		if len(r.addresses) == want {
			close(listening)
		}
	}
	go func() { r.ended <- agent.Run(ctx, config) }()
	select {
	case <-listening:
	case err := <-r.ended:
		t.Fatalf("it does not run: %v", err)
	}
	t.Cleanup(func() {
		stop()
		http.DefaultClient.CloseIdleConnections()
	})
	return r
}

// url returns where a listener is reached.
func (r *running) url(name string) string { return "http://" + r.addresses[name] }

// end stops the agent and checks that it stops without an error.
func (r *running) end(t testing.TB) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	r.stop()
	if err := <-r.ended; err != nil {
		t.Errorf("the stop: %v", err)
	}
}

// TestRunFollowsTheDirectory runs a whole agent: it starts without a ring, gets one, gets another, and stops.
func TestRunFollowsTheDirectory(t *testing.T) {
	dir := t.TempDir()
	r := start(t, agent.Config{Dir: dir, Datacenter: "lab01"})
	base := r.url("local")
	checkProbe(t, base+"/readyz", http.StatusServiceUnavailable, "no ring")

	first, second := names(t, "one"), names(t, "two")
	publish(t, dir, 1, first)
	eventually(t, "the first ring", func() bool { return get(t, base+"/readyz").status == http.StatusOK })
	checkProbe(t, base+"/v1/lookup?key=a", http.StatusOK, `"id":"one"`)

	publish(t, dir, 2, second)
	eventually(t, "the second ring", func() bool {
		stable, _ := get(t, base+"/v1/status").object(t)["stable"].(map[string]any)
		return stable["digest"] == second.Digest()
	})
	checkProbe(t, base+"/v1/lookup?key=a", http.StatusOK, `"id":"two"`)
	checkProbe(t, base+"/v1/status", http.StatusOK, `"datacenter":"lab01"`)
	checkProbe(t, base+"/metrics", http.StatusOK, `ringwright_agent_connections{listener="local"} 1`)
	r.end(t)
	if _, err := http.Get(base + "/healthz"); err == nil {
		t.Error("it still serves")
	}
}

// TestRunKeepsToItsPoints builds the ring of a recipe, and refuses one of more points than it may build.
func TestRunKeepsToItsPoints(t *testing.T) {
	dir := t.TempDir()
	one, two := names(t, "one"), names(t, "one", "two")
	running := start(t, agent.Config{Dir: dir, MaxPoints: uint64(one.PointCount())})
	base := running.url("local")
	for generation, r := range []*ring.Ring{one, two} {
		recipe, err := ring.Open(r.Recipe())
		if err != nil {
			t.Fatal(err)
		}
		publish(t, dir, int64(generation+1), recipe)
		eventually(t, "a load", func() bool {
			status := get(t, base+"/v1/status").object(t)
			failure, failed := status["lastError"].(map[string]any)
			stable, _ := status["stable"].(map[string]any)
			return r == one && stable["encoding"] == "Recipe" ||
				failed && failure["reason"] == "points" && failure["value"] == "120" && failure["limit"] == "40"
		})
	}
	checkProbe(t, base+"/v1/lookup?key=a", http.StatusOK, `"id":"one"`)
	running.end(t)
}

func TestRunFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for name, tc := range map[string]struct {
		config agent.Config
		want   string
	}{
		"no directory":         {agent.Config{}, "--dir is missing"},
		"address taken":        {agent.Config{Dir: t.TempDir(), Listen: taken.Addr().String()}, "listening on " + taken.Addr().String()},
		"no address":           {agent.Config{Dir: t.TempDir(), Listen: "nowhere"}, "listening on nowhere"},
		"poll too often":       {agent.Config{Dir: t.TempDir(), PollInterval: 1}, "--poll-interval is 1ns, not at least 10ms"},
		"too many points":      {agent.Config{Dir: t.TempDir(), MaxPoints: 1 << 31}, "--max-points is 2147483648, not at most 2147483647"},
		"no such mode":         {agent.Config{Dir: t.TempDir(), SocketMode: fs.ModeSocket | 0o600}, "--unix-socket-mode is "},
		"no listener":          {agent.Config{Dir: t.TempDir(), Listen: agent.Off, StatusListen: "127.0.0.1:0"}, "--listen is off and there is no other listener for lookups"},
		"one socket for two":   {agent.Config{Dir: t.TempDir(), UnixSocket: "/s", GRPCUnixSocket: "/s"}, "--unix-socket and --grpc-unix-socket are both /s"},
		"no connections":       {agent.Config{Dir: t.TempDir(), MaxConnections: -1}, "--max-connections is -1, not 1 to 1048576"},
		"too many connections": {agent.Config{Dir: t.TempDir(), MaxConnections: 1<<20 + 1}, "--max-connections is 1048577, not 1 to 1048576"},
		"long datacenter":      {agent.Config{Dir: t.TempDir(), Datacenter: strings.Repeat("d", 64)}, "which has 64 bytes, not at most 63"},
		"any datacenter":       {agent.Config{Dir: t.TempDir(), Datacenter: "*"}, `--datacenter is "*"`},
		"negative delay":       {agent.Config{Dir: t.TempDir(), DrainDelay: -1}, "--drain-delay is -1ns, not 0s to 1h0m0s"},
		"a delay for ever":     {agent.Config{Dir: t.TempDir(), DrainDelay: time.Hour + 1}, "not 0s to 1h0m0s"},
		"negative stop timout": {agent.Config{Dir: t.TempDir(), ShutdownTimeout: -1}, "--shutdown-timeout is -1ns, not above 0"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.config.Listen == "" {
				tc.config.Listen = "127.0.0.1:0"
			}
			if err := agent.Run(t.Context(), tc.config); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
