// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/agent"
	"github.com/ringwright/ringwright/pkg/ringclient"
)

// serveBriefly serves with a tenth of a second for everything that a caller can take its time with, and returns the address.
func serveBriefly(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	publish(t, dir, 1, names(t, "one", "two"))
	client, err := ringclient.Open(dir, ringclient.Options{PollInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	const brief = 100 * time.Millisecond
	server := agent.NewServer(agent.NewHandler(client, ""), brief, 2*brief, 2*brief, brief)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil { // It waits until every connection is closed.
			t.Error(err)
		}
		<-ended
		_ = client.Close()
	})
	return listener.Addr().String()
}

// TestSlowCallersAreCutOff: each of them sends a byte now and then, or reads none, and loses its connection.
func TestSlowCallersAreCutOff(t *testing.T) {
	address := serveBriefly(t)
	const post = "POST /v1/lookup HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
	batch := `{"n":2,"keys":[` + strings.Repeat(`"k",`, agent.MaxBatchKeys-1) + `"k"]}`
	for name, row := range map[string]struct{ first, each string }{
		"says nothing":       {"", ""},
		"slow request line":  {"G", "E"},
		"slow headers":       {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", "X: y\r\n"},
		"slow body":          {post + `{"keys":["`, "k"},
		"idle between two":   {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", ""},
		"body never arrives": {post, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dribble(t, address, row.first, row.each)
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("it keeps the connection")
			}
		})
	}
	t.Run("reads no answers", func(t *testing.T) {
		t.Parallel()
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		request := []byte("POST /v1/lookup HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + strconv.Itoa(len(batch)) + "\r\n\r\n" + batch)
		_ = conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
		for err == nil { // Until no more fits between the two, and then until it is cut off.
			_, err = conn.Write(request)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("it keeps the connection")
		}
	})
}

// dribble connects, sends the first bytes, and then each of the others every few milliseconds until it cannot or the test ends.
func dribble(t *testing.T, address, first, each string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() {
		close(stop)
		_ = conn.Close()
		<-ended
	})
	go func() {
		defer close(ended)
		if _, err := io.WriteString(conn, first); err != nil || each == "" {
			return
		}
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if _, err := io.WriteString(conn, each); err != nil {
					return
				}
			}
		}
	}()
	return conn
}

// TestTimesAreBounded: what the tests above shorten is there.
func TestTimesAreBounded(t *testing.T) {
	server := agent.DefaultServer(http.NotFoundHandler())
	for name, row := range map[string]struct{ got, most time.Duration }{
		"headers": {server.ReadHeaderTimeout, 5 * time.Second}, "request": {server.ReadTimeout, 10 * time.Second},
		"answer": {server.WriteTimeout, 10 * time.Second}, "idle": {server.IdleTimeout, 2 * time.Minute},
	} {
		if row.got <= 0 || row.got > row.most {
			t.Errorf("%s: %v", name, row.got)
		}
	}
}
