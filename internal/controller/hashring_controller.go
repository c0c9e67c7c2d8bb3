// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/observe"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/internal/publish"
	"github.com/ringwright/ringwright/internal/ringcache"
	"github.com/ringwright/ringwright/internal/telemetry"
)

// ErrDeposed says that another replica of the operator leads: this one must write nothing any more.
var ErrDeposed = errors.New("another replica leads")

// nameRecheck is how soon a name that was taken is looked at again: nothing tells when a ConfigMap without our label
// goes away.
const nameRecheck = 30 * time.Second

// HashRingReconciler publishes the rings that HashRings ask for.
type HashRingReconciler struct {
	Client    client.Client
	Publisher *publish.Publisher
	Rings     *ringcache.Cache
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock
	// LeaderEpoch returns the epoch of this operator among those that led, for one HashRing and given that of what is published
	// for it; nil where nobody elects a leader. Errors: [ErrDeposed], or why it cannot be known.
	LeaderEpoch func(ctx context.Context, ring types.UID, last int64) (int64, error)
	// Metrics counts what is published; nil counts nothing.
	Metrics *telemetry.Metrics
	// ConsumerLoopback has consumers asked at addresses of this host, as tests have them.
	ConsumerLoopback bool

	// Reader reads what backends come from.
	Reader observe.Reader

	// Touch touches pods that mount rings; nil where nobody does.
	Touch *PodTouchReconciler

	conflicts workqueue.TypedRateLimiter[reconcile.Request]
	pods      podWatch
	consumers acknowledgement
	reports   reportPacer
	published publications
}

// NewHashRingReconciler returns a reconciler that reads from c, whose ConfigMaps are cached as [publish.CacheOptions] says,
// and from live, the API server. What it builds, rings keeps.
func NewHashRingReconciler(
	c client.Client, live client.Reader, rings *ringcache.Cache, recorder events.EventRecorder, clock clock.PassiveClock,
) *HashRingReconciler {
	return &HashRingReconciler{
		Client: c, Publisher: &publish.Publisher{Client: c, Live: live}, Rings: rings, Recorder: recorder, Clock: clock,
		Reader: observe.Reader{Client: c}, conflicts: newLimiter(),
	}
}

// +kubebuilder:rbac:groups=ringwright.dev,resources=hashrings,verbs=list;watch
// +kubebuilder:rbac:groups=ringwright.dev,resources=hashrings/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services;pods,verbs=list;watch
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list;watch
// +kubebuilder:rbac:groups=ringwright.dev,resources=weightsets,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile drives one HashRing towards its spec: observe, plan, apply, report.
// Every decision is made in package plan; this function only moves data.
func (r *HashRingReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ring := &v1alpha1.HashRing{}
	if err := r.Client.Get(ctx, req.NamespacedName, ring); err != nil {
		if apierrors.IsNotFound(err) {
			r.consumers.forget(req.NamespacedName)
			return r.bury(ctx, req)
		}
		return ctrl.Result{}, err
	}
	if !ring.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // What is published stays as it is until the HashRing is gone.
	}
	out := r.advance(ctx, ring)
	out.decision.Refresh = r.Touch.observe(ctx, ring) // Nothing of it holds up what is published.
	if apierrors.HasStatusCause(out.failure, corev1.NamespaceTerminatingCause) {
		return ctrl.Result{}, nil // Nothing can be made there any more, and the HashRing is about to go as well.
	}
	if errors.Is(out.failure, ErrDeposed) { // The status is the other one's to write.
		return ctrl.Result{}, out.failure
	}
	r.count(ring, out)
	r.consumers.publish(ring, out)
	if isConflict(out.failure) { // What was seen is out of date, and a status made of it would be wrong.
		return r.retry(ctx, req, out.failure)
	}
	err := r.report(ctx, ring, &out)
	if isConflict(err) && out.failure == nil {
		return r.retry(ctx, req, err)
	}
	r.conflicts.Forget(req)
	return ctrl.Result{RequeueAfter: out.requeueAfter()}, errors.Join(out.failure, err)
}

// retry tries again what failed because the cache was behind: soon, and later each time while it stays behind. That is
// part of the work, so it is no error.
func (r *HashRingReconciler) retry(ctx context.Context, req ctrl.Request, conflict error) (ctrl.Result, error) {
	delay := r.conflicts.When(req)
	log.FromContext(ctx).V(1).Info("The cache is behind", "conflict", conflict.Error(), "retryAfter", delay)
	return ctrl.Result{RequeueAfter: delay}, nil
}

// outcome is what became of one step.
type outcome struct {
	decision plan.Decision
	// failure is why the cluster could not be read or written.
	failure error
	now     time.Time
	// unreported is how long the status still waits to be written; 0 where it is up to date.
	unreported time.Duration
}

// requeueAfter returns when the HashRing is to be looked at again even if nothing happens; 0 for never.
func (o outcome) requeueAfter() time.Duration {
	after := []time.Duration{o.decision.Wait, o.unreported}
	if o.decision.Refusal != nil && o.decision.Refusal.Reason == v1alpha1.ReasonNameConflict {
		after = append(after, nameRecheck)
	}
	if l := o.decision.Load; l != nil && !l.Until.IsZero() {
		after = append(after, max(l.Until.Sub(o.now), time.Millisecond))
	}
	if m := o.decision.Members; m != nil && !m.Next.IsZero() {
		after = append(after, max(m.Next.Sub(o.now), time.Millisecond))
	}
	if f := o.decision.Refresh; f != nil && f.Forbidden != "" {
		after = append(after, rightRecheck)
	}
	soonest := time.Duration(0)
	for _, d := range after {
		if d > 0 && (soonest == 0 || d < soonest) {
			soonest = d
		}
	}
	return soonest
}

// advance reads the cluster, decides, and writes.
func (r *HashRingReconciler) advance(ctx context.Context, ring *v1alpha1.HashRing) outcome {
	out := outcome{now: r.Clock.Now()}
	seen, err := r.observe(ctx, ring)
	if err != nil {
		out.failure = err
		return out
	}
	out.decision = plan.Decide(ring, r.Rings, seen.Observation, out.now)
	out.failure = r.write(ctx, ring, seen, out)
	var taken *publish.TakenError
	if errors.As(out.failure, &taken) {
		out.decision, out.failure = plan.Decision{
			Refusal: plan.Taken(taken.Kind, taken.Namespace, taken.Name), LastGoodIntact: out.decision.LastGoodIntact,
		}, nil
	}
	if p := out.decision.Publication; out.failure == nil && len(out.decision.Writes) > 0 && out.decision.Wait == 0 {
		message := "Published"
		if out.decision.Restores {
			message = "Restored"
		}
		log.FromContext(ctx).Info(message, "revision", p.Revision, "digest", out.decision.Desired.Ring.Digest(),
			"routingGeneration", p.Generation, "configMaps", names(out.decision.Writes))
	}
	return out
}

// observe reads what is published and what backends come from.
func (r *HashRingReconciler) observe(ctx context.Context, ring *v1alpha1.HashRing) (publish.Seen, error) {
	if slices.ContainsFunc(ring.Spec.BackendsFrom, plan.ReadsPods) {
		if err := r.pods.ensure(); err != nil {
			return publish.Seen{}, err
		}
	}
	seen, err := r.Publisher.Observe(ctx, ring)
	if err == nil {
		seen.Sources, err = r.Reader.Sources(ctx, ring)
		seen.PublishedAt = r.published.at(ring.UID)
	}
	if err == nil {
		seen.WeightSets, err = r.Reader.WeightSets(ctx, ring)
	}
	if err == nil && r.LeaderEpoch != nil {
		seen.LeaderEpoch, err = r.LeaderEpoch(ctx, ring.UID, plan.LastLeaderEpoch(ring, seen.Observation))
	}
	if err == nil {
		seen.Consumers, err = r.consumers.observe(ring)
	}
	return seen, err
}

// write carries a decision out: whose everything is, then what the ring can be built from again, then the ring, and when that is
// published, the records of rings that nobody will go back to are deleted.
func (r *HashRingReconciler) write(ctx context.Context, ring *v1alpha1.HashRing, seen publish.Seen, out outcome) error {
	d := out.decision
	if err := r.Publisher.Adopt(ctx, ring, seen); err != nil {
		return err
	}
	for _, record := range d.Records {
		if err := r.Publisher.WriteRecord(ctx, ring, seen, record); err != nil {
			return err
		}
	}
	if d.LiveLock {
		if err := r.Publisher.CheckLock(ctx, ring); err != nil {
			return err
		}
	}
	if err := r.Publisher.Write(ctx, ring, seen, d.Writes); err != nil {
		return err
	}
	if len(d.Writes) > 0 && d.Wait == 0 && !d.Restores {
		r.published.note(ring.UID, out.now)
	}
	if len(d.Deletes) > 0 {
		log.FromContext(ctx).Info("Deleting chunks that spec no longer asks for", "configMaps", d.Deletes)
		if err := r.Publisher.Delete(ctx, ring, seen, d.Deletes); err != nil {
			return err
		}
	}
	return r.Publisher.DeleteRecords(ctx, ring, d.Outdated)
}

func names(list []plan.ConfigMap) []string {
	names := make([]string, len(list))
	for i, cm := range list {
		names[i] = cm.Name
	}
	return names
}

// report writes the status, on failure too, and then the events that follow from it. It skips the write when nothing
// has changed.
func (r *HashRingReconciler) report(ctx context.Context, ring *v1alpha1.HashRing, out *outcome) error {
	status := plan.Status(ring, out.decision, out.failure, out.now)
	if equality.Semantic.DeepEqual(status, ring.Status) {
		r.announceRestored(ring, *out)
		r.announceStep(ring, *out)
		return nil
	}
	if out.unreported = r.reports.wait(ring, status, out.now); out.unreported > 0 {
		return nil
	}
	configuration, err := statusConfiguration(ring, status)
	if err != nil {
		return fmt.Errorf("composing the status: %w", err)
	}
	if err := r.Client.Status().Apply(ctx, configuration, client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	r.reports.wrote(ring, status, out.now)
	r.announceRestored(ring, *out)
	r.announceStep(ring, *out)
	r.announceTransitions(ring, status)
	return nil
}

// isConflict says that a write failed because somebody else wrote first, or that a name was taken since it was seen free.
func isConflict(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}
