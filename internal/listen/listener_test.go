// SPDX-License-Identifier: Apache-2.0

package listen_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ringwright/ringwright/internal/listen"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open returns a listener on loopback that refuses with "full".
func open(t *testing.T, connections int) *listen.Listener {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := listen.New(inner, listen.Limits{Connections: connections, Refuse: func(c net.Conn) { _, _ = c.Write([]byte("full")) }})
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// dial connects, and hangs up at the end of the test.
func dial(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	conn, err := net.Dial(l.Addr().Network(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// accepted collects what a listener accepts until it is closed.
func accepted(t *testing.T, l net.Listener) <-chan net.Conn {
	t.Helper()
	conns := make(chan net.Conn, 1000)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					t.Errorf("accept: %v", err)
				}
				return
			}
			conns <- conn
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	return conns
}

func TestListenerRefusesBeyondItsLimit(t *testing.T) {
	l := open(t, 2)
	conns := accepted(t, l)
	dial(t, l)
	first := <-conns
	dial(t, l)
	second := <-conns
	defer func() { _ = second.Close() }()

	refused := dial(t, l)
	if _, err := refused.Write(make([]byte, 4096)); err != nil { // Unread bytes must not reset the connection.
		t.Fatal(err)
	}
	if text, err := io.ReadAll(refused); err != nil || string(text) != "full" {
		t.Errorf("the third got %q, %v", text, err)
	}
	if l.Open() != 2 || l.Accepted() != 2 || l.Refused() != 1 {
		t.Errorf("%d open, %d accepted, %d refused", l.Open(), l.Accepted(), l.Refused())
	}

	for range 2 { // Closing twice gives back one place.
		_ = first.Close()
	}
	dial(t, l)
	third := <-conns
	defer func() { _ = third.Close() }()
	if text, err := io.ReadAll(dial(t, l)); err != nil || string(text) != "full" {
		t.Errorf("the one after got %q, %v", text, err)
	}
}

// TestRefusalWaitsForARequest: a client that gets an answer before it has asked takes the connection for broken.
func TestRefusalWaitsForARequest(t *testing.T) {
	l := open(t, 1)
	conns := accepted(t, l)
	dial(t, l)
	defer func() { _ = (<-conns).Close() }()
	refused := dial(t, l)
	_ = refused.SetReadDeadline(time.Now().Add(listen.RefusalTimeout / 5))
	if n, err := refused.Read(make([]byte, 8)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("before it asked: %d bytes, %v", n, err)
	}
	_ = refused.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := refused.Write([]byte("?")); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(refused); err != nil || string(text) != "full" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestRefusalsAreBounded: peers that do not hang up hold the refusals for their time only, and then the next ones get theirs.
func TestRefusalsAreBounded(t *testing.T) {
	l := open(t, 1)
	conns := accepted(t, l)
	dial(t, l)
	defer func() { _ = (<-conns).Close() }()
	var rude []net.Conn
	for range listen.MaxRefusals + 10 {
		rude = append(rude, dial(t, l))
	}
	started := time.Now()
	for _, conn := range rude {
		var buf [8]byte
		if n, err := io.ReadFull(conn, buf[:4]); err != nil {
			t.Fatalf("%q, %v", buf[:n], err)
		}
	}
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("the last one was refused after %v", took)
	}
	if l.Open() != 1 {
		t.Errorf("%d are open", l.Open())
	}
}

// TestListenerClosesWhileFull: an accept that waits for a refusal to end does not hold a close up.
func TestListenerClosesWhileFull(t *testing.T) {
	l := open(t, 1)
	conns := accepted(t, l)
	dial(t, l)
	defer func() { _ = (<-conns).Close() }()
	for range listen.MaxRefusals + 2 {
		dial(t, l)
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestConnectionsKeepTheirMethods(t *testing.T) {
	l := open(t, 1)
	conns := accepted(t, l)
	dial(t, l)
	conn := <-conns
	defer func() { _ = conn.Close() }()
	if _, ok := conn.(io.ReaderFrom); !ok {
		t.Error("the kernel cannot copy to it")
	}
	if _, ok := conn.(interface{ CloseWrite() error }); !ok {
		t.Error("it cannot be half closed")
	}
}
