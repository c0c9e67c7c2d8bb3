// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/loadsource"
)

// TestASourceThatCannotStartStopsNoOther: the Service has no selector, which metrics.k8s.io needs.
func TestASourceThatCannotStartStopsNoOther(t *testing.T) {
	c := newCluster(t, 2)
	o := c.owner("first", NewBoard())
	o.Sources.o.Streams, o.Sources.o.Pods = loadsource.NewStreams(10), c.client
	policy := newPolicy(func(p *v1alpha1.WeightPolicy) {
		p.Spec.Load.Sources = []v1alpha1.LoadSource{{Type: v1alpha1.SourceORCA}, {Type: v1alpha1.SourceMetrics}}
	})
	follow := func() *running {
		o.Sources.Follow(t.Context(), policy, nil)
		return o.Sources.policies[key.String()]
	}
	message := func() string { return o.Store.SourceErrors(key.String())[v1alpha1.SourceMetrics].Message }
	orca := follow().sources[v1alpha1.SourceORCA]
	if message() != "there is no selector in Service checkout: metrics.k8s.io has nothing of its endpoints" {
		t.Errorf("the message is %q", message())
	}
	service := &corev1.Service{}
	if err := c.client.Get(t.Context(), key, service); err != nil {
		t.Fatal(err)
	}
	service.Spec.Selector = map[string]string{"app": "checkout"}
	if err := c.client.Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	c.clock.Step(retryInterval - time.Second)
	if got := follow(); got.sources[v1alpha1.SourceMetrics].source != nil {
		t.Error("it is tried again at once")
	}
	c.clock.Step(time.Second)
	got := follow()
	if got.sources[v1alpha1.SourceMetrics].source == nil || message() != "" {
		t.Errorf("once it can start the message is %q", message())
	}
	if got.sources[v1alpha1.SourceORCA] != orca {
		t.Error("the source that could start was started again")
	}
	metrics := got.sources[v1alpha1.SourceMetrics]
	policy.Spec.Load.Sources = policy.Spec.Load.Sources[:1]
	policy.Spec.Load.ErrorPenalty = "2" // It is nothing to a source.
	if got := follow(); len(got.sources) != 1 || got.sources[v1alpha1.SourceORCA] != orca {
		t.Errorf("%d sources are left", len(got.sources))
	}
	policy.UID = "made again"
	if got := follow(); got.sources[v1alpha1.SourceORCA] == orca || metrics.source == nil {
		t.Error("the sources of an earlier policy go on")
	}
	o.Sources.Drop(key.String())
	o.Sources.Wait() // Or nothing would ever end them.
}
