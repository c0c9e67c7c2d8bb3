// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// errLockChanged is why a decision about an older lock is not carried out.
var errLockChanged = errors.New("status.migration is another one by now")

// CheckLock asks the API server whether the lock of r is still the one that a decision was made with. The error is a conflict where it
// is not.
//
// It is to be called after what is replaced was seen, and before it is. A write of a ConfigMap that somebody wrote since it was seen
// fails, so whoever reads a lock here writes only over what was published under that lock or an earlier one: a share that was lowered
// is never raised again by an operator that does not know yet.
func (p *Publisher) CheckLock(ctx context.Context, r *v1alpha1.HashRing) error {
	live := &v1alpha1.HashRing{}
	if err := p.Live.Get(ctx, client.ObjectKeyFromObject(r), live); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the lock of HashRing %s: %w", r.Name, err)
	}
	if live.UID != r.UID || !equality.Semantic.DeepEqual(live.Status.Migration, r.Status.Migration) {
		return apierrors.NewConflict(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "hashrings"}, r.Name, errLockChanged)
	}
	return nil
}
