// SPDX-License-Identifier: Apache-2.0

package loadreport

import (
	"cmp"
	"time"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// Limits bound the memory of a Store, whatever reporters send. A field that is 0 has the default.
type Limits struct {
	// Reporters is how many reporters of one endpoint and source there can be, default 1,000.
	Reporters int
	// PolicySeries is how many pairs of an endpoint and a reporter there can be in a policy, default 100,000.
	PolicySeries int
	// Series is how many there can be in the whole store, default 500,000. One has 200 to 900 bytes.
	Series int
	// MinSpacing is the least time between the ends of two reports of a reporter, default 250ms.
	MinSpacing time.Duration
}

func (l Limits) withDefaults() Limits {
	l.Reporters = cmp.Or(l.Reporters, 1000)
	l.PolicySeries = cmp.Or(l.PolicySeries, 100_000)
	l.Series = cmp.Or(l.Series, 500_000)
	l.MinSpacing = cmp.Or(l.MinSpacing, 250*time.Millisecond)
	return l
}

// PolicySpec is what the store has to know of a policy.
type PolicySpec struct {
	// Policy is namespace/name.
	Policy string
	// Metric is what the policy balances: a source that has no fresh figure of it is passed over. "" is any.
	Metric v1alpha1.LoadMetric
	// Sources are in the order in which they count.
	Sources []Source
	// Endpoints are those of the target.
	Endpoints []Endpoint
}

// Source is one of the sources of a policy, with defaults resolved.
type Source struct {
	Type v1alpha1.LoadSourceType
	// Interval is the time between reports, and StaleAfter the age from which one no longer counts.
	Interval, StaleAfter time.Duration
}

// Endpoint is one of the target of a policy.
type Endpoint struct {
	// ID is the UID of its pod, or "address:port" where there is no pod, or the ID of a backend.
	ID string
	// Name is that of its pod, or "".
	Name string
	// Address and Port are where it serves; "" and 0 where that is not known.
	Address string
	Port    int32
}

// Reading is what is known of the load of one endpoint. A figure that nobody reported is NaN.
type Reading struct {
	// Endpoint is the ID.
	Endpoint string
	// Source is where the policy's metric comes from. The other figures are of the first fresh source that has them.
	Source v1alpha1.LoadSourceType
	// Start and End are the time that the reports of Source cover. Where End is not after the since that was asked for, nothing new
	// was reported, and the figures are those of the newest report.
	Start, End time.Time
	// CPU, InFlight and Custom are means over that time.
	CPU, InFlight, Custom float64
	// Requests and Errors count those of all reporters, and Rate is the requests a second.
	Requests, Errors, Rate float64
	// Reporters is how many there are of Source.
	Reporters int
}

// SourceError is what is wrong with a source.
type SourceError struct {
	At      time.Time
	Message string
}
