// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
	"github.com/ringwright/ringwright/pkg/ring"
	"github.com/ringwright/ringwright/pkg/routing"
)

// Annotations that exist only in the cache, in place of the payload. An API server takes no key with a space, so nobody
// can put them there to hide an edit.
const (
	seenContent = "content digest"
	seenFile    = "file digest"
)

// CacheOptions says how ConfigMaps are cached: those of Ringwright only, without their snapshots.
func CacheOptions() cache.ByObject {
	return cache.ByObject{
		Label:     labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByRingwright}),
		Transform: StripPayload,
	}
}

// CatalogSelector selects the catalog and its copies, where no other ConfigMap of a namespace shall be cached.
func CatalogSelector() labels.Selector {
	catalog, err := labels.NewRequirement(v1alpha1.LabelCatalog, selection.Exists, nil)
	if err != nil {
		panic(err) // The requirement is a constant.
	}
	return labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByRingwright}).Add(*catalog)
}

// StripPayload replaces the payload of a ConfigMap by its digests, but for routing.json. The keys stay, so that foreign ones
// can be found; a snapshot of a megabyte becomes two lines.
func StripPayload(object any) (any, error) {
	cm, ok := object.(*corev1.ConfigMap)
	if !ok {
		return nil, fmt.Errorf("stripping the payload of a %T, want a ConfigMap", object)
	}
	if _, done := cm.Annotations[seenContent]; done {
		return cm, nil
	}
	annotations := maps.Clone(cm.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[seenContent] = plan.ContentDigest(cm.Data, cm.BinaryData)
	for _, slot := range []routing.Slot{routing.SlotA, routing.SlotB} {
		if snapshot, ok := cm.BinaryData[slot.FileName()]; ok { // All of it, where there are no further chunks.
			annotations[seenFile] = ring.Digest(snapshot)
		}
	}
	if file, ok := cm.Data[routing.FileName]; ok {
		annotations[seenFile] = ring.Digest([]byte(file))
	}
	cm.Annotations = annotations
	cm.ManagedFields = nil
	for key := range cm.Data {
		if key != routing.FileName { // It is small, and says where backends were dialled that are gone.
			cm.Data[key] = ""
		}
	}
	for key := range cm.BinaryData {
		cm.BinaryData[key] = nil
	}
	return cm, nil
}
