// SPDX-License-Identifier: Apache-2.0

package orcareport

import (
	"cmp"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
)

// InFlight is the key of named_metrics for the mean number of requests in flight.
const InFlight = "in_flight"

// leastCPU stands for an idle CPU: 0 is not reported.
const leastCPU = 1e-6

// Options say what is reported. The zero value is what most servers want.
type Options struct {
	// Window is the time that reports in trailers cover, default 5s, at least 100ms. Such a report is made anew after a fifth of it.
	Window time.Duration
	// NoTrailers leaves reports out of the trailers of calls, which have about 60 bytes.
	NoTrailers bool
	// MinInterval is the least time between two reports of an out-of-band stream, default 1s, and MaxStreams how many such streams there can
	// be, default 100.
	MinInterval time.Duration
	MaxStreams  int
	// IsError says which codes count as errors, default IsError, and IsHTTPError which statuses of HTTP, default IsHTTPError.
	IsError     func(code codes.Code) bool
	IsHTTPError func(status int) bool
	// Skip says which methods, such as "/pkg.Service/Method", are not counted, default Skip.
	Skip func(method string) bool
	// Named returns more named metrics, such as the length of a queue. It may be called concurrently.
	Named func() map[string]float64
	// CPU returns the CPU time that was used since some moment, and how many cores can be used, at least more than 0. The default is that of
	// the container or process. ok is false where it is not known.
	CPU func() (used time.Duration, cores float64, ok bool)
	// Client sends what is pushed; default one with a timeout of 5s. It follows no redirect.
	Client *http.Client
	// Logger is told when pushing begins to fail, and when it works again; none by default.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Window = max(cmp.Or(o.Window, 5*time.Second), 100*time.Millisecond)
	o.MinInterval = cmp.Or(o.MinInterval, time.Second)
	o.MaxStreams = cmp.Or(o.MaxStreams, 100)
	if o.IsError == nil {
		o.IsError = IsError
	}
	if o.IsHTTPError == nil {
		o.IsHTTPError = IsHTTPError
	}
	if o.Skip == nil {
		o.Skip = Skip
	}
	if o.CPU == nil {
		o.CPU = newCPU("/").read
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Reporter counts requests and reports the load. Its methods may be called concurrently.
type Reporter struct {
	options Options
	base    time.Time
	counter counter
	streams chan struct{}

	// trailer is what calls send, until refreshAt, in nanoseconds since base.
	trailer   atomic.Pointer[metadata.MD]
	refreshAt atomic.Int64
	mu        sync.Mutex
	// recent are the totals of the last moments, the oldest first.
	recent []totals
}

// New returns a reporter that counts from now on.
func New(options Options) *Reporter {
	o := options.withDefaults()
	r := &Reporter{options: o, base: time.Now(), counter: newCounter(), streams: make(chan struct{}, o.MaxStreams)}
	r.recent = []totals{r.total()}
	return r
}

// now is the time since the beginning, in nanoseconds.
func (r *Reporter) now() int64 { return int64(time.Since(r.base)) }

// totals are sums since the beginning.
type totals struct {
	at    int64
	count count
	cpu   time.Duration
	cores float64
	// known says whether cpu is.
	known bool
}

func (r *Reporter) total() totals {
	cpu, cores, ok := r.options.CPU()
	at := r.now()
	return totals{at, r.counter.sum(at), cpu, cores, ok && cores > 0}
}

// since returns what happened between two totals, and how long that was.
func (r *Reporter) since(from, to totals) (*orcav3.OrcaLoadReport, time.Duration) {
	window := time.Duration(max(to.at-from.at, 1))
	report := &orcav3.OrcaLoadReport{NamedMetrics: map[string]float64{}}
	if r.options.Named != nil {
		maps.Copy(report.NamedMetrics, r.options.Named())
	}
	report.NamedMetrics[InFlight] = math.Max(float64(to.count.area-from.count.area)/float64(window), 0)
	report.RpsFractional = float64(to.count.requests-from.count.requests) / window.Seconds()
	report.Eps = min(float64(to.count.errors-from.count.errors)/window.Seconds(), report.RpsFractional)
	if from.known && to.known {
		report.CpuUtilization = math.Max((to.cpu-from.cpu).Seconds()/to.cores/window.Seconds(), leastCPU)
	}
	return report, window
}

// Report returns the load of the last window, and how long that was.
func (r *Reporter) Report() (*orcav3.OrcaLoadReport, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.total()
	return r.since(r.before(now), now)
}

// before returns the totals that a report of now begins with: of a window ago, or less where there are none that are about as old. It takes note
// of now.
func (r *Reporter) before(now totals) totals {
	window := int64(r.options.Window)
	first := 0
	for i, t := range r.recent {
		if age := now.at - t.at; age >= window && age <= 2*window || now.at-r.recent[first].at > 2*window {
			first = i // The newest that is old enough, and none that is too old while there is another.
		}
	}
	from := r.recent[first]
	r.recent = r.recent[first:]
	if newest := r.recent[len(r.recent)-1]; now.at-newest.at >= window/refreshes {
		r.recent = append(r.recent, now)
	}
	return from
}

// refreshes is how often reports in trailers are made anew in a window.
const refreshes = 5
