// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// counting serves a backend that counts its open connections.
func counting(t testing.TB, name string) (address string, open *atomic.Int32) {
	open = new(atomic.Int32)
	return raw(t, func(_ int, c net.Conn, in *bufio.Reader) {
		open.Add(1)
		defer open.Add(-1)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(name), name)
		}
	}), open
}

// TestAddressMovesToAnotherBackend: connections that were made to one backend are not used for the one that has its address now,
// and those to the old address of a backend are closed.
func TestAddressMovesToAnotherBackend(t *testing.T) {
	first, open := counting(t, "first")
	second, _ := counting(t, "second")
	r := ringOf(t, "a", "b")
	f := newFleet(t, config(), map[string]string{"a": first, "b": second}, "a", "b")
	toA, toB := f.key("a"), f.key("b")
	if f.get(toA).body != "first" || f.get(toB).body != "second" || open.Load() != 1 {
		t.Fatal("the backends are not where they should be")
	}
	f.publish(r, map[string]string{"a": second, "b": first})
	if f.get(toB).body != "first" {
		t.Error("b is not asked at its new address")
	}
	if n := open.Load(); n != 2 {
		t.Errorf("%d connections to the first address: b uses the one that was a's", n)
	}
	if f.get(toA).body != "second" {
		t.Error("a is not asked at its new address")
	}
	eventually(t, "a's old connection to be closed", func() bool { return open.Load() == 1 })
}

// TestEndpointsAreFiledByPlace: there is one for each backend at each address, and it is found again.
func TestEndpointsAreFiledByPlace(t *testing.T) {
	f := newFleet(t, config(), nil, "a")
	type place struct{ id, target string }
	places := []place{{"a", "127.0.0.1:1"}, {"b", "127.0.0.1:1"}, {"a", "127.0.0.1:2"}, {"b", "127.0.0.1:2"}}
	found := map[any]place{}
	for range 3 {
		for _, at := range places {
			e, id, target := f.proxy.EndpointAt(at.id, at.target)
			if id != at.id || target != at.target {
				t.Errorf("%v: got that of %s at %s", at, id, target)
			}
			found[e] = at
		}
	}
	if len(found) != len(places) {
		t.Errorf("%d endpoints at %d places", len(found), len(places))
	}
}

// TestCandidate: a key of the candidate goes to the backend that owns it there, and when that fails to the next one on the same ring.
func TestCandidate(t *testing.T) {
	f := &fleet{t: t, dir: t.TempDir()}
	f.publishBoth(ringOf(t, "a", "b"), ringOf(t, "b", "c", "d"), map[string]string{
		"a": backend(t, named("a")), "b": backend(t, named("b")), "c": refusing(t), "d": backend(t, named("d")),
	})
	f.serve(config())
	for _, row := range []struct{ path, want string }{
		{f.key("a"), `backend="a", role=stable, revision=7, failover=?0, attempts=1`},
		{f.key("d"), `backend="d", role=candidate, revision=8, failover=?0, attempts=1`},
		{f.key("c", "d"), `backend="d", role=candidate, revision=8, failover=?1, attempts=2`},
	} {
		if got := f.get(row.path).header.Get("X-Decision"); got != row.want {
			t.Errorf("%s, want %s", got, row.want)
		}
	}
	if n := f.value("requests_total", "role", "candidate", "class", "2xx"); n != 2 {
		t.Errorf("%v requests by the candidate", n)
	}
}

// TestBackendLeaves: its idle connections are closed.
func TestBackendLeaves(t *testing.T) {
	one, open := counting(t, "one")
	two, _ := counting(t, "two")
	c := config()
	c.BackendMetrics = true
	f := newFleet(t, c, map[string]string{"a": one, "b": two}, "a", "b")
	f.get(f.key("a"))
	if f.value("backend_requests_total", "backend", "a") != 1 {
		t.Error("not counted by backend")
	}
	f.publish(ringOf(t, "b", "c"), map[string]string{"b": two, "c": two})
	eventually(t, "its connection to be closed", func() bool { return open.Load() == 0 })
	eventually(t, "its series to go", func() bool { return f.value("backend_requests_total", "backend", "a") == 0 })
}

// TestSeriesGoWithTheBackend: also those of one that nobody had asked for long before it left.
func TestSeriesGoWithTheBackend(t *testing.T) {
	one, open := counting(t, "one")
	two, _ := counting(t, "two")
	c := config()
	c.BackendMetrics = true
	f := newFleet(t, c, map[string]string{"a": one, "b": two}, "a", "b")
	f.get(f.key("a"))
	for range 2 {
		f.proxy.Sweep(1)
	}
	eventually(t, "its endpoint to be forgotten", func() bool { return open.Load() == 0 })
	if f.value("backend_requests_total", "backend", "a") != 1 {
		t.Error("the series of a backend that nobody asks are gone")
	}
	f.publish(ringOf(t, "b"), map[string]string{"b": two})
	f.proxy.Sweep(1)
	if f.value("backend_requests_total", "backend", "a") != 0 {
		t.Error("the series of one that left stay")
	}
}

// TestFailedIsNoAnswerOfTheBackend: a 502 of the proxy is not counted as one of its.
func TestFailedIsNoAnswerOfTheBackend(t *testing.T) {
	c := config()
	c.BackendMetrics = true
	f := newFleet(t, c, map[string]string{"a": refusing(t)}, "a")
	f.get("/")
	if failed, own := f.value("backend_requests_total", "class", "failed"), f.value("backend_requests_total", "class", "5xx"); failed != 1 || own != 0 {
		t.Errorf("%v failed, %v answers of the backend", failed, own)
	}
}

// load sends requests from several clients until stop, and returns how many succeeded and what failed.
func (f *fleet) load(stop <-chan struct{}) (wait func() (int, []string)) {
	var running sync.WaitGroup
	var mu sync.Mutex
	var failed []string
	var done atomic.Int64
	for client := range 8 {
		running.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				method, body := http.MethodGet, io.Reader(nil)
				if i%4 == 0 {
					method, body = http.MethodPost, strings.NewReader("content")
				}
				a, err := f.do(method, fmt.Sprintf("/%d-%d", client, i), body)
				if err != nil || a.status != 200 {
					mu.Lock()
					failed = append(failed, fmt.Sprintf("%s %+v %v", method, a, err))
					mu.Unlock()
					continue
				}
				done.Add(1)
			}
		})
	}
	return func() (int, []string) {
		running.Wait()
		return int(done.Load()), failed
	}
}

// TestSwapUnderLoad: rings and addresses change all the time, one backend refuses, and no request fails.
func TestSwapUnderLoad(t *testing.T) {
	serve := func() string {
		return backend(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, "ok")
		})
	}
	places := []string{serve(), serve(), serve(), serve()}
	gone := refusing(t)
	f := newFleet(t, config(), map[string]string{"a": places[0], "b": places[1], "c": gone}, "a", "b", "c")
	stop := make(chan struct{})
	wait := f.load(stop)
	names := [][]string{{"a", "b", "c"}, {"a", "b", "c", "d"}, {"b", "c", "d"}, {"a", "d"}}
	for i := range 24 {
		ids := names[i%len(names)]
		addresses := map[string]string{}
		for j, id := range ids {
			if addresses[id] = places[(i+j)%len(places)]; id == "c" {
				addresses[id] = gone
			}
		}
		f.publish(ringOf(t, ids...), addresses)
	}
	close(stop)
	done, failed := wait()
	if len(failed) > 0 || done < 100 {
		t.Errorf("%d requests succeeded, %d failed: %.2000s", done, len(failed), failed)
	}
	if f.value("failovers_total", "reason", "refused") == 0 {
		t.Error("nothing was refused: the test shows nothing")
	}
}

// TestShutdownUnderLoad: requests that run when the server shuts down are answered.
func TestShutdownUnderLoad(t *testing.T) {
	begun := make(chan struct{}, 64)
	release := make(chan struct{})
	f := newFleet(t, config(), map[string]string{"a": backend(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		begun <- struct{}{}
		<-release
		_, _ = w.Write(make([]byte, 100_000))
	})}, "a")
	answers := make(chan error, 16)
	for i := range 16 {
		go func() {
			a, err := f.do(http.MethodPost, fmt.Sprintf("/%d", i), strings.NewReader("content"))
			if err == nil && (a.status != 200 || len(a.body) != 100_000) {
				err = fmt.Errorf("%d, %d bytes", a.status, len(a.body))
			}
			answers <- err
		}()
	}
	for range 16 {
		<-begun
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- f.server.Shutdown(ctx) }()
	eventually(t, "the listener to be closed", func() bool {
		c, err := net.Dial("tcp", f.host)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	close(release)
	for range 16 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if err := f.proxy.Close(); err != nil {
		t.Error(err)
	}
	if n := f.proxy.InFlight(); n != 0 {
		t.Errorf("%d requests are in flight", n)
	}
}

// TestNoRing: before a ring is loaded.
func TestNoRing(t *testing.T) {
	f := &fleet{t: t, dir: t.TempDir()}
	f.serve(config())
	a := f.get("/")
	if p := a.problem(t); a.status != 503 || !strings.Contains(p.Error, "no ring is loaded yet") || a.header.Get("Retry-After") != "1" {
		t.Errorf("%d %+v", a.status, p)
	}
	if f.value("requests_total", "class", "5xx", "role", "none") != 1 {
		t.Error("not counted")
	}
}
