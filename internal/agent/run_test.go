// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/agent"
	"github.com/ringwright/ringwright/pkg/ring"
)

// TestRunFollowsTheDirectory runs a whole agent: it starts without a ring, gets one, gets another, and stops.
func TestRunFollowsTheDirectory(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	listening, ended := make(chan string, 1), make(chan error, 1)
	config := agent.Config{
		Dir: dir, Listen: "127.0.0.1:0", Version: "v1.2.3",
		Listening: func(addr net.Addr) { listening <- "http://" + addr.String() },
	}
	go func() { ended <- agent.Run(ctx, config) }()
	base := <-listening
	checkProbe(t, base+"/readyz", http.StatusServiceUnavailable, "no ring")

	first, second := names(t, "one"), names(t, "two")
	publish(t, dir, 1, first)
	eventually(t, "the first ring", func() bool { return get(t, base+"/readyz").status == http.StatusOK })
	checkProbe(t, base+"/v1/lookup?key=a", http.StatusOK, `"id":"one"`)

	publish(t, dir, 2, second)
	eventually(t, "the second ring", func() bool {
		return get(t, base+"/v1/status").object(t)["digest"] == second.Digest()
	})
	checkProbe(t, base+"/v1/lookup?key=a", http.StatusOK, `"id":"two"`)

	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the stop: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
	if _, err := http.Get(base + "/healthz"); err == nil {
		t.Error("it still serves")
	}
}

// TestRunKeepsToItsPoints builds the ring of a recipe, and refuses one of more points than it may build.
func TestRunKeepsToItsPoints(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	listening, ended := make(chan string, 1), make(chan error, 1)
	one, two := names(t, "one"), names(t, "one", "two")
	config := agent.Config{
		Dir: dir, Listen: "127.0.0.1:0", MaxPoints: uint64(one.PointCount()),
		Listening: func(addr net.Addr) { listening <- "http://" + addr.String() },
	}
	go func() { ended <- agent.Run(ctx, config) }()
	base := <-listening
	for generation, r := range []*ring.Ring{one, two} {
		recipe, err := ring.Open(r.Recipe())
		if err != nil {
			t.Fatal(err)
		}
		publish(t, dir, int64(generation+1), recipe)
		eventually(t, "a load", func() bool {
			status := get(t, base+"/v1/status").object(t)
			failure, failed := status["lastError"].(map[string]any)
			return r == one && status["encoding"] == "Recipe" ||
				failed && failure["reason"] == "points" && failure["value"] == "120" && failure["limit"] == "40"
		})
	}
	checkProbe(t, base+"/v1/lookup?key=a", http.StatusOK, `"id":"one"`)
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the stop: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
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
		"negative stop timout": {agent.Config{Dir: t.TempDir(), ShutdownTimeout: -1}, "--shutdown-timeout is -1ns, not above 0"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := agent.Run(t.Context(), tc.config); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// held is a server whose one request stays until release is closed.
type held struct {
	started  chan struct{}
	release  chan struct{}
	stop     context.CancelFunc
	ended    chan error
	answered chan error
}

// hold serves and sends the request that stays.
func hold(t *testing.T, timeout time.Duration) *held {
	t.Helper()
	h := &held{
		started: make(chan struct{}), release: make(chan struct{}),
		ended: make(chan error, 1), answered: make(chan error, 1),
	}
	config, err := agent.Config{Dir: t.TempDir(), ShutdownTimeout: timeout}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(h.started)
		<-h.release
		w.WriteHeader(http.StatusNoContent)
	})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	h.stop = stop
	go func() { h.ended <- agent.Serve(ctx, config, server, listener) }()
	go func() {
		answer, err := http.Get("http://" + listener.Addr().String())
		if err == nil {
			err = answer.Body.Close()
		}
		h.answered <- err
	}()
	<-h.started
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return h
}

func TestStopLetsRequestsEnd(t *testing.T) {
	h := hold(t, time.Minute)
	h.stop()
	select {
	case err := <-h.ended:
		t.Fatalf("it ended with a request running: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(h.release)
	if err := <-h.answered; err != nil {
		t.Errorf("the running request: %v", err)
	}
	if err := <-h.ended; err != nil {
		t.Errorf("the stop: %v", err)
	}
}

func TestStopDoesNotWaitForEver(t *testing.T) {
	h := hold(t, 20*time.Millisecond)
	h.stop()
	if err := <-h.ended; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "within 20ms") {
		t.Errorf("the stop: %v", err)
	}
	if err := <-h.answered; err == nil {
		t.Error("the request was answered")
	}
	close(h.release)
}

// TestServerIsBounded sends headers over the limit, and the longest key in its longest spelling, which must pass.
func TestServerIsBounded(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one"))
	client, _ := serveDir(t, dir)
	config, err := agent.Config{Dir: dir}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	server := agent.NewServer(config, client)
	if server.ReadHeaderTimeout <= 0 || server.ReadTimeout <= 0 || server.WriteTimeout <= 0 || server.IdleTimeout <= 0 {
		t.Error("a time is not bounded")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- agent.Serve(ctx, config, server, listener) }()
	base := "http://" + listener.Addr().String() + "/v1/lookup?key="
	if got := get(t, base+strings.Repeat("%6B", agent.MaxKeyBytes)); got.status != http.StatusOK {
		t.Errorf("the longest key: %d %s", got.status, got.body)
	}
	if got := get(t, base+strings.Repeat("%6B", 64<<10)); got.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("headers over the limit: %d", got.status)
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
