// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

// Bounds of every connection. A lookup is a few microseconds of work, so whoever takes longer is not a caller to wait for.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	// maxHeaderBytes bounds the request line and the headers together. A key of MaxKeyBytes takes three times that where
	// every byte is percent-encoded.
	maxHeaderBytes = 64 << 10
)

// Run serves lookups until ctx ends, then lets the running requests end and returns nil. It starts without a ring and is
// ready once there is one. It returns an error where the configuration is wrong, the address cannot be listened on, or
// requests do not end within the time for it.
func Run(ctx context.Context, config Config) error {
	config, err := config.complete()
	if err != nil {
		return err
	}
	client, err := ringclient.Open(config.Dir, ringclient.Options{
		WaitForRing: true, PollInterval: config.PollInterval, MaxPoints: config.MaxPoints, Logger: config.Logger,
	})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // It always returns nil.
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", config.Listen)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", config.Listen, err)
	}
	announce(config, listener.Addr())
	return serve(ctx, config, newServer(config, client), listener)
}

func announce(config Config, addr net.Addr) {
	config.Logger.Info("serving", "address", addr.String(), "dir", config.Dir, "version", config.Version)
	if !isLoopback(addr) {
		config.Logger.Warn("listening beyond loopback: whoever can connect can ask", "address", addr.String())
	}
	if config.Listening != nil {
		config.Listening(addr)
	}
}

func newServer(config Config, client *ringclient.Client) *http.Server {
	return &http.Server{
		Handler:           NewHandler(client, config.Version),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(config.Logger.Handler(), slog.LevelDebug),
	}
}

// serve returns when the server has stopped, by itself or because ctx ended.
func serve(ctx context.Context, config Config, server *http.Server, listener net.Listener) error {
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	config.Logger.Info("stopping", "timeout", config.ShutdownTimeout)
	// ctx has ended, so that the stop needs a time of its own.
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), config.ShutdownTimeout)
	defer cancel()
	err := server.Shutdown(stopping)
	if err != nil {
		err = errors.Join(fmt.Errorf("requests did not end within %v: %w", config.ShutdownTimeout, err), server.Close())
	}
	if closed := <-served; !errors.Is(closed, http.ErrServerClosed) {
		err = errors.Join(err, closed)
	}
	return err
}
