// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/ringwright/ringwright/internal/listen"
)

// server answers on a listener; *http.Server is one.
type server interface {
	// Serve answers until the listener is closed, and then returns an error that says so.
	Serve(listener net.Listener) error
	// Shutdown lets the running requests end, until ctx does.
	Shutdown(ctx context.Context) error
	// Close ends them.
	Close() error
}

// endpoint is a listener with what answers on it.
type endpoint struct {
	// name is that of the listener in metrics and logs.
	name     string
	listener *listen.Listener
	server   server
	// lingers says that connections which wait for a request get time for one more: the answer tells them to end. With a protocol
	// that tells them at once they need none.
	lingers bool
}

// lingerTime is how long a connection that is open when its listener closes has time for one more request. To close it under a
// caller that sends one at this moment would lose the request.
const lingerTime = time.Second

// serve answers until the listener is closed. It is no error that somebody did that.
func (e *endpoint) serve() error {
	err := e.server.Serve(e.listener)
	if err == nil || errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("serving %s: %w", e.name, err)
}

// stop closes the listener and lets what runs end: connections that are in use, and for lingerTime those that wait. When ctx ends, they
// are closed, and the error says so.
func (e *endpoint) stop(ctx context.Context) error {
	_ = e.listener.Close() // A listener that is closed already is as good.
	if e.lingers {
		e.linger(ctx)
	}
	err := e.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("requests to %s did not end in time: %w", e.name, err), e.server.Close())
	}
	return err
}

// linger returns when no connection is open, or after lingerTime.
func (e *endpoint) linger(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lingerTime)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for e.listener.Open() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
