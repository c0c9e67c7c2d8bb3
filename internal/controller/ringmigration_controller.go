// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/gate"
	"github.com/ringwright/ringwright/internal/migration"
	"github.com/ringwright/ringwright/internal/migrationapi"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/internal/telemetry"
)

// RingMigrationReconciler carries RingMigrations out.
type RingMigrationReconciler struct {
	Client client.Client
	// Live reads from the API server. Before a HashRing is told anything new it says whether what was seen is the latest.
	Live     client.Reader
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// Published says what is published for a HashRing.
	Published func(ctx context.Context, ring *v1alpha1.HashRing) (plan.PublishedState, error)
	// Consumers knows the consumers of a HashRing: nil until all have been asked.
	Consumers func(ring types.NamespacedName) *plan.Consumers
	// Hurry has the consumers of a HashRing asked more often until a time; nil where nobody has to.
	Hurry func(ring types.NamespacedName, until time.Time)
	// Gates measures; nil where there are no gates.
	Gates Gates
	// Interval is how often a migration is looked at.
	Interval time.Duration
	// Metrics counts; nil counts nothing.
	Metrics *telemetry.Migrations

	conflicts workqueue.TypedRateLimiter[reconcile.Request]
	written   lastWrites
	first     firstLooks
	// measured has a migration looked at; nil until the controller runs.
	measured func(migration types.NamespacedName)
}

// NewRingMigrationReconciler returns a reconciler that reads from c, a cache, and from live, the API server. The caller sets what it knows
// of rings and consumers.
func NewRingMigrationReconciler(c client.Client, live client.Reader, recorder events.EventRecorder, clock clock.PassiveClock) *RingMigrationReconciler {
	return &RingMigrationReconciler{
		Client: c, Live: live, Recorder: recorder, Clock: clock, Interval: migrationapi.DefaultInterval, conflicts: newLimiter(),
	}
}

// Gates measures what judges migrations.
type Gates interface {
	// Follow has the gates measured for a subject, and returns the newest results that are about it.
	Follow(subject gate.Subject, gates []v1alpha1.MigrationGate) []migration.Measurement
	// Readings returns the figures behind them.
	Readings(migration types.UID) []gate.Reading
	// Forget ends that.
	Forget(migration types.UID)
	// Gone ends that for one of which nothing but the name is known any more.
	Gone(migration types.NamespacedName)
}

// +kubebuilder:rbac:groups=ringwright.dev,resources=ringmigrations,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=ringwright.dev,resources=ringmigrations/status,verbs=patch
// +kubebuilder:rbac:groups=ringwright.dev,resources=ringmigrationactions,verbs=list;watch;patch
// +kubebuilder:rbac:groups=ringwright.dev,resources=ringmigrationactions/status,verbs=patch

// Reconcile takes a RingMigration one step on: observe, decide, store, act. Every decision is made in package migration; what it decides
// is stored before anything is done about it, so that a crash between the two repeats what is to be done and nothing else.
func (r *RingMigrationReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	m := &v1alpha1.RingMigration{}
	if err := r.Client.Get(ctx, req.NamespacedName, m); err != nil {
		if apierrors.IsNotFound(err) {
			r.Metrics.Forget(req.Namespace, req.Name)
			if r.Gates != nil { // Without a finalizer it was gone before it could say so.
				r.Gates.Gone(req.NamespacedName)
			}
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	switch finalized := controllerutil.ContainsFinalizer(m, v1alpha1.FinalizerMigration); {
	case !finalized && !m.DeletionTimestamp.IsZero():
		return ctrl.Result{}, nil
	case !finalized: // The change of the object brings it back.
		return ctrl.Result{}, r.patchFinalizers(ctx, m, append(m.Finalizers, v1alpha1.FinalizerMigration))
	}
	after, err := r.advance(ctx, m)
	if isConflict(err) || apierrors.IsNotFound(err) { // What was seen is out of date.
		delay := r.conflicts.When(req)
		log.FromContext(ctx).V(1).Info("The cache is behind", "conflict", err.Error(), "retryAfter", delay)
		return ctrl.Result{RequeueAfter: delay}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	r.conflicts.Forget(req)
	return ctrl.Result{RequeueAfter: after}, nil
}

// advance does one step, and returns when the next is due; 0 where nothing is.
func (r *RingMigrationReconciler) advance(ctx context.Context, m *v1alpha1.RingMigration) (time.Duration, error) {
	before, err := migrationapi.State(m.Status)
	if err != nil {
		return 0, reconcile.TerminalError(err)
	}
	now := r.Clock.Now().UTC().Truncate(time.Microsecond) // That is what a status keeps.
	seen, err := r.observe(ctx, m, before, now)
	if err != nil {
		return 0, err
	}
	state, effects := migration.Step(before, seen.Observation, now)
	status := migrationapi.Status(m, state, migrationapi.Seen{Observation: seen.Observation, Figures: seen.figures}, metav1.NewTime(now))
	if r.isEarly(m.UID, seen, before, state, effects, now) {
		return min(r.Interval, earlyRetry), nil
	}
	version, stored, err := r.store(ctx, m, status, len(effects) > 0, now)
	if err != nil {
		return 0, err
	}
	if stored {
		r.announce(m, before, state, status)
	}
	if len(effects) > 0 {
		err = r.act(ctx, m, version, seen, effects)
	}
	// Whether strangers can be told is nothing to what rings are told.
	if err := firstConflict([]error{err, r.refuseStrangers(ctx, m, seen.strangers, now)}); err != nil {
		return 0, err
	}
	if state.At == migration.Succeeded || state.At == migration.RolledBack {
		r.forget(m.UID)
		if len(effects) == 0 {
			return 0, nil
		}
	}
	return r.Interval, nil
}

// forget ends the measuring for a migration.
func (r *RingMigrationReconciler) forget(uid types.UID) {
	if r.Gates != nil {
		r.Gates.Forget(uid)
	}
}

// store writes the status where it has changed, and returns the version of the object that it is stored in. What only counts on, such
// as a soak, is written once in an interval unless something is to be done.
func (r *RingMigrationReconciler) store(
	ctx context.Context, m *v1alpha1.RingMigration, status v1alpha1.RingMigrationStatus, acts bool, now time.Time,
) (version string, stored bool, err error) {
	switch {
	case equality.Semantic.DeepEqual(status, m.Status):
		return m.ResourceVersion, false, nil
	case !acts && onlyCounts(status, m.Status) && !r.written.due(m.UID, now, r.Interval):
		return m.ResourceVersion, false, nil
	}
	version, err = r.applyStatus(ctx, "RingMigration", m, m.ResourceVersion, &status)
	if err == nil {
		r.written.note(m.UID, now)
	}
	return version, err == nil, err
}

// patchFinalizers writes the finalizers of a migration as it was seen.
func (r *RingMigrationReconciler) patchFinalizers(ctx context.Context, m *v1alpha1.RingMigration, finalizers []string) error {
	patched := m.DeepCopy()
	patched.Finalizers = finalizers
	err := r.Client.Patch(ctx, patched, client.MergeFromWithOptions(m, client.MergeFromWithOptimisticLock{}), client.FieldOwner(v1alpha1.FieldManagerMigration))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the finalizers: %w", err)
	}
	return nil
}

// errOutdated is a conflict that no write has found: what was decided upon is not the latest.
var errOutdated = apierrors.NewConflict(v1alpha1.Resource("ringmigrations"), "", errors.New("it has changed since it was seen"))
