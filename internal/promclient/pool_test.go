// SPDX-License-Identifier: Apache-2.0

package promclient

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var zero = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// oneSample is the answer of a Prometheus of one number at a time.
func oneSample(at time.Time) string {
	return fmt.Sprintf(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[%d,"1"]}]}}`, at.Unix())
}

// TestBreaker has a server that is down not asked each time, and asked again.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls int
		down := true
		p := NewPool(Options{MaxAnswerBytes: 1 << 10, Loopback: true}).Get("http://prometheus", Credentials{}, time.Now())
		p.transport.RegisterProtocol("http", roundTripper(func(r *http.Request) (*http.Response, error) {
			calls++
			if down {
				return nil, fmt.Errorf("connection refused")
			}
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(oneSample(time.Now()))), Request: r}, nil
		}))
		ask := func() error {
			_, err := p.Ask(t.Context(), Credentials{}, Question{Query: "q", At: time.Now(), Timeout: 10 * time.Second})
			return err
		}
		if err := ask(); calls != MaxAttempts || err == nil || err.Error() != "connection refused" {
			t.Fatalf("%d calls, %v", calls, err)
		}
		_ = ask()
		if err := ask(); calls != tripAfter || err == nil ||
			err.Error() != "http://prometheus is not asked for 30s after 5 failures in a row: connection refused" {
			t.Fatalf("%d calls, %v", calls, err)
		}
		for range 30 { // Half an hour of outage.
			<-time.After(time.Minute)
			for range 20 { // Who ask.
				if ask() == nil {
					t.Fatal("an answer")
				}
			}
		}
		if calls != tripAfter+30 {
			t.Errorf("%d calls in half an hour, want %d: one a minute", calls-tripAfter, 30)
		}
		down = false
		<-time.After(OpenFor)
		if err := ask(); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 2 * tripAfter { // Who gives up asking says nothing about the server.
			_, _ = p.Ask(ctx, Credentials{}, Question{Query: "q", At: time.Now(), Timeout: time.Second})
		}
		if err := ask(); err != nil {
			t.Error(err)
		}
	})
}

type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestServers shares one server of all with the same credentials, and forgets it.
func TestServers(t *testing.T) {
	p := NewPool(Options{MaxAnswerBytes: 1 << 10, Loopback: true})
	one := p.Get("http://a", Credentials{token: "t"}, zero)
	if p.Get("http://a/", Credentials{token: "t"}, zero) != one {
		t.Error("another one for the same address and credentials")
	}
	for _, other := range []*Server{p.Get("http://b", Credentials{token: "t"}, zero), p.Get("http://a", Credentials{token: "u"}, zero), p.Get("http://a", Credentials{}, zero)} {
		if other == one {
			t.Error("the same one for another address or other credentials")
		}
	}
	if (Credentials{username: "a", password: `b" "c`}).digest() == (Credentials{username: `a" "b`, password: "c"}).digest() {
		t.Error("credentials are told apart by their bytes only")
	}
	if p.Get("http://a", Credentials{token: "t"}, zero.Add(keepServer+time.Second)); len(p.byID) != 1 {
		t.Errorf("%d are kept", len(p.byID))
	}
}

// TestAddresses refuses those of this host and link.
func TestAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"10.0.0.1:9090": true, "192.168.1.1:80": true, "[2001:db8::1]:443": true,
		"169.254.169.254:80": false, "[fe80::1]:80": false, "0.0.0.0:80": false, "[::]:80": false, "224.0.0.1:80": false,
		"127.0.0.1:80": false, "[::1]:80": false, "[::ffff:127.0.0.1]:80": false, "[::ffff:169.254.169.254]:80": false, "x": false,
	} {
		if err := MayDial(address, false); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := MayDial("127.0.0.1:80", true); err != nil {
		t.Error(err)
	}
}
