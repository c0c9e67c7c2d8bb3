// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/loadreport"
	"github.com/ringwright/ringwright/internal/manager"
	"github.com/ringwright/ringwright/internal/observe"
)

var key = types.NamespacedName{Namespace: "shop", Name: "checkout"}

// cluster is an API server with shop/checkout and its endpoints, and owners on one clock.
type cluster struct {
	t      *testing.T
	clock  *clocktesting.FakeClock
	client client.WithWatch
	// fail has writes fail, where it returns an error.
	fail   func(verb string, o client.Object) error
	writes map[string]int
}

func newCluster(t *testing.T, pods int, change ...func(*v1alpha1.WeightPolicy)) *cluster {
	t.Helper()
	scheme, err := manager.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, clock: clocktesting.NewFakeClock(epochStart), writes: map[string]int{}, fail: func(string, client.Object) error { return nil }}
	note := func(verb string, o client.Object) error {
		c.writes[fmt.Sprintf("%s %T", verb, o)]++
		return c.fail(verb, o)
	}
	c.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.WeightPolicy{}).
		WithIndex(&discoveryv1.EndpointSlice{}, observe.IndexService, func(o client.Object) []string { return []string{o.GetLabels()[discoveryv1.LabelServiceName]} }).
		WithIndex(&v1alpha1.WeightPolicy{}, indexTarget, func(o client.Object) []string {
			ref := o.(*v1alpha1.WeightPolicy).Spec.TargetRef
			return []string{targetKey(ref.Kind, ref.Name)}
		}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if err := note("create", o); err != nil {
					return err
				}
				return w.Create(ctx, o, opts...)
			},
			Update: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				if err := note("update", o); err != nil {
					return err
				}
				return w.Update(ctx, o, opts...)
			},
			SubResourceUpdate: func(ctx context.Context, w client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				if err := note("status", o); err != nil {
					return err
				}
				return w.SubResource(sub).Update(ctx, o, opts...)
			},
		}).Build()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	for _, o := range []client.Object{newPolicy(change...), service, sliceOf(pods)} {
		if err := c.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// sliceOf is an EndpointSlice with the pods of newEndpoints.
func sliceOf(pods int) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "checkout-1", Labels: map[string]string{discoveryv1.LabelServiceName: "checkout"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: ptr.To(""), Port: ptr.To[int32](8080)}},
	}
	for _, e := range newEndpoints(pods) {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{e.Address}, Zone: ptr.To(e.Zone), TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: e.Pod, UID: types.UID(e.PodUID)},
		})
	}
	return slice
}

func (c *cluster) scale(pods int) {
	c.t.Helper()
	slice := sliceOf(pods)
	if err := c.client.Patch(c.t.Context(), slice, client.Merge); err != nil {
		c.t.Fatal(err)
	}
}

type owning bool

func (o *owning) Owns(string) bool { return bool(*o) }

// owner is one replica.
type owner struct {
	*Reconciler
	c    *cluster
	owns owning
}

// owner returns a replica that owns everything and has heard what board says.
func (c *cluster) owner(name string, board *Board) *owner {
	c.t.Helper()
	o := &owner{c: c, owns: true}
	store := loadreport.NewStore(loadreport.Limits{}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	sources := NewSources(ctx, SourceOptions{Store: store, Services: c.client, Clock: c.clock})
	c.t.Cleanup(func() { cancel(); sources.Wait() })
	o.Reconciler = &Reconciler{
		Client: c.client, Live: c.client, Resolver: &Resolver{Reader: c.client, Live: c.client}, Shards: &o.owns, Store: store, Sources: sources,
		Board: board, Own: NewBoard(), Clock: c.clock, Self: name,
	}
	return o
}

// look lets an interval pass in which all endpoints report, and reconciles.
func (o *owner) look() (ctrl.Result, error) {
	o.c.t.Helper()
	o.c.clock.Step(10 * time.Second)
	now := o.c.clock.Now()
	latest, _ := o.Own.Get(key.String())
	for i, id := range latest.Weights.ids() {
		weight := float64(latest.Weights[id]) / 10000
		o.Store.Add(now, loadreport.Report{
			Policy: key.String(), Endpoint: id, Source: v1alpha1.SourcePush, End: now, Window: 5 * time.Second,
			CPU: 0.5 * weight / (1 + float64(i%3)/2), InFlight: math.NaN(), Custom: math.NaN(), Requests: 1000,
		})
	}
	return o.Reconcile(o.c.t.Context(), ctrl.Request{NamespacedName: key})
}

func (o *owner) mustLook() {
	o.c.t.Helper()
	if _, err := o.look(); err != nil {
		o.c.t.Fatal(err)
	}
}

func (c *cluster) policy() *v1alpha1.WeightPolicy {
	c.t.Helper()
	p := &v1alpha1.WeightPolicy{}
	if err := c.client.Get(c.t.Context(), key, p); err != nil {
		c.t.Fatal(err)
	}
	return p
}

func (c *cluster) ready() string {
	c.t.Helper()
	if ready := meta.FindStatusCondition(c.policy().Status.Conditions, "Ready"); ready != nil {
		return string(ready.Status) + " " + ready.Reason
	}
	return ""
}

func (c *cluster) sets() []v1alpha1.WeightSet {
	c.t.Helper()
	sets, err := listSets(c.t.Context(), c.client, key)
	if err != nil {
		c.t.Fatal(err)
	}
	return sets
}

// clients is what a replica that hears announcements and watches WeightSets serves.
func (c *cluster) clients(board *Board) Served {
	c.t.Helper()
	(&View{Board: board}).takeStored(key.String(), c.sets())
	a, _ := board.Get(key.String())
	return a.Weights
}
