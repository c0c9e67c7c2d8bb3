// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/ringwright/ringwright/internal/materialize"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
	"github.com/ringwright/ringwright/pkg/routing"
)

// TestHandler publishes a ring of two backends, takes one away, and asks for the same path before and after.
func TestHandler(t *testing.T) {
	backends := map[string]*httptest.Server{}
	config := ring.Config{Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 160}, Identity: ring.IdentityAddress}
	for range 2 {
		var address string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, address) }))
		t.Cleanup(server.Close)
		where, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		address = where.Host
		backends[address] = server
		config.Backends = append(config.Backends, ring.Backend{ID: address, Weight: 1})
	}
	dir := t.TempDir()
	client, err := ringclient.Open(dir, ringclient.Options{WaitForRing: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	front := httptest.NewServer(newHandler(client))
	t.Cleanup(front.Close)
	if code, _ := get(t, front.URL+"/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("ready without a ring: %d", code)
	}
	publish(t, dir, config)
	if err := client.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code, _ := get(t, front.URL+"/readyz"); code != http.StatusOK {
		t.Errorf("not ready with a ring: %d", code)
	}
	owner, err := client.Pick([]byte("/index.html"))
	if err != nil {
		t.Fatal(err)
	}
	if code, body := get(t, front.URL+"/index.html?x=1"); code != http.StatusOK || body != owner.ID() {
		t.Errorf("%d from %q, want the owner %q", code, body, owner.ID())
	}
	backends[owner.ID()].Close()
	delete(backends, owner.ID())
	for range 2 {
		if code, body := get(t, front.URL+"/index.html"); code != http.StatusOK || backends[body] == nil {
			t.Errorf("%d from %q, want the other backend", code, body)
		}
	}
}

func publish(t *testing.T, dir string, config ring.Config) {
	t.Helper()
	r, err := ring.Build(config)
	if err != nil {
		t.Fatal(err)
	}
	file := routing.File{
		APIVersion: routing.APIVersion, Ring: "cdn/edge", Generation: 1,
		Stable: routing.NewReference(routing.SlotA, r.Digest(), config.Algorithm.Version.String(), 1),
	}
	text, err := file.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := materialize.Write(dir, map[string][]byte{routing.FileName: text, "ring-a.snap": r.Snapshot()}); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}
