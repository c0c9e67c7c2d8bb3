// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Role is a part of the work of a balancer.
type Role string

const (
	// RoleGateway takes the load reports of pods, and carries them to the owners.
	RoleGateway Role = "gateway"
	// RoleOwner computes the weights of the policies that fall to it.
	RoleOwner Role = "owner"
	// RoleXDS hands weights out, and takes the load reports of clients.
	RoleXDS Role = "xds"
)

// Roles are all of them.
var Roles = []Role{RoleGateway, RoleOwner, RoleXDS}

// Options are what the flags of cmd/balancer set.
type Options struct {
	// Roles are what this replica does, at least one.
	Roles []Role
	// Name is unique among the replicas: the name of the pod. Namespace is where the Leases are.
	Name, Namespace string
	// Namespaces are those whose WeightPolicies count; without any, all.
	Namespaces []string
	// Listen is the address of the gRPC services: discovery, load reporting, LoadReports and Replicas.
	Listen string
	// HTTPListen is the address of POST /v1/load.
	HTTPListen string
	// Advertise is the host and port at which the other replicas reach Listen; "" is the address that is listened to.
	Advertise string
	// CertDir has tls.crt, tls.key and ca.crt for both servers and for the calls of replicas to each other; without it they are plain.
	CertDir string
	// Audience is what tokens have to be made for.
	Audience string
	// TokenFile has the token of this replica for the others.
	TokenFile string
	// Replicas are the names of the users that replicas are, such as "system:serviceaccount:ringwright-system:ringwright-balancer"; without
	// any they are all of the user of TokenFile.
	Replicas []string
	// AnonymousLRS takes the load reports of xDS clients that have no token.
	AnonymousLRS bool
	// MetricsAddress, MetricsCertDir, MetricsInsecure and ProbeAddress are as those of the operator.
	MetricsAddress, MetricsCertDir string
	MetricsInsecure                bool
	ProbeAddress                   string
	// Concurrency is how many policies are looked at at a time.
	Concurrency int
	// MaxStreams is how many xDS streams there are at most, and MaxORCAStreams how many streams to endpoints.
	MaxStreams, MaxORCAStreams int
	// LeaseDuration and RenewInterval are those of package shard where they are 0.
	LeaseDuration, RenewInterval time.Duration
	// Loopback allows endpoints on this host, Pace divides the intervals at which weights are computed and things are written, and SkipNameValidation allows several
	// balancers in one process, as tests have them.
	Loopback           bool
	Pace               int
	SkipNameValidation bool
}

// has says whether this replica has a role.
func (o *Options) has(role Role) bool { return slices.Contains(o.Roles, role) }

// Validate returns an error that names the flag, the value and the limit.
func (o *Options) Validate() error {
	if len(o.Roles) == 0 {
		return fmt.Errorf("--roles: at least one of %s is needed", roleNames())
	}
	for _, role := range o.Roles {
		if !slices.Contains(Roles, role) {
			return fmt.Errorf("--roles: %q is not one of %s", role, roleNames())
		}
	}
	if o.Name == "" {
		return fmt.Errorf("--name: it must be set, or $POD_NAME")
	}
	if o.Namespace == "" {
		return fmt.Errorf("--namespace: it must be set, or $POD_NAMESPACE")
	}
	if err := o.validateAddresses(); err != nil {
		return err
	}
	if o.Concurrency < 1 || o.Concurrency > 64 {
		return fmt.Errorf("--concurrency: %d is not within 1 to 64", o.Concurrency)
	}
	if o.MaxStreams < 1 || o.MaxStreams > 100_000 {
		return fmt.Errorf("--max-streams: %d is not within 1 to 100000", o.MaxStreams)
	}
	if o.MaxORCAStreams < 1 || o.MaxORCAStreams > 100_000 {
		return fmt.Errorf("--max-orca-streams: %d is not within 1 to 100000", o.MaxORCAStreams)
	}
	return nil
}

func (o *Options) validateAddresses() error {
	for _, a := range []struct{ flag, address string }{{"--listen", o.Listen}, {"--http-listen", o.HTTPListen}, {"--advertise", o.Advertise}} {
		host, port, err := net.SplitHostPort(a.address)
		if a.flag != "--advertise" {
			if err != nil {
				return fmt.Errorf("%s: %q is not host:port: %w", a.flag, a.address, err)
			}
			continue
		}
		switch number, portErr := strconv.ParseUint(port, 10, 16); {
		case a.address == "":
		case err != nil:
			return fmt.Errorf("--advertise: %q is not host:port: %w", a.address, err)
		case unspecified(host), portErr != nil || number == 0:
			return fmt.Errorf("--advertise: %q is no address that other replicas reach: it needs a host and a port from 1 to 65535", a.address)
		}
	}
	return nil
}

// unspecified says that a host is all of this host's addresses.
func unspecified(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

func roleNames() string {
	names := make([]string, len(Roles))
	for i, role := range Roles {
		names[i] = string(role)
	}
	return strings.Join(names, ", ")
}
