// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/observe"
)

// The delays between attempts after failures. The default of controller-runtime grows to a quarter of an hour, which is
// too long for a ring that waits for an API server to come back.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// Options tune the HashRing controller.
type Options struct {
	// Concurrency is how many HashRings are reconciled at a time.
	Concurrency int
}

// SetupWithManager starts the controller with mgr, whose caches are set up as packages publish and observe say.
func (r *HashRingReconciler) SetupWithManager(mgr ctrl.Manager, options Options) error {
	built, err := ctrl.NewControllerManagedBy(mgr).
		Named("hashring").
		For(&v1alpha1.HashRing{}, builder.WithPredicates(predicate.Or(unseen(), released(), relocked()))).
		// By label and not by owner, so that what is left of an earlier HashRing of the same name is noticed when it goes.
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(ringOf)).
		Watches(&appsv1.ControllerRevision{}, handler.EnqueueRequestsFromMapFunc(ringOf)).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(r.ringsOfService)).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(r.ringsOfSlice)).
		Watches(&v1alpha1.WeightSet{}, handler.EnqueueRequestsFromMapFunc(ringOfWeights)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: options.Concurrency,
			RateLimiter:             newLimiter(),
		}).
		Build(r)
	if err != nil {
		return err
	}
	if r.Touch != nil {
		r.Touch.changed = r.consumers.changed
	}
	r.pods = podWatch{start: func() error {
		return built.Watch(source.Kind[client.Object](
			mgr.GetCache(), observe.PodMetadata(), handler.EnqueueRequestsFromMapFunc(r.ringsOfPod), relabelled(),
		))
	}}
	return r.consumers.setup(mgr, built, r)
}

// podWatch starts a watch of pods when the first HashRing asks for something of theirs: in a large cluster they are most of what
// the operator would keep in memory.
type podWatch struct {
	mu      sync.Mutex
	started bool
	start   func() error
}

func (w *podWatch) ensure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started {
		return nil
	}
	if err := w.start(); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	w.started = true
	return nil
}

func newLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)
}

// unseen lets an update pass when the status is not about the spec. That includes a HashRing that was made again while the
// watch was broken, and a status that somebody has wiped; it leaves out our own writes of the status.
func unseen() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		ring, ok := e.ObjectNew.(*v1alpha1.HashRing)
		return !ok || ring.Status.ObservedGeneration != ring.Generation || e.ObjectOld.GetUID() != ring.UID
	}}
}

// released lets an update pass when somebody confirms what is held.
func released() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetAnnotations()[v1alpha1.AnnotationRelease] != e.ObjectNew.GetAnnotations()[v1alpha1.AnnotationRelease]
		},
	}
}

// relocked lets an update pass when a RingMigration wants something else published.
func relocked() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.HashRing)
		after, both := e.ObjectNew.(*v1alpha1.HashRing)
		return ok && both && !equality.Semantic.DeepEqual(before.Status.Migration, after.Status.Migration)
	}}
}

// relabelled lets an update of a pod pass when its labels or annotations have changed.
func relabelled() predicate.Predicate {
	return predicate.Or[client.Object](predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{})
}

// ringsOfService returns the HashRings that take backends from a Service.
func (r *HashRingReconciler) ringsOfService(ctx context.Context, service client.Object) []reconcile.Request {
	return r.ringsFrom(ctx, service.GetNamespace(), service.GetName())
}

func (r *HashRingReconciler) ringsOfSlice(ctx context.Context, slice client.Object) []reconcile.Request {
	return r.ringsFrom(ctx, slice.GetNamespace(), slice.GetLabels()[discoveryv1.LabelServiceName])
}

func (r *HashRingReconciler) ringsFrom(ctx context.Context, namespace, service string) []reconcile.Request {
	list := &v1alpha1.HashRingList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{observe.IndexService: service}); err != nil {
		log.FromContext(ctx).Error(err, "Finding the HashRings of a Service", "service", service)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// ringsOfPod returns the HashRings that take backends from a Service of a pod.
func (r *HashRingReconciler) ringsOfPod(ctx context.Context, pod client.Object) []reconcile.Request {
	list := &discoveryv1.EndpointSliceList{}
	if err := r.Client.List(ctx, list, client.InNamespace(pod.GetNamespace()), client.MatchingFields{observe.IndexPod: pod.GetName()}); err != nil {
		log.FromContext(ctx).Error(err, "Finding the EndpointSlices of a pod", "pod", pod.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, r.ringsOfSlice(ctx, &list.Items[i])...)
	}
	return requests
}

// ringOfWeights returns the HashRing whose backends a WeightSet has the weights of.
func ringOfWeights(_ context.Context, set client.Object) []reconcile.Request {
	name := set.GetLabels()[v1alpha1.LabelWeightRing]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: set.GetNamespace(), Name: name}}}
}

// ringOf returns the HashRing that a published object names in its label.
func ringOf(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[v1alpha1.LabelRing]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: name}}}
}
