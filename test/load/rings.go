// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// port is where every backend listens.
const port = 8080

// creators is how many rings are created at a time.
const creators = 8

func ringName(ring int) string { return fmt.Sprintf("ring-%05d", ring) }

// address returns that of a backend; no two have the same.
func (l *load) address(ring, backend int) string {
	n := ring*l.backends + backend
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}).String()
}

// createAll creates the rings, and behind them what they read.
func (l *load) createAll(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for ring := range l.rings {
		group.Go(func() error {
			for _, object := range l.objects(ring) {
				if err := l.cluster.admin.Create(ctx, object); err != nil {
					return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// objects returns a HashRing, and before it what it reads.
func (l *load) objects(ring int) []client.Object {
	meta := metav1.ObjectMeta{Namespace: l.cluster.namespace, Name: ringName(ring)}
	if l.source == sourceSlices {
		return []client.Object{l.service(meta), l.slice(meta, ring), &v1alpha1.HashRing{ObjectMeta: meta, Spec: v1alpha1.HashRingSpec{
			BackendsFrom: []v1alpha1.BackendSource{{Service: v1alpha1.ServicePort{Name: meta.Name}}},
			// What goes is removed at once: a change is then a new ring, as it is with static backends.
			Membership: v1alpha1.Membership{LeaveDelay: &metav1.Duration{}},
		}}}
	}
	return []client.Object{&v1alpha1.HashRing{ObjectMeta: meta, Spec: v1alpha1.HashRingSpec{Backends: l.static(ring)}}}
}

// static returns the backends of a ring that has them in its spec.
func (l *load) static(ring int) []v1alpha1.Backend {
	var list []v1alpha1.Backend
	for backend := range l.backends {
		list = append(list, v1alpha1.Backend{
			Name: fmt.Sprintf("backend-%d", backend), Address: l.address(ring, backend), Port: ptr.To[int32](port), Weight: ptr.To[int32](1),
		})
	}
	return list
}

func (l *load) service(meta metav1.ObjectMeta) *corev1.Service {
	return &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": meta.Name}, Ports: []corev1.ServicePort{{Name: "http", Port: port}},
	}}
}

func (l *load) slice(meta metav1.ObjectMeta, ring int) *discoveryv1.EndpointSlice {
	meta.Labels = map[string]string{discoveryv1.LabelServiceName: meta.Name}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](port), Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
	for backend := range l.backends {
		slice.Endpoints = append(slice.Endpoints, l.endpoint(ring, backend))
	}
	return slice
}

func (l *load) endpoint(ring, backend int) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses:  []string{l.address(ring, backend)},
		Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false)},
	}
}

// change changes one backend of a ring so that its ring becomes another one: the count-th change takes the last of its
// endpoints away or brings it back, or gives a static backend another weight.
func (l *load) change(ctx context.Context, ring, count int) error {
	meta := metav1.ObjectMeta{Namespace: l.cluster.namespace, Name: ringName(ring)}
	var object client.Object = &v1alpha1.HashRing{ObjectMeta: meta}
	operation := map[string]any{"op": "replace", "path": fmt.Sprintf("/spec/backends/%d/weight", count%l.backends), "value": 2 + count}
	if l.source == sourceSlices {
		object = &discoveryv1.EndpointSlice{ObjectMeta: meta}
		operation = map[string]any{"op": "remove", "path": fmt.Sprintf("/endpoints/%d", l.backends-1)}
		if count%2 == 1 {
			operation = map[string]any{"op": "add", "path": "/endpoints/-", "value": l.endpoint(ring, l.backends-1)}
		}
	}
	patch, err := json.Marshal([]any{operation})
	if err != nil {
		return err
	}
	return l.cluster.admin.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch))
}

// published reads when a ring was published last, and the generation of its routing file.
func (l *load) published(ctx context.Context, ring int) (time.Time, int64, error) {
	r := &v1alpha1.HashRing{}
	if err := l.cluster.admin.Get(ctx, client.ObjectKey{Namespace: l.cluster.namespace, Name: ringName(ring)}, r); err != nil {
		return time.Time{}, 0, err
	}
	if r.Status.Active == nil || r.Status.Routing == nil {
		return time.Time{}, 0, nil
	}
	return r.Status.Active.PublishedAt.Time, r.Status.Routing.Generation, nil
}
