// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
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
)

const (
	// indexMigration finds actions by the name of their RingMigration.
	indexMigration = "migration"
	// indexMigratedRing finds RingMigrations by the names of the HashRings in their status, and of that in their spec.
	indexMigratedRing = "ring"
)

// SetupWithManager starts the controller with mgr.
func (r *RingMigrationReconciler) SetupWithManager(mgr ctrl.Manager, options Options) error {
	if err := addMigrationIndexes(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	measured := make(chan event.TypedGenericEvent[types.NamespacedName], 256)
	r.measured = func(migration types.NamespacedName) {
		select {
		case measured <- event.TypedGenericEvent[types.NamespacedName]{Object: migration}:
		default: // The next look is never further away than the interval.
		}
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("ringmigration").
		For(&v1alpha1.RingMigration{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, finalizersChanged(), unobserved(),
		))).
		Watches(&v1alpha1.HashRing{}, handler.EnqueueRequestsFromMapFunc(r.migrationsOf)).
		Watches(&v1alpha1.RingMigrationAction{}, handler.EnqueueRequestsFromMapFunc(migrationOf), builder.WithPredicates(undecided())).
		WatchesRawSource(source.TypedChannel(measured, handler.TypedFuncs[types.NamespacedName, reconcile.Request]{
			GenericFunc: func(_ context.Context, e event.TypedGenericEvent[types.NamespacedName], queue requestQueue) {
				queue.Add(reconcile.Request{NamespacedName: e.Object})
			},
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.Concurrency, RateLimiter: newLimiter()}).
		Complete(r)
}

// Measured has a migration looked at, because a gate has said something.
func (r *RingMigrationReconciler) Measured(migration types.NamespacedName) {
	if r.measured != nil {
		r.measured(migration)
	}
}

func addMigrationIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &v1alpha1.RingMigrationAction{}, indexMigration, func(o client.Object) []string {
		a, ok := o.(*v1alpha1.RingMigrationAction)
		if !ok {
			return nil
		}
		return []string{a.Spec.MigrationRef.Name}
	})
	if err != nil {
		return err
	}
	return indexer.IndexField(ctx, &v1alpha1.RingMigration{}, indexMigratedRing, func(o client.Object) []string {
		m, ok := o.(*v1alpha1.RingMigration)
		if !ok {
			return nil
		}
		return ringNames(m)
	})
}

// ringNames returns the names of the HashRings that are known to be those of a migration, and "" for one that selects them.
func ringNames(m *v1alpha1.RingMigration) []string {
	var names []string
	for _, ring := range m.Status.Rings {
		names = append(names, ring.Name)
	}
	switch {
	case m.Spec.RingRef != nil && len(names) == 0:
		return []string{m.Spec.RingRef.Name}
	case len(names) == 0:
		return []string{""}
	}
	return names
}

// migrationsOf returns the migrations that a HashRing is, or could be, one of.
func (r *RingMigrationReconciler) migrationsOf(ctx context.Context, ring client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range []string{ring.GetName(), ""} {
		list := &v1alpha1.RingMigrationList{}
		if err := r.Client.List(ctx, list, client.InNamespace(ring.GetNamespace()), client.MatchingFields{indexMigratedRing: name}); err != nil {
			log.FromContext(ctx).Error(err, "Finding the RingMigrations of a HashRing", "HashRing", ring.GetName())
			return nil
		}
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

func migrationOf(_ context.Context, o client.Object) []reconcile.Request {
	a, ok := o.(*v1alpha1.RingMigrationAction)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: a.Namespace, Name: a.Spec.MigrationRef.Name}}}
}

// undecided lets an action pass that nobody has decided on.
func undecided() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		a, ok := o.(*v1alpha1.RingMigrationAction)
		return !ok || a.Status.Phase == ""
	})
}

// finalizersChanged lets an update pass that adds or takes away finalizers.
func finalizersChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return len(e.ObjectOld.GetFinalizers()) != len(e.ObjectNew.GetFinalizers())
	}}
}

// unobserved lets an update pass when the status is not about the spec, as after a restore that has lost it.
func unobserved() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		m, ok := e.ObjectNew.(*v1alpha1.RingMigration)
		return !ok || m.Status.ObservedGeneration != m.Generation || e.ObjectOld.GetUID() != m.UID
	}}
}
