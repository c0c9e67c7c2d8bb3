// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/internal/publish"
)

// +kubebuilder:rbac:groups=ringwright.dev,resources=hashrings,verbs=get

// bury looks after what is published of a HashRing that is gone: it stays for its readers until its tombstone is over, or
// until a HashRing of the name is there again.
func (r *HashRingReconciler) bury(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	left, err := r.Publisher.Remains(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	burial := plan.Bury(req.Name, left.Parts, r.Clock.Now())
	err = r.carryOut(ctx, req, left, burial)
	if isConflict(err) {
		return r.retry(ctx, req, err)
	}
	r.conflicts.Forget(req)
	return ctrl.Result{RequeueAfter: burial.Wait}, err
}

func (r *HashRingReconciler) carryOut(ctx context.Context, req ctrl.Request, left publish.Remains, burial plan.Burial) error {
	switch {
	case burial.Mark != "":
		log.FromContext(ctx).Info("The HashRing is gone; what it published stays for now", "until", burial.Until)
		return r.Publisher.Mark(ctx, left, burial.Mark, burial.Until)
	case len(burial.Delete) > 0:
		gone, err := r.isGone(ctx, req.NamespacedName)
		if err != nil || !gone {
			return err
		}
		log.FromContext(ctx).Info("Deleting what is left of a HashRing that is gone", "objects", burial.Delete)
		return r.Publisher.Bury(ctx, left, burial.Delete)
	default:
		return nil
	}
}

// isGone asks the API server: a cache that is behind must not cost anybody a ring. An answer that does not come from the API
// of HashRings, because their definition is missing or not served yet, says nothing.
func (r *HashRingReconciler) isGone(ctx context.Context, key client.ObjectKey) (bool, error) {
	err := r.Publisher.Live.Get(ctx, key, &v1alpha1.HashRing{})
	if apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking whether the HashRing is gone: %w", err)
	}
	return false, nil // The cache will tell of it.
}
