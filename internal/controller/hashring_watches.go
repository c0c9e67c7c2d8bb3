// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ringwright/ringwright/api/v1alpha1"
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

// SetupWithManager starts the controller with mgr.
func (r *HashRingReconciler) SetupWithManager(mgr ctrl.Manager, options Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("hashring").
		For(&v1alpha1.HashRing{}, builder.WithPredicates(unseen())).
		// By label and not by owner, so that what is left of an earlier HashRing of the same name is noticed when it goes.
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(ringOf)).
		Watches(&appsv1.ControllerRevision{}, handler.EnqueueRequestsFromMapFunc(ringOf)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: options.Concurrency,
			RateLimiter:             newLimiter(),
		}).
		Complete(r)
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

// ringOf returns the HashRing that a published object names in its label.
func ringOf(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[v1alpha1.LabelRing]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: name}}}
}
