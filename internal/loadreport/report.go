// SPDX-License-Identifier: Apache-2.0

package loadreport

import (
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// Report is what one reporter says of one endpoint over a window of time. A figure that was not reported is NaN.
type Report struct {
	// Policy is the namespace and name of the WeightPolicy, as "namespace/name".
	Policy string
	// Endpoint is the endpoint's ID.
	Endpoint string
	// Source is where the report comes from.
	Source v1alpha1.LoadSourceType
	// Reporter tells the reporters of an endpoint apart, whose requests add up: the node ID of an xDS client. It is "" where the endpoint
	// speaks for itself.
	Reporter string
	// End is the end of the window, and Window how long it is, more than 0 where anything is counted.
	End    time.Time
	Window time.Duration
	// CPU is the utilisation, 1 for all of what the endpoint may use, at least 0.
	CPU float64
	// InFlight is the mean number of requests in flight, at least 0.
	InFlight float64
	// Custom is the policy's custom metric, at least 0.
	Custom float64
	// Requests and Errors count the requests of the window, and those of them that failed.
	Requests, Errors float64
}
