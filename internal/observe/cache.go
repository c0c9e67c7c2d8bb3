// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// The indexes of the caches.
const (
	// IndexService finds EndpointSlices, and the HashRings that name it, by the name of a Service.
	IndexService = "service"
	// IndexPod finds EndpointSlices by the name of a pod that they have.
	IndexPod = "pod"
)

// CacheOptions says how what backends come from is cached: what decides a backend, and nothing else.
func CacheOptions() map[client.Object]cache.ByObject {
	ofService, err := labels.NewRequirement(discoveryv1.LabelServiceName, selection.Exists, nil)
	if err != nil {
		panic(err) // The requirement is a constant.
	}
	return map[client.Object]cache.ByObject{
		&discoveryv1.EndpointSlice{}: {Label: labels.NewSelector().Add(*ofService), Transform: slimSlice},
		&corev1.Service{}:            {Transform: slimService},
		// The same for pods as metadata and as a whole: a kind can have one entry only.
		PodMetadata():            {Transform: slimPods},
		&v1alpha1.WeightSet{}:    {Transform: slimWeightSet},
		&v1alpha1.WeightPolicy{}: {Transform: slimWeightPolicy},
	}
}

// PodMetadata returns an object to read the metadata of a pod into.
func PodMetadata() *metav1.PartialObjectMetadata {
	pod := &metav1.PartialObjectMetadata{}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return pod
}

// AddIndexes adds the indexes that [Reader] and the watches need.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range []struct {
		object client.Object
		field  string
		values client.IndexerFunc
	}{
		{&v1alpha1.HashRing{}, IndexService, servicesOf},
		{&discoveryv1.EndpointSlice{}, IndexService, func(o client.Object) []string { return []string{o.GetLabels()[discoveryv1.LabelServiceName]} }},
		{&discoveryv1.EndpointSlice{}, IndexPod, podsOf},
	} {
		if err := indexer.IndexField(ctx, index.object, index.field, index.values); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", index.object, index.field, err)
		}
	}
	return nil
}

func servicesOf(o client.Object) []string {
	ring, ok := o.(*v1alpha1.HashRing)
	if !ok {
		return nil
	}
	var names []string
	for _, s := range ring.Spec.BackendsFrom {
		names = append(names, s.Service.Name)
	}
	return names
}

func podsOf(o client.Object) []string {
	slice, ok := o.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil
	}
	var names []string
	for _, e := range slice.Endpoints {
		if name := podName(e); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func slimMeta(o metav1.Object) {
	o.SetManagedFields(nil)
	o.SetOwnerReferences(nil)
	o.SetFinalizers(nil)
}

func slimSlice(object any) (any, error) {
	if slice, ok := object.(*discoveryv1.EndpointSlice); ok {
		slimMeta(slice)
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			e.NodeName, e.Hints, e.DeprecatedTopology = nil, nil, nil
		}
	}
	return object, nil
}

func slimService(object any) (any, error) {
	if service, ok := object.(*corev1.Service); ok {
		slimMeta(service)
		service.Annotations, service.Labels = nil, nil
		service.Status = corev1.ServiceStatus{}
		service.Spec = corev1.ServiceSpec{Type: service.Spec.Type, Ports: service.Spec.Ports, IPFamilies: service.Spec.IPFamilies}
	}
	return object, nil
}

// maxAnnotationBytes is how much of an annotation of a pod is kept: a weight is much shorter.
const maxAnnotationBytes = 256

func slimPods(object any) (any, error) {
	switch pod := object.(type) {
	case *corev1.Pod:
		slimPod(pod)
	case *metav1.PartialObjectMetadata:
		slimMetadata(pod)
	}
	return object, nil
}

func slimMetadata(pod *metav1.PartialObjectMetadata) {
	slimMeta(pod)
	for key, value := range pod.Annotations {
		if len(value) > maxAnnotationBytes {
			// Cut, so that it is still there, and no weight even where its first digits are one.
			pod.Annotations[key] = strings.ToValidUTF8(value[:maxAnnotationBytes], "") + "…"
		}
	}
}
