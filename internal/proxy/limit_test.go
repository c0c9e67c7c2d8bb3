// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ringwright/ringwright/internal/proxy"
	"github.com/ringwright/ringwright/pkg/ring"
)

// TestRefusals: what the proxy answers itself names what is at fault, what was found there, and the limit.
func TestRefusals(t *testing.T) {
	address := backend(t, dump)
	long := strings.Repeat("k", proxy.MaxKeyBytes)
	rows := map[string]struct {
		change  func(*proxy.Config)
		method  string
		body    io.Reader
		headers []string
		status  int
		reason  string
		want    problem // Error is a part of it.
	}{
		"no key": {
			func(c *proxy.Config) { c.Key = "u:${header:X-User}" }, "GET", nil, nil, 400, "key_empty",
			problem{"no key", "key", "", "u:${header:X-User}"},
		},
		"key too long": {
			func(c *proxy.Config) { c.Key = "${header:X-User}" }, "GET", nil, []string{"X-User", long + "k"}, 400, "key_size",
			problem{"8193 bytes", "key", long[:128] + "…", "8192 bytes"},
		},
		"unknown feature": {
			func(c *proxy.Config) { c.FeaturesHeader = "X-Features" }, "GET", nil, []string{"X-Features", "eu, moon"}, 400, "features",
			problem{"does not declare", "X-Features", "moon", "eu, idle, ssd"},
		},
		"empty feature": {
			func(c *proxy.Config) { c.FeaturesHeader = "X-Features" }, "GET", nil, []string{"X-Features", "eu,"}, 400, "features",
			problem{"no name", "X-Features", "eu,", "names with commas between them"},
		},
		"too many features": {
			func(c *proxy.Config) { c.FeaturesHeader = "X-Features" }, "GET", nil, []string{"X-Features", strings.Repeat("eu,", ring.MaxFeatures) + "eu"},
			400, "features", problem{"too many", "X-Features", strings.Repeat("eu,", ring.MaxFeatures)[:128] + "…", fmt.Sprintf("%d features", ring.MaxFeatures)},
		},
		"unknown feature of the proxy": {
			func(c *proxy.Config) { c.Features = []string{"moon"} }, "GET", nil, nil, 503, "features",
			problem{"does not declare", "--proxy-features", "moon", "eu, idle, ssd"},
		},
		"nobody has it": {
			func(c *proxy.Config) { c.Features = []string{"idle"} }, "GET", nil, nil, 503, "no_backend",
			problem{"no backend may own the key", "--proxy-features", "idle", ""},
		},
		"body too long": {
			func(c *proxy.Config) { c.MaxBody = 3 }, "POST", strings.NewReader("1234"), nil, 413, "body_size",
			problem{"too large", "body", "4", "3 bytes"},
		},
		"body too long, no length": {
			func(c *proxy.Config) { c.MaxBody = 3 }, "POST", io.MultiReader(strings.NewReader("1234")), nil, 413, "body_size",
			problem{"too large", "body", "", "3 bytes"},
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			c := config()
			row.change(&c)
			f := newFleet(t, c, map[string]string{"a": address}, "a")
			a, err := f.do(row.method, "/", row.body, row.headers...)
			if err != nil || a.status != row.status {
				t.Fatalf("%+v %v", a, err)
			}
			got := a.problem(t)
			if !strings.Contains(got.Error, row.want.Error) || got.Field != row.want.Field || got.Value != row.want.Value || got.Limit != row.want.Limit {
				t.Errorf("%+v", got)
			}
			if f.value("errors_total", "reason", row.reason) != 1 || f.value("passed_over_total") != 0 {
				t.Error("not counted, or the backend was blamed")
			}
			if (a.header.Get("Retry-After") != "") != (row.status == 503) {
				t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
			}
		})
	}
}

// TestWithinLimits: the largest that is allowed passes.
func TestWithinLimits(t *testing.T) {
	c := config()
	c.Key, c.MaxBody, c.FeaturesHeader, c.Features = "${header:X-User}", 4, "X-Features", []string{"eu"}
	f := newFleet(t, c, map[string]string{"a": backend(t, dump), "b": backend(t, dump)}, "a", "b")
	for range 4 {
		a, err := f.do(http.MethodPost, "/", strings.NewReader("1234"),
			"X-User", strings.Repeat("k", proxy.MaxKeyBytes), "X-Features", "ssd", "X-Features", strings.Repeat("eu,", ring.MaxFeatures-3)+"eu")
		if err != nil || a.status != 200 || !strings.Contains(a.header.Get("X-Decision"), `backend="a"`) {
			t.Errorf("%+v %v", a, err)
		}
	}
}

func TestEmptyKeyPolicies(t *testing.T) {
	for policy, wanted := range map[proxy.EmptyKey]bool{proxy.EmptyKeyPath: true, proxy.EmptyKeyKeep: false} {
		c := config()
		c.Key, c.EmptyKey = "u:${cookie:sid}", policy
		f := newFleet(t, c, map[string]string{"a": backend(t, dump), "b": backend(t, dump)}, "a", "b")
		seen := map[string]bool{}
		for i := range 32 {
			path := fmt.Sprintf("/%d", i)
			a := f.get(path)
			owner, err := f.client.Pick([]byte(path))
			if policy == proxy.EmptyKeyKeep {
				owner, err = f.client.Pick([]byte("u:"))
			}
			if err != nil || !strings.Contains(a.header.Get("X-Decision"), fmt.Sprintf("backend=%q", owner.ID())) {
				t.Fatalf("%s: %s, want %s, %v", policy, a.header.Get("X-Decision"), owner.ID(), err)
			}
			seen[owner.ID()] = true
		}
		if (len(seen) == 2) != wanted {
			t.Errorf("%s: %v", policy, seen)
		}
	}
}

// TestRequestLimits: too many requests are refused, in all and to one backend, and others are not harmed.
func TestRequestLimits(t *testing.T) {
	for _, row := range []struct {
		change func(*proxy.Config)
		reason string
		field  string
	}{
		{func(c *proxy.Config) { c.MaxRequests = 2 }, "busy", "--proxy-max-requests"},
		{func(c *proxy.Config) { c.MaxBackendConnections = 2 }, "backend_busy", "backend"},
		{func(c *proxy.Config) { c.MaxConnections = 2 }, "connections", "--proxy-max-connections"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			release := make(chan struct{})
			address := backend(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/wait" {
					<-release
				}
			})
			c := config()
			row.change(&c)
			f := newFleet(t, c, map[string]string{"a": address}, "a")
			done := make(chan int, 2)
			for range 2 {
				go func() {
					a, _ := f.do(http.MethodGet, "/wait", nil)
					done <- a.status
				}()
			}
			eventually(t, "two requests", func() bool { return f.value("attempts_total") == 2 })
			a := f.get("/x")
			if p := a.problem(t); a.status != 503 || p.Field != row.field || a.header.Get("Retry-After") != "1" {
				t.Errorf("%d %+v", a.status, p)
			}
			if f.value("errors_total", "reason", row.reason) != 1 || f.value("passed_over_total") != 0 {
				t.Error("not counted, or the backend was blamed")
			}
			close(release)
			for range 2 {
				if status := <-done; status != 200 {
					t.Errorf("status %d", status)
				}
			}
			eventually(t, "places", func() bool { return f.get("/x").status == 200 })
		})
	}
}

// TestMakesRoom: at the limit of connections, those that nobody uses give way.
func TestMakesRoom(t *testing.T) {
	c := config()
	c.MaxConnections = 1
	f := newFleet(t, c, map[string]string{"a": backend(t, named("a")), "b": backend(t, named("b"))}, "a", "b")
	for range 3 {
		for _, id := range []string{"a", "b"} {
			eventually(t, id, func() bool { return f.get(f.key(id)).body == id })
		}
	}
}

func TestHeaderLimits(t *testing.T) {
	c := config()
	c.MaxHeaderBytes, c.HeaderTimeout = 4<<10, 100*time.Millisecond
	f := newFleet(t, c, map[string]string{"a": backend(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Large", strings.Repeat("x", 8<<10))
	})}, "a")
	if a := f.get("/", "X-Large", strings.Repeat("x", 9<<10)); a.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("large request header: %+v", a)
	}
	if a := f.get("/"); a.status != http.StatusBadGateway {
		t.Errorf("large answer header: %d", a.status)
	}
	conn, in := f.dial()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("a slow header: %v", err)
	}
}

// TestSlowUpload: a client that stops sending is told so, and the backend is not blamed.
func TestSlowUpload(t *testing.T) {
	c := config()
	c.IdleTimeout = 200 * time.Millisecond
	f := newFleet(t, c, map[string]string{"a": backend(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })}, "a")
	conn, in := f.dial()
	response, err := send(t, conn, in, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345")
	if err != nil || response.StatusCode != http.StatusRequestTimeout || !response.Close {
		t.Errorf("%+v %v", response, err)
	}
	if f.value("errors_total", "reason", "body") != 1 || f.value("passed_over_total") != 0 {
		t.Error("not counted, or the backend was blamed")
	}
}

// TestSlowDownload: a client that stops reading loses its connection, and the backend is let go.
func TestSlowDownload(t *testing.T) {
	c := config()
	c.IdleTimeout = 200 * time.Millisecond
	gone := make(chan struct{})
	f := newFleet(t, c, map[string]string{"a": backend(t, func(w http.ResponseWriter, _ *http.Request) {
		defer close(gone)
		_, _ = io.Copy(w, io.LimitReader(zeros{}, 1<<30))
	})}, "a")
	conn, _ := f.dial()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Fatal("the backend still sends")
	}
	eventually(t, "the request to end", func() bool {
		return f.value("requests_total", "class", "aborted")+f.value("requests_total", "class", "canceled") == 1
	})
}

// TestSlowClientOutlastsItsBody: a deadline that a body had does not count for the answer.
func TestSlowClientOutlastsItsBody(t *testing.T) {
	c := config()
	c.IdleTimeout = 100 * time.Millisecond
	f := newFleet(t, c, map[string]string{"a": backend(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		wait := time.NewTimer(400 * time.Millisecond)
		defer wait.Stop()
		select {
		case <-wait.C:
			_, _ = io.WriteString(w, "late")
		case <-r.Context().Done():
		}
	})}, "a")
	if a, err := f.do(http.MethodPost, "/", strings.NewReader("body")); err != nil || a.body != "late" {
		t.Errorf("%+v %v", a, err)
	}
}

// TestClientLeaves: nobody is blamed, nothing is tried again, and what was asked of the backend ends.
func TestClientLeaves(t *testing.T) {
	asked, gone := make(chan struct{}), make(chan struct{})
	f := newFleet(t, config(), map[string]string{"a": backend(t, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		close(gone)
	})}, "a")
	conn, in := f.dial()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-asked
	_ = conn.(interface{ CloseWrite() error }).CloseWrite()
	if content, err := io.ReadAll(in); len(content) > 0 || err != nil {
		t.Errorf("a client that closed its side is told %q %v", content, err)
	}
	<-gone
	eventually(t, "the request to be counted", func() bool { return f.value("requests_total", "class", "canceled") == 1 })
	if f.value("passed_over_total")+f.value("failovers_total") != 0 {
		t.Error("the backend was blamed")
	}
}

// TestEarlyAnswer: a backend that answers before the body has come is heard.
func TestEarlyAnswer(t *testing.T) {
	f := newFleet(t, config(), map[string]string{"a": backend(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	})}, "a")
	conn, _ := f.dial()
	in := bufio.NewReader(conn)
	response, err := send(t, conn, in, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n12345")
	if err != nil || response.StatusCode != http.StatusForbidden {
		t.Errorf("%+v %v", response, err)
	}
}

func TestConfigErrors(t *testing.T) {
	rows := map[string]func(*proxy.Config){
		"--proxy-key: key template":                                func(c *proxy.Config) { c.Key = "x" },
		`--proxy-empty-key is "x", not reject, path or keep`:       func(c *proxy.Config) { c.EmptyKey = "x" },
		`--proxy-host is "x", not preserve or backend`:             func(c *proxy.Config) { c.Host = "x" },
		`--proxy-forwarded is "x", not replace, append or off`:     func(c *proxy.Config) { c.Forwarded = "x" },
		`--proxy-features is "eu,", not up to`:                     func(c *proxy.Config) { c.Features = []string{"eu", ""} },
		`--proxy-decision-header is "a b", not a name`:             func(c *proxy.Config) { c.DecisionHeader = "a b" },
		"--proxy-default-port is 0, not 1 to 65535":                func(c *proxy.Config) { c.DefaultPort = 0 },
		"--proxy-attempts is 65, not 1 to 64":                      func(c *proxy.Config) { c.Attempts = 65 },
		"--proxy-attempts is 0, not 1 to 64":                       func(c *proxy.Config) { c.Attempts = 0 },
		"--proxy-replay-bytes is 16777217, not 0 to 16777216":      func(c *proxy.Config) { c.ReplayBytes = 16<<20 + 1 },
		"--proxy-replay-total is 65535, not 65536 to":              func(c *proxy.Config) { c.ReplayTotal = 65535 },
		"--proxy-max-requests is 0, not 1 to":                      func(c *proxy.Config) { c.MaxRequests = 0 },
		"--proxy-max-header-bytes is 1023, not 1024 to 1048576":    func(c *proxy.Config) { c.MaxHeaderBytes = 1023 },
		"--proxy-max-body is -1, not 0 to":                         func(c *proxy.Config) { c.MaxBody = -1 },
		"--proxy-dial-timeout is 0s, not at least 1ms":             func(c *proxy.Config) { c.DialTimeout = 0 },
		"--proxy-pass-over is 5m1s, not at most 5m0s":              func(c *proxy.Config) { c.PassOver = 301 * time.Second },
		"--proxy-max-pass-over is 500ms, not at least 1s":          func(c *proxy.Config) { c.MaxPassOver = 500 * time.Millisecond },
		"--proxy-backend-ca, --proxy-backend-cert":                 func(c *proxy.Config) { c.TLS.CAFile = "x" },
		"--proxy-backend-cert and --proxy-backend-key need each":   func(c *proxy.Config) { c.TLS.Enabled, c.TLS.CertFile = true, "x" },
		`--proxy-backend-server-name is "name:", not address`:      func(c *proxy.Config) { c.TLS.ServerName = "name:" },
		"--proxy-backend-ca: open /nonexistent: no such file or d": func(c *proxy.Config) { c.TLS.Enabled, c.TLS.CAFile = true, "/nonexistent" },
	}
	for want, change := range rows {
		c := proxy.DefaultConfig()
		change(&c)
		if p, err := proxy.New(nil, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
			if p != nil {
				_ = p.Close()
			}
		}
	}
	c := proxy.DefaultConfig()
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}
