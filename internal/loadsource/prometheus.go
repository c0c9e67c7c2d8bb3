// SPDX-License-Identifier: Apache-2.0

package loadsource

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/loadreport"
	"github.com/ringwright/ringwright/internal/promclient"
)

const (
	// maxAnswerBytes is how large the answer to a query is: 10,000 endpoints with a few labels.
	maxAnswerBytes = 4 << 20
	// maxQueryTime is how long a query takes.
	maxQueryTime = 10 * time.Second
	// minLookback is how old the newest sample of a series may be, or two intervals where that is more: most are scraped twice in it.
	minLookback = 2 * time.Minute
)

// Prometheus asks a Prometheus by an instant query.
type Prometheus struct {
	base
	spec   v1alpha1.PrometheusSource
	window time.Duration
	reader client.Reader
	pool   *promclient.Pool
}

// NewPrometheus returns a source that asks a Prometheus. It reads the Secret of spec.auth by reader.
func NewPrometheus(options Options, spec v1alpha1.PrometheusSource, reader client.Reader) *Prometheus {
	p := &Prometheus{base: newBase(options), spec: spec, reader: reader}
	p.spec.EndpointLabel = cmp.Or(spec.EndpointLabel, "pod")
	if spec.Window != nil {
		p.window = spec.Window.Duration
	}
	p.pool = promclient.NewPool(promclient.Options{
		MaxAnswerBytes: maxAnswerBytes, Hint: "aggregate by " + p.spec.EndpointLabel, UserAgent: "ringwright-balancer", Loopback: options.AllowLoopback,
	})
	return p
}

// Run implements Source.
func (p *Prometheus) Run(ctx context.Context) error {
	defer p.pool.Close()
	return p.poll(ctx, p.ask)
}

func (p *Prometheus) ask(ctx context.Context) {
	vector, at, err := p.query(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		p.tell(err.Error())
	default:
		reports, message := p.read(vector, at)
		p.Report(reports...)
		p.tell(message)
	}
}

func (p *Prometheus) query(ctx context.Context) (model.Vector, time.Time, error) {
	at := p.Clock.Now()
	var c promclient.Credentials
	if auth := p.spec.Auth; auth != nil {
		namespace, _, _ := strings.Cut(p.Policy, "/")
		var err error
		if c, err = promclient.ReadCredentials(ctx, p.reader, types.NamespacedName{Namespace: namespace, Name: auth.SecretName}, "balancer"); err != nil {
			return nil, at, err
		}
	}
	reply, err := p.pool.Get(p.spec.Address, c, at).Ask(ctx, c, promclient.Question{
		Query: p.spec.Query, At: at, Lookback: max(2*p.Interval, minLookback), Timeout: min(p.Interval, maxQueryTime),
	})
	if err != nil {
		return nil, at, fmt.Errorf("asking %s: %w", p.spec.Address, err)
	}
	vector, ok := reply.Value.(model.Vector)
	if !ok {
		return nil, at, fmt.Errorf("the query gives a %s, and has to give a vector with one element an endpoint", reply.Value.Type())
	}
	return vector, at, nil
}

// found counts what a vector has.
type found struct {
	unnamed, strange, twice, bad int
	// example is a value that is none, with the error that it is, and double an endpoint with several.
	example error
	double  string
}

// read returns the reports that a vector has, and what is wrong with it.
func (p *Prometheus) read(vector model.Vector, at time.Time) ([]loadreport.Report, string) {
	endpoints := p.present()
	byName := names(endpoints)
	values := make(map[string]float64, len(endpoints))
	seen := make(map[string]bool, len(endpoints))
	var f found
	for _, sample := range vector {
		name := string(sample.Metric[model.LabelName(p.spec.EndpointLabel)])
		switch ids := byName[name]; {
		case name == "":
			f.unnamed++
		case len(ids) == 0:
			f.strange++
		case sample.Histogram != nil:
			f.bad, f.example = f.bad+1, fmt.Errorf("a native histogram is no number")
		default:
			for _, id := range ids {
				if seen[id] {
					f.twice, f.double = f.twice+1, name
					delete(values, id) // Which of them is right is not known.
					continue
				}
				seen[id] = true
				if err := p.check(float64(sample.Value)); err != nil {
					f.bad, f.example = f.bad+1, err
					continue
				}
				values[id] = float64(sample.Value)
			}
		}
	}
	var reports []loadreport.Report
	for _, e := range endpoints {
		if value, ok := values[e.ID]; ok {
			r := p.report(e.ID, v1alpha1.SourcePrometheus, at, p.window)
			*p.figure(&r) = value
			reports = append(reports, r)
		}
	}
	return reports, p.message(f, len(vector), len(reports), len(endpoints))
}

// figure is what the query is of.
func (p *Prometheus) figure(r *loadreport.Report) *float64 {
	switch p.Metric {
	case v1alpha1.MetricInFlight:
		return &r.InFlight
	case v1alpha1.MetricCustom:
		return &r.Custom
	}
	return &r.CPU
}

func (p *Prometheus) check(value float64) error {
	limit := loadreport.MaxFigure
	if p.Metric != v1alpha1.MetricInFlight && p.Metric != v1alpha1.MetricCustom {
		limit = loadreport.MaxUtilization
	}
	return loadreport.CheckFigure("a value", value, limit)
}

// names returns the IDs of endpoints by what a label can call them.
func names(endpoints []loadreport.Endpoint) map[string][]string {
	byName := make(map[string][]string, 3*len(endpoints))
	add := func(name, id string) {
		if ids := byName[name]; name != "" && (len(ids) == 0 || ids[len(ids)-1] != id) {
			byName[name] = append(ids, id)
		}
	}
	for _, e := range endpoints {
		add(e.Name, e.ID)
		add(e.Address, e.ID)
		if e.Address != "" {
			add(net.JoinHostPort(e.Address, strconv.Itoa(int(e.Port))), e.ID)
		}
	}
	return byName
}

// message says what is wrong. Series of others are not, where there are some of the endpoints.
func (p *Prometheus) message(f found, series, reports, endpoints int) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if series == 0 {
		add("the query gives no series")
	}
	if f.unnamed > 0 {
		add("%d of %d series have no label %s", f.unnamed, series, p.spec.EndpointLabel)
	}
	if f.strange > 0 && reports == 0 {
		add("%d of %d series have a label %s that names no endpoint", f.strange, series, p.spec.EndpointLabel)
	}
	if f.twice > 0 {
		add("%d series too many, such as of %s: aggregate by %s", f.twice, f.double, p.spec.EndpointLabel)
	}
	if f.bad > 0 {
		add("%d of %d values do not count, such as: %s", f.bad, series, f.example)
	}
	if reports > 0 && reports < endpoints && len(parts) == 0 {
		add("%d of %d endpoints have no series", endpoints-reports, endpoints)
	}
	return strings.Join(parts, "; ")
}
