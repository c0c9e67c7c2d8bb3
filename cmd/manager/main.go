// SPDX-License-Identifier: Apache-2.0

// The manager is the operator: it builds the rings that HashRings declare and publishes their snapshots.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/ringwright/ringwright/internal/controller"
	"github.com/ringwright/ringwright/internal/manager"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/internal/process"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// maxCatalogCopies bounds what the copies take of etcd: each has up to 1 MiB.
const maxCatalogCopies = 100

// maxTouchRate is the most touches a second: each is a write of a pod, which all who watch pods are sent.
const maxTouchRate = 1000

// These are set in builds of test/load and hack/demo, which have everything on one host and little time: "true" lets the operator ask
// consumers and gates there, and migrationInterval is a duration. No flag sets them.
var consumerLoopback, gateLoopback, migrationInterval string

type flags struct {
	manager.Options
	process process.Flags
}

func parse(args []string) (flags, error) {
	var f flags
	set := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	f.process.Add(set)
	set.StringVar(&f.MetricsAddress, "metrics-bind-address", ":8443", `address of the metrics server, "0" for none`)
	set.StringVar(&f.MetricsCertDir, "metrics-cert-dir", "", "directory with tls.crt and tls.key of the metrics server; without it, a self-signed certificate")
	set.BoolVar(&f.MetricsInsecure, "metrics-insecure", false, "serve metrics by plain HTTP and without authentication")
	set.StringVar(&f.ProbeAddress, "health-probe-bind-address", ":8081", `address of /healthz and /readyz, "0" for none`)
	set.BoolVar(&f.LeaderElection, "leader-elect", false, "let only one of several replicas work")
	set.StringVar(&f.LeaderElectionNamespace, "leader-election-namespace", "", "namespace of the Lease; without it, that of the pod")
	process.AddNamespaces(set, &f.Namespaces)
	set.IntVar(&f.Concurrency, "concurrency", 8, "how many HashRings are reconciled at a time, 1 to 64; a reconciliation mostly waits for the API server")
	set.Uint64Var(&f.MaxPoints, "max-points", plan.MaxPoints, "how many points the rings have that are built at a time, together and each, 1 to "+strconv.Itoa(plan.MaxPoints)+"; a ring of more is refused")
	set.StringVar(&f.CatalogNamespace, "catalog-namespace", process.PodNamespace(), "namespace of the catalog of all rings; without it, $POD_NAMESPACE or that of the service account of the pod")
	set.IntVar(&f.CatalogCopies, "catalog-copies", 7, "how many immutable copies of the catalog are kept, 0 to "+strconv.Itoa(maxCatalogCopies))
	set.DurationVar(&f.CatalogCopyInterval, "catalog-copy-interval", 24*time.Hour, "how old the newest copy is, at least 1m, before another one is taken of a catalog that has changed")
	set.IntVar(&f.TouchRate, "touch-pods-qps", controller.DefaultTouchRate, "how many pods are touched a second for HashRings with spec.consumers.refresh TouchPods, all together, 1 to "+strconv.Itoa(maxTouchRate))
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if err := process.CheckNamespaces(set, f.Namespaces); err != nil {
		return f, err
	}
	if f.Concurrency < 1 || f.Concurrency > 64 {
		return f, fmt.Errorf("--concurrency: %d is not within 1 to 64", f.Concurrency)
	}
	if f.MaxPoints < 1 || f.MaxPoints > plan.MaxPoints {
		return f, fmt.Errorf("--max-points: %d is not within 1 to %d", f.MaxPoints, plan.MaxPoints)
	}
	if f.TouchRate < 1 || f.TouchRate > maxTouchRate {
		return f, fmt.Errorf("--touch-pods-qps: %d is not within 1 to %d", f.TouchRate, maxTouchRate)
	}
	if f.CatalogCopies < 0 || f.CatalogCopies > maxCatalogCopies {
		return f, fmt.Errorf("--catalog-copies: %d is not within 0 to %d", f.CatalogCopies, maxCatalogCopies)
	}
	if f.CatalogCopyInterval < time.Minute {
		return f, fmt.Errorf("--catalog-copy-interval: %v is less than 1m", f.CatalogCopyInterval)
	}
	return f, nil
}

func run(ctx context.Context, args []string) error {
	f, err := parse(args)
	if err != nil {
		return err
	}
	if err := f.process.SetUpLogs(); err != nil {
		return err
	}
	cfg, err := f.process.Cluster()
	if err != nil {
		return err
	}
	f.PodNamespace, f.ConsumerLoopback, f.GateLoopback = process.PodNamespace(), consumerLoopback == "true", gateLoopback == "true"
	if migrationInterval != "" {
		if f.MigrationInterval, err = time.ParseDuration(migrationInterval); err != nil {
			return fmt.Errorf("the program was built with a migrationInterval that is none: %w", err)
		}
	}
	mgr, err := manager.New(cfg, f.Options)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
