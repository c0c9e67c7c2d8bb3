// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// watch sees the routing ConfigMaps change, without their payload. It is safe for concurrent use.
type watch struct {
	stop context.CancelFunc

	mu sync.Mutex
	// generations are those of the routing files, by the name of the ring.
	generations map[string]int64
	// waiting are the rings whose next generation somebody waits for.
	waiting map[string]chan<- time.Time
	// grown is signalled when a ring has its first generation.
	grown chan struct{}
}

// startWatch starts to watch what the operator publishes.
func (l *load) startWatch(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	w := &watch{stop: stop, generations: map[string]int64{}, waiting: map[string]chan<- time.Time{}, grown: make(chan struct{}, 1)}
	l.watch = w
	seen, err := cache.New(l.cluster.config, cache.Options{
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByRingwright}),
		DefaultTransform:     cache.TransformStripManagedFields(),
	})
	if err != nil {
		return err
	}
	routing := &metav1.PartialObjectMetadata{}
	routing.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	go func() { _ = seen.Start(ctx) }() // It ends with ctx.
	informer, err := seen.GetInformer(ctx, routing)
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    w.see,
		UpdateFunc: func(_, object any) { w.see(object) },
	})
	return err
}

// see takes note of a ConfigMap.
func (w *watch) see(object any) {
	now := time.Now()
	cm, ok := object.(metav1.Object)
	if !ok {
		return
	}
	name := cm.GetLabels()[v1alpha1.LabelRing]
	generation, err := strconv.ParseInt(cm.GetAnnotations()[v1alpha1.AnnotationGeneration], 10, 64)
	if err != nil || cm.GetName() != plan.RoutingName(name) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if generation <= w.generations[name] {
		return
	}
	w.generations[name] = generation
	if waiter, ok := w.waiting[name]; ok {
		delete(w.waiting, name)
		waiter <- now
	}
	select {
	case w.grown <- struct{}{}:
	default:
	}
}

// next returns a channel that receives when the next generation of a ring's routing file is seen, or false where the present
// one is not the given one.
func (w *watch) next(name string, generation int64) (<-chan time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.generations[name] != generation {
		return nil, false
	}
	seen := make(chan time.Time, 1)
	w.waiting[name] = seen
	return seen, true
}

// generation returns the newest generation of a ring's routing file, 0 where there is none yet.
func (w *watch) generation(name string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.generations[name]
}

// all waits until so many rings have a routing file.
func (w *watch) all(ctx context.Context, rings int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		w.mu.Lock()
		count := len(w.generations)
		w.mu.Unlock()
		if count >= rings {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.grown:
		}
	}
}
