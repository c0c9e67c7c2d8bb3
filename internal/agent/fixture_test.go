// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ringwright/ringwright/internal/agent"
	"github.com/ringwright/ringwright/internal/materialize"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
	file := routing.File{
		APIVersion: routing.APIVersion, Ring: "cdn/edge", Generation: generation,
		Stable:    routing.Reference{Slot: routing.SlotA, Digest: r.Digest(), Version: r.Algorithm().Version.String()},
		Addresses: map[string]string{"one": "10.0.0.1:8080"},
	}
	encoded, err := file.Encode()
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string][]byte{
		routing.FileName: encoded, routing.SlotA.FileName(): r.Snapshot(), routing.SlotB.FileName(): ring.EmptySlot(),
	})
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
	client, err := ringclient.Open(dir, ringclient.Options{WaitForRing: true, PollInterval: time.Hour})
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
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{answer.StatusCode, answer.Header, string(body)}
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
