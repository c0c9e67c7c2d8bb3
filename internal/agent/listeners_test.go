// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bufio"
	"context"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringwright/ringwright/internal/agent"
)

// overUnix makes the default client send to a Unix socket until the test ends.
func overUnix(t *testing.T, path string) {
	t.Helper()
	usual := http.DefaultClient.Transport
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}
	http.DefaultClient.Transport = transport
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		http.DefaultClient.Transport = usual
	})
}

// TestEachListenerServesItsPart goes through what a caller gets where.
func TestEachListenerServesItsPart(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one"))
	r := start(t, agent.Config{Dir: dir, StatusListen: "127.0.0.1:0", UnixSocket: filepath.Join(t.TempDir(), "s")})
	beyond := start(t, agent.Config{Dir: dir, Listen: "0.0.0.0:0"})
	_, port, err := net.SplitHostPort(beyond.addresses["local"])
	if err != nil {
		t.Fatal(err)
	}
	override := `{"ring":"stable"}`
	for name, row := range map[string]struct {
		base                       string
		lookup, override, overrode int
	}{
		"local":           {r.url("local"), 200, 200, 200},
		"status":          {r.url("status"), 404, 403, 403},
		"beyond loopback": {"http://127.0.0.1:" + port, 200, 403, 403},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/v1/status", "/metrics", "/healthz", "/readyz"} {
				if got := get(t, row.base+path); got.status != http.StatusOK {
					t.Errorf("%s: %d", path, got.status)
				}
			}
			for _, got := range []struct{ got, want int }{
				{get(t, row.base+"/v1/lookup?key=a").status, row.lookup},
				{post(t, row.base, `{"keys":["a"]}`).status, row.lookup},
				{get(t, row.base+"/v1/override").status, row.override},
				{send(t, http.MethodPut, row.base+"/v1/override", override, nil).status, row.overrode},
				{request(t, http.MethodDelete, row.base+"/v1/override").status, row.overrode},
			} {
				if got.got != got.want {
					t.Errorf("%d, want %d", got.got, got.want)
				}
			}
		})
	}
	checkProbe(t, r.url("status")+"/v1/override", http.StatusForbidden, "--unix-socket")
	checkProbe(t, r.url("status")+"/nothing", http.StatusNotFound, `"limit":"/v1/status, /metrics, /healthz, /readyz"`)
	checkProbe(t, "http://127.0.0.1:"+port+"/v1/status", http.StatusOK, `"warnings":["listening beyond loopback`)
	beyond.end(t)
	r.end(t)
}

func TestUnixSocket(t *testing.T) {
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "agent.sock")
	publish(t, dir, 1, names(t, "one"))
	r := start(t, agent.Config{Dir: dir, Listen: agent.Off, UnixSocket: path, SocketMode: 0o600})
	if len(r.addresses) != 1 {
		t.Errorf("it listens on %v", r.addresses)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("%v, %v", info, err)
	}
	overUnix(t, path)
	checkProbe(t, "http://any.name/v1/lookup?key=a", http.StatusOK, `"id":"one"`)
	if got := send(t, http.MethodPut, "http://any.name/v1/override", `{"ring":"stable"}`, nil); got.status != http.StatusOK {
		t.Errorf("the override: %d %s", got.status, got.body)
	}
	if got := send(t, http.MethodPut, "http://any.name/v1/override", `{"ring":"stable"}`, map[string]string{"Origin": "x"}); got.status != http.StatusForbidden {
		t.Errorf("the override by a browser: %d %s", got.status, got.body)
	}
	second := agent.Config{Dir: dir, Listen: agent.Off, UnixSocket: path}
	if err := agent.Run(t.Context(), second); err == nil || !strings.Contains(err.Error(), "another process listens on it") {
		t.Errorf("a second agent: %v", err)
	}
	r.end(t)
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket stays: %v", err)
	}
}

// TestOneListenerFails: the others are closed again.
func TestOneListenerFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	config := agent.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", UnixSocket: path, StatusListen: "nowhere"}
	if err := agent.Run(t.Context(), config); err == nil || !strings.Contains(err.Error(), "listening on nowhere") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket stays: %v", err)
	}
}

// TestTooManyConnections: the second one is told so, the metrics count it, and after the first has gone there is place again.
func TestTooManyConnections(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one"))
	r := start(t, agent.Config{Dir: dir, MaxConnections: 1, StatusListen: "127.0.0.1:0"})
	first, err := net.Dial("tcp", r.addresses["local"])
	if err != nil {
		t.Fatal(err)
	}
	gauge := func(line string) func() bool {
		return func() bool { return strings.Contains(get(t, r.url("status")+"/metrics").body, line+"\n") }
	}
	eventually(t, "the first", gauge(`ringwright_agent_connections{listener="local"} 1`))
	got := get(t, r.url("local")+"/v1/lookup?key=a")
	if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "1" || !strings.Contains(got.body, "too many connections") {
		t.Errorf("the second: %d %v %s", got.status, got.header, got.body)
	}
	got.object(t)
	eventually(t, "the count", gauge(`ringwright_agent_connections_refused_total{listener="local"} 1`))
	eventually(t, "the limit", gauge(`ringwright_agent_connections_limit{listener="local"} 1`))
	_ = first.Close()
	eventually(t, "a place", func() bool { return get(t, r.url("local")+"/v1/lookup?key=a").status == http.StatusOK })
	r.end(t)
}

// exchangeRaw sends bytes over a connection of its own and returns the status of the answer.
func exchangeRaw(t *testing.T, address, text string) int {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// TestHeadersAreBounded sends headers over the limit, and the longest key in its longest spelling, which must pass.
func TestHeadersAreBounded(t *testing.T) {
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one"))
	r := start(t, agent.Config{Dir: dir})
	base := r.url("local") + "/v1/lookup?key="
	if got := get(t, base+strings.Repeat("%6B", agent.MaxKeyBytes)); got.status != http.StatusOK {
		t.Errorf("the longest key: %d %s", got.status, got.body)
	}
	if got := get(t, base+strings.Repeat("%6B", 64<<10)); got.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a request line over the limit: %d", got.status)
	}
	many := "GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("X-Header: "+strings.Repeat("x", 1000)+"\r\n", 70) + "\r\n"
	if got := exchangeRaw(t, r.addresses["local"], many); got != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("headers over the limit: %d", got)
	}
	if got := exchangeRaw(t, r.addresses["local"], "nonsense\r\n\r\n"); got != http.StatusBadRequest {
		t.Errorf("no HTTP: %d", got)
	}
	r.end(t)
}
