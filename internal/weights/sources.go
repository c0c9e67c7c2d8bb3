// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	metricsv1beta1 "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/loadreport"
	"github.com/ringwright/ringwright/internal/loadsource"
)

// SourceOptions are what sources need that ask for reports.
type SourceOptions struct {
	Store *loadreport.Store
	// Services reads the selectors of Services; Pods lists pods, and Secrets reads those of spec.load.sources.
	Services client.Reader
	Pods     client.Reader
	Secrets  client.Reader
	Metrics  metricsv1beta1.PodMetricsesGetter
	Streams  *loadsource.Streams
	// Loopback allows addresses of this host, for tests.
	Loopback bool
	Clock    clock.WithTickerAndDelayedExecution
}

// Sources runs the sources of the policies that this replica owns that ask for reports, and tells the store what each policy has. Its methods may be
// called concurrently.
type Sources struct {
	o   SourceOptions
	ctx context.Context

	mu       sync.Mutex
	policies map[string]*running
	done     sync.WaitGroup
}

// running are the sources of one policy.
type running struct {
	// digest tells the settings that they run with from others.
	digest  string
	cancel  context.CancelFunc
	sources []loadsource.Source
}

// NewSources returns none yet. They run until ctx ends; Wait waits for that.
func NewSources(ctx context.Context, o SourceOptions) *Sources {
	return &Sources{o: o, ctx: ctx, policies: map[string]*running{}}
}

// Wait returns when all sources have ended, which they do when the context of NewSources ends.
func (s *Sources) Wait() { s.done.Wait() }

// Follow makes the sources of a policy those of its spec, for its present endpoints.
func (s *Sources) Follow(ctx context.Context, policy *v1alpha1.WeightPolicy, endpoints []Endpoint) {
	name := policyName(policy)
	listed := make([]loadreport.Endpoint, len(endpoints))
	for i, e := range endpoints {
		listed[i] = loadreport.Endpoint{ID: e.ID, Name: e.Pod, Address: e.Address, Port: e.Port}
	}
	spec := loadreport.PolicySpec{Policy: name, Metric: policy.Spec.Load.Metric, Endpoints: listed}
	for _, source := range policy.Spec.Load.Sources {
		spec.Sources = append(spec.Sources, loadreport.Source{Type: source.Type, Interval: interval(source), StaleAfter: staleAfter(source)})
	}
	s.o.Store.SetPolicy(spec)

	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.policies[name]
	if digest := sourcesDigest(policy); now == nil || now.digest != digest {
		if now != nil {
			now.cancel()
		}
		now = s.start(ctx, policy, digest)
		s.policies[name] = now
	}
	for _, source := range now.sources {
		source.SetEndpoints(listed)
	}
}

// Drop ends the sources of a policy.
func (s *Sources) Drop(policy string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.policies[policy]; now != nil {
		now.cancel()
		delete(s.policies, policy)
	}
}

func sourcesDigest(policy *v1alpha1.WeightPolicy) string {
	text, err := json.Marshal([]any{policy.UID, policy.Spec.TargetRef, policy.Spec.Load})
	if err != nil {
		panic(err) // None of them has a type that cannot be encoded.
	}
	return string(text)
}

// start runs the sources of a policy that ask.
func (s *Sources) start(ctx context.Context, policy *v1alpha1.WeightPolicy, digest string) *running {
	sourceCtx, cancel := context.WithCancel(s.ctx)
	r := &running{digest: digest, cancel: cancel}
	for _, source := range policy.Spec.Load.Sources {
		runnable, err := s.source(ctx, policy, source)
		if err != nil {
			s.o.Store.SetSourceError(policyName(policy), source.Type, s.o.Clock.Now(), err.Error())
			r.digest = "" // The next look tries again.
			continue
		}
		if runnable == nil {
			continue
		}
		r.sources = append(r.sources, runnable)
		s.done.Go(func() { _ = runnable.Run(sourceCtx) }) // Its only error is that of the context.
	}
	return r
}

// source returns a source that asks, nil for one to which reports come.
func (s *Sources) source(ctx context.Context, policy *v1alpha1.WeightPolicy, source v1alpha1.LoadSource) (loadsource.Source, error) {
	name := policyName(policy)
	options := loadsource.Options{
		Policy: name, Metric: policy.Spec.Load.Metric, CustomMetric: policy.Spec.Load.CustomMetric, Interval: interval(source),
		Report:        func(reports ...loadreport.Report) { s.o.Store.Add(s.o.Clock.Now(), reports...) },
		Message:       func(message string) { s.o.Store.SetSourceError(name, source.Type, s.o.Clock.Now(), message) },
		AllowLoopback: s.o.Loopback, Clock: s.o.Clock,
	}
	switch source.Type {
	case v1alpha1.SourceORCA:
		port := int32(0)
		if source.ORCA != nil {
			port = source.ORCA.Port
		}
		return loadsource.NewORCA(options, port, s.o.Streams), nil
	case v1alpha1.SourcePrometheus:
		return loadsource.NewPrometheus(options, *source.Prometheus, s.o.Secrets), nil
	case v1alpha1.SourceMetrics:
		selector, err := s.selector(ctx, policy)
		if err != nil {
			return nil, err
		}
		return loadsource.NewMetrics(options, selector, s.o.Pods, s.o.Metrics), nil
	default:
		return nil, nil
	}
}

// selector is that of a policy's Service. The pods of a HashRing can be those of several Services: all of the namespace are asked for.
func (s *Sources) selector(ctx context.Context, policy *v1alpha1.WeightPolicy) (labels.Selector, error) {
	if policy.Spec.TargetRef.Kind == v1alpha1.TargetHashRing {
		return labels.Everything(), nil
	}
	service := &corev1.Service{}
	if err := s.o.Services.Get(ctx, client.ObjectKey{Namespace: policy.Namespace, Name: policy.Spec.TargetRef.Name}, service); err != nil {
		return nil, fmt.Errorf("reading the selector of Service %s: %w", policy.Spec.TargetRef.Name, err)
	}
	if len(service.Spec.Selector) == 0 {
		return nil, fmt.Errorf("Service %s has no selector: metrics.k8s.io has nothing of its endpoints", service.Name)
	}
	return labels.SelectorFromSet(service.Spec.Selector), nil
}

// sourceOf returns the source of a type, false where the policy has none.
func sourceOf(policy *v1alpha1.WeightPolicy, kind v1alpha1.LoadSourceType) (v1alpha1.LoadSource, bool) {
	i := slices.IndexFunc(policy.Spec.Load.Sources, func(s v1alpha1.LoadSource) bool { return s.Type == kind })
	if i < 0 {
		return v1alpha1.LoadSource{}, false
	}
	return policy.Spec.Load.Sources[i], true
}
