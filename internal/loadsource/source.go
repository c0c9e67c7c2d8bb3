// SPDX-License-Identifier: Apache-2.0

package loadsource

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	metricsv1beta1 "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/loadreport"
)

// Source asks for the load of the endpoints of one policy while Run runs.
type Source interface {
	// Run asks until ctx ends. It returns no error but that of ctx: what fails is told by Message and tried again.
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
	// Message takes what is wrong with the source, "" where nothing is. It is called when that changes, and by one goroutine at a time.
	Message func(message string)
	// AllowLoopback is for tests: without it no address of this host or link is asked.
	AllowLoopback bool
	// Logger has details, none by default.
	Logger *slog.Logger
	// Clock is the real one by default.
	Clock clock.WithTicker
}

// Streams bounds the ORCA streams of all policies together. Its methods may be called concurrently.
type Streams struct{}

// NewStreams returns room for a number of streams.
func NewStreams(limit int) *Streams { return &Streams{} }

// NewORCA returns a source that opens a stream to each endpoint, at port where that is not 0.
func NewORCA(options Options, port int32, streams *Streams) Source { return nil }

// NewPrometheus returns a source that asks a Prometheus. It reads the Secret of spec.auth by reader.
func NewPrometheus(options Options, spec v1alpha1.PrometheusSource, reader client.Reader) Source {
	return nil
}

// PodLister lists pods of a namespace for their limits: an informer's cache, or the API server.
type PodLister = client.Reader

// NewMetrics returns a source that asks the API metrics.k8s.io for the pods that selector selects in the policy's namespace.
func NewMetrics(options Options, selector labels.Selector, pods PodLister, metrics metricsv1beta1.PodMetricsesGetter) Source {
	return nil
}
