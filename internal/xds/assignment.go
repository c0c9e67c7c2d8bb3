// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"fmt"
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// Assignment is all that clients are given of a policy. It belongs to the Server once it is set.
type Assignment struct {
	// Policy is the WeightPolicy, as "namespace/name".
	Policy string
	// Epoch and Version order the assignments of a policy: epochs first.
	Epoch, Version int64
	// Mode says how weights are written; "" is Auto.
	Mode v1alpha1.EDSMode
	// Locality are the rules, at most one for the clients of each zone.
	Locality []v1alpha1.LocalityRule
	// ReportInterval is the time between the load reports of clients. At 0 they are not asked for any.
	ReportInterval time.Duration
	// CustomMetric is a key of utilization or named_metrics of ORCA that clients are asked for besides the CPU; "" for none.
	CustomMetric string
	// Endpoints are those of the target, in any order. Neither two IDs nor two addresses with their ports are the same.
	Endpoints []Endpoint
}

// Endpoint is a server with its weight.
type Endpoint struct {
	// ID is the endpoint's, and Name the name of its pod, if any.
	ID, Name string
	// Address is an IP address, and Port the TCP port.
	Address string
	Port    int32
	// Zone is where it is; "" where that is not known.
	Zone string
	// Weight is 10000 for the mean, at least 1.
	Weight uint32
	// Ready says that it takes requests. Draining says that it takes no new ones, and ends those that it has.
	Ready, Draining bool
}

// StaleError says that a policy is served with a later epoch or version than the one that was to be set.
type StaleError struct {
	// Policy is the policy's namespace and name.
	Policy string
	// Epoch and Version are those that were refused.
	Epoch, Version int64
	// ServedEpoch and ServedVersion are those that are served.
	ServedEpoch, ServedVersion int64
}

// Error says which ones.
func (e *StaleError) Error() string {
	return fmt.Sprintf("policy %s is served with epoch %d, version %d; got the older epoch %d, version %d",
		e.Policy, e.ServedEpoch, e.ServedVersion, e.Epoch, e.Version)
}
