// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

const (
	// attempts is how many backends are tried.
	attempts = 2
	// passOver is for how long a backend that could not be connected to is passed over.
	passOver = 5 * time.Second
)

// newHandler answers GET with what the backend that owns the path answers, and /readyz.
func newHandler(ring *ringclient.Client) http.Handler {
	f := &forwarder{ring: ring, backends: &http.Client{
		Timeout: 10 * time.Second,
		// A redirect is the client's to follow: it may lead to a host that only this program can reach.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ring.State() == nil {
			http.Error(w, "no ring yet", http.StatusServiceUnavailable)
		}
	})
	mux.Handle("GET /", f)
	return mux
}

// forwarder answers with what backends answer.
type forwarder struct {
	ring     *ringclient.Client
	backends *http.Client
}

func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	owners, err := f.ring.Lookup([]byte(r.URL.Path), nil, attempts)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	response, err := f.ask(r, owners)
	if err != nil {
		http.Error(w, "no backend answered", http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	for _, name := range []string{"Content-Type", "Content-Length", "Location"} {
		if value := response.Header.Get(name); value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(response.StatusCode)
	if _, err := io.Copy(w, response.Body); err != nil {
		panic(http.ErrAbortHandler) // Else the client would take half of an answer for all of it.
	}
}

// ask returns the answer of the first backend that can be connected to. It goes on to the next one only where nothing was sent: who
// is slow or breaks off may have done what he was asked for, and is no reason to send his keys elsewhere.
func (f *forwarder) ask(r *http.Request, owners []ringclient.Decision) (*http.Response, error) {
	var last error
	for _, owner := range owners {
		request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://"+owner.Address()+r.URL.RequestURI(), nil)
		if err != nil {
			return nil, err
		}
		response, err := f.backends.Do(request)
		if err == nil {
			f.ring.ReportServing(owner.ID())
			return response, nil
		}
		var failed *net.OpError
		if r.Context().Err() != nil || !errors.As(err, &failed) || failed.Op != "dial" {
			return nil, err
		}
		f.ring.ReportFailed(owner.ID(), passOver)
		last = err
	}
	return nil, last
}
