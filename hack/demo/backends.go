// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// backend is a small HTTP server. It can die and come back at its address.
type backend struct {
	name, address string
	// handler answers; nil answers with the name.
	handler http.Handler
	server  *http.Server
	served  chan error
}

// start listens at the backend's address, at a free one the first time.
func (b *backend) start() error {
	address := b.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("backend %s: %w", b.name, err)
	}
	b.address = listener.Addr().String()
	b.server = &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: b.handler}
	if b.handler == nil {
		b.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, b.name) // Whoever has gone needs no answer.
		})
	}
	b.served = make(chan error, 1)
	go func() { b.served <- b.server.Serve(listener) }()
	return nil
}

// die closes the backend's listener and all its connections at once, in the middle of whatever it answers.
func (b *backend) die() error {
	if b.server == nil {
		return nil
	}
	err := b.server.Close()
	if served := <-b.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	b.server = nil
	return err
}
