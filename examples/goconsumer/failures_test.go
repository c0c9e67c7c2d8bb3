// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// single publishes a ring of one backend, and returns its client and a server with the handler.
func single(t *testing.T, address string) (*ringclient.Client, *httptest.Server) {
	t.Helper()
	dir := t.TempDir()
	publish(t, dir, ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 160}, Identity: ring.IdentityAddress,
		Backends: []ring.Backend{{ID: address, Weight: 1}},
	})
	client, err := ringclient.Open(dir, ringclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	front := httptest.NewServer(newHandler(client))
	t.Cleanup(front.Close)
	return client, front
}

func hostOf(t *testing.T, server *httptest.Server) string {
	t.Helper()
	where, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return where.Host
}

// TestAnswersThatAreNoFailure: what breaks off reaches the client broken, a redirect as one, and neither counts against the backend.
func TestAnswersThatAreNoFailure(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/cut", "/cut-chunked":
			if r.URL.Path == "/cut" {
				w.Header().Set("Content-Length", "1000")
			}
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/redirect":
			http.Redirect(w, r, "http://elsewhere.example/x", http.StatusFound)
		case "/reset":
			panic(http.ErrAbortHandler)
		}
	}))
	defer backend.Close()
	client, front := single(t, hostOf(t, backend))
	for _, path := range []string{"/cut", "/cut-chunked"} {
		response, err := http.Get(front.URL + path)
		if err != nil { // Nothing of it was sent on yet.
			continue
		}
		if body, err := io.ReadAll(response.Body); err == nil {
			t.Errorf("%s: %q was taken for the whole", path, body)
		}
		_ = response.Body.Close()
	}
	response, err := http.DefaultTransport.RoundTrip(httptest.NewRequest(http.MethodGet, front.URL+"/redirect", nil))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusFound || response.Header.Get("Location") != "http://elsewhere.example/x" {
		t.Errorf("redirect: %s to %q", response.Status, response.Header.Get("Location"))
	}
	if code, _ := get(t, front.URL+"/reset"); code != http.StatusBadGateway {
		t.Errorf("reset: %d", code)
	}
	if n := client.Stats().Failed; n != 0 {
		t.Errorf("%d backends are passed over", n)
	}
}

// TestWhoLeavesIsNoFailure: the client of a slow backend goes away.
func TestWhoLeavesIsNoFailure(t *testing.T) {
	asked, left := make(chan struct{}), make(chan struct{})
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		close(left)
	}))
	defer backend.Close()
	client, front := single(t, hostOf(t, backend))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, front.URL+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := http.DefaultClient.Do(request); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	<-left
	front.Close() // It waits for the handler.
	if n := client.Stats().Failed; n != 0 {
		t.Errorf("%d backends are passed over", n)
	}
}

// TestNobodyListens: a backend that cannot be connected to is passed over.
func TestNobodyListens(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	client, front := single(t, gone.Addr().String())
	if code, _ := get(t, front.URL+"/"); code != http.StatusBadGateway || client.Stats().Failed != 1 {
		t.Errorf("%d, %d backends are passed over", code, client.Stats().Failed)
	}
}

// TestRunLetsRequestsEnd: a request that runs when the program is told to stop is answered before run returns.
func TestRunLetsRequestsEnd(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
		_, _ = io.WriteString(w, "late")
	}))
	defer backend.Close()
	dir, free := t.TempDir(), httptest.NewServer(nil)
	listen := hostOf(t, free)
	free.Close()
	publish(t, dir, ring.Config{
		Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 160}, Identity: ring.IdentityAddress,
		Backends: []ring.Backend{{ID: hostOf(t, backend), Weight: 1}},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, dir, listen) }()
	for conn, err := net.Dial("tcp", listen); ; conn, err = net.Dial("tcp", listen) {
		if err == nil {
			_ = conn.Close()
			break
		}
	}
	got := make(chan string, 1)
	go func() {
		response, err := http.Get("http://" + listen + "/")
		if err != nil {
			got <- err.Error()
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		got <- string(body)
	}()
	<-asked
	cancel()
	select {
	case err := <-ended:
		t.Errorf("it ended with %v before the request did", err)
	case <-time.After(200 * time.Millisecond):
	}
	close(answer)
	if body := <-got; body != "late" {
		t.Errorf("the answer is %q", body)
	}
	if err := <-ended; err != nil {
		t.Errorf("the end: %v", err)
	}
}
