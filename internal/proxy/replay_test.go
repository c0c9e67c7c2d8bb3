// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestReplayTotal: bodies that stall hold no more than the limit of all together. One that found no place is passed on, and not sent
// again.
func TestReplayTotal(t *testing.T) {
	const size, total, clients = 8 << 10, 20 << 10, 6
	c := config()
	c.ReplayBytes, c.ReplayTotal = size, total
	whole := backend(t, func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprint(w, len(content))
	})
	f := newFleet(t, c, map[string]string{"a": whole, "b": raw(t, func(_ int, c net.Conn, in *bufio.Reader) {
		if r, err := http.ReadRequest(in); err == nil {
			_, _ = io.CopyN(io.Discard, r.Body, size)
			reset(c)
		}
	})}, "a", "b")
	toA, toB := f.key("a"), f.key("b")
	var conns []net.Conn
	var ins []*bufio.Reader
	for i := range clients {
		conn, in := f.dial()
		_, _ = fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", toA, size, strings.Repeat("x", size-1))
		conns, ins = append(conns, conn), append(ins, in)
		eventually(t, "all of its bytes", func() bool {
			kept := min(i+1, total/size)
			return f.value("replay_bytes") >= float64(kept*(size-1)) && f.value("replay_refused_total") == float64(i+1-kept)
		})
	}
	if held := f.value("replay_bytes"); held < size || held > total {
		t.Errorf("%v bytes are held, the limit is %d", held, total)
	}
	large := strings.Repeat("x", size) // One byte more than is left.
	if a, err := f.do(http.MethodPut, toB, strings.NewReader(large)); err != nil || a.status != 502 || f.value("retries_refused_total", "reason", "body") != 1 {
		t.Errorf("a body that was not kept: %d, %v", a.status, err)
	}
	for i, conn := range conns {
		response, err := send(t, conn, ins[i], "x")
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(response.Body); string(got) != fmt.Sprint(size) {
			t.Errorf("the backend got %s bytes", got)
		}
	}
	eventually(t, "all to be given back", func() bool { return f.value("replay_bytes") == 0 })
	if a, err := f.do(http.MethodPut, toB, strings.NewReader(large)); err != nil || a.status != 200 {
		t.Errorf("a body that is kept: %d, %v", a.status, err)
	}
}

// TestAnsweredBodyIsForgotten: what was kept goes with the beginning of the answer, however long that takes.
func TestAnsweredBodyIsForgotten(t *testing.T) {
	release := make(chan struct{})
	f := newFleet(t, config(), map[string]string{"a": backend(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = http.NewResponseController(w).Flush()
		<-release
	})}, "a")
	conn, in := f.dial()
	response, err := send(t, conn, in, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
	if err != nil || response.StatusCode != 200 {
		t.Fatal(response, err)
	}
	eventually(t, "the body to be forgotten", func() bool { return f.value("replay_bytes") == 0 })
	close(release)
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Error(err)
	}
}
