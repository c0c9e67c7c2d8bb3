// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// TestStrangersStopNothing: an action of an earlier migration that cannot be answered, as where a webhook is down, does not keep rings
// from being told what they have to be told.
func TestStrangersStopNothing(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	meta := func(name string, at time.Time) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "cdn", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(at)}
	}
	m := &v1alpha1.RingMigration{ObjectMeta: meta("move", now)}
	m.Finalizers = []string{v1alpha1.FinalizerMigration}
	m.Status.Phase, m.Status.Attempt, m.Status.ObservedAttempt = v1alpha1.MigrationRolledBack, 1, 1
	m.Status.Rings = []v1alpha1.MigrationRing{{Name: "edge", Candidate: "new"}}
	ring := &v1alpha1.HashRing{ObjectMeta: meta("edge", now)}
	old := &v1alpha1.RingMigrationAction{ObjectMeta: meta("old", now.Add(-time.Hour))}
	old.Spec.MigrationRef.Name, old.Spec.Type = "move", v1alpha1.ActionRetry

	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), metav1.AddMetaToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	down := errors.New("the webhook is down")
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(m, ring, old).WithStatusSubresource(m, ring, old).
		WithIndex(old, indexMigration, func(o client.Object) []string {
			return []string{o.(*v1alpha1.RingMigrationAction).Spec.MigrationRef.Name}
		}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return down
			},
		}).Build()
	r := NewRingMigrationReconciler(c, c, events.NewFakeRecorder(100), clocktesting.NewFakePassiveClock(now))
	r.Published = func(context.Context, *v1alpha1.HashRing) (plan.PublishedState, error) {
		return plan.PublishedState{}, nil
	}

	lock := map[string]any{"migration": map[string]any{"name": "move", "uid": "move", "phase": "Locked"}}
	if _, err := r.applyStatus(t.Context(), "HashRing", ring, "", &lock); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)}); !errors.Is(err, down) {
		t.Errorf("the error is %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(ring), ring); err != nil || ring.Status.Migration != nil {
		t.Errorf("the lock is %+v, %v", ring.Status.Migration, err)
	}
}
