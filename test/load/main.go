// SPDX-License-Identifier: Apache-2.0

// Load runs the operator, as a process of its own and as it is installed, against a real API server with many HashRings, and
// measures what it claims about that:
//
//   - steady state: what the operator writes while nothing changes;
//   - churn: how long a change of one backend takes to reach the routing ConfigMap, which a watch sees, beyond
//     spec.publication.minInterval;
//   - consumers: how long it takes to ask the pods that read a HashRing, and what it costs;
//   - restart: how long the operator takes until it has looked at every ring again, and what it writes meanwhile;
//   - memory: the peak of the operator's resident set, as the kernel counts it.
//
// It prints a line for each, and exits with status 1 if one is short of its limit:
//
//	name<TAB>figure<TAB>limit<TAB>ok|slow|short
//
// A figure without a limit has "-" in its place. With -timed=report, what depends on the machine and on what else it does may
// be short and is then called "slow". API server, etcd, operator and this program share the machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// The sources of backends.
const (
	sourceStatic = "static"
	sourceSlices = "slices"
)

// options are what the flags set.
type options struct {
	rings, backends, seconds, rate, consumers int
	source, timed                             string
}

func main() {
	o, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(2)
	}
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	results, err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
	if !report(os.Stdout, results, o.timed == "report") {
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	set := flag.NewFlagSet("load", flag.ExitOnError)
	set.IntVar(&o.rings, "rings", 1000, "how many HashRings there are, 1 to 10000")
	set.IntVar(&o.backends, "backends", 100, "how many backends each has, 2 to 1000")
	set.StringVar(&o.source, "source", sourceStatic, "where they come from: static, spec.backends; slices, EndpointSlices of a Service")
	set.IntVar(&o.seconds, "seconds", 60, "how long steady state and churn take each, 1 to 3600")
	set.IntVar(&o.rate, "rate", 10, "how many backends change in a second of churn, 1 to 1000; a ring whose last change is still on its way is passed over")
	set.IntVar(&o.consumers, "consumers", 5000, "how many pods read one further HashRing, 0 to 10000")
	set.StringVar(&o.timed, "timed", "fail", "what a figure that depends on the machine does when it is short: fail, or report")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	for _, bound := range []struct {
		name               string
		value, least, most int
	}{
		{"rings", o.rings, 1, 10_000}, {"backends", o.backends, 2, 1000}, {"seconds", o.seconds, 1, 3600}, {"rate", o.rate, 1, 1000},
		{"consumers", o.consumers, 0, 10_000},
	} {
		if bound.value < bound.least || bound.value > bound.most {
			return o, fmt.Errorf("-%s: %d is not within %d to %d", bound.name, bound.value, bound.least, bound.most)
		}
	}
	switch {
	case o.source != sourceStatic && o.source != sourceSlices:
		return o, fmt.Errorf("-source: %q is not static or slices", o.source)
	case o.timed != "fail" && o.timed != "report":
		return o, fmt.Errorf("-timed: %q is not fail or report", o.timed)
	case set.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	return o, nil
}

// run sets everything up, measures, and takes everything down again.
func run(ctx context.Context, o options) (results []result, err error) {
	dir, err := os.MkdirTemp("", "ringwright-load-")
	if err != nil {
		return nil, err
	}
	l := &load{options: o, dir: dir}
	defer func() {
		err = errors.Join(err, l.stop())
		if err != nil {
			fmt.Fprintln(os.Stderr, "logs are kept in", dir)
			return
		}
		err = os.RemoveAll(dir)
	}()
	for _, step := range []func(context.Context) error{
		l.build, l.startControlPlane, l.startWatch, l.startOperator, l.publishAll, l.steady, l.churn, l.flood, l.acknowledge, l.restart, l.memory,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return l.results, nil
}

// load is what is running and what was measured.
type load struct {
	options
	root, dir string
	cluster   *cluster
	watch     *watch
	operator  *operator
	// stopReaders ends what answers for consumers; nil where there are none.
	stopReaders func()
	// peak is the most memory that an operator which has ended took.
	peak    int64
	results []result
}

// say tells of the progress.
func (l *load) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (l *load) stop() error {
	var errs []error
	if l.operator != nil {
		errs = append(errs, l.operator.stop())
	}
	if l.stopReaders != nil {
		l.stopReaders()
	}
	if l.watch != nil {
		l.watch.stop()
	}
	if l.cluster != nil {
		errs = append(errs, l.cluster.controlPlane.Stop())
	}
	return errors.Join(errs...)
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
