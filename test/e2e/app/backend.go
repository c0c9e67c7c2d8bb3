// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// backend answers every request with the name of its pod. At control, /break makes it refuse connections until /mend, and
// kubelet and Kubernetes do not see it: what is beside a ring has to find out by itself.
type backend struct {
	listen, control string
	drain           time.Duration

	mu     sync.Mutex
	server *http.Server
}

func (b *backend) run(ctx context.Context) error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Backend", name)
		w.WriteHeader(http.StatusNoContent)
	})
	if err := b.mend(answer); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /break", func(http.ResponseWriter, *http.Request) { b.refuse() })
	mux.HandleFunc("POST /mend", func(w http.ResponseWriter, _ *http.Request) {
		if err := b.mend(answer); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	err = serve(ctx, b.control, b.drain, mux)
	ending, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server != nil {
		err = errors.Join(err, b.server.Shutdown(ending))
	}
	return err
}

// refuse closes the port and all connections to it.
func (b *backend) refuse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server != nil {
		_ = b.server.Close()
		b.server = nil
	}
}

// mend opens the port.
func (b *backend) mend(answer http.Handler) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server != nil {
		return nil
	}
	listener, err := net.Listen("tcp", b.listen)
	if err != nil {
		return err
	}
	b.server = &http.Server{Handler: answer, ReadHeaderTimeout: 5 * time.Second}
	go func(s *http.Server) { _ = s.Serve(listener) }(b.server)
	return nil
}

// serve serves until ctx is done and drain has passed, and then lets what runs come to its end.
func serve(ctx context.Context, listen string, drain time.Duration, handler http.Handler) error {
	server := &http.Server{Addr: listen, Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan error, 1)
	go func() {
		<-ctx.Done()
		<-time.After(drain)
		ending, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		done <- server.Shutdown(ending)
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-done
}
