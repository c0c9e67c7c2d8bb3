// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

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
// called concurrently for different policies.
type Sources struct {
	o   SourceOptions
	ctx context.Context

	mu       sync.Mutex
	policies map[string]*running
	done     sync.WaitGroup
}

// running are the sources of one policy.
type running struct {
	// mu is held while they are started: a slow API server holds no other policy up.
	mu     sync.Mutex
	listed []loadreport.Endpoint
	// spec is what the store was told, without the endpoints.
	spec    loadreport.PolicySpec
	sources map[v1alpha1.LoadSourceType]*runningSource
}

// runningSource is one of them.
type runningSource struct {
	// digest tells the settings that it runs with from others.
	digest string
	// source is nil for one to which reports come, and for one that could not start, which is tried again at retry.
	source loadsource.Source
	retry  time.Time
	cancel context.CancelFunc
}

// retryInterval is how long a source that could not start waits.
const retryInterval = 30 * time.Second

// NewSources returns none yet. They run until ctx ends; Wait waits for that.
func NewSources(ctx context.Context, o SourceOptions) *Sources {
	return &Sources{o: o, ctx: ctx, policies: map[string]*running{}}
}

// Wait returns when all sources have ended, which they do when the context of NewSources ends.
func (s *Sources) Wait() { s.done.Wait() }

// Follow makes the sources of a policy those of its spec, for its present endpoints. Those that have not changed run on.
func (s *Sources) Follow(ctx context.Context, policy *v1alpha1.WeightPolicy, endpoints []Endpoint) {
	name := policyName(policy)
	listed := make([]loadreport.Endpoint, len(endpoints))
	for i, e := range endpoints {
		listed[i] = loadreport.Endpoint{ID: e.ID, Name: e.Pod, Address: e.Address, Port: e.Port}
	}
	spec := loadreport.PolicySpec{Policy: name, Metric: policy.Spec.Load.Metric}
	for _, source := range policy.Spec.Load.Sources {
		spec.Sources = append(spec.Sources, loadreport.Source{Type: source.Type, Interval: interval(source), StaleAfter: staleAfter(source)})
	}

	s.mu.Lock()
	now := s.policies[name]
	if now == nil {
		now = &running{sources: map[v1alpha1.LoadSourceType]*runningSource{}}
		s.policies[name] = now
	}
	s.mu.Unlock()
	now.mu.Lock()
	defer now.mu.Unlock()
	moved := now.listed == nil || !slices.Equal(now.listed, listed)
	if moved || !reflect.DeepEqual(now.spec, spec) { // With many endpoints it is worth being asked.
		now.listed, now.spec = listed, spec
		spec.Endpoints = listed
		s.o.Store.SetPolicy(spec)
	}
	for kind, one := range now.sources {
		if _, ok := sourceOf(policy, kind); !ok {
			one.cancel()
			delete(now.sources, kind)
		}
	}
	for _, source := range policy.Spec.Load.Sources {
		s.follow(ctx, policy, source, now, moved)
	}
}

// follow makes one source of a policy that of its spec.
func (s *Sources) follow(ctx context.Context, policy *v1alpha1.WeightPolicy, source v1alpha1.LoadSource, now *running, moved bool) {
	one, digest := now.sources[source.Type], sourceDigest(policy, source)
	failed := one != nil && !one.retry.IsZero() && !s.o.Clock.Now().Before(one.retry)
	if one == nil || one.digest != digest || failed {
		if one != nil {
			one.cancel()
		}
		one = s.start(ctx, policy, source, digest)
		now.sources[source.Type] = one
		moved = true
	}
	if moved && one.source != nil {
		one.source.SetEndpoints(now.listed)
	}
}

// Drop ends the sources of a policy.
func (s *Sources) Drop(policy string) {
	s.mu.Lock()
	now := s.policies[policy]
	delete(s.policies, policy)
	s.mu.Unlock()
	if now == nil {
		return
	}
	now.mu.Lock()
	defer now.mu.Unlock()
	for _, one := range now.sources {
		one.cancel()
	}
}

func sourceDigest(policy *v1alpha1.WeightPolicy, source v1alpha1.LoadSource) string {
	text, err := json.Marshal([]any{policy.UID, policy.Spec.TargetRef, policy.Spec.Load.Metric, policy.Spec.Load.CustomMetric, source})
	if err != nil {
		panic(err) // None of them has a type that cannot be encoded.
	}
	return string(text)
}

// start runs a source of a policy, if it is one that asks.
func (s *Sources) start(ctx context.Context, policy *v1alpha1.WeightPolicy, source v1alpha1.LoadSource, digest string) *runningSource {
	sourceCtx, cancel := context.WithCancel(s.ctx)
	one := &runningSource{digest: digest, cancel: cancel}
	runnable, err := s.source(ctx, sourceCtx, policy, source)
	message := ""
	if err != nil {
		message, one.retry = err.Error(), s.o.Clock.Now().Add(retryInterval)
	}
	// What the one before said is not of this one.
	s.o.Store.SetSourceError(policyName(policy), source.Type, s.o.Clock.Now(), message)
	if runnable != nil && err == nil {
		one.source = runnable
		s.done.Go(func() { _ = runnable.Run(sourceCtx) }) // Its only error is that of the context.
	}
	return one
}

// source returns a source that asks, nil for one to which reports come. What it says once running is done is not heard.
func (s *Sources) source(ctx, running context.Context, policy *v1alpha1.WeightPolicy, source v1alpha1.LoadSource) (loadsource.Source, error) {
	name := policyName(policy)
	options := loadsource.Options{
		Policy: name, Metric: policy.Spec.Load.Metric, CustomMetric: policy.Spec.Load.CustomMetric, Interval: interval(source),
		Report: func(reports ...loadreport.Report) { s.o.Store.Add(s.o.Clock.Now(), reports...) },
		Message: func(message string) {
			if running.Err() == nil {
				s.o.Store.SetSourceError(name, source.Type, s.o.Clock.Now(), message)
			}
		},
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
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	service := &corev1.Service{}
	if err := s.o.Services.Get(ctx, client.ObjectKey{Namespace: policy.Namespace, Name: policy.Spec.TargetRef.Name}, service); err != nil {
		return nil, fmt.Errorf("reading the selector of Service %s: %w", policy.Spec.TargetRef.Name, err)
	}
	if len(service.Spec.Selector) == 0 {
		return nil, fmt.Errorf("there is no selector in Service %s: metrics.k8s.io has nothing of its endpoints", service.Name)
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
