// SPDX-License-Identifier: Apache-2.0

package loadsource

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/loadreport"
)

// MaxMessageBytes is how long a message is.
const MaxMessageBytes = 1024

// Source asks for the load of the endpoints of one policy while Run runs.
type Source interface {
	// Run asks until ctx ends. What fails is told by Message and tried again; the error is that of ctx.
	Run(ctx context.Context) error
	// SetEndpoints replaces those that are asked for.
	SetEndpoints(endpoints []loadreport.Endpoint)
}

// Options are those of every source.
type Options struct {
	// Policy is namespace/name.
	Policy string
	// Metric is what the policy balances, and CustomMetric the name of the figure for the metric Custom.
	Metric       v1alpha1.LoadMetric
	CustomMetric string
	// Interval is the time between reports.
	Interval time.Duration
	// Report takes reports, such as gateway.Router.Route or Store.Add.
	Report func(reports ...loadreport.Report)
	// Message takes what is wrong with the source, "" where nothing is, in at most MaxMessageBytes. It is called when that changes, by one
	// goroutine at a time.
	Message func(message string)
	// AllowLoopback is for tests: without it no address of this host or link is asked.
	AllowLoopback bool
	// Logger has details, none by default.
	Logger *slog.Logger
	// Clock is the real one by default.
	Clock clock.WithTickerAndDelayedExecution
}

// base is what all sources have.
type base struct {
	Options

	mu        sync.Mutex
	endpoints []loadreport.Endpoint
	// changed has a value when endpoints were set.
	changed chan struct{}

	// telling makes one call of Message at a time.
	telling sync.Mutex
	told    string
}

func newBase(o Options) base {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return base{Options: o, changed: make(chan struct{}, 1)}
}

// SetEndpoints implements Source.
func (b *base) SetEndpoints(endpoints []loadreport.Endpoint) {
	b.mu.Lock()
	b.endpoints = slices.Clone(endpoints)
	b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

func (b *base) present() []loadreport.Endpoint {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.endpoints
}

// tell says what is wrong, if that is new.
func (b *base) tell(message string) {
	b.telling.Lock()
	defer b.telling.Unlock()
	if len(message) > MaxMessageBytes {
		message = message[:MaxMessageBytes-3] + "..."
	}
	if message == b.told {
		return
	}
	b.told = message
	b.Logger.Info("the source has another message", "policy", b.Policy, "message", message)
	if b.Message != nil {
		b.Message(message)
	}
}

// poll calls ask at each interval while there are endpoints, and begins at a random time: policies that begin together do not ask together.
func (b *base) poll(ctx context.Context, ask func(ctx context.Context)) error {
	timer := b.Clock.NewTimer(time.Duration(rand.Float64() * float64(b.Interval) / 4))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C():
		}
		timer.Reset(b.Interval)
		if len(b.present()) > 0 {
			ask(ctx)
		}
	}
}

// report returns one without figures.
func (b *base) report(endpoint string, source v1alpha1.LoadSourceType, end time.Time, window time.Duration) loadreport.Report {
	nan := math.NaN()
	return loadreport.Report{
		Policy: b.Policy, Endpoint: endpoint, Source: source, End: end, Window: window,
		CPU: nan, InFlight: nan, Custom: nan, Requests: nan, Errors: nan,
	}
}
