// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
)

// applyStatus writes what the migration controller says in the status of an object, and returns the version that the object then has: an
// apply that leaves a field out gives it up. With a version it fails if the object has changed since.
func (r *RingMigrationReconciler) applyStatus(ctx context.Context, kind string, object client.Object, version string, status any) (string, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return "", fmt.Errorf("composing the status of %s %s: %w", kind, object.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	u.SetNamespace(object.GetNamespace())
	u.SetName(object.GetName())
	u.SetResourceVersion(version)
	configuration := client.ApplyConfigurationFromUnstructured(u)
	if err := r.Client.Status().Apply(ctx, configuration, client.FieldOwner(v1alpha1.FieldManagerMigration), client.ForceOwnership); err != nil {
		return "", fmt.Errorf("writing the status of %s %s: %w", kind, object.GetName(), err)
	}
	return u.GetResourceVersion(), nil
}

// onlyCounts says that two statuses differ in nothing but what counts on by itself.
func onlyCounts(a, b v1alpha1.RingMigrationStatus) bool {
	return equality.Semantic.DeepEqual(withoutCounts(a), withoutCounts(b))
}

// withoutCounts returns a status without what counts on by itself: how much of a soak is credited, and when gates were measured. It
// shares what is the same.
func withoutCounts(s v1alpha1.RingMigrationStatus) v1alpha1.RingMigrationStatus {
	if s.Soak != nil {
		s.Soak = &v1alpha1.SoakAccount{Required: s.Soak.Required}
	}
	if s.Summary != nil {
		summary := *s.Summary
		summary.Soak = ""
		s.Summary = &summary
	}
	gates := make([]v1alpha1.GateStatus, len(s.Gates))
	for i, g := range s.Gates {
		gates[i] = v1alpha1.GateStatus{Name: g.Name, Result: g.Result, Answered: g.Answered, Failures: g.Failures}
	}
	s.Gates = gates
	return s
}

// After a start it takes a moment until the consumers have been asked, and for that long nothing is said about not knowing them.
const (
	earlyFor   = 30 * time.Second
	earlyRetry = 500 * time.Millisecond
)

// isEarly says that nothing is different but that the consumers have not been asked since the operator was started a moment ago.
func (r *RingMigrationReconciler) isEarly(
	uid types.UID, seen migrationSeen, before, after migration.State, effects []migration.Effect, now time.Time,
) bool {
	return seen.Unasked && len(effects) == 0 && before.At != "" && before.Last == after.Last && before.At == after.At && now.Sub(r.first.of(uid, now)) < earlyFor
}

// firstLooks remembers when this process looked at each migration for the first time. The zero value has looked at none. It is safe for
// concurrent use.
type firstLooks struct{ looks sync.Map }

// of returns when that was; now for the first time.
func (f *firstLooks) of(uid types.UID, now time.Time) time.Time {
	at, _ := f.looks.LoadOrStore(uid, now)
	first, ok := at.(time.Time)
	if !ok {
		return now
	}
	return first
}

// forget ends that for a migration that is gone.
func (f *firstLooks) forget(uid types.UID) { f.looks.Delete(uid) }

// lastWrites remembers when statuses were written. No decision depends on it. The zero value has written nothing. It is safe for
// concurrent use.
type lastWrites struct {
	mu sync.Mutex
	at map[types.UID]time.Time
}

// due says whether a status was not written for an interval.
func (w *lastWrites) due(uid types.UID, now time.Time, interval time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	age := now.Sub(w.at[uid])
	return age < 0 || age >= interval
}

func (w *lastWrites) note(uid types.UID, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at == nil {
		w.at = map[types.UID]time.Time{}
	}
	const forgotten = time.Hour
	maps.DeleteFunc(w.at, func(_ types.UID, at time.Time) bool { return now.Sub(at) > forgotten })
	w.at[uid] = now
}
