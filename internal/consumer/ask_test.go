// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/internal/agentapi"
	"github.com/ringwright/ringwright/internal/plan"
)

const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// full is a status with everything that an agent can say.
func full() agentapi.Status {
	return agentapi.Status{
		Ready: true, Datacenter: "lab01", Forced: "candidate", Draining: true, NotApplied: "nginx: the reload failed",
		StartedAt: time.Unix(1_700_000_000, 5).UTC(),
		Routing: &agentapi.Routing{
			Ring: "cdn/edge", UID: "b2a0ad83-3ffc-4bb0-9d49-0f8a9b0f2f3e", Generation: 41, LeaderEpoch: 7, LoadedAt: time.Unix(1_800_000_000, 0),
			Stable:    agentapi.Ring{Digest: digest, Version: "V2", Revision: 12, Encoding: "Points", Backends: 2048, Down: 3, Points: 327_667},
			Candidate: &agentapi.Ring{Digest: digest[:70] + "0", Version: "V3", Revision: 13, Encoding: "Points"}, BasisPoints: 50,
		},
		LastError: &agentapi.LoadError{
			Reason: "digest", Message: "ring-a.snap has another digest", File: "ring-a.snap", Value: digest, Limit: digest, Time: time.Unix(1_800_000_000, 0), Current: true,
		},
		Counters: agentapi.Counters{
			LoadErrors: map[string]uint64{"digest": 1, "missing": 2, "read": 3}, Selections: 1 << 60, Failovers: 1 << 60,
			Rings: []agentapi.RingCounters{
				{Role: "stable", Revision: 12, Digest: digest, Selections: 1000, Failovers: 20, Errors: 3},
				{Role: "candidate", Revision: 13, Digest: digest[:70] + "0", Selections: 40, Failovers: 5, Errors: 6},
				{Role: "stable", Revision: 11, Digest: digest, Selections: 7, Failovers: 8, Errors: 9},
				{Role: "candidate", Revision: 12, Digest: digest, Selections: 1 << 50, Failovers: 1 << 50, Errors: 1 << 50},
			},
		},
		Warnings: []string{"routing.json is mounted with subPath, so it will never change"}, Build: agentapi.Build{Version: "v1.2.3", Go: "go1.26.0"},
	}
}

func encode(t *testing.T, s any) []byte {
	t.Helper()
	body, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestParse: what the operator reads is what the agent writes.
func TestParse(t *testing.T) {
	body := encode(t, full())
	got, err := parse(body)
	want := Answer{Answer: plan.Answer{
		Datacenter: "lab01", Ready: true, Forced: "candidate", LoadError: "digest: ring-a.snap has another digest",
		NotApplied: "nginx: the reload failed",
		Asked: plan.Asked{
			Ring: "cdn/edge", UID: "b2a0ad83-3ffc-4bb0-9d49-0f8a9b0f2f3e", Generation: 41, LeaderEpoch: 7, Stable: digest, Candidate: digest[:70] + "0",
		},
	}, Counted: Counted{
		Started:   time.Unix(1_700_000_000, 5).UTC(),
		Stable:    RingCounts{Digest: digest, Selections: 1007, Failovers: 28, Errors: 12},
		Candidate: RingCounts{Digest: digest[:70] + "0", Selections: 40, Failovers: 5, Errors: 6},
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if len(body) > MaxAnswerBytes/16 {
		t.Errorf("a full status has %d bytes, the limit is %d", len(body), MaxAnswerBytes)
	}
	s := full()
	s.Routing, s.Ready, s.Forced, s.LastError.Current, s.Datacenter = nil, false, "", false, ""
	s.NotApplied = ""
	if got, err := parse(encode(t, s)); err != nil || got != (Answer{Counted: Counted{Started: s.StartedAt}}) {
		t.Errorf("an agent without a ring: %+v, %v", got, err)
	}
	s = full()
	s.Ready, s.LastError = false, nil
	if got, err := parse(encode(t, s)); err != nil || got.Ring != "" || got.Stable != "" || got.Counted.Stable != (RingCounts{}) {
		t.Errorf("an agent that is not ready: %+v, %v", got, err)
	}
}

// TestParseRefused: text that no agent sends is not kept.
func TestParseRefused(t *testing.T) {
	for name, row := range map[string]struct {
		change func(s *agentapi.Status)
		want   string
	}{
		"longest ring":            {func(s *agentapi.Status) { s.Ring = strings.Repeat("r", 127) }, ""},
		"ring too long":           {func(s *agentapi.Status) { s.Ring = strings.Repeat("r", 128) }, "its ring is not printable text of at most 127 bytes"},
		"ring of two lines":       {func(s *agentapi.Status) { s.Ring = "cdn/edge\nReady" }, "its ring is not printable text of at most 127 bytes"},
		"longest uid":             {func(s *agentapi.Status) { s.UID = strings.Repeat("u", 64) }, ""},
		"uid too long":            {func(s *agentapi.Status) { s.UID = strings.Repeat("u", 65) }, "its uid is not printable text of at most 64 bytes"},
		"digest too long":         {func(s *agentapi.Status) { s.Stable.Digest += "0" }, "its stable.digest is not printable text of at most 71 bytes"},
		"candidate too long":      {func(s *agentapi.Status) { s.Candidate.Digest += "00" }, "its candidate.digest is not printable text of at most 71 bytes"},
		"datacenter too long":     {func(s *agentapi.Status) { s.Datacenter = strings.Repeat("d", 64) }, "it gives a datacenter that is not the value of a label"},
		"datacenter of two words": {func(s *agentapi.Status) { s.Datacenter = "lab 01" }, "it gives a datacenter that is not the value of a label"},
		"forced to nothing known": {func(s *agentapi.Status) { s.Forced = "both" }, "it was told to use a ring that is neither stable nor candidate"},
		"generation below 0":      {func(s *agentapi.Status) { s.Generation = -1 }, "its generation or leader epoch is below 0"},
		"epoch below 0":           {func(s *agentapi.Status) { s.LeaderEpoch = -1 }, "its generation or leader epoch is below 0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := full()
			row.change(&s)
			_, err := parse(encode(t, s))
			if got := strings.TrimPrefix(said(err), failedContent+": "); got != row.want {
				t.Errorf("error %q, want %q", got, row.want)
			}
		})
	}
	for _, body := range []string{"", "null and more", "[]", "{", `{"ready":"yes"}`, `{"generation":1e99}`, `{"startedAt":"now"}`, `{"counters":{"rings":[{"errors":-1}]}}`, "<html>"} {
		var failure *Failure
		if _, err := parse([]byte(body)); !errors.As(err, &failure) || failure.Reason != failedContent {
			t.Errorf("%q: %v", body, err)
		}
	}
	s := full()
	s.Counters.Rings = slices.Concat(make([]agentapi.RingCounters, maxRings), s.Counters.Rings)
	if got, err := parse(encode(t, s)); err != nil || got.Counted.Stable != (RingCounts{Digest: digest}) {
		t.Errorf("more than %d rings: %+v, %v", maxRings, got.Counted, err)
	}
	if got, err := parse([]byte(`{"ready":true,"ring":"a/b","stable":{"digest":"x"}}`)); err != nil || got.Counted != (Counted{Stable: RingCounts{Digest: "x"}}) {
		t.Errorf("an agent that does not say when it began: %+v, %v", got.Counted, err)
	}
	s = full()
	s.LastError.Message = strings.Repeat("é\x1b[31m", 500)
	s.NotApplied = s.LastError.Message
	got, err := parse(encode(t, s))
	if err != nil || len(got.LoadError) > 256 || strings.ContainsRune(got.LoadError, '\x1b') || !strings.HasPrefix(got.LoadError, "digest: é [31mé") {
		t.Errorf("%d bytes, %v: %q", len(got.LoadError), err, got.LoadError)
	}
	if len(got.NotApplied) > 256 || strings.ContainsRune(got.NotApplied, '\x1b') || !strings.HasPrefix(got.NotApplied, "é [31mé") {
		t.Errorf("%d bytes: %q", len(got.NotApplied), got.NotApplied)
	}
}

// serve serves a handler on an address of loopback, and returns ip and port.
func serve(t *testing.T, ip string, handler http.Handler) (string, int32) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Skipf("no listener on %s: %v", ip, err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	server.Start()
	t.Cleanup(server.Close)
	at := netip.MustParseAddrPort(listener.Addr().String())
	return at.Addr().String(), int32(at.Port())
}

// TestAsk: over real connections, by both families.
func TestAsk(t *testing.T) {
	if NewAsker().transport.Proxy != nil {
		t.Error("it asks a proxy")
	}
	for _, ip := range []string{"127.0.0.1", "127.1.2.3", "::1"} {
		t.Run(ip, func(t *testing.T) {
			var path, agent string
			ip, port := serve(t, ip, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				path, agent = r.Method+" "+r.URL.String(), r.UserAgent()
				_, _ = w.Write(encode(t, full()))
			}))
			got, err := localAsker().Ask(t.Context(), ip, port, DefaultTimeout)
			if err != nil || got.Generation != 41 {
				t.Errorf("%+v, %v", got, err)
			}
			if path != "GET /v1/status" || agent != "ringwright-operator" {
				t.Errorf("asked by %s for %s", agent, path)
			}
		})
	}
}

// TestAskFailures: whatever is at the other end, the answer comes in time, and is a text that is the same each time.
func TestAskFailures(t *testing.T) {
	const timeout = 200 * time.Millisecond
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	stopped := make(chan struct{})
	hang := func(r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-stopped:
		}
	}
	for name, row := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"hanging": {func(_ http.ResponseWriter, r *http.Request) { hang(r) }, "timeout: no answer within 200ms"},
		"dripping": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte(" "))
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(20 * time.Millisecond):
				case <-stopped:
					return
				}
			}
		}, "timeout: no answer within 200ms"},
		"huge": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, "size: its answer has more than 65536 bytes"},
		"huge header": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 1<<16))
		}, "connection: the connection broke off, or nobody speaks HTTP there"},
		"just too large": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{}` + strings.Repeat(" ", MaxAnswerBytes-1)))
		}, "size: its answer has more than 65536 bytes"},
		"just not too large": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{}` + strings.Repeat(" ", MaxAnswerBytes-2)))
		}, ""},
		"packed": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00"))
		}, "content: its answer is not the status of an agent"},
		"garbage":    {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, "content: its answer is not the status of an agent"},
		"not found":  {http.NotFound, "status: it answers with HTTP status 404"},
		"an error":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, "status: it answers with HTTP status 503"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) }, "status: it answers with HTTP status 302"},
		"broken off": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "connection: the connection broke off, or nobody speaks HTTP there"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{}"))
		}, "connection: the connection broke off, or nobody speaks HTTP there"},
		"many hellos": {func(w http.ResponseWriter, r *http.Request) { manyHellos(w, r) }, "connection: the connection broke off, or nobody speaks HTTP there"},
	} {
		t.Run(name, func(t *testing.T) {
			ip, port := serve(t, "127.0.0.1", row.handler)
			began := time.Now()
			for range 2 {
				_, err := localAsker().Ask(t.Context(), ip, port, timeout)
				if got := said(err); got != row.want {
					t.Errorf("%q, want %q", got, row.want)
				}
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
	close(stopped)
	if elsewhere > 0 {
		t.Error("a redirect was followed")
	}
}

// manyHellos sends informational answers without end.
func manyHellos(w http.ResponseWriter, r *http.Request) {
	for range 1000 {
		if r.Context().Err() != nil {
			return
		}
		w.Header().Set("Link", strings.Repeat("x", 1000))
		w.WriteHeader(http.StatusEarlyHints)
	}
}

func said(err error) string {
	var failure *Failure
	if errors.As(err, &failure) {
		return failure.Reason + ": " + failure.Text
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// TestAddresses: what cannot be the address of a pod is not asked, however it is written.
func TestAddresses(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // So that nobody is asked in earnest.
	for ip, isPod := range map[string]bool{
		"10.0.0.1": true, "192.168.1.1": true, "203.0.113.7": true, "fd00::1": true, "2001:db8::1": true, "::ffff:10.0.0.1": true,
		"": false, "edge-1": false, "10.0.0.1:80": false, "fd00::1%eth0": false,
		"127.0.0.1": false, "127.8.9.10": false, "::1": false, "::ffff:127.0.0.1": false,
		"0.0.0.0": false, "::": false, "::ffff:0.0.0.0": false,
		"169.254.169.254": false, "fe80::1": false, "fe80::1%eth0": false, "::ffff:169.254.169.254": false,
		"224.0.0.1": false, "239.1.2.3": false, "ff02::1": false, "::ffff:224.0.0.1": false,
		"255.255.255.255": false, "::ffff:255.255.255.255": false,
	} {
		_, err := NewAsker().Ask(ctx, ip, 80, DefaultTimeout)
		if isPod {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", ip, err)
			}
		} else if got := said(err); got != fmt.Sprintf("address: %q is not the address of a pod", ip) {
			t.Errorf("%q: %v", ip, err)
		}
	}
}

// localAsker returns one that asks servers of a test.
func localAsker() *Asker {
	a := NewAsker()
	a.Loopback = true
	return a
}

// TestAskNobody: where nobody listens, and when nobody waits.
func TestAskNobody(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := netip.MustParseAddrPort(listener.Addr().String())
	_ = listener.Close()
	_, err = localAsker().Ask(t.Context(), "127.0.0.1", int32(free.Port()), DefaultTimeout)
	if got := said(err); got != "refused: the connection was refused" {
		t.Errorf("a closed port: %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := second(localAsker().Ask(ctx, "127.0.0.1", int32(free.Port()), DefaultTimeout)); !errors.Is(err, context.Canceled) {
		t.Errorf("asked in vain: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func FuzzParse(f *testing.F) {
	body, err := json.Marshal(full())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte(`{"ready":true,"ring":"a/b","stable":{"digest":"x"},"lastError":{"current":true,"message":"\u0000"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := parse(body)
		var failure *Failure
		if err != nil && !errors.As(err, &failure) {
			t.Fatalf("an error of type %T", err)
		}
		if size := len(a.Ring) + len(a.UID) + len(a.Stable) + len(a.Candidate) + len(a.Datacenter) + len(a.LoadError) + len(a.Forced); size > 127+64+2*71+63+256+9 {
			t.Errorf("%d bytes are kept", size)
		}
	})
}
