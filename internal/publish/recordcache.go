// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// recordData is what a ControllerRevision holds.
type recordData struct {
	// Digest is that of the published snapshot.
	Digest string `json:"digest"`
	// Recipe is the ring without its points, as a snapshot file.
	Recipe []byte `json:"recipe"`
	// Declared are the identities of the backends that spec itself had, where there were sources beside them.
	Declared []string `json:"declared,omitempty"`
}

// RecordCacheOptions says how ControllerRevisions are cached: those of Ringwright only, without their recipes.
func RecordCacheOptions() cache.ByObject {
	return cache.ByObject{
		Label:     labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByRingwright}),
		Transform: StripRecord,
	}
}

// StripRecord replaces the data of a ControllerRevision by digests, as [StripPayload] does for a ConfigMap. What is no
// record of ours has none.
func StripRecord(object any) (any, error) {
	record, ok := object.(*appsv1.ControllerRevision)
	if !ok {
		return nil, fmt.Errorf("stripping the data of a %T, want a ControllerRevision", object)
	}
	if _, done := record.Annotations[seenContent]; done {
		return record, nil
	}
	annotations := maps.Clone(record.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	data, err := parseRecord(record)
	annotations[seenContent] = ""
	if err == nil {
		annotations[seenContent], annotations[seenFile] = plan.RecordDigest(data.Recipe, data.Declared), data.Digest
	}
	record.Annotations = annotations
	record.ManagedFields = nil
	record.Data = runtime.RawExtension{}
	return record, nil
}

func parseRecord(record *appsv1.ControllerRevision) (recordData, error) {
	data := recordData{}
	if err := json.Unmarshal(record.Data.Raw, &data); err != nil {
		return data, fmt.Errorf("reading the data of ControllerRevision %s: %w", record.Name, err)
	}
	return data, nil
}
