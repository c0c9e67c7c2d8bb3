// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/catalog"
)

// requestQueue is the queue of a controller.
type requestQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// request is the only one of this controller.
func (r *CatalogReconciler) request() reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: r.Options.Namespace, Name: catalog.Name}}
}

// later looks at the catalog soon: at once where the catalog itself was changed, otherwise when changes have been collected for a
// while. The queue keeps the first of several times, so that a stream of changes does not put it off.
func (r *CatalogReconciler) later() handler.EventHandler {
	add := func(object client.Object, queue requestQueue) {
		if object.GetLabels()[v1alpha1.LabelCatalog] != "" || object.GetName() == catalog.Name && object.GetNamespace() == r.Options.Namespace {
			queue.Add(r.request())
			return
		}
		queue.AddAfter(r.request(), r.Options.Delay)
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue requestQueue) {
			if !e.IsInInitialList { // Those are looked at anyway.
				add(e.Object, queue)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue requestQueue) { add(e.ObjectNew, queue) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue requestQueue) { add(e.Object, queue) },
	}
}

// otherPolicy lets an update of a WeightPolicy pass when the catalog says something else of it: its status is written twice a minute.
func otherPolicy() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.WeightPolicy)
		after, both := e.ObjectNew.(*v1alpha1.WeightPolicy)
		return !ok || !both || catalog.OfPolicy(before) != catalog.OfPolicy(after)
	}}
}

// otherTombstone lets an update of a WeightSet pass when its policy has gone or come back: its weights change all the time.
func otherTombstone() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.WeightSet)
		after, both := e.ObjectNew.(*v1alpha1.WeightSet)
		return !ok || !both || before.Policy.UID != after.Policy.UID || !before.TombstoneUntil.Equal(after.TombstoneUntil)
	}}
}

// atStart looks at the catalog once, whether there is anything to list or not.
func (r *CatalogReconciler) atStart() source.Source {
	return source.Func(func(_ context.Context, queue requestQueue) error {
		queue.Add(r.request())
		return nil
	})
}
