// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestStreams: what a backend flushes arrives before it sends more, in both directions at once.
func TestStreams(t *testing.T) {
	address := backend(t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		w.Header().Set("Content-Type", r.Header.Get("Want"))
		_ = control.Flush()
		lines := bufio.NewReader(r.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(w, "echo "+line)
			_ = control.Flush()
		}
	})
	f := newFleet(t, config(), map[string]string{"a": address}, "a")
	for _, kind := range []string{"text/event-stream", "application/octet-stream"} {
		up, send := io.Pipe()
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/", up)
		r.Header.Set("Want", kind)
		response, err := f.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answers := bufio.NewReader(response.Body)
		for i := range 3 {
			_, _ = fmt.Fprintf(send, "%d\n", i)
			if line, err := answers.ReadString('\n'); err != nil || line != fmt.Sprintf("echo %d\n", i) {
				t.Fatalf("%q %v", line, err)
			}
		}
		_ = send.Close()
		if _, err := answers.ReadString('\n'); err != io.EOF {
			t.Error(err)
		}
		_ = response.Body.Close()
	}
}

// TestKnownLengthIsFlushed: an answer of known length does not wait for its end.
func TestKnownLengthIsFlushed(t *testing.T) {
	more := make(chan struct{})
	address := backend(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10000")
		_, _ = io.WriteString(w, "first")
		_ = http.NewResponseController(w).Flush()
		<-more
		_, _ = w.Write(make([]byte, 9995))
	})
	f := newFleet(t, config(), map[string]string{"a": address}, "a")
	response, err := f.http.Get(f.url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	begin := make([]byte, 5)
	if _, err := io.ReadFull(response.Body, begin); err != nil || string(begin) != "first" {
		t.Fatalf("%q %v", begin, err)
	}
	close(more)
	if rest, err := io.Copy(io.Discard, response.Body); rest != 9995 || err != nil {
		t.Error(rest, err)
	}
}

func TestTrailers(t *testing.T) {
	address := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		content, _ := io.ReadAll(r.Body)
		_, _ = w.Write(content)
		w.Header().Set("X-Sum", r.Trailer.Get("X-Up"))
		w.Header().Set(http.TrailerPrefix+"X-Late", "late")
	})
	f := newFleet(t, config(), map[string]string{"a": address}, "a")
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/", io.MultiReader(strings.NewReader("body")))
	r.Trailer = http.Header{"X-Up": {"up"}}
	response, err := f.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || string(content) != "body" || response.Trailer.Get("X-Sum") != "up" || response.Trailer.Get("X-Late") != "late" {
		t.Errorf("%q, %v, trailers %v", content, err, response.Trailer)
	}
}

func TestInformationalAndBodiless(t *testing.T) {
	address := backend(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hints":
			w.Header().Set("Link", "</x>")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusNoContent)
		case "/304":
			w.Header().Set("Etag", `"1"`)
			w.WriteHeader(http.StatusNotModified)
		case "/redirect":
			http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
		default:
			w.Header().Set("Content-Length", "12")
		}
	})
	f := newFleet(t, config(), map[string]string{"a": address}, "a")
	hints := ""
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		hints += fmt.Sprint(code, h.Get("Link"))
		return nil
	}})
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, f.url+"/hints", nil)
	response, err := f.http.Do(r)
	if err != nil || response.StatusCode != 204 || hints != "103</x>" {
		t.Errorf("%v %q", err, hints)
	}
	_ = response.Body.Close()
	if a := f.get("/304"); a.status != 304 || a.header.Get("Etag") != `"1"` {
		t.Errorf("%+v", a)
	}
	if a := f.get("/redirect"); a.status != 302 || a.header.Get("Location") != "http://elsewhere.example/" {
		t.Errorf("a redirect was followed: %+v", a)
	}
	if a, err := f.do(http.MethodHead, "/", nil); err != nil || a.header.Get("Content-Length") != "12" || a.body != "" {
		t.Errorf("%+v %v", a, err)
	}
}

// TestExpectContinue: the body is sent when the backend wants it, and not where it does not.
func TestExpectContinue(t *testing.T) {
	address := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "no" {
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		content, _ := io.ReadAll(r.Body)
		_, _ = w.Write(content)
	})
	f := newFleet(t, config(), map[string]string{"a": address}, "a")
	ask := func(target string) (net.Conn, *bufio.Reader, *http.Response) {
		c, in := f.dial()
		response, err := send(t, c, in, "POST "+target+" HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		return c, in, response
	}
	if _, _, response := ask("/?no"); response.StatusCode != http.StatusExpectationFailed {
		t.Error(response.Status)
	}
	c, in, response := ask("/")
	if response.StatusCode != http.StatusContinue {
		t.Fatal(response.Status)
	}
	response, err := send(t, c, in, "body")
	if err != nil || response.StatusCode != 200 {
		t.Fatal(response, err)
	}
	if content, err := io.ReadAll(response.Body); string(content) != "body" || err != nil {
		t.Errorf("%q %v", content, err)
	}
}

// echoTunnel switches the protocol and sends back what comes.
func echoTunnel(t testing.TB) string {
	return raw(t, func(_ int, c net.Conn, in *bufio.Reader) {
		r, err := http.ReadRequest(in)
		if err != nil || r.Header.Get("Upgrade") != "echo" {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(c, in)
	})
}

const upgrade = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"

func TestUpgrade(t *testing.T) {
	c := config()
	c.IdleTimeout, c.Timeout = 300*time.Millisecond, 100*time.Millisecond
	f := newFleet(t, c, map[string]string{"a": echoTunnel(t)}, "a")
	conn, in := f.dial()
	response, err := send(t, conn, in, upgrade)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols || response.Header.Get("X-Decision") == "" {
		t.Fatal(response, err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for i := range 10 { // Longer than the deadline for requests, and than the time that it may rest.
		_, _ = fmt.Fprintf(conn, "%d\n", i)
		if line, err := in.ReadString('\n'); err != nil || line != fmt.Sprintf("%d\n", i) {
			t.Fatalf("%q %v", line, err)
		}
		<-tick.C
	}
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("the tunnel rests, and ends with %v", err)
	}
}

// TestCloseEndsTunnels: a server that shuts down knows nothing of them.
func TestCloseEndsTunnels(t *testing.T) {
	f := newFleet(t, config(), map[string]string{"a": echoTunnel(t)}, "a")
	conn, in := f.dial()
	if response, err := send(t, conn, in, upgrade); err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(response, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	f.proxy.WaitForTunnels(over) // It is open, and waited for no longer.
	if err := f.proxy.Close(); err != nil {
		t.Fatal(err)
	}
	f.proxy.WaitForTunnels(t.Context())
	if _, err := in.ReadByte(); err == nil {
		t.Error("the tunnel is open")
	}
	eventually(t, "the request to end", func() bool { return f.proxy.InFlight() == 0 })
}

// TestMemory: bodies of 32 MiB each way leave next to nothing to the collector.
func TestMemory(t *testing.T) {
	const size = 32 << 20
	address := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			return
		}
		n, _ := io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Got", fmt.Sprint(n))
		_, _ = io.CopyBuffer(struct{ io.Writer }{w}, io.LimitReader(zeros{}, size), make([]byte, 32<<10))
	})
	c := config()
	c.IdleTimeout = time.Minute // It shows memory, not time.
	f := newFleet(t, c, map[string]string{"a": address}, "a")
	f.get("/") // What the first request takes is not of interest.
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, f.url, struct{ io.Reader }{io.LimitReader(zeros{}, size)})
	response, err := f.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, response.Body, make([]byte, 32<<10))
	runtime.ReadMemStats(&after)
	if n != size || err != nil || response.Header.Get("X-Got") != fmt.Sprint(size) {
		t.Fatalf("%d bytes down, %s up, %v", n, response.Header.Get("X-Got"), err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 2<<20 {
		t.Errorf("%d bytes were allocated for bodies of %d", allocated, 2*size)
	}
}
