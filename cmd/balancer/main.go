// SPDX-License-Identifier: Apache-2.0

// The balancer computes the weights that WeightPolicies ask for, from the load that endpoints report, and serves them by xDS.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/ringwright/ringwright/internal/authn"
	"github.com/ringwright/ringwright/internal/balancer"
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

// These are set in builds of tests and of hack/demo, which have everything on one host and little time: "true" takes endpoints on this host,
// pace divides the intervals at which things are written, and leaseDuration is a duration. No flag sets them.
var loopback, pace, leaseDuration string

type flags struct {
	balancer.Options
	process process.Flags
	roles   []string
}

// set returns the flags of the program.
func (f *flags) set() *pflag.FlagSet {
	set := pflag.NewFlagSet("balancer", pflag.ContinueOnError)
	f.process.Add(set)
	set.StringSliceVar(&f.roles, "roles", []string{"gateway", "owner", "xds"}, "what this replica does: gateway takes the load reports of pods, owner computes weights, xds hands them out")
	set.StringVar(&f.Name, "name", os.Getenv("POD_NAME"), "name of this replica, unique among them; without it, $POD_NAME")
	set.StringVar(&f.Namespace, "namespace", process.PodNamespace(), "namespace of the replicas' Leases; without it, $POD_NAMESPACE or that of the service account of the pod")
	process.AddNamespaces(set, &f.Namespaces)
	set.StringVar(&f.Listen, "listen", ":18000", "address of the gRPC services: xDS, load reports, and those between replicas")
	set.StringVar(&f.HTTPListen, "http-listen", ":18001", "address of POST /v1/load")
	set.StringVar(&f.Advertise, "advertise", "", "host:port at which the other replicas reach --listen; without it, $POD_IP and that port")
	set.StringVar(&f.CertDir, "cert-dir", "", "directory with tls.crt, tls.key and ca.crt for --listen, --http-listen and the calls between replicas; without it they are plain")
	set.StringVar(&f.Audience, "audience", authn.DefaultAudience, "audience that the service account tokens of pods, clients and replicas are made for")
	set.StringVar(&f.TokenFile, "token-file", "/var/run/secrets/ringwright/token", "file with the token of this replica for the others")
	set.StringSliceVar(&f.Replicas, "replica-users", nil, "users that replicas are, such as system:serviceaccount:ringwright-system:ringwright-balancer; without it, the user of --token-file")
	set.BoolVar(&f.AnonymousLRS, "anonymous-lrs", false, "take the load reports of xDS clients that have no token: whoever reaches --listen can then move weights")
	set.StringVar(&f.MetricsAddress, "metrics-bind-address", ":8443", `address of the metrics server, "0" for none`)
	set.StringVar(&f.MetricsCertDir, "metrics-cert-dir", "", "directory with tls.crt and tls.key of the metrics server; without it, a self-signed certificate")
	set.BoolVar(&f.MetricsInsecure, "metrics-insecure", false, "serve metrics by plain HTTP and without authentication")
	set.StringVar(&f.ProbeAddress, "health-probe-bind-address", ":8081", `address of /healthz and /readyz, "0" for none`)
	set.IntVar(&f.Concurrency, "concurrency", 8, "how many policies are looked at at a time, 1 to 64")
	set.IntVar(&f.MaxStreams, "max-streams", 10_000, "how many xDS streams there are at most, 1 to 100000; as many of load reports")
	set.IntVar(&f.MaxORCAStreams, "max-orca-streams", 10_000, "how many streams of source ORCA there are at most, 1 to 100000")
	return set
}

func parse(args []string) (flags, error) {
	var f flags
	set := f.set()
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if err := process.CheckNamespaces(set, f.Namespaces); err != nil {
		return f, err
	}
	for _, role := range f.roles {
		f.Roles = append(f.Roles, balancer.Role(role))
	}
	if ip := os.Getenv("POD_IP"); f.Advertise == "" && ip != "" {
		if _, port, err := net.SplitHostPort(f.Listen); err == nil {
			f.Advertise = net.JoinHostPort(ip, port)
		}
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
	if err := f.setBuilt(); err != nil {
		return fmt.Errorf("the program was built with a value that is none: %w", err)
	}
	cfg, err := f.process.Cluster()
	if err != nil {
		return err
	}
	b, err := balancer.New(cfg, f.Options)
	if err != nil {
		return err
	}
	return b.Start(ctx)
}

// setBuilt takes what the build says.
func (f *flags) setBuilt() (err error) {
	f.Loopback = loopback == "true"
	if pace != "" {
		if f.Pace, err = strconv.Atoi(pace); err != nil {
			return err
		}
	}
	if leaseDuration != "" {
		f.LeaseDuration, err = time.ParseDuration(leaseDuration)
		f.RenewInterval = f.LeaseDuration / 5
	}
	return err
}
