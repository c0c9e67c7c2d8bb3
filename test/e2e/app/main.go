// SPDX-License-Identifier: Apache-2.0

// Command app is what the end-to-end tests run in pods: a backend that says who it is, and a client that asks for objects through
// the agent beside it and remembers who answered.
//
//	app backend -listen :8080 -control :8081 -drain 5s
//	app client -url http://127.0.0.1:8080 -rate 100 -keys 1000 -listen :8090
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("app backend or app client")
	}
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	listen := flags.String("listen", ":8080", "address of the server")
	switch arguments[0] {
	case "backend":
		b := &backend{}
		flags.StringVar(&b.control, "control", ":8081", "address of /healthz, /break and /mend")
		flags.DurationVar(&b.drain, "drain", 0, "how long it goes on to answer after it was told to go")
		if err := flags.Parse(arguments[1:]); err != nil {
			return err
		}
		b.listen = *listen
		return b.run(ctx)
	case "client":
		c := &client{}
		flags.StringVar(&c.url, "url", "http://127.0.0.1:8080", "where the agent's proxy is")
		flags.IntVar(&c.rate, "rate", 100, "requests a second")
		flags.IntVar(&c.keys, "keys", 1000, "how many objects there are")
		if err := flags.Parse(arguments[1:]); err != nil {
			return err
		}
		return c.run(ctx, *listen)
	}
	return fmt.Errorf("app backend or app client, not app %s", arguments[0])
}
