// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/observe"
)

// indexTarget finds policies by the kind and name of their target.
const indexTarget = "target"

// AddIndexes adds the indexes that the watches and [Resolver] need.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &discoveryv1.EndpointSlice{}, observe.IndexService, func(o client.Object) []string {
		return []string{o.GetLabels()[discoveryv1.LabelServiceName]}
	})
	if err != nil {
		return fmt.Errorf("indexing EndpointSlices by their Service: %w", err)
	}
	err = indexer.IndexField(ctx, &v1alpha1.WeightPolicy{}, indexTarget, func(o client.Object) []string {
		policy, ok := o.(*v1alpha1.WeightPolicy)
		if !ok {
			return nil
		}
		return []string{targetKey(policy.Spec.TargetRef.Kind, policy.Spec.TargetRef.Name)}
	})
	if err != nil {
		return fmt.Errorf("indexing WeightPolicies by their target: %w", err)
	}
	return nil
}

func targetKey(kind v1alpha1.TargetKind, name string) string { return string(kind) + " " + name }

// specChanged passes changes of what people write: spec and annotations.
var specChanged = predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})

// SetupWithManager adds the controller, on every replica: the shards say which of them has work.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, concurrency int) error {
	r.wake = make(chan event.GenericEvent)
	r.shards = make(chan struct{}, 1)
	if err := mgr.Add(&shardWatch{r}); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("weightpolicy").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, NeedLeaderElection: new(bool), RateLimiter: retries()}).
		For(&v1alpha1.WeightPolicy{}, builder.WithPredicates(specChanged)).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(bySlice(mgr.GetClient()))).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(byService(mgr.GetClient()))).
		Watches(&v1alpha1.WeightSet{}, handler.EnqueueRequestsFromMapFunc(bySet), builder.WithPredicates(gone)).
		WatchesRawSource(source.Channel(r.wake, &handler.EnqueueRequestForObject{})).
		Complete(r)
}

// gone passes the end of objects, and what there is at the beginning.
var gone = predicate.Funcs{
	UpdateFunc: func(event.UpdateEvent) bool { return false }, GenericFunc: func(event.GenericEvent) bool { return false },
}

// SetupWithManager adds the view, on every replica.
func (v *View) SetupWithManager(mgr ctrl.Manager, concurrency int) error {
	v.wake = make(chan event.GenericEvent)
	if err := mgr.Add(v); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("weightview").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, NeedLeaderElection: new(bool), RateLimiter: retries()}).
		For(&v1alpha1.WeightPolicy{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(bySlice(mgr.GetClient()))).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(byService(mgr.GetClient()))).
		Watches(&v1alpha1.WeightSet{}, handler.EnqueueRequestsFromMapFunc(bySet)).
		WatchesRawSource(source.Channel(v.wake, &handler.EnqueueRequestForObject{})).
		Complete(v)
}

// bySet names the policy of a WeightSet.
func bySet(_ context.Context, o client.Object) []reconcile.Request {
	set, ok := o.(*v1alpha1.WeightSet)
	if !ok || set.Policy.Name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: set.Namespace, Name: set.Policy.Name}}}
}

// bySlice names the policies of the Service of a slice.
func bySlice(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return ofTarget(ctx, reader, o.GetNamespace(), v1alpha1.TargetService, o.GetLabels()[discoveryv1.LabelServiceName])
	}
}

// byService names the policies of a Service.
func byService(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return ofTarget(ctx, reader, o.GetNamespace(), v1alpha1.TargetService, o.GetName())
	}
}

func ofTarget(ctx context.Context, reader client.Reader, namespace string, kind v1alpha1.TargetKind, name string) []reconcile.Request {
	policies := &v1alpha1.WeightPolicyList{}
	if err := reader.List(ctx, policies, client.InNamespace(namespace), client.MatchingFields{indexTarget: targetKey(kind, name)}); err != nil {
		return nil // The cache has stopped.
	}
	requests := make([]reconcile.Request, len(policies.Items))
	for i := range policies.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&policies.Items[i])
	}
	return requests
}

// checkTaken says whether an older policy has the same target, which is a *targetError.
func (r *Reconciler) checkTaken(ctx context.Context, policy *v1alpha1.WeightPolicy) error {
	target := policy.Spec.TargetRef
	others := &v1alpha1.WeightPolicyList{}
	err := r.Client.List(ctx, others, client.InNamespace(policy.Namespace), client.MatchingFields{indexTarget: targetKey(target.Kind, target.Name)})
	if err != nil {
		return fmt.Errorf("listing the policies of %s %s: %w", target.Kind, target.Name, err)
	}
	for i := range others.Items {
		other := &others.Items[i]
		samePort := target.Port == other.Spec.TargetRef.Port || target.Port != nil && other.Spec.TargetRef.Port != nil && *target.Port == *other.Spec.TargetRef.Port
		if other.UID != policy.UID && samePort && older(other, policy) {
			return refused(v1alpha1.ReasonTargetTaken, "WeightPolicy %s, which is older, balances %s %s", other.Name, target.Kind, target.Name)
		}
	}
	return nil
}

func older(a, b *v1alpha1.WeightPolicy) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return strings.Compare(a.Name, b.Name) < 0
}
