// SPDX-License-Identifier: Apache-2.0

// Command agent answers lookups in a consistent-hash ring over HTTP; see package agent.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/ringwright/ringwright/internal/agent"
)

// version is set by the linker: -X main.version=v1.2.3.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(agent.Main(ctx, os.Args[1:], version, os.Stdout, os.Stderr))
}
