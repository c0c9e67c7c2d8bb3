// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/consumer"
	"github.com/ringwright/ringwright/internal/observe"
	"github.com/ringwright/ringwright/internal/plan"
)

// consumerDelay collects what becomes known of the consumers of a ring before the ring is looked at.
const consumerDelay = 500 * time.Millisecond

// acknowledgement follows the consumers of rings. The zero value follows none.
type acknowledgement struct {
	poller *consumer.Poller
	pods   podWatch
	// queue is where rings go whose consumers have something else; nil until the controller runs.
	queue atomic.Pointer[requestQueue]
}

// setup adds what asks consumers to mgr, and their watch to the controller.
func (a *acknowledgement) setup(mgr ctrl.Manager, built controller.Controller, r *HashRingReconciler) error {
	asker := consumer.NewAsker()
	asker.Loopback = r.ConsumerLoopback
	a.poller = consumer.NewPoller(consumer.Options{
		List: r.Reader.Consumers, Ask: asker.Ask, Changed: a.changed, Metrics: r.Metrics,
	})
	if err := mgr.Add(a.poller); err != nil {
		return fmt.Errorf("adding the poller of consumers: %w", err)
	}
	a.pods = podWatch{start: func() error {
		return built.Watch(source.Kind[client.Object](mgr.GetCache(), &corev1.Pod{}, a.podHandler()))
	}}
	return built.Watch(source.Func(func(_ context.Context, queue requestQueue) error {
		a.queue.Store(&queue)
		return nil
	}))
}

// changed has a ring looked at.
func (a *acknowledgement) changed(ring types.NamespacedName) {
	if queue := a.queue.Load(); queue != nil {
		(*queue).AddAfter(reconcile.Request{NamespacedName: ring}, consumerDelay)
	}
}

// podHandler tells the poller which pods come, go and change. Rings are looked at when it finds that something follows from that.
func (a *acknowledgement) podHandler() handler.EventHandler {
	tell := func(pod client.Object) { a.poller.PodChanged(pod.GetNamespace(), labels.Set(pod.GetLabels())) }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ requestQueue) { tell(e.Object) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ requestQueue) { tell(e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ requestQueue) {
			before, ok := e.ObjectOld.(*corev1.Pod)
			after, both := e.ObjectNew.(*corev1.Pod)
			if !ok || !both || !observe.ConsumerChanged(before, after) {
				return
			}
			tell(before)
			tell(after)
		},
	}
}

// observe has the consumers of a ring asked, and returns what is known of them.
func (a *acknowledgement) observe(ring *v1alpha1.HashRing) (*plan.Consumers, error) {
	if a.poller == nil {
		return nil, nil
	}
	if ring.Spec.Consumers != nil {
		if err := a.pods.ensure(); err != nil {
			return nil, err
		}
	}
	return a.poller.Follow(ring), nil
}

// publish tells what the consumers of a ring are to have. Where nothing could be written, that is not known.
func (a *acknowledgement) publish(ring *v1alpha1.HashRing, out outcome) {
	if a.poller != nil && out.failure == nil {
		a.poller.Publish(client.ObjectKeyFromObject(ring), out.decision.Asked(), out.now)
	}
}

// Poller returns what asks the consumers of rings; nil before the controller was set up.
func (r *HashRingReconciler) Poller() *consumer.Poller { return r.consumers.poller }

// forget ends it for a ring that is gone.
func (a *acknowledgement) forget(ring types.NamespacedName) {
	if a.poller != nil {
		a.poller.Forget(ring)
	}
}
