// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/ringwright/ringwright/internal/agent"
)

// beginBatch sends a batch whose body does not end yet. What it returns ends the body and returns the status of the answer.
func beginBatch(t *testing.T, r *running) (end func() (int, error)) {
	t.Helper()
	conn, err := net.Dial("tcp", r.addresses["local"])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, "POST /v1/lookup HTTP/1.1\r\nHost: localhost\r\nContent-Length: 14\r\n\r\n"+`{"keys":[`); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the connection beside that of this question", func() bool {
		return strings.Contains(get(t, r.url("local")+"/metrics").body, `ringwright_agent_connections{listener="local"} 2`)
	})
	return func() (int, error) {
		if _, err := io.WriteString(conn, `"a"]}`); err != nil {
			return 0, err
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
}

func TestStopLetsRequestsEnd(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one"))
	r := start(t, agent.Config{Dir: dir, ShutdownTimeout: time.Minute})
	end := beginBatch(t, r)
	r.stop()
	select {
	case err := <-r.ended:
		t.Fatalf("it ended with a request running: %v", err)
	case <-time.After(1500 * time.Millisecond): // Longer than an idle connection would be waited for.
	}
	if status, err := end(); status != http.StatusOK || err != nil {
		t.Errorf("the running request: %d, %v", status, err)
	}
	if err := <-r.ended; err != nil {
		t.Errorf("the stop: %v", err)
	}
}

func TestStopDoesNotWaitForEver(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one"))
	r := start(t, agent.Config{Dir: dir, ShutdownTimeout: 50 * time.Millisecond})
	end := beginBatch(t, r)
	r.stop()
	if err := <-r.ended; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "requests to local did not end in time") {
		t.Errorf("the stop: %v", err)
	}
	if status, err := end(); err == nil {
		t.Errorf("the request was answered: %d", status)
	}
}

// TestDrain: during the delay everything answers, says that it goes, and takes new connections.
func TestDrain(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one"))
	r := start(t, agent.Config{Dir: dir, StatusListen: "127.0.0.1:0", GRPCListen: "127.0.0.1:0", DrainDelay: 500 * time.Millisecond})
	probe := healthv1.NewHealthClient(call(t, r.addresses["grpc"]))
	checkProbe(t, r.url("status")+"/readyz", http.StatusOK, "ready")
	r.stop()
	eventually(t, "the drain", func() bool { return get(t, r.url("status")+"/readyz").status == http.StatusServiceUnavailable })
	checkProbe(t, r.url("status")+"/readyz", http.StatusServiceUnavailable, "draining")
	checkProbe(t, r.url("local")+"/healthz", http.StatusOK, "ok")
	checkProbe(t, r.url("status")+"/v1/status", http.StatusOK, `"draining":true`)
	checkProbe(t, r.url("status")+"/metrics", http.StatusOK, "ringwright_agent_draining 1")
	health, err := probe.Check(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil || health.Status != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("the health service: %v, %v", health, err)
	}
	answer, err := http.Get(r.url("local") + "/v1/lookup?key=a")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK || !answer.Close {
		t.Errorf("a lookup: %s, and the connection closes: %v", answer.Status, answer.Close)
	}
	if err := <-r.ended; err != nil {
		t.Errorf("the stop: %v", err)
	}
	if _, err := net.Dial("tcp", r.addresses["local"]); err == nil {
		t.Error("it still listens")
	}
}

// TestStopWaitsForIdleConnections: one that was idle at the stop gets an answer to the request that it sends at that moment, and is
// told to end. One that stays idle does not hold the stop up for long.
func TestStopWaitsForIdleConnections(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one"))
	r := start(t, agent.Config{Dir: dir})
	idle, err := net.Dial("tcp", r.addresses["local"])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = idle.Close() }()
	if _, err := io.WriteString(idle, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := idle.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	get(t, r.url("local")+"/healthz") // The connection stays with the client.
	started := time.Now()
	r.stop()
	eventually(t, "the listener to close", func() bool {
		conn, err := net.Dial("tcp", r.addresses["local"])
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	answer, err := http.Get(r.url("local") + "/v1/lookup?key=a")
	if err != nil {
		t.Fatalf("a request on a connection that was open: %v", err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK || !answer.Close {
		t.Errorf("%s, and the connection closes: %v", answer.Status, answer.Close)
	}
	if err := <-r.ended; err != nil {
		t.Errorf("the stop: %v", err)
	}
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("an idle connection held it up for %v", took)
	}
}
