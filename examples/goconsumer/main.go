// SPDX-License-Identifier: Apache-2.0

// Command goconsumer is an example of a program that routes by a ring with package ringclient: it sends each request on to the
// backend that owns its path, and to the next one where that cannot be reached.
//
// config/samples/consumer_go.yaml mounts the ring's ConfigMaps for it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

// shutdownTimeout is how long requests may take to end after SIGTERM, less than kubelet's 30 s.
const shutdownTimeout = 20 * time.Second

func main() {
	dir := flag.String("dir", "/etc/ring", "where the ring's ConfigMaps are mounted")
	listen := flag.String("listen", ":8080", "address to serve on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, *dir, *listen); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and lets running requests end.
func run(ctx context.Context, dir, listen string) error {
	// Without a ring yet the program starts all the same, and is not ready.
	ring, err := ringclient.Open(dir, ringclient.Options{
		WaitForRing: true, Datacenter: os.Getenv("RINGWRIGHT_DATACENTER"), Logger: slog.Default(),
	})
	if err != nil {
		return err
	}
	defer ring.Close()
	server := &http.Server{Addr: listen, Handler: newHandler(ring), ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		ended <- server.Shutdown(stopping)
	})
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended // ListenAndServe returns when the shutdown begins, and not when the last request has ended.
}
