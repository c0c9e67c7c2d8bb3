// SPDX-License-Identifier: Apache-2.0

// Command controlplane finds, or builds, the programs of a real Kubernetes API
// server for tests and demos, and prints the directory that holds them:
//
//	export KUBEBUILDER_ASSETS="$(go -C hack/controlplane run .)"
//
// The directory has etcd and kube-apiserver, and kubectl when -with kubectl
// asks for it. It is taken from the first of these that has it:
//
//  1. KUBEBUILDER_ASSETS, when it is set. It is an error when a program is missing
//     there: someone who names a directory does not want another one.
//  2. The cache of the current user.
//  3. The published envtest archives, through setup-envtest, when their host answers.
//  4. A build from source with the Go command, from the versions and checksums in
//     this module's go.mod and go.sum. It needs a Go module proxy and no other host.
//
// Standard output has the directory and nothing else; progress goes to standard
// error. The cache never holds half of a program: each one is built in a temporary
// directory, asked for its version, and renamed into place under a file lock, so
// concurrent invocations build once.
//
// It does not guarantee the exact patch release in case 3: the archives are not
// published for each one, so the newest of the same minor version is taken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, stdout io.Writer, stderr *os.File) int {
	opts, err := parseOptions(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage // The flag package has printed the reason.
	}
	pins, err := readPins(goMod)
	if err != nil {
		return fail(stderr, err)
	}
	if opts.printVersions {
		return printResult(stdout, stderr, fmt.Sprintf("kubernetes %s\netcd %s", pins.kubernetes, pins.etcd))
	}
	dir, err := locate(ctx, opts, pins, newProgress(stderr))
	if err != nil {
		return fail(stderr, err)
	}
	return printResult(stdout, stderr, dir)
}

// printResult prints the result and returns the exit code. A result that nobody got is a failure.
func printResult(stdout, stderr io.Writer, text string) int {
	if _, err := fmt.Fprintln(stdout, text); err != nil {
		return fail(stderr, err)
	}
	return 0
}

// fail prints err and returns the exit code that goes with it.
func fail(stderr io.Writer, err error) int {
	_, _ = fmt.Fprintf(stderr, "controlplane: %v\n", err)
	return exitFailure
}

// locate asks the sources that opts allows for the directory, in their order.
func locate(ctx context.Context, opts options, pins pins, prog *progress) (string, error) {
	root, err := opts.cacheRoot()
	c := &cache{root: root, rootErr: err, notify: prog.note}
	return resolve(ctx, sources(opts, pins, c, prog), opts.need(), prog.note)
}

// options are the parsed flags.
type options struct {
	from          string
	with          stringList
	cacheDir      string
	index         string
	printVersions bool
}

// need lists the programs that the directory must have.
func (o options) need() []string {
	return slices.Concat([]string{etcd, apiServer}, o.with)
}

// parseOptions reads the flags and prints usage errors to w.
func parseOptions(args []string, w io.Writer) (options, error) {
	opts := options{from: fromAuto}
	fs := flag.NewFlagSet("controlplane", flag.ContinueOnError)
	fs.SetOutput(w)
	fs.Usage = func() { usage(fs) }
	fs.Func("from", "take the programs from `SOURCE` only: "+strings.Join(fromValues, ", ")+" (default auto)", opts.setFrom)
	fs.Var(&opts.with, "with", "add a `PROGRAM` to etcd and kube-apiserver: kubectl")
	fs.StringVar(&opts.cacheDir, "cache-dir", "", "keep the programs in `DIR` (default ringwright/controlplane in the user's cache directory)")
	fs.StringVar(&opts.index, "setup-envtest-index", defaultIndex, "`URL` of the index of envtest archives, for a mirror")
	fs.BoolVar(&opts.printVersions, "print-versions", false, "print the versions that a build from source has, and exit")
	if err := fs.Parse(args); err != nil {
		return opts, err
	}
	if fs.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q", fs.Arg(0))
		_, _ = fmt.Fprintf(w, "controlplane: %v; see -h\n", err)
		return opts, err
	}
	return opts, nil
}

// usage prints what -h prints.
func usage(fs *flag.FlagSet) {
	_, _ = fmt.Fprint(fs.Output(), `Usage: go -C hack/controlplane run . [flags]

Prints a directory with etcd and kube-apiserver, for use as KUBEBUILDER_ASSETS.

  -from auto           KUBEBUILDER_ASSETS when set, then the cache, then the published
                       archives when their host answers, then a build from source
  -from cache          what an earlier run has kept; never the network
  -from setup-envtest  download the archives of the same Kubernetes minor version
  -from source         build, even when the cache has the programs
                       (about 8 CPU minutes the first time, then seconds)

Flags:
`)
	fs.PrintDefaults()
}

// setFrom checks and sets the value of -from.
func (o *options) setFrom(value string) error {
	if !slices.Contains(fromValues, value) {
		return fmt.Errorf("must be one of %s", strings.Join(fromValues, ", "))
	}
	o.from = value
	return nil
}

// stringList is the value of -with, which may be repeated or have commas.
type stringList []string

func (l *stringList) String() string { return strings.Join(*l, ",") }

// Set adds the programs in value, each once.
func (l *stringList) Set(value string) error {
	for name := range strings.SplitSeq(value, ",") {
		if name != kubectl {
			return fmt.Errorf("unknown program %q, only kubectl can be added", name)
		}
		if !slices.Contains(*l, name) {
			*l = append(*l, name)
		}
	}
	return nil
}
