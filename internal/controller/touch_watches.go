// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/observe"
	"github.com/ringwright/ringwright/internal/plan"
)

const (
	// touchDelay lets kubelets hear of the ConfigMaps first, which they watch: one that syncs a pod before that leaves the pod as it is
	// for another minute.
	touchDelay = 200 * time.Millisecond

	// touchConcurrency is how many pods are touched at a time: admission webhooks take seconds where they hang.
	touchConcurrency = 8
)

// SetupWithManager starts the controller with mgr, whose caches are set up as package observe says.
func (r *PodTouchReconciler) SetupWithManager(mgr ctrl.Manager) error {
	built, err := ctrl.NewControllerManagedBy(mgr).
		Named("touch").
		Watches(&v1alpha1.HashRing{}, handler.Funcs{
			CreateFunc: func(ctx context.Context, e event.CreateEvent, queue requestQueue) {
				r.enqueuePods(ctx, e.Object, queue)
			},
			UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue requestQueue) {
				if touchesAnew(e.ObjectOld, e.ObjectNew) {
					r.enqueuePods(ctx, e.ObjectNew, queue)
				}
			},
		}).
		WithOptions(controller.Options{MaxConcurrentReconciles: touchConcurrency, RateLimiter: newLimiter()}).
		Build(r)
	if err != nil {
		return err
	}
	r.pods = podWatch{start: func() error {
		return built.Watch(source.Kind[client.Object](mgr.GetCache(), &corev1.Pod{}, &handler.EnqueueRequestForObject{}, remounted()))
	}}
	return nil
}

// touchesAnew says that a HashRing was published again, or asks for something else.
func touchesAnew(before, after client.Object) bool {
	old, ok := before.(*v1alpha1.HashRing)
	ring, both := after.(*v1alpha1.HashRing)
	return ok && both && plan.TouchesPods(ring) &&
		(old.UID != ring.UID || old.Generation != ring.Generation || plan.TouchMark(old.Status) != plan.TouchMark(ring.Status))
}

// enqueuePods has the pods looked at that mount a ring and are to be touched for it.
func (r *PodTouchReconciler) enqueuePods(ctx context.Context, object client.Object, queue requestQueue) {
	ring, ok := object.(*v1alpha1.HashRing)
	if !ok || !plan.TouchesPods(ring) || !ring.DeletionTimestamp.IsZero() {
		return
	}
	pods, err := r.Reader.Mounting(ctx, ring)
	if err != nil {
		log.FromContext(ctx).Error(err, "Finding the pods that mount a ring", "ring", client.ObjectKeyFromObject(ring))
		return
	}
	for i := range pods {
		if observe.MountingOf(&pods[i], ring.Name).Due(ring.Status) {
			queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pods[i])}, touchDelay)
		}
	}
}

// remounted lets pods pass that could mount a ring, when something has changed that a touch depends on.
func remounted() predicate.Predicate {
	could := func(object client.Object) bool {
		pod, ok := object.(*corev1.Pod)
		return ok && observe.CouldMount(pod)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return could(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return could(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*corev1.Pod)
			after, both := e.ObjectNew.(*corev1.Pod)
			return ok && both && (could(before) || could(after)) && observe.MountChanged(before, after)
		},
	}
}

// observe returns what is known of the pods that are touched for a ring, and has them watched; nil where none are, or that is not known.
func (r *PodTouchReconciler) observe(ctx context.Context, ring *v1alpha1.HashRing) *plan.Refresh {
	if r == nil || !plan.TouchesPods(ring) {
		return nil
	}
	if _, err := metav1.LabelSelectorAsSelector(&ring.Spec.Consumers.Selector); err != nil {
		return &plan.Refresh{Invalid: err.Error()}
	}
	err := r.pods.ensure()
	seen, known := &plan.Refresh{}, []corev1.Pod(nil)
	if err == nil {
		known, err = r.Reader.Mounting(ctx, ring)
	}
	if err == nil {
		seen.Forbidden, err = r.rights.missing(ctx, r.Client, ring.Namespace, r.Clock.Now())
	}
	if err != nil { // It is tried again with the next look at the ring, and by the watches.
		log.FromContext(ctx).Error(err, "Finding out which pods are to be touched")
		return nil
	}
	for i := range known {
		pod := observe.MountingOf(&known[i], ring.Name)
		pod.Refusal, pod.RefusedMark = r.tried.refusal(client.ObjectKeyFromObject(&known[i]), known[i].UID, plan.TouchAnnotation(ring.Name))
		seen.Pods = append(seen.Pods, pod)
	}
	return seen
}
