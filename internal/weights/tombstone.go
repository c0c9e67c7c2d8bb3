// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// defaultTombstone is how long weights outlive their policy where it did not say.
const defaultTombstone = 72 * time.Hour

// bury looks after what a policy that is gone has left: it goes on to be served until its tombstone is over, and is deleted then.
func (r *Reconciler) bury(ctx context.Context, policy types.NamespacedName) (ctrl.Result, error) {
	r.drop(policy.String())
	sets, err := listSets(ctx, r.Client, policy)
	if err != nil || len(sets) == 0 {
		return ctrl.Result{}, err
	}
	if !r.Shards.Owns(policy.String()) {
		return ctrl.Result{RequeueAfter: r.ownershipCheck()}, nil
	}
	if sets, err = listSets(ctx, r.Live, policy); err != nil || len(sets) == 0 {
		return ctrl.Result{}, err
	}
	now := r.Clock.Now()
	until := time.Time{}
	for i := range sets {
		if sets[i].TombstoneUntil == nil {
			lasts := ptr.Deref(sets[i].Policy.Tombstone, metav1.Duration{Duration: defaultTombstone}).Duration
			sets[i].TombstoneUntil = ptr.To(secondsOf(now.Add(lasts)))
			if err := r.Client.Update(ctx, &sets[i], client.FieldOwner(v1alpha1.FieldManagerBalancer)); err != nil {
				return ctrl.Result{}, fmt.Errorf("marking WeightSet %s as left over: %w", sets[i].Name, err)
			}
		}
		until = later(until, sets[i].TombstoneUntil.Time)
	}
	if now.Before(until) {
		return ctrl.Result{RequeueAfter: max(until.Sub(now), time.Second)}, nil
	}
	return ctrl.Result{}, r.deleteRemains(ctx, policy, sets)
}

// deleteRemains deletes the ConfigMap and the records of a policy, and its WeightSets last: they say what the rest is.
func (r *Reconciler) deleteRemains(ctx context.Context, policy types.NamespacedName, sets []v1alpha1.WeightSet) error {
	var errs []error
	for i := range sets {
		if name := sets[i].Annotations[annotationConfigMap]; name != "" {
			errs = append(errs, r.deleteFile(ctx, policy, name))
		}
	}
	records, err := r.records(ctx, policy)
	errs = append(errs, err)
	for i := range records {
		record := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: policy.Namespace, Name: records[i].Name}}
		errs = append(errs, client.IgnoreNotFound(r.Client.Delete(ctx, record)))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("deleting what WeightPolicy %s has left: %w", policy, err)
	}
	for i := range sets {
		errs = append(errs, client.IgnoreNotFound(r.Client.Delete(ctx, &sets[i])))
	}
	return errors.Join(errs...)
}
