// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/observe"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/internal/telemetry"
)

// DefaultTouchRate is how many pods are touched a second unless somebody says otherwise.
const DefaultTouchRate = 20

// PodTouchReconciler changes an annotation of the pods that mount a ring whose HashRing says TouchPods, once for each publication, so that
// their kubelets sync them at once. It works through pods and not rings: one that was published again meanwhile is touched for the newest
// publication only, and one that refuses keeps nobody waiting. What is to be done follows from HashRings and pods alone, so that a fresh
// process goes on where the last one ended.
type PodTouchReconciler struct {
	Client client.Client
	Reader observe.Reader
	Clock  clock.PassiveClock
	// Metrics counts touches; nil counts nothing.
	Metrics *telemetry.Metrics

	// limiter is shared by all pods of all rings.
	limiter *rate.Limiter
	// changed has a HashRing looked at again, whose status says how many pods were touched.
	changed func(ring types.NamespacedName)
	started time.Time
	pods    podWatch
	rights  touchRights
	tried   touchRecords
}

// NewPodTouchReconciler returns a reconciler that touches at most perSecond pods a second, which is at least 1.
func NewPodTouchReconciler(c client.Client, clock clock.PassiveClock, perSecond int) *PodTouchReconciler {
	return &PodTouchReconciler{
		Client: c, Reader: observe.Reader{Client: c}, Clock: clock, limiter: rate.NewLimiter(rate.Limit(perSecond), perSecond), started: clock.Now(),
	}
}

// There are no RBAC markers here: what the operator needs to touch pods, config/components/touch-pods grants.

// Reconcile touches one pod for all rings that it mounts and was not touched for yet.
func (r *PodTouchReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	t, err := r.due(ctx, req.NamespacedName)
	for _, ring := range t.others {
		r.changed(ring) // The pod may have been touched, or come or gone, which its status counts.
	}
	if err != nil || len(t.marks) == 0 {
		return ctrl.Result{}, err
	}
	forbidden, err := r.rights.missing(ctx, r.Client, req.Namespace, r.Clock.Now())
	if err != nil {
		return ctrl.Result{}, err
	}
	if forbidden != "" {
		return ctrl.Result{RequeueAfter: rightRecheck}, nil
	}
	began := r.Clock.Now()
	if err := r.limiter.Wait(ctx); err != nil {
		return ctrl.Result{}, fmt.Errorf("waiting for the turn of a pod: %w", err)
	}
	waited := r.Clock.Now().Sub(began)
	if t, err = r.due(ctx, req.NamespacedName); err != nil || len(t.marks) == 0 { // It may have been published again, or the pod be gone.
		return ctrl.Result{}, err
	}
	result, err := r.touch(ctx, t)
	r.Metrics.TouchTried(result, waited)
	for _, ring := range t.rings {
		if result == telemetry.TouchDone && ring.Status.Active != nil && ring.Status.Active.PublishedAt.After(r.started) {
			r.Metrics.TouchedAfter(r.Clock.Now().Sub(ring.Status.Active.PublishedAt.Time))
		}
		r.changed(client.ObjectKeyFromObject(ring))
	}
	if result == telemetry.TouchDone || result == telemetry.TouchGone {
		return ctrl.Result{}, nil
	}
	log.FromContext(ctx).V(1).Info("A pod could not be touched", "result", result, "error", err.Error())
	if result == telemetry.TouchForbidden {
		return ctrl.Result{RequeueAfter: rightRecheck}, nil
	}
	return ctrl.Result{RequeueAfter: r.tried.next(req.NamespacedName, r.Clock.Now())}, nil
}

// touchable is a pod with what it is to be touched for.
type touchable struct {
	key types.NamespacedName
	uid types.UID
	// others are all HashRings of the namespace that have pods touched, but for rings.
	others []types.NamespacedName
	// rings are those that it is to be touched for, marks the annotations that it shall have for them.
	rings []*v1alpha1.HashRing
	marks map[string]string
}

// due finds out what a pod is to be touched for; without marks there is nothing to do.
func (r *PodTouchReconciler) due(ctx context.Context, key types.NamespacedName) (touchable, error) {
	t := touchable{key: key, marks: map[string]string{}}
	pod := &corev1.Pod{} // Where it is gone, it mounts nothing.
	if err := r.Client.Get(ctx, key, pod); client.IgnoreNotFound(err) != nil {
		return t, fmt.Errorf("reading the pod: %w", err)
	}
	t.uid = pod.UID
	list := &v1alpha1.HashRingList{}
	if err := r.Client.List(ctx, list, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil { // They are only read.
		return t, fmt.Errorf("listing HashRings: %w", err)
	}
	for i := range list.Items {
		switch ring := &list.Items[i]; {
		case !plan.TouchesPods(ring):
		case observe.Mounts(pod, ring) && observe.MountingOf(pod, ring.Name).Due(ring.Status):
			t.rings = append(t.rings, ring)
			t.marks[plan.TouchAnnotation(ring.Name)] = plan.TouchMark(ring.Status)
		default:
			t.others = append(t.others, client.ObjectKeyFromObject(ring))
		}
	}
	switch {
	case len(t.marks) == 0:
		r.tried.forget(key)
	case r.tried.over(t, r.Clock.Now()): // It was touched, and the cache is behind; or it has refused, often enough or a moment ago.
		t.marks = nil
	}
	return t, nil
}

// touch changes the annotations of a pod, and takes note of what became of it. The error says why that failed.
func (r *PodTouchReconciler) touch(ctx context.Context, t touchable) (telemetry.TouchResult, error) {
	// The UID makes it a conflict where another pod has taken the name.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": t.uid, "annotations": maps.Clone(t.marks)}})
	if err != nil {
		return telemetry.TouchFailed, err
	}
	object := observe.PodMetadata() // So that no more of the pod comes back.
	object.ObjectMeta = metav1.ObjectMeta{Namespace: t.key.Namespace, Name: t.key.Name}
	err = r.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager))
	switch {
	case err == nil:
		r.tried.note(t, touchRecord{}, r.Clock.Now())
		return telemetry.TouchDone, nil
	case apierrors.IsNotFound(err):
		return telemetry.TouchGone, err
	case apierrors.IsForbidden(err):
		r.rights.forget(t.key.Namespace)
		if missing, asked := r.rights.missing(ctx, r.Client, t.key.Namespace, r.Clock.Now()); asked == nil && missing != "" {
			return telemetry.TouchForbidden, err
		}
		fallthrough // An admission policy has forbidden it.
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		r.tried.note(t, touchRecord{refusal: err.Error(), final: true}, r.Clock.Now())
		return telemetry.TouchRefused, err
	default:
		r.tried.note(t, touchRecord{refusal: err.Error()}, r.Clock.Now())
		return telemetry.TouchFailed, err
	}
}
