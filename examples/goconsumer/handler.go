// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

const (
	// attempts is how many backends are tried.
	attempts = 2
	// passOver is for how long a backend that could not be reached is passed over.
	passOver = 5 * time.Second
)

// newHandler answers GET with what the backend that owns the path answers, and /readyz.
func newHandler(ring *ringclient.Client) http.Handler {
	backends := &http.Client{Timeout: 10 * time.Second}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ring.State() == nil {
			http.Error(w, "no ring yet", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		owners, err := ring.Lookup([]byte(r.URL.Path), nil, attempts)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		for _, owner := range owners {
			if err = forward(w, r, backends, owner); err == nil {
				ring.ReportServing(owner.ID())
				return
			}
			ring.ReportFailed(owner.ID(), passOver)
		}
		http.Error(w, err.Error(), http.StatusBadGateway)
	})
	return mux
}

// forward answers with what a backend answers. On an error nothing has been written.
func forward(w http.ResponseWriter, r *http.Request, backends *http.Client, owner ringclient.Decision) error {
	url := "http://" + owner.Address() + r.URL.RequestURI()
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := backends.Do(request)
	if err != nil {
		return fmt.Errorf("backend %s: %w", owner.ID(), err)
	}
	defer response.Body.Close()
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body) // Whatever is lost from here on, the client sees that the body is cut off.
	return nil
}
