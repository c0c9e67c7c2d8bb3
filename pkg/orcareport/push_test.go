// SPDX-License-Identifier: Apache-2.0

package orcareport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/protobuf/proto"
)

// gateway answers what it is told to.
type gateway struct {
	times    []time.Duration
	began    time.Time
	requests []*http.Request
	reports  []*orcav3.OrcaLoadReport
	answer   func(n int) (code int, header, body string)
}

func (g *gateway) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	report := &orcav3.OrcaLoadReport{}
	if err := errors.Join(err, proto.Unmarshal(body, report)); err != nil {
		return nil, err
	}
	g.times, g.requests, g.reports = append(g.times, time.Since(g.began)), append(g.requests, r), append(g.reports, report)
	code, after, text := g.answer(len(g.times) - 1)
	if code == 0 {
		return nil, errors.New("connection refused")
	}
	header := http.Header{}
	if after != "" {
		header.Set("Retry-After", after)
		header.Set("Location", "http://elsewhere/")
	}
	return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// pushFor pushes to a gateway for a time of a fake clock.
func pushFor(t *testing.T, d time.Duration, g *gateway) (token string) {
	t.Helper()
	token = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		g.began = time.Now()
		r := New(Options{Client: &http.Client{Transport: g}, CPU: func() (time.Duration, float64, bool) { return 0, 1, true }})
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		go r.call(ctx, 20*time.Second, 0)
		if err := r.Push(ctx, "http://balancer:8080", token); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		<-time.After(20 * time.Second)
	})
	return token
}

// gaps checks the times between reports: each is what is wanted, with a tenth more or less and a bit of randomness of the pauses.
func (g *gateway) gaps(t *testing.T, spread float64, want ...time.Duration) {
	t.Helper()
	last := time.Duration(0)
	for i, w := range want {
		if i >= len(g.times) {
			t.Fatalf("%d reports: %s", len(g.times), g.times)
		}
		if gap := g.times[i] - last; float64(gap) < float64(w)*(1-spread) || float64(gap) > float64(w)*(1+spread) {
			t.Errorf("report %d after %s, want %s", i, gap, w)
		}
		last = g.times[i]
	}
}

func TestPush(t *testing.T) {
	g := &gateway{answer: func(int) (int, string, string) { return 200, "", `{"interval":"10s"}` }}
	pushFor(t, time.Minute, g)
	g.gaps(t, 0.1, 5*time.Second, 10*time.Second, 10*time.Second, 10*time.Second)
	last := time.Duration(0)
	for i, r := range g.requests {
		if r.URL.String() != "http://balancer:8080/v1/load" || r.Method != "POST" || r.Header.Get("Authorization") != "Bearer first" ||
			r.Header.Get("Content-Type") != "application/x-protobuf" || r.Header.Get("Ringwright-Window") != (g.times[i]-last).String() {
			t.Errorf("%s %s %s", r.Method, r.URL, r.Header)
		}
		last = g.times[i]
	}
	if f := g.reports[0].NamedMetrics[InFlight]; f != 1 || g.reports[0].CpuUtilization != leastCPU || g.reports[len(g.reports)-1].NamedMetrics[InFlight] != 0 {
		t.Error(g.reports)
	}
}

func TestPushAgainAfterFailures(t *testing.T) {
	for name, test := range map[string]struct {
		code   int
		after  string
		spread float64
		gaps   []time.Duration
	}{
		"no connection": {0, "", 0.7, []time.Duration{5 * time.Second, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second}},
		"refused":       {429, "20", 0.1, []time.Duration{5 * time.Second, 20 * time.Second, 20 * time.Second, 20 * time.Second}},
		"redirected":    {307, "30", 0.1, []time.Duration{5 * time.Second, 30 * time.Second, 30 * time.Second}},
		"told nonsense": {503, "-5", 0.7, []time.Duration{5 * time.Second, time.Second, 2 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			g := &gateway{answer: func(int) (int, string, string) { return test.code, test.after, "" }}
			pushFor(t, 5*time.Minute, g)
			g.gaps(t, test.spread, test.gaps...)
			for _, r := range g.requests {
				if r.URL.Host != "balancer:8080" {
					t.Errorf("the token went to %s", r.URL.Host)
				}
			}
		})
	}
	g := &gateway{answer: func(n int) (int, string, string) {
		if n < 3 {
			return 500, "", "<html>"
		}
		return 200, "", `{"interval":"0.001s"}` // It may not make pods push all the time.
	}}
	pushFor(t, 30*time.Second, g)
	g.gaps(t, 0.7, 5*time.Second, time.Second, 2*time.Second, 4*time.Second, time.Second, time.Second)
}

func TestPushOfNothing(t *testing.T) {
	r := New(Options{})
	for _, target := range []string{"", "balancer:8080", "ftp://balancer", "http://", "://"} {
		if err := r.Push(t.Context(), target, "token"); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("the URL must be one of http or https with a host; got %q", target)) {
			t.Errorf("%q: %v", target, err)
		}
	}
	p := &pusher{Reporter: r, tokenFile: filepath.Join(t.TempDir(), "none"), client: r.client()}
	if _, err := p.push(t.Context()); !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "reading the token: ") {
		t.Error(err)
	}
}
