// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/agent"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// benchRing serves a ring of 2048 backends.
func benchRing(b *testing.B) http.Handler {
	b.Helper()
	c := ring.Config{Algorithm: ring.Algorithm{Version: ring.V2, PointsPerWeight: 160}, Identity: ring.IdentityAddress}
	for i := range 2048 {
		c.Backends = append(c.Backends, ring.Backend{ID: fmt.Sprintf("10.0.%d.%d:8080", i>>8, i&255), Weight: 1, Zone: "lab01"})
	}
	r, err := ring.Build(c)
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	publish(b, dir, 1, r)
	client, err := ringclient.Open(dir, ringclient.Options{PollInterval: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() })
	return agent.NewHandler(client, "v1")
}

// connect serves a handler and returns a connection to it.
func connect(b *testing.B, handler http.Handler) (net.Conn, *bufio.Reader) {
	b.Helper()
	server := agent.DefaultServer(handler)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(listener) }()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(); _ = server.Close(); <-ended })
	return conn, bufio.NewReaderSize(conn, 64<<10)
}

// exchange sends a request and reads the answer, whose length the first one told.
func exchange(b *testing.B, conn net.Conn, answers *bufio.Reader, request []byte, length int) {
	if _, err := conn.Write(request); err != nil {
		b.Fatal(err)
	}
	if _, err := answers.Discard(length); err != nil {
		b.Fatal(err)
	}
}

// measure sends a request once to find how long its answer is, and then as often as the benchmark wants.
func measure(b *testing.B, handler http.Handler, request []byte) {
	conn, answers := connect(b, handler)
	if _, err := conn.Write(request); err != nil {
		b.Fatal(err)
	}
	counted := &countingReader{of: answers}
	answer, err := http.ReadResponse(bufio.NewReaderSize(counted, 16), nil)
	if err != nil {
		b.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		b.Fatal(answer.Status, err, string(body))
	}
	b.ReportAllocs()
	for b.Loop() {
		exchange(b, conn, answers, request, counted.n)
	}
}

type countingReader struct {
	of io.Reader
	n  int
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.of.Read(p)
	r.n += n
	return n, err
}

const benchRequest = "GET /v1/lookup?key=videos%2F0123456789abcdef%2F720p.m3u8 HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n"

// BenchmarkLookup is a lookup over loopback on a connection that stays open.
func BenchmarkLookup(b *testing.B) { measure(b, benchRing(b), []byte(benchRequest)) }

// BenchmarkBareHandler answers the same bytes.
func BenchmarkBareHandler(b *testing.B) {
	handler := benchRing(b)
	recorded := record(b, handler, benchRequest)
	measure(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(recorded)
	}), []byte(benchRequest))
}

// record returns the body of an answer.
func record(b *testing.B, handler http.Handler, request string) []byte {
	conn, answers := connect(b, handler)
	if _, err := io.WriteString(conn, request); err != nil {
		b.Fatal(err)
	}
	answer, err := http.ReadResponse(answers, nil)
	if err != nil {
		b.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		b.Fatal(err)
	}
	return body
}

// BenchmarkLookupBatch asks for the owners of 100 keys.
func BenchmarkLookupBatch(b *testing.B) {
	var keys []string
	for i := range 100 {
		keys = append(keys, fmt.Sprintf("videos/%016x/720p.m3u8", i*7919))
	}
	body, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		b.Fatal(err)
	}
	head := fmt.Sprintf("POST /v1/lookup HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(body))
	measure(b, benchRing(b), append([]byte(head), body...))
	b.ReportMetric(float64(b.N)*100/b.Elapsed().Seconds(), "lookups/s")
}
