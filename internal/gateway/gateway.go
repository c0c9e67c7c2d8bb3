// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"fmt"
	"time"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	"google.golang.org/grpc"
	"k8s.io/utils/clock"

	balancerv1 "github.com/ringwright/ringwright/api/balancer/v1"
	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/authn"
	"github.com/ringwright/ringwright/internal/loadreport"
	"github.com/ringwright/ringwright/internal/orca"
)

// Target is an endpoint that a pod is, in one policy.
type Target struct {
	// Policy is namespace/name.
	Policy string
	// Endpoint is the ID of the endpoint.
	Endpoint string
	// CustomMetric is the name of the figure for the metric Custom, "" where the policy has none.
	CustomMetric string
	// Interval is how often the pod is expected to push.
	Interval time.Duration
}

// Directory knows which policies balance a pod.
type Directory interface {
	// Endpoints returns the endpoints that a pod is, those of policies with the source Push, in the order of the policies.
	Endpoints(podUID string) []Target
}

// Options say where reports go. Those that are 0 have the defaults.
type Options struct {
	// Directory knows the pods.
	Directory Directory
	// Sink takes the reports, such as Router.Route. It does not block.
	Sink func(reports ...loadreport.Report)
	// Authenticator says who calls.
	Authenticator *authn.Authenticator
	// Rate is how many reports a second one pod may send, default 2, and Burst how many at a time, default 5.
	Rate  float64
	Burst int
	// Pods is how many pods are remembered, default 200,000. One has about 300 bytes.
	Pods int
	// Metrics counts what is refused.
	Metrics *loadreport.Metrics
	// Clock is the real one by default.
	Clock clock.PassiveClock
}

// defaultInterval is what a pod is told where its policies say nothing.
const defaultInterval = 5 * time.Second

// Gateway takes what pods push. A pod reports for itself only: what it says is of the endpoints whose pod its token is bound to.
type Gateway struct {
	balancerv1.UnimplementedLoadReportsServer

	options Options
	pods    *podTable
}

// New returns one.
func New(o Options) *Gateway {
	o.Rate, o.Burst, o.Pods = cmp.Or(o.Rate, 2), cmp.Or(o.Burst, 5), cmp.Or(o.Pods, 200_000)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Gateway{options: o, pods: newPodTable(o.Pods, o.Rate, o.Burst)}
}

// Register registers the service LoadReports, whose calls are authenticated by g itself.
func (g *Gateway) Register(server grpc.ServiceRegistrar) {
	balancerv1.RegisterLoadReportsServer(server, g)
}

// pushed is what a pod sent.
type pushed struct {
	// read decodes the report, which nobody does for a pod that may not send one.
	read func() (*orcav3.OrcaLoadReport, error)
	// window is what it covers; 0 is the time since the pod's last report.
	window time.Duration
}

// push takes a report of the pod that calls, and returns after how long the next one is expected. Errors are *problem.
func (g *Gateway) push(ctx context.Context, sent pushed) (time.Duration, error) {
	id, _ := authn.FromContext(ctx)
	if id.PodUID == "" {
		return 0, g.refuse(unauthenticated, loadreport.Unauthenticated, "the token is bound to no pod: use that of a projected volume of the pod")
	}
	now := g.options.Clock.Now()
	last, wait := g.pods.allow(id.PodUID, now)
	if wait > 0 {
		p := g.refuse(tooOften, loadreport.TooOften, fmt.Sprintf("the pod may send %g reports a second, and %d at once", g.options.Rate, g.options.Burst))
		p.retryAfter = wait
		return 0, p
	}
	targets := g.options.Directory.Endpoints(id.PodUID)
	if len(targets) == 0 {
		return 0, g.refuse(notFound, loadreport.UnknownEndpoint,
			fmt.Sprintf("no WeightPolicy with the source Push balances the pod %s/%s", id.Namespace, id.PodName))
	}
	interval := expected(targets)
	report, err := sent.read()
	if err != nil {
		return 0, g.refusedBy(err)
	}
	window := sent.window
	if window == 0 {
		window = interval
		if since := now.Sub(last); since > 0 && since <= loadreport.MaxWindow {
			window = since
		}
	}
	reports, err := g.reports(report, window, now, targets)
	if err != nil {
		return 0, g.refusedBy(err)
	}
	g.pods.reported(id.PodUID, now)
	g.options.Sink(reports...)
	return interval, nil
}

// reports returns a report for each target for which there is a figure. It is an error where one of them cannot be true, or there is none.
func (g *Gateway) reports(report *orcav3.OrcaLoadReport, window time.Duration, now time.Time, targets []Target) ([]loadreport.Report, error) {
	var reports []loadreport.Report
	custom := ""
	for _, t := range targets {
		r := loadreport.Report{Policy: t.Policy, Endpoint: t.Endpoint, Source: v1alpha1.SourcePush, End: now}
		if err := orca.Read(report, window, t.CustomMetric, &r); err != nil {
			return nil, err
		}
		custom = cmp.Or(custom, t.CustomMetric)
		if !r.Empty() {
			if err := r.Validate(now); err != nil {
				return nil, err
			}
			reports = append(reports, r)
		}
	}
	if len(reports) == 0 {
		return nil, orca.Missing(custom)
	}
	return reports, nil
}

// expected is the shortest interval of the targets.
func expected(targets []Target) time.Duration {
	var shortest time.Duration
	for _, t := range targets {
		if t.Interval > 0 && (shortest == 0 || t.Interval < shortest) {
			shortest = t.Interval
		}
	}
	return cmp.Or(shortest, defaultInterval)
}
