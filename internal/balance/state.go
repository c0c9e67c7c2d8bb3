// SPDX-License-Identifier: Apache-2.0

package balance

import "time"

// Endpoint is a server that gets a part of the traffic.
type Endpoint struct {
	ID string
	// Ready says that it gets traffic. One that is not keeps its weight in the State until it is.
	Ready bool
}

// Report is what an endpoint did between Start and End. NaN is a figure that was not reported; so is one that cannot be, such
// as a negative one.
type Report struct {
	Endpoint   string
	Start, End time.Time
	// CPU is the part of its processors that is used, InFlight the mean number of requests that it works on.
	CPU, InFlight, Custom float64
	// Requests and Errors are how many requests ended in that time, and how many of them failed.
	Requests, Errors float64
}

// Input is what an update knows. Endpoints and reports may come in any order; those that are sorted by ID, and by endpoint and
// end, are not sorted again, which saves most of the time. Of endpoints with the same ID the first that is ready counts.
type Input struct {
	Now       time.Time
	Endpoints []Endpoint
	// Reports are those of the last Config.StaleAfter or more. Update leaves out those that it has used already, that are stale, that
	// end more than a second after Now, and those of unknown endpoints.
	Reports []Report
}

// Weight is the weight of an endpoint.
type Weight struct {
	ID     string
	Weight float64
}

// State is what a controller remembers. The zero value is that of a new one. A State is a value: functions return a new one and
// leave the old one as it is.
type State struct {
	// Endpoints are sorted by ID.
	Endpoints []EndpointState
	// Updated is when the last update happened that was not skipped.
	Updated Instant
	// Noise is the estimate of how much one measurement of load differs from the next by chance, as a logarithm of a ratio.
	Noise float64
	// Trend is by how much all traffic grows, as a logarithm of a ratio in a second.
	Trend float64
	// Published is what clients were told lately, oldest first; the oldest is taken to have been told from ever on.
	Published []Publication
	// Evidence is how load followed published weights lately.
	Evidence Evidence
}

// EndpointState is what a controller remembers of an endpoint. There can be a hundred thousand, so what needs no more has 32 bits.
type EndpointState struct {
	ID string
	// Weight is the controller's own, with a mean of 1 over the endpoints that are ready.
	Weight float64
	// Integral is the leaky sum of errors.
	Integral float32
	// LastError is the error at the last update that the endpoint reported for.
	LastError float32
	// Cost is the load for a weight of 1 at that update, of reports that ended at CostEnd; 0 if there was none.
	Cost float32
	// Until DoubtedUntil the endpoint does not get more than Trusted, the weight that it had before it was doubted.
	Trusted               float32
	CostEnd, DoubtedUntil Instant
	// Seen is the end of the last report that was used; older ones are not used any more.
	Seen Instant
	// Last is what the last usable reports said.
	Last Sample
	// Probe asks whether load follows the published weight.
	Probe Probe
	// Doubts is how many times in a row the endpoint had more weight and reported no more load.
	Doubts uint8
	// Ready endpoints get traffic.
	Ready bool
	// Cold endpoints joined others, and have not yet found their place.
	Cold bool
	// Guarded endpoints have far more requests in flight, or fail far more, than the others, so that their load says nothing.
	Guarded bool
	// Clamped endpoints would have another weight if the limits allowed it.
	Clamped bool
	// Silent endpoints had no usable report at the last update, and keep their weight.
	Silent bool
}

// Sample is what the reports that came between two updates say together. NaN is a figure that none of them has.
type Sample struct {
	// End is when the last of them ended; 0 means that there is no sample.
	End Instant
	// CPU, InFlight and Custom are means.
	CPU, InFlight, Custom float32
	// Requests is how many ended, Failed which part of them failed.
	Requests, Failed float32
	// Published is the mean weight that clients were told during the sample, 0 if they did not know the endpoint.
	Published float32
}

// Publication is what clients were told at a time.
type Publication struct {
	At Instant
	// IDs are sorted, and shared between publications of the same endpoints. Weights has the same length.
	IDs     []string
	Weights []float64
}

// SkipReason says why an update did not happen.
type SkipReason string

const (
	// SkipNone means that it did.
	SkipNone SkipReason = ""
	// SkipNoEndpoints means that no endpoint is ready.
	SkipNoEndpoints SkipReason = "NoEndpoints"
	// SkipFewReports means that fewer endpoints reported than MinReporting asks for.
	SkipFewReports SkipReason = "FewReports"
	// SkipLowTraffic means that the mean load is below MinLoad.
	SkipLowTraffic SkipReason = "LowTraffic"
	// SkipNothingNew means that no report has come since the last update.
	SkipNothingNew SkipReason = "NothingNew"
)

// Result is what an update found. Ratios are NaN where there is nothing to say, which is the case whenever fewer than two
// endpoints reported.
type Result struct {
	// Skipped says why weights were left as they are, but for endpoints that came or went.
	Skipped SkipReason
	// Mean is the mean load of the reporting endpoints.
	Mean float64
	// MaxOverAverage and P95OverAverage are how much above the mean the busiest endpoint, and the 95th percentile, were.
	MaxOverAverage, P95OverAverage float64
	// NoiseFloor is the MaxOverAverage that chance alone would give with perfect weights.
	NoiseFloor float64
	// PredictedMaxOverAverage is the MaxOverAverage that there would have been with the weights of the State before the update. In
	// shadow mode it says what would be gained.
	PredictedMaxOverAverage float64
	// Ready endpoints get traffic, Reporting ones had a usable report. The others are numbers of endpoints that are so.
	Ready, Reporting, Cold, Clamped, Guarded, Silent, Doubted int
	// Ignored says that load does not follow published weights.
	Ignored bool
	// Response is which part of a published change of weights load followed lately, NaN if there was none to judge from.
	Response float64
	// Moved is the largest change of an endpoint's weight since the last publication, as a part of it. Infinite if endpoints
	// came or went, or nothing was published.
	Moved float64
}
