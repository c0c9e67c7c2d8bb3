// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// ShardsChanged has all policies looked at. It does not block.
func (r *Reconciler) ShardsChanged() {
	select {
	case r.shards <- struct{}{}:
	default: // They are going to be.
	}
}

// shardWatch has all policies looked at when the owners change: what a replica that died has left must not wait for the next look.
type shardWatch struct{ r *Reconciler }

// NeedLeaderElection says that every replica has its policies.
func (w *shardWatch) NeedLeaderElection() bool { return false }

// Start carries changes of the owners to the policies' reconciliation until ctx is done.
func (w *shardWatch) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.r.shards:
		}
		keys, err := w.r.everything(ctx)
		if err != nil {
			log.FromContext(ctx).Error(err, "Policies of other owners are found within a minute only")
		}
		for _, key := range keys {
			policy := &v1alpha1.WeightPolicy{}
			policy.Namespace, policy.Name = key.Namespace, key.Name
			select {
			case w.r.wake <- event.GenericEvent{Object: policy}:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// retries has what failed tried again within seconds: weights are computed whether they can be stored or not.
func retries() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, 10*time.Second)
}

// everything lists the policies that there are, and those that have left something.
func (r *Reconciler) everything(ctx context.Context) ([]types.NamespacedName, error) {
	policies, sets := &v1alpha1.WeightPolicyList{}, &v1alpha1.WeightSetList{}
	if err := errors.Join(r.Client.List(ctx, policies), r.Client.List(ctx, sets)); err != nil {
		return nil, fmt.Errorf("listing the policies that there are: %w", err)
	}
	seen := map[types.NamespacedName]bool{}
	var keys []types.NamespacedName
	add := func(key types.NamespacedName) {
		if !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	for i := range policies.Items {
		add(client.ObjectKeyFromObject(&policies.Items[i]))
	}
	for i := range sets.Items {
		add(types.NamespacedName{Namespace: sets.Items[i].Namespace, Name: sets.Items[i].Policy.Name})
	}
	return keys, nil
}

// flushTimeout is within the grace period of a pod.
const flushTimeout = 10 * time.Second

// Flush writes the WeightSets of all policies that this replica owns, at the end of the process and before others are told of it. Those that
// another replica has taken over are its.
func (r *Reconciler) Flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	r.mu.Lock()
	holdings := make([]*holding, 0, len(r.holdings))
	for _, h := range r.holdings {
		holdings = append(holdings, h)
	}
	r.mu.Unlock()
	slices.SortFunc(holdings, func(a, b *holding) int { return strings.Compare(a.policy.String(), b.policy.String()) })
	var errs []error
	for _, h := range holdings {
		if err := r.flush(ctx, h); err != nil && !errors.Is(err, errLost) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (r *Reconciler) flush(ctx context.Context, h *holding) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.spec == nil || h.unlooked() {
		return nil
	}
	return r.storeSets(ctx, h.spec, h)
}
