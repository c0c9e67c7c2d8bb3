// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
	"github.com/ringwright/ringwright/internal/migrationapi"
)

// act carries effects out. What HashRings are told follows from a state; that has to be the latest one, or an operator that no longer
// leads, or whose cache is behind, would tell them again what has been taken back since. Each HashRing is written as it was seen before
// that was checked, so that whoever tells it something else in between wins.
func (r *RingMigrationReconciler) act(
	ctx context.Context, m *v1alpha1.RingMigration, version string, seen migrationSeen, effects []migration.Effect,
) error {
	if err := r.check(ctx, m, version); err != nil {
		return err
	}
	var errs []error
	for _, e := range effects {
		if err := r.carryOut(ctx, m, seen, e); err != nil {
			errs = append(errs, err)
		}
	}
	return firstConflict(errs)
}

// check fails where a version of a migration is not the latest.
func (r *RingMigrationReconciler) check(ctx context.Context, m *v1alpha1.RingMigration, version string) error {
	latest := &metav1.PartialObjectMetadata{}
	latest.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RingMigration"))
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(m), latest); err != nil {
		return fmt.Errorf("reading the latest version: %w", err)
	}
	if latest.ResourceVersion != version || latest.UID != m.UID {
		return errOutdated
	}
	return nil
}

// firstConflict returns a conflict where there is one, for that is tried again at once, and otherwise all errors.
func firstConflict(errs []error) error {
	if i := slices.IndexFunc(errs, isConflict); i >= 0 {
		return errs[i]
	}
	return errors.Join(errs...)
}

func (r *RingMigrationReconciler) carryOut(ctx context.Context, m *v1alpha1.RingMigration, seen migrationSeen, e migration.Effect) error {
	switch e.Kind {
	case migration.Answer:
		if a := seen.actions[e.Answered.ID]; a != nil {
			return r.answer(ctx, m, a, e.Answered.Refusal, e.Answered.At)
		}
		return nil
	case migration.Release:
		log.FromContext(ctx).Info("Letting the RingMigration go")
		r.forget(m.UID)
		r.first.forget(m.UID)
		return r.patchFinalizers(ctx, m, slices.DeleteFunc(slices.Clone(m.Finalizers), func(f string) bool { return f == v1alpha1.FinalizerMigration }))
	default:
		return r.tell(ctx, m, seen, e)
	}
}

// tell writes what a HashRing is to publish into its status.
func (r *RingMigrationReconciler) tell(ctx context.Context, m *v1alpha1.RingMigration, seen migrationSeen, e migration.Effect) error {
	ring := seen.rings[e.Ring]
	if e.Kind == migration.Lock && seen.published(e.Ring).Stable == "" {
		return nil // It is being restored. What a lock leaves as it is has to be seen first.
	}
	lock := lockFor(m, ring, seen.published(e.Ring), e)
	if equality.Semantic.DeepEqual(lock, ring.Status.Migration) {
		return nil // It has been told, and is about to do it.
	}
	status := &struct {
		Migration *v1alpha1.RingLock `json:"migration,omitempty"`
	}{lock}
	if _, err := r.applyStatus(ctx, "HashRing", ring, ring.ResourceVersion, status); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Told a HashRing", "HashRing", ring.Name, "effect", e.Kind, "split", e.Split)
	return nil
}

// published returns what is published for a HashRing.
func (s migrationSeen) published(ring string) migration.Published {
	if i := slices.IndexFunc(s.Rings, func(r migration.Ring) bool { return r.Name == ring }); i >= 0 {
		return s.Rings[i].Published
	}
	return migration.Published{}
}

// lockFor returns the lock that an effect asks for; nil for none. Taking it changes nothing that is published: a split that somebody has
// left there stays until it is known what to do about it, and where somebody has wiped the status of a HashRing in the middle of a
// migration, its keys do not all go back for that.
func lockFor(m *v1alpha1.RingMigration, ring *v1alpha1.HashRing, published migration.Published, e migration.Effect) *v1alpha1.RingLock {
	lock := &v1alpha1.RingLock{Name: m.Name, UID: string(m.UID), Phase: v1alpha1.LockLocked}
	switch e.Kind {
	case migration.Unlock:
		return nil
	case migration.Lock:
		switch {
		case published.Candidate != "":
			lock.Phase, lock.Candidate, lock.Seed, lock.Split = v1alpha1.LockSplit, published.Candidate, int64(published.Seed), migrationapi.Shares(published.Split)
		case promoted(m, ring.Name, published):
			lock.Phase, lock.Candidate = v1alpha1.LockPromoted, published.Stable
		}
	case migration.Publish:
		lock.Phase, lock.Candidate, lock.Seed, lock.Split = v1alpha1.LockSplit, e.Candidate, int64(e.Seed), migrationapi.Shares(e.Split)
	case migration.Promote:
		lock.Phase, lock.Candidate = v1alpha1.LockPromoted, e.Candidate
	case migration.Empty:
		lock.Phase, lock.Candidate = v1alpha1.LockRetired, ring.Status.Migration.Candidate
	}
	return lock
}

// promoted says that the stable ring is the one that a migration went to, and that it retires the old one.
func promoted(m *v1alpha1.RingMigration, ring string, published migration.Published) bool {
	return m.Status.Phase == v1alpha1.MigrationRetiring && slices.ContainsFunc(m.Status.Rings, func(r v1alpha1.MigrationRing) bool {
		return r.Name == ring && r.Candidate == published.Stable
	})
}
