// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ringwright/ringwright/internal/agent"
	"github.com/ringwright/ringwright/internal/materialize"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

// agentVariable makes the test program an agent, with the command line of one: a real process that needs no build.
const agentVariable = "RINGWRIGHT_TEST_RUN_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(agentVariable) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		code := agent.Main(ctx, os.Args[1:], "v9", os.Stdout, os.Stderr)
		stop()
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

// names builds a ring of named backends; the first has feature "eu" and zone "z1". Nobody has feature "idle".
func names(t testing.TB, list ...string) *ring.Ring {
	t.Helper()
	c := ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 40}, Identity: ring.IdentityName,
		Features: []string{"eu", "idle"},
	}
	for i, name := range list {
		b := ring.Backend{ID: name, Weight: uint32(i + 1)}
		if i == 0 {
			b.Features, b.Zone = []string{"eu"}, "z1"
		}
		c.Backends = append(c.Backends, b)
	}
	r, err := ring.Build(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// publish writes a ring as kubelet does. The backend "one" has a dial address.
func publish(t testing.TB, dir string, generation int64, r *ring.Ring) {
	t.Helper()
	publishFile(t, dir, routing.File{Generation: generation}, r, nil)
}

// publishFile fills in what names the rings and writes all files. There is a candidate where that is not nil.
func publishFile(t testing.TB, dir string, file routing.File, stable, candidate *ring.Ring) {
	t.Helper()
	file.APIVersion, file.Ring = routing.APIVersion, "cdn/edge"
	if file.Addresses == nil {
		file.Addresses = map[string]string{"one": "10.0.0.1:8080"}
	}
	file.Stable = reference(routing.SlotA, stable, 7)
	slotB := ring.EmptySlot()
	if candidate != nil {
		other := reference(routing.SlotB, candidate, 8)
		file.Candidate, slotB = &other, candidate.Snapshot()
	}
	encoded, err := file.Encode()
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string][]byte{
		routing.FileName: encoded, routing.SlotA.FileName(): stable.Snapshot(), routing.SlotB.FileName(): slotB,
	})
}

func reference(slot routing.Slot, r *ring.Ring, revision int64) routing.Reference {
	return routing.Reference{Slot: slot, Digest: r.Digest(), Version: r.Algorithm().Version.String(), Revision: revision}
}

func write(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	if err := materialize.Write(dir, files); err != nil {
		t.Fatal(err)
	}
}

// serveDir serves a directory with the real handler and returns the client behind it and its URL.
func serveDir(t testing.TB, dir string) (*ringclient.Client, string) {
	t.Helper()
	client, err := ringclient.Open(dir, ringclient.Options{WaitForRing: true, PollInterval: time.Hour, Datacenter: "lab01"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(agent.NewHandler(client, "v1.2.3"))
	t.Cleanup(func() {
		server.Close()
		http.DefaultClient.CloseIdleConnections()
		_ = client.Close()
	})
	return client, server.URL
}

// response is what a test looks at.
type response struct {
	status int
	header http.Header
	body   string
}

func request(t testing.TB, method, url string) response {
	t.Helper()
	return send(t, method, url, "", nil)
}

// send sends a request with a body and headers.
func send(t testing.TB, method, url, body string, header map[string]string) response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{answer.StatusCode, answer.Header, string(text)}
}

func get(t testing.TB, url string) response {
	t.Helper()
	return request(t, http.MethodGet, url)
}

// object returns the JSON object in a body.
func (r response) object(t testing.TB) map[string]any {
	t.Helper()
	if got := r.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q of %s", got, r.body)
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(r.body), &object); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	return object
}

// eventually waits until a condition holds; what says for what.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}
