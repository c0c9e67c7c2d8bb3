// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// refusals explain why an action does nothing.
var refusals = map[migration.Refusal]string{
	migration.StaleStep:         "it was given for another attempt, step or split than the present one: look at the migration and ask again",
	migration.TooLate:           "the migration goes back already, or its old ring is being retired, after which there is no way back",
	migration.NotAwaiting:       "no step awaits approval, or somebody has approved it already",
	migration.NotPaused:         "nobody has paused the migration; what spec.suspend stops, spec.suspend lets go on",
	migration.NotRolledBack:     "only a migration that has rolled back can be tried again",
	migration.NothingToSkip:     "no step soaks or awaits approval; an acknowledgement is never skipped",
	migration.DirectionBackward: "spec.direction is Backward",
	migration.BeingDeleted:      "the migration is being deleted",
	migration.UnknownType:       "nothing is known of this type of action",
}

// answer says in the status of an action what became of it, after it was made to go with its migration.
func (r *RingMigrationReconciler) answer(
	ctx context.Context, m *v1alpha1.RingMigration, a *v1alpha1.RingMigrationAction, refusal migration.Refusal, at time.Time,
) error {
	if metav1.GetControllerOf(a) == nil {
		if err := r.own(ctx, m, a); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	decidedAt := metav1.NewMicroTime(at)
	status := v1alpha1.RingMigrationActionStatus{Phase: v1alpha1.ActionAccepted, DecidedAt: &decidedAt, MigrationUID: m.UID}
	if refusal != "" {
		status.Phase, status.Reason, status.Message = v1alpha1.ActionRejected, v1alpha1.ConditionReason(refusal), refusals[refusal]
	}
	_, err := r.applyStatus(ctx, "RingMigrationAction", a, "", &status)
	return client.IgnoreNotFound(err)
}

// own makes a migration the owner of an action.
func (r *RingMigrationReconciler) own(ctx context.Context, m *v1alpha1.RingMigration, a *v1alpha1.RingMigrationAction) error {
	owner := metav1.NewControllerRef(m, v1alpha1.GroupVersion.WithKind("RingMigration"))
	owner.BlockOwnerDeletion = nil // The migration need not wait for its actions.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": a.UID, "ownerReferences": []metav1.OwnerReference{*owner}}})
	if err != nil {
		return fmt.Errorf("composing the owner of %s: %w", a.Name, err)
	}
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RingMigrationAction"))
	if err := r.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManagerMigration)); err != nil {
		return fmt.Errorf("owning %s: %w", a.Name, err)
	}
	return nil
}

// refuseStrangers answers the actions that were given to an earlier migration of the name.
func (r *RingMigrationReconciler) refuseStrangers(ctx context.Context, m *v1alpha1.RingMigration, list []*v1alpha1.RingMigrationAction, now time.Time) error {
	for _, a := range list {
		if err := r.answer(ctx, m, a, migration.StaleStep, now); err != nil {
			return err
		}
	}
	return nil
}
