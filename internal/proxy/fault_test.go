// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestRefusing: requests of any method go on to the next backend at once, and others pass over the one that refuses.
func TestRefusing(t *testing.T) {
	f := newFleet(t, config(), map[string]string{"a": refusing(t), "b": backend(t, named("b"))}, "a", "b")
	path := f.key("a")
	body := strings.NewReader("once")
	a, err := f.do(http.MethodPost, path, body)
	if err != nil || a.status != 200 || a.body != "b" {
		t.Fatalf("%+v, %v", a, err)
	}
	if got, want := a.header.Get("X-Decision"), `backend="b", role=stable, revision=7, failover=?1, attempts=2`; got != want {
		t.Errorf("decision %q, want %q", got, want)
	}
	for range 3 {
		if got := f.get(path).header.Get("X-Decision"); got != `backend="b", role=stable, revision=7, failover=?1, attempts=1` {
			t.Errorf("decision after the report: %s", got)
		}
	}
	if n := f.value("failovers_total", "reason", "refused"); n != 1 {
		t.Errorf("%v failovers", n)
	}
	if n := f.value("passed_over_total"); n != 1 {
		t.Errorf("%v reports", n)
	}
}

// TestFailoverIsOneSelection: a request is one decision of the client, however often it is tried.
func TestFailoverIsOneSelection(t *testing.T) {
	f := newFleet(t, config(), map[string]string{"a": refusing(t), "b": backend(t, named("b"))}, "a", "b")
	path := f.key("a")
	before := f.client.Stats()
	if got := f.get(path); got.body != "b" {
		t.Fatalf("%+v", got)
	}
	if after := f.client.Stats(); after.Selections != before.Selections+1 || after.Failovers != before.Failovers {
		t.Errorf("from %+v to %+v", before, after)
	}
}

// TestComesBack: a backend that was passed over is asked again after its time, and then known to serve.
func TestComesBack(t *testing.T) {
	c := config()
	c.PassOver, c.MaxPassOver = 20*time.Millisecond, 40*time.Millisecond
	gone := refusing(t)
	f := newFleet(t, c, map[string]string{"a": gone, "b": backend(t, named("b"))}, "a", "b")
	path := f.key("a")
	if got := f.get(path).body; got != "b" {
		t.Fatalf("%s answered", got)
	}
	l, err := net.Listen("tcp", gone)
	if err != nil {
		t.Skipf("somebody else took the port: %v", err)
	}
	s := &http.Server{Handler: named("a"), ReadHeaderTimeout: time.Second}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	eventually(t, "the backend to be asked again", func() bool { return f.get(path).body == "a" })
	if got := f.get(path).header.Get("X-Decision"); !strings.Contains(got, "failover=?0") {
		t.Errorf("decision %s", got)
	}
}

func TestAllDown(t *testing.T) {
	f := newFleet(t, config(), map[string]string{"a": refusing(t), "b": refusing(t), "c": refusing(t), "d": refusing(t)}, "a", "b", "c", "d")
	for range 2 { // The second time all but one are passed over, so that all are tried again.
		a := f.get("/x")
		p := a.problem(t)
		if a.status != 502 || p.Field != "backend" || !strings.Contains(p.Error, "refused") || a.header.Get("Retry-After") != "1" {
			t.Errorf("%d %+v", a.status, p)
		}
	}
	if n := f.value("attempts_total"); n < 4 || n > 6 {
		t.Errorf("%v attempts", n)
	}
	if f.value("retries_refused_total", "reason", "attempts") == 0 || f.value("errors_total", "reason", "refused") != 2 {
		t.Error("not counted")
	}
}

// TestNoAddress: a backend without an address is passed by.
func TestNoAddress(t *testing.T) {
	f := newFleet(t, config(), map[string]string{"b": backend(t, named("b"))}, "a", "b")
	if got := f.get(f.key("a")); got.body != "b" {
		t.Errorf("%+v", got)
	}
	if n := f.value("failovers_total", "reason", "no_address"); n != 1 {
		t.Errorf("%v failovers", n)
	}
	if n := f.value("passed_over_total"); n != 0 {
		t.Errorf("%v reports: that it has no address is known to the ring", n)
	}
}

// TestNeverAccepts: the backlog is full, so that connecting hangs.
func TestNeverAccepts(t *testing.T) {
	c := config()
	c.DialTimeout = 100 * time.Millisecond
	f := newFleet(t, c, map[string]string{"a": hangingAddress(t), "b": backend(t, named("b"))}, "a", "b")
	path := f.key("a")
	if got := f.get(path); got.body != "b" {
		t.Fatalf("%+v", got)
	}
	if n := f.value("failovers_total", "reason", "dial_timeout"); n != 1 {
		t.Errorf("%v failovers", n)
	}
}

// TestNeverAnswers: a backend that takes a request and says nothing costs the time-out, gets no second chance with the request,
// and is passed over by the next one.
func TestNeverAnswers(t *testing.T) {
	c := config()
	c.ResponseTimeout = 100 * time.Millisecond
	var taken atomic.Int32
	hanging := raw(t, func(_ int, _ net.Conn, in *bufio.Reader) {
		taken.Add(1)
		_, _ = io.Copy(io.Discard, in)
	})
	f := newFleet(t, c, map[string]string{"a": hanging, "b": backend(t, named("b"))}, "a", "b")
	path := f.key("a")
	a := f.get(path)
	if p := a.problem(t); a.status != 504 || p.Field != "backend" || p.Value != "a" || p.Limit != "100ms" {
		t.Errorf("%d %+v", a.status, p)
	}
	if got := f.get(path).body; got != "b" || taken.Load() != 1 {
		t.Errorf("%s answered, %d connections to the one that hangs", got, taken.Load())
	}
	if n := f.value("retries_refused_total", "reason", "response_timeout"); n != 1 {
		t.Errorf("%v refused", n)
	}
}

// TestSlowIsNotGone: a backend that answers others meanwhile is not passed over for one request that takes too long.
func TestSlowIsNotGone(t *testing.T) {
	c := config()
	c.ResponseTimeout = 300 * time.Millisecond
	slow := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Slow") != "" {
			<-r.Context().Done()
		}
		_, _ = io.WriteString(w, "a")
	})
	f := newFleet(t, c, map[string]string{"a": slow, "b": backend(t, named("b"))}, "a", "b")
	path := f.key("a")
	done := make(chan int)
	go func() {
		a, _ := f.do(http.MethodGet, path, nil, "Slow", "yes")
		done <- a.status
	}()
	status := 0
	eventually(t, "the slow request", func() bool {
		f.get(path)
		select {
		case status = <-done:
			return true
		default:
			return false
		}
	})
	if got := f.get(path).body; status != 504 || got != "a" || f.value("passed_over_total") != 0 {
		t.Errorf("status %d, then %s answered", status, got)
	}
}

// TestResetBeforeAnswer: what was sent to a new connection is sent again only if that does no harm.
func TestResetBeforeAnswer(t *testing.T) {
	rows := []struct {
		method, key string
		status      int
		refused     string
	}{
		{http.MethodGet, "", 200, ""}, {http.MethodHead, "", 200, ""}, {http.MethodOptions, "", 200, ""}, {http.MethodTrace, "", 200, ""},
		{http.MethodPut, "", 200, ""}, {http.MethodDelete, "", 200, ""},
		{http.MethodPost, "", 502, "not_idempotent"}, {http.MethodPatch, "", 502, "not_idempotent"}, {"QUERY", "", 502, "not_idempotent"},
		{http.MethodPost, "Idempotency-Key", 200, ""}, {http.MethodPatch, "X-Idempotency-Key", 200, ""},
	}
	for _, row := range rows {
		t.Run(row.method+row.key, func(t *testing.T) {
			var taken atomic.Int32
			bad := raw(t, func(_ int, c net.Conn, in *bufio.Reader) {
				if _, err := in.ReadString('\n'); err == nil {
					taken.Add(1)
				}
				reset(c)
			})
			f := newFleet(t, config(), map[string]string{"a": bad, "b": backend(t, func(w http.ResponseWriter, r *http.Request) {
				content, _ := io.ReadAll(r.Body)
				w.Header().Set("Body", string(content))
			})}, "a", "b")
			var body io.Reader
			want := ""
			if row.method == http.MethodPut || row.method == http.MethodPost {
				body, want = strings.NewReader("content"), "content"
			}
			headers := []string{"X-Any", "1"}
			if row.key != "" {
				headers = append(headers, row.key, "k")
			}
			a, err := f.do(row.method, f.key("a"), body, headers...)
			if err != nil || a.status != row.status || taken.Load() != 1 {
				t.Fatalf("%+v, %v, %d taken", a, err, taken.Load())
			}
			if row.status == 200 && a.header.Get("Body") != want {
				t.Errorf("the second backend got %q", a.header.Get("Body"))
			}
			if row.refused != "" && f.value("retries_refused_total", "reason", row.refused) != 1 {
				t.Error("not counted")
			}
			if n := f.value("passed_over_total"); n != 0 {
				t.Errorf("%v reports of a backend that can be connected to", n)
			}
		})
	}
}

// TestStale: a kept connection that is closed as the next request is sent.
func TestStale(t *testing.T) {
	for _, row := range []struct {
		method string
		status int
		taken  int32
	}{{http.MethodGet, 200, 2}, {http.MethodPut, 200, 2}, {http.MethodPost, 502, 1}} {
		t.Run(row.method, func(t *testing.T) {
			var taken atomic.Int32
			stale := raw(t, func(n int, c net.Conn, in *bufio.Reader) {
				serve := func() bool {
					r, err := http.ReadRequest(in)
					if err != nil {
						return false
					}
					_, _ = io.Copy(io.Discard, r.Body)
					return true
				}
				if !serve() {
					return
				}
				if n > 1 {
					taken.Add(1)
				}
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
				if !serve() {
					return
				}
				taken.Add(1)
				reset(c) // The request was read; nobody knows what became of it.
			})
			f := newFleet(t, config(), map[string]string{"a": stale, "b": backend(t, named("b"))}, "a", "b")
			path := f.key("a")
			if got := f.get(path).body; got != "a" {
				t.Fatal(got)
			}
			var body io.Reader
			if row.method != http.MethodGet {
				body = strings.NewReader("content")
			}
			a, err := f.do(row.method, path, body)
			if err != nil || a.status != row.status || row.status == 200 && a.body != "a" || taken.Load() != row.taken {
				t.Errorf("%+v, %v; %d requests were taken", a, err, taken.Load())
			}
		})
	}
}

// TestResetInAnswer: the client sees that its answer is not whole, whichever way its end is told.
func TestResetInAnswer(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\n"
	rows := map[string]struct{ answer, proto string }{
		"length":                  {head + "Content-Length: 10\r\n\r\n12345", "HTTP/1.1"},
		"chunks":                  {head + "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n", "HTTP/1.1"},
		"within a chunk":          {head + "Transfer-Encoding: chunked\r\n\r\na\r\n12345", "HTTP/1.1"},
		"length, old client":      {head + "Content-Length: 10\r\n\r\n12345", "HTTP/1.0"},
		"chunks, old client":      {head + "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n", "HTTP/1.0"},
		"within the header":       {head + "Content-Le", "HTTP/1.1"},
		"within the status":       {"HTTP/1.", "HTTP/1.1"},
		"something else than one": {"SSH-2.0-x\r\n\r\n", "HTTP/1.1"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			var taken atomic.Int32
			bad := raw(t, func(_ int, c net.Conn, in *bufio.Reader) {
				if _, err := http.ReadRequest(in); err != nil {
					return
				}
				taken.Add(1)
				_, _ = io.WriteString(c, row.answer)
			})
			f := newFleet(t, config(), map[string]string{"a": bad, "b": backend(t, named("b"))}, "a", "b")
			c, in := f.dial()
			response, err := send(t, c, in, fmt.Sprintf("GET %s %s\r\nHost: x\r\n\r\n", f.key("a"), row.proto))
			content := []byte("nothing")
			if err != nil { // Not even the header was sent.
				response = &http.Response{StatusCode: 200}
			} else {
				content, err = io.ReadAll(response.Body)
			}
			if strings.HasPrefix(name, "within the") || strings.HasPrefix(name, "something") {
				if response.StatusCode != 502 || err != nil {
					t.Errorf("%d %q %v", response.StatusCode, content, err)
				}
			} else if response.StatusCode != 200 || err == nil {
				t.Errorf("%d %q looks complete", response.StatusCode, content)
			}
			if taken.Load() != 1 {
				t.Errorf("sent %d times", taken.Load())
			}
			eventually(t, "the request to be counted", func() bool {
				return f.value("requests_total", "class", "aborted")+f.value("requests_total", "class", "5xx") == 1
			})
		})
	}
}

// TestBodyStalls: a backend that begins its answer and stops.
func TestBodyStalls(t *testing.T) {
	c := config()
	c.IdleTimeout = 100 * time.Millisecond
	stalls := backend(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begin")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	f := newFleet(t, c, map[string]string{"a": stalls}, "a")
	a, err := f.do(http.MethodGet, "/", nil)
	if err == nil || a.body != "begin" {
		t.Errorf("%+v looks complete", a)
	}
}

// TestUploadStalls: a backend that takes a connection and never reads from it.
func TestUploadStalls(t *testing.T) {
	c := config()
	c.IdleTimeout = 200 * time.Millisecond
	stop := make(chan struct{})
	deaf := raw(t, func(int, net.Conn, *bufio.Reader) { <-stop })
	t.Cleanup(func() { close(stop) })
	f := newFleet(t, c, map[string]string{"a": deaf}, "a")
	a, err := f.do(http.MethodPost, "/", io.LimitReader(zeros{}, 64<<20))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && a.status != 504 {
		t.Logf("the answer was lost: %v", err) // The client was still sending.
	} else if a.status != 504 {
		t.Errorf("%+v, %v", a, err)
	}
	eventually(t, "the request to end", func() bool { return f.value("errors_total", "reason", "response_timeout") == 1 })
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestDeadline bounds the whole.
func TestDeadline(t *testing.T) {
	c := config()
	c.Timeout = 150 * time.Millisecond
	trickle := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.RawQuery, "body") {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, ".")
				_ = http.NewResponseController(w).Flush()
				<-tick.C
			}
		}
		<-r.Context().Done()
	})
	f := newFleet(t, c, map[string]string{"a": trickle}, "a")
	if a := f.get("/"); a.status != 504 || a.problem(t).Limit != "150ms" {
		t.Errorf("%+v", a)
	}
	if a, err := f.do(http.MethodGet, "/?body", nil); err == nil {
		t.Errorf("%+v looks complete", a)
	}
}
