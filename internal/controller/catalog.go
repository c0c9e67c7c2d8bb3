// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/catalog"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/internal/publish"
	"github.com/ringwright/ringwright/pkg/routing"
)

// CatalogReconciler keeps the catalog of all rings and WeightPolicies, and copies of it. It reads nothing but the cache.
type CatalogReconciler struct {
	Client    client.Client
	Publisher *publish.CatalogPublisher
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock
	Options   CatalogOptions

	conflicts workqueue.TypedRateLimiter[reconcile.Request]
	// taken is the copy that was taken last, while the cache may not have it yet.
	taken catalog.Copy
}

// CatalogOptions tune the catalog.
type CatalogOptions struct {
	// Namespace is where the catalog and its copies are.
	Namespace string
	// Delay is how long changes are collected before the catalog is written.
	Delay time.Duration
	// Copies says which copies there are.
	Copies catalog.Policy
}

// NewCatalogReconciler returns a reconciler that reads from c, whose ConfigMaps are cached as [publish.CacheOptions] says.
func NewCatalogReconciler(
	c client.Client, live client.Reader, recorder events.EventRecorder, clock clock.PassiveClock, options CatalogOptions,
) *CatalogReconciler {
	return &CatalogReconciler{
		Client: c, Recorder: recorder, Clock: clock, Options: options, conflicts: newLimiter(),
		Publisher: &publish.CatalogPublisher{Publisher: publish.Publisher{Client: c, Live: live}, Namespace: options.Namespace},
	}
}

// +kubebuilder:rbac:groups=ringwright.dev,resources=weightpolicies,verbs=list;watch
// +kubebuilder:rbac:groups=ringwright.dev,resources=weightsets,verbs=list;watch

// SetupWithManager starts the controller with mgr.
func (r *CatalogReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("catalog").
		Watches(&v1alpha1.HashRing{}, r.later()).
		Watches(&corev1.ConfigMap{}, r.later()).
		Watches(&v1alpha1.WeightPolicy{}, r.later(), builder.WithPredicates(otherPolicy())).
		Watches(&v1alpha1.WeightSet{}, r.later(), builder.WithPredicates(otherTombstone())).
		WatchesRawSource(r.atStart()).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: newLimiter()}).
		Complete(r)
}

// Reconcile writes the catalog where the cluster does not hold it as it shall be, then takes and drops copies.
func (r *CatalogReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	wait, err := r.update(ctx)
	var tooLarge *catalog.TooLargeError
	var taken *publish.TakenError
	switch {
	case isConflict(err):
		delay := r.conflicts.When(req)
		return ctrl.Result{RequeueAfter: delay}, nil
	case errors.As(err, &tooLarge), errors.As(err, &taken):
		r.warn(ctx, err)
		return ctrl.Result{RequeueAfter: nameRecheck}, nil
	}
	r.conflicts.Forget(req)
	return ctrl.Result{RequeueAfter: wait}, err
}

// update returns how long the next copy has to wait.
func (r *CatalogReconciler) update(ctx context.Context) (time.Duration, error) {
	seen, err := r.Publisher.Observe(ctx)
	if err != nil {
		return 0, err
	}
	content, err := r.content(ctx)
	if err != nil {
		return 0, err
	}
	payload, err := content.Pack()
	if err != nil {
		return 0, err
	}
	written, err := r.Publisher.Write(ctx, seen, payload)
	if err != nil {
		return 0, err
	}
	if written {
		log.FromContext(ctx).Info("Wrote the catalog", "rings", len(content.Rings), "tombstones", len(content.Tombstones)+len(content.WeightTombstones), "weightPolicies", len(content.WeightPolicies))
	}
	digest, now := plan.ContentDigest(payload.Data, payload.BinaryData), r.Clock.Now()
	copies := catalog.PlanCopies(content, digest, r.copies(seen.Copies, now), r.Options.Copies, now)
	if copies.Take != "" {
		if err := r.Publisher.Copy(ctx, copies.Take, payload); err != nil {
			return 0, err
		}
		r.taken = catalog.Copy{Name: copies.Take, Digest: digest}
		log.FromContext(ctx).Info("Took a copy of the catalog", "configMap", copies.Take)
	}
	return copies.Wait, r.Publisher.Drop(ctx, seen, copies.Drop)
}

// copyLag is how long a copy that was taken counts although the cache does not have it: after that somebody has deleted it.
const copyLag = 10 * time.Second

// copies returns those that were seen, and the one that was taken since: without it, the next look took the same again.
func (r *CatalogReconciler) copies(seen []catalog.Copy, now time.Time) []catalog.Copy {
	at, ok := catalog.CopyTime(r.taken.Name)
	if !ok || now.Sub(at) >= copyLag || slices.Contains(seen, r.taken) {
		r.taken = catalog.Copy{}
		return seen
	}
	return append(slices.Clone(seen), r.taken)
}

// content reads the catalog's content. Specs of thousands of backends are not copied for it.
func (r *CatalogReconciler) content(ctx context.Context) (catalog.Catalog, error) {
	rings := &v1alpha1.HashRingList{}
	if err := r.Client.List(ctx, rings, client.UnsafeDisableDeepCopy); err != nil {
		return catalog.Catalog{}, fmt.Errorf("listing HashRings: %w", err)
	}
	configMaps := &corev1.ConfigMapList{}
	ours := client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedByRingwright}
	if err := r.Client.List(ctx, configMaps, ours, client.UnsafeDisableDeepCopy); err != nil {
		return catalog.Catalog{}, fmt.Errorf("listing ConfigMaps: %w", err)
	}
	parts := make([]catalog.Part, len(configMaps.Items))
	for i := range configMaps.Items {
		cm := &configMaps.Items[i]
		parts[i] = catalog.Part{
			Namespace: cm.Namespace, Name: cm.Name, Labels: cm.Labels, Annotations: cm.Annotations, Routing: cm.Data[routing.FileName],
		}
	}
	policies, sets := &v1alpha1.WeightPolicyList{}, &v1alpha1.WeightSetList{}
	if err := r.Client.List(ctx, policies, client.UnsafeDisableDeepCopy); err != nil {
		return catalog.Catalog{}, fmt.Errorf("listing WeightPolicies: %w", err)
	}
	if err := r.Client.List(ctx, sets, client.UnsafeDisableDeepCopy); err != nil {
		return catalog.Catalog{}, fmt.Errorf("listing WeightSets: %w", err)
	}
	return catalog.Of(rings.Items, parts).WithWeights(policies.Items, sets.Items), nil
}

// warn says, with an event about the catalog, why it is not what it should be.
func (r *CatalogReconciler) warn(ctx context.Context, err error) {
	reason := "CatalogTooLarge"
	var taken *publish.TakenError
	if errors.As(err, &taken) {
		reason = string(v1alpha1.ReasonNameConflict)
	}
	log.FromContext(ctx).Error(err, "The catalog stays as it is")
	about := &corev1.ConfigMap{}
	about.Namespace, about.Name = r.Options.Namespace, catalog.Name
	about.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	r.Recorder.Eventf(about, nil, corev1.EventTypeWarning, reason, "Catalog", "%v", err)
}
