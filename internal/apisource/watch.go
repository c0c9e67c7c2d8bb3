// SPDX-License-Identifier: Apache-2.0

package apisource

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// watches are those that run, by the names of their ConfigMaps. Only one goroutine uses them.
type watches struct {
	source *Source
	cancel map[string]context.CancelFunc
	ended  sync.WaitGroup
}

// want starts the watches of ConfigMaps that have none, and stops those of all others. Names holds their files.
func (w *watches) want(ctx context.Context, names map[string]string) {
	for configMap, cancel := range w.cancel {
		if _, wanted := names[configMap]; !wanted {
			cancel()
			delete(w.cancel, configMap)
			w.source.forget(configMap)
		}
	}
	for configMap, file := range names {
		if w.cancel[configMap] == nil {
			w.start(ctx, configMap, file)
		}
	}
}

// restart makes the watches of ConfigMaps read them again.
func (w *watches) restart(ctx context.Context, configMaps []string) {
	names := w.source.names()
	for _, configMap := range configMaps {
		w.cancel[configMap]()
		w.start(ctx, configMap, names[configMap])
	}
}

func (w *watches) start(ctx context.Context, configMap, file string) {
	ctx, w.cancel[configMap] = context.WithCancel(ctx)
	f := &follower{source: w.source, ctx: ctx, configMap: configMap, file: file}
	logger := klog.FromContext(ctx)
	reflector := cache.NewReflectorWithOptions(f.listWatch(), &corev1.ConfigMap{}, f, cache.ReflectorOptions{Name: configMap, Logger: &logger})
	w.ended.Go(func() { reflector.RunWithContext(ctx) })
}

func (w *watches) stop() {
	for _, cancel := range w.cancel {
		cancel()
	}
	w.ended.Wait()
}

// follower takes what client-go's reflector reads of one ConfigMap. The reflector lists, watches, and begins again with
// back-off and jitter when it must.
type follower struct {
	source *Source
	// ctx has ended where the watch was stopped, and what it still reads is of no interest.
	ctx             context.Context
	configMap, file string
}

// listWatch returns the requests of the reflector, each with the field selector that lets a Role name the ConfigMap.
func (f *follower) listWatch() *cache.ListWatch {
	request := func(options metav1.ListOptions) *metav1.ListOptions {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", f.configMap).String()
		return &options
	}
	client, namespace := f.source.client, f.source.namespace
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &corev1.ConfigMapList{}
			err := client.Get().Namespace(namespace).Resource("configmaps").
				VersionedParams(request(options), metav1.ParameterCodec).Do(ctx).Into(list)
			f.note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			events, err := client.Get().Namespace(namespace).Resource("configmaps").
				VersionedParams(request(options), metav1.ParameterCodec).Watch(ctx)
			f.note(err)
			if err != nil {
				return nil, err
			}
			return watch.Filter(events, f.see), nil
		},
	}
}

// see notes every event, bookmarks included, and passes it on.
func (f *follower) see(event watch.Event) (watch.Event, bool) {
	if event.Type == watch.Error {
		f.note(apierrors.FromObject(event.Object))
	} else {
		f.note(nil)
		f.source.noteEvent(f.ctx, f.configMap)
	}
	return event, true
}

// note takes the result of a request.
func (f *follower) note(err error) {
	f.source.noteResult(f.ctx, f.configMap, err)
}

func (f *follower) take(cm *corev1.ConfigMap) {
	f.source.set(f.ctx, f.configMap, f.source.newFile(f.configMap, f.file, cm))
}

// Add takes the ConfigMap.
func (f *follower) Add(object any) error {
	f.take(object.(*corev1.ConfigMap)) // The reflector refuses every other type.
	return nil
}

// Update takes the ConfigMap.
func (f *follower) Update(object any) error { return f.Add(object) }

// Delete notes that there is none.
func (f *follower) Delete(any) error {
	f.take(nil)
	return nil
}

// Replace takes the ConfigMap, or notes that there is none.
func (f *follower) Replace(objects []any, _ string) error {
	if len(objects) == 0 {
		return f.Delete(nil)
	}
	return f.Add(objects[0])
}

// Resync does nothing: there is nobody who would want to be told again.
func (f *follower) Resync() error { return nil }
