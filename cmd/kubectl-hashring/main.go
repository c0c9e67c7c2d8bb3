// SPDX-License-Identifier: Apache-2.0

// kubectl-hashring is a kubectl plugin: with it in the search path, "kubectl hashring" builds, looks up, inspects and
// verifies rings.
package main

import (
	"context"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // Whatever kubectl can log in with.

	"github.com/ringwright/ringwright/internal/cli"
)

// An interrupt just ends the process: nothing that it does needs to be undone, and a handler could not wake it from
// waiting for a key.
func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(cli.Main(context.Background(), os.Args[1:], streams))
}
