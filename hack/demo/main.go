// SPDX-License-Identifier: Apache-2.0

// The demo runs the whole of Ringwright on one machine, without a cluster: a real API server, the operator under the RBAC
// rules that it ships with, the samples, and an agent that answers from what was published.
//
// With -migration it moves two datacenters from one ring to another, by steps that a Prometheus judges, with a failure that takes it
// back and a second attempt. With -weights it balances the load of servers that differ in speed, while one of them is degraded, one dies, and the
// balancer is started anew.
//
// It stays up until it is interrupted; with -once it runs through, checks what it shows, and exits.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ringwright/ringwright/internal/testenv"
)

// namespace is where the samples are applied.
const namespace = "default"

// shownRing is the sample that the agent serves.
const shownRing = "hashring_features.yaml"

func main() {
	once := flag.Bool("once", false, "run through, check, and exit")
	migrates := flag.Bool("migration", false, "show a migration between two rings")
	weighs := flag.Bool("weights", false, "show weights that follow the load")
	flag.Parse()
	ctrl.SetLogger(logr.Discard()) // envtest has nothing to say that the demo does not.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, *once, func(d *demo) show {
		switch {
		case *migrates:
			return newMigrationDemo(d)
		case *weighs:
			return newWeightsDemo(d)
		default:
			return d
		}
	})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run sets everything up, shows it, and takes everything down again.
func run(ctx context.Context, once bool, choose func(*demo) show) (err error) {
	dir, err := os.MkdirTemp("", "ringwright-demo-")
	if err != nil {
		return err
	}
	d := &demo{dir: dir}
	defer func() {
		if err = errors.Join(err, d.stop()); err != nil {
			fmt.Fprintln(os.Stderr, "logs are kept in", dir)
			return
		}
		err = os.RemoveAll(dir)
	}()
	shown := choose(d)
	defer func() { err = errors.Join(err, shown.end()) }()
	steps, invite := shown.steps()
	for _, step := range steps {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				return nil // Interrupted: that it did not get further is no failure, but how it stops can be.
			}
			return err
		}
	}
	if once {
		say("", "All of it worked.")
		return nil
	}
	invite()
	<-ctx.Done()
	say("", "Stopping everything, and removing "+d.dir+".")
	return nil
}

// show is one of the demos.
type show interface {
	// steps are what it shows; invite tells what can be done while it is up.
	steps() (steps []func(context.Context) error, invite func())
	// end stops what it has in this process.
	end() error
}

// steps are those of the demo of rings.
func (d *demo) steps() (steps []func(context.Context) error, invite func()) {
	return []func(context.Context) error{
		d.build, d.startControlPlane, d.install, d.startOperator, d.applySamples, d.showRings, d.startAgent, d.showLookups, d.showChange, d.showTraffic,
	}, d.invite
}

func (d *demo) end() error { return nil }

// demo is what is running.
type demo struct {
	root, dir string
	// ldflags are those of the programs.
	ldflags      string
	controlPlane *testenv.ControlPlane
	processes    []*process
	followers    []*follower
	agentURL     string
	ringName     string
}

// stop ends everything in the reverse order, whatever has been started so far.
func (d *demo) stop() error {
	var errs []error
	for _, f := range d.followers {
		f.stop()
	}
	for i := len(d.processes) - 1; i >= 0; i-- {
		errs = append(errs, d.processes[i].stop())
	}
	if d.controlPlane != nil {
		errs = append(errs, d.controlPlane.Stop())
	}
	return errors.Join(errs...)
}

func (d *demo) path(parts ...string) string {
	return filepath.Join(append([]string{d.dir}, parts...)...)
}

// say prints a heading and lines below it.
func say(heading string, lines ...string) {
	if heading != "" {
		fmt.Printf("\n== %s\n", heading)
	}
	for _, line := range lines {
		fmt.Println(line)
	}
}

// invite tells what can be done while it is up.
func (d *demo) invite() {
	say("It is up. Press Ctrl-C to stop all of it.",
		"In another terminal:",
		"  export KUBECONFIG="+d.path("kubeconfig"),
		"  kubectl get hashrings",
		"  kubectl edit hashring "+d.ringName+"      # the agent follows",
		"  kubectl delete configmap "+d.ringName+"-a  # comes back, byte for byte",
		"  "+d.path("bin", "kubectl-hashring")+" lookup "+d.ringName+" some-key",
		"  curl '"+d.agentURL+"/v1/lookup?key=some-key&n=3'",
		"  curl "+d.agentURL+"/v1/status",
		"Logs are in "+d.dir+".")
}

// timeout bounds every wait of the demo: on a busy machine a start takes many times what is usual.
const timeout = 2 * time.Minute
