// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sort"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ringwright/ringwright/internal/proxy"
)

// dump answers with the request as the backend got it.
func dump(w http.ResponseWriter, r *http.Request) {
	lines := []string{"Host: " + r.Host, r.Method + " " + r.RequestURI}
	for name, values := range r.Header {
		lines = append(lines, name+": "+strings.Join(values, "|"))
	}
	sort.Strings(lines)
	w.Header().Set("Connection", "X-Hop")
	w.Header().Set("X-Hop", "1")
	w.Header().Set("Keep-Alive", "timeout=5")
	_, _ = io.WriteString(w, strings.Join(lines, "\n"))
}

func TestHeaders(t *testing.T) {
	address := backend(t, dump)
	given := []string{"Host", "shop.example", "X-Forwarded-For", "1.2.3.4", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "front.example"}
	rows := map[string]struct {
		change     func(*proxy.Config)
		has, hasNo []string
	}{
		"defaults": {
			func(*proxy.Config) {},
			[]string{"Host: shop.example", "X-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: http", "X-Forwarded-Host: shop.example"},
			[]string{"Via", "1.2.3.4", "front.example"},
		},
		"append": {
			func(c *proxy.Config) { c.Forwarded = proxy.ForwardedAppend },
			[]string{"X-Forwarded-For: 1.2.3.4, 127.0.0.1", "X-Forwarded-Proto: https", "X-Forwarded-Host: front.example"}, nil,
		},
		"off":     {func(c *proxy.Config) { c.Forwarded = proxy.ForwardedOff }, nil, []string{"X-Forwarded"}},
		"backend": {func(c *proxy.Config) { c.Host = proxy.HostBackend }, []string{"Host: " + address}, []string{"\nHost: shop.example\n"}},
		"via":     {func(c *proxy.Config) { c.Via = "edge" }, []string{"Via: 1.1 edge"}, nil},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			c := config()
			row.change(&c)
			f := newFleet(t, c, map[string]string{"a": address}, "a")
			a := f.get("/p?q=%zz&r;s", append([]string{
				"Connection", "X-Mine, keep-alive", "X-Mine", "1", "Te", "gzip", "Proxy-Authorization", "x", "Keep-Alive", "1", "X-Kept", "1",
			}, given...)...)
			body := a.body + "\n"
			for _, want := range append(row.has, "X-Kept: 1", "GET /p?q=%zz&r;s") {
				if !strings.Contains(body, want+"\n") {
					t.Errorf("no %q in\n%s", want, body)
				}
			}
			for _, bad := range append(row.hasNo, "X-Mine", "Te:", "Proxy-Authorization", "Keep-Alive", "Accept-Encoding") {
				if strings.Contains(body, bad) {
					t.Errorf("%q in\n%s", bad, body)
				}
			}
			if a.header.Get("X-Hop") != "" || a.header.Get("Keep-Alive") != "" || (a.header.Get("Via") == "1.1 edge") != (name == "via") {
				t.Errorf("%v", a.header)
			}
		})
	}
}

// TestDecisionHeader is off unless it is asked for, and a backend cannot set it.
func TestDecisionHeader(t *testing.T) {
	address := backend(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Decision", "forged") })
	f := newFleet(t, config(), map[string]string{"a\"\\": address}, "a\"\\")
	if got := f.get("/").header["X-Decision"]; fmt.Sprint(got) != `[backend="a\"\\", role=stable, revision=7, failover=?0, attempts=1]` {
		t.Errorf("%q", got)
	}
	c := config()
	c.DecisionHeader = ""
	f = newFleet(t, c, map[string]string{"a": backend(t, named("a"))}, "a")
	if got := f.get("/").header; len(got["X-Ringwright-Decision"])+len(got["X-Decision"]) > 0 {
		t.Errorf("%v", got)
	}
}

// TestNotAnOpenProxy: whatever a request says, it goes to backends of the ring or nowhere.
func TestNotAnOpenProxy(t *testing.T) {
	var reached atomic.Int32
	outside := listen(t)
	defer outside.Close()
	go func() {
		for {
			c, err := outside.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			_ = c.Close()
		}
	}()
	t.Setenv("HTTP_PROXY", "http://"+outside.Addr().String())
	t.Setenv("http_proxy", "http://"+outside.Addr().String())
	f := newFleet(t, config(), map[string]string{"a": backend(t, dump)}, "a")
	where := outside.Addr().String()
	rows := map[string]struct {
		request string
		status  int
	}{
		"CONNECT":            {"CONNECT " + where + " HTTP/1.1\r\nHost: " + where + "\r\n\r\n", 501},
		"absolute form":      {"GET http://" + where + "/p HTTP/1.1\r\nHost: " + where + "\r\n\r\n", 200},
		"another scheme":     {"GET ftp://" + where + "/p HTTP/1.1\r\nHost: " + where + "\r\n\r\n", 200},
		"with a user":        {"GET http://u:p@" + where + "/p HTTP/1.1\r\nHost: " + where + "\r\n\r\n", 200},
		"host header":        {"GET /p HTTP/1.1\r\nHost: " + where + "\r\n\r\n", 200},
		"two slashes":        {"GET //" + where + "/p HTTP/1.1\r\nHost: x\r\n\r\n", 200},
		"asterisk":           {"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 501},
		"no path":            {"GET x:@" + where + "/p HTTP/1.1\r\nHost: x\r\n\r\n", 501},
		"two hosts":          {"GET / HTTP/1.1\r\nHost: x\r\nHost: " + where + "\r\n\r\n", 400},
		"no host":            {"GET / HTTP/1.1\r\n\r\n", 400},
		"two lengths":        {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400},
		"bad length":         {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\na", 400},
		"unknown coding":     {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n", 501},
		"folded header":      {"GET / HTTP/1.1\r\nHost: x\r\n X: y\r\n\r\n", 400},
		"space before colon": {"GET / HTTP/1.1\r\nHost: x\r\nX : y\r\n\r\n", 400},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			c, in := f.dial()
			response, err := send(t, c, in, row.request)
			if err != nil || response.StatusCode != row.status {
				t.Fatalf("%v %v, want %d", response, err, row.status)
			}
		})
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("the proxy connected %d times to what is no backend", n)
	}
	if n := f.value("errors_total", "reason", "target"); n != 2 {
		t.Errorf("%v requests without a path were counted", n)
	}
}

// TestLengthAndChunks: of a length and a coding the coding counts, and the backend gets one of them.
func TestLengthAndChunks(t *testing.T) {
	f := newFleet(t, config(), map[string]string{"a": backend(t, func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %d %v", content, r.ContentLength, r.TransferEncoding)
	})}, "a")
	c, in := f.dial()
	response, err := send(t, c, in, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	if content, _ := io.ReadAll(response.Body); string(content) != "body -1 [chunked]" {
		t.Errorf("%q", content)
	}
}

func TestDefaultPort(t *testing.T) {
	host, port, _ := net.SplitHostPort(backend(t, named("a")))
	c := config()
	if _, err := fmt.Sscan(port, &c.DefaultPort); err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, c, map[string]string{"a": host}, "a")
	if got := f.get("/"); got.body != "a" {
		t.Errorf("%+v", got)
	}
}

// TestContentTypeIsTheBackends: one that sent none is not given one.
func TestContentTypeIsTheBackends(t *testing.T) {
	f := newFleet(t, config(), map[string]string{"a": backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = nil
		if r.URL.Path == "/typed" {
			w.Header().Set("Content-Type", "text/x-own")
		}
		_, _ = io.WriteString(w, "<html>")
	})}, "a")
	if got := f.get("/").header; len(got["Content-Type"]) > 0 {
		t.Errorf("%q", got["Content-Type"])
	}
	if got := f.get("/typed").header.Get("Content-Type"); got != "text/x-own" {
		t.Errorf("%q", got)
	}
}

// TestTargetIsSentOn byte for byte, in whatever form it came, and is the key.
func TestTargetIsSentOn(t *testing.T) {
	f := newFleet(t, config(), map[string]string{"a": echoTarget(t), "b": echoTarget(t)}, "a", "b")
	for target, want := range map[string]string{
		"/a|b": "", `/a"b^c`: "", "/a{b}?x|y{z}": "", "/\xc3\xa4": "", "/a%2Fb": "", "/%7e~": "", "/a#b": "", `/a\b`: "", "/a?": "", "/./../b": "", "/a[b]!$&'()*+,;=:@": "",
		"//x/y": "", "//a|b": "//a%7Cb", "http://h/a|b?c|d": "/a|b?c|d", "http://h?q": "/?q", "http://h": "/",
	} {
		if want == "" {
			want = target
		}
		conn, in := f.dial()
		response, err := send(t, conn, in, "GET "+target+" HTTP/1.1\r\nHost: h\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(response.Body)
		if response.StatusCode != 200 && target == "http://h" { // There is nothing that a key could be made of.
			continue
		}
		if string(got) != want {
			t.Errorf("%q: the backend got %q", target, got)
		}
		key := strings.TrimPrefix(target, "http://h")
		d, err := f.client.Lookup([]byte(key), nil, 1)
		if err != nil || !strings.Contains(response.Header.Get("X-Decision"), `"`+d[0].ID()+`"`) {
			t.Errorf("%q: %q, not the owner of %q", target, response.Header.Get("X-Decision"), key)
		}
	}
}

// echoTarget answers with the target of the request as it came.
func echoTarget(t testing.TB) string {
	return raw(t, func(_ int, c net.Conn, in *bufio.Reader) {
		line, err := in.ReadString('\n')
		if words := strings.Fields(line); err == nil && len(words) == 3 {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(words[1]), words[1])
			for err == nil && line != "\r\n" { // To close with something unread would be a reset.
				line, err = in.ReadString('\n')
			}
		}
	})
}
