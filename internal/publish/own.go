// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// What is published says by labels and annotations whose it is, and has no owner reference: that would have the garbage
// collector delete it with its HashRing, and in a foreground deletion before it.

func objectLabels(r *v1alpha1.HashRing) map[string]string { return ringLabels(r.Name) }

func ringLabels(ringName string) map[string]string {
	return map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByRingwright, v1alpha1.LabelRing: ringName}
}

// objectAnnotations returns what an object of r says of r. What it says of its content is part of [plan.ConfigMap].
func objectAnnotations(r *v1alpha1.HashRing, name string) map[string]string {
	annotations := map[string]string{v1alpha1.AnnotationRingUID: string(r.UID)}
	if name == plan.RoutingName(r.Name) {
		annotations[v1alpha1.AnnotationTombstone] = plan.Tombstone(r.Spec).String()
	}
	return annotations
}

// place is where an object is written, and what it says of whose it is.
type place struct {
	namespace           string
	labels, annotations map[string]string
}

func placeOf(r *v1alpha1.HashRing, name string) place {
	return place{namespace: r.Namespace, labels: objectLabels(r), annotations: objectAnnotations(r, name)}
}

// holder says whose an object is, and whether its metadata is as it shall be.
func holder(r *v1alpha1.HashRing, object metav1.Object) (plan.Holder, bool) {
	owner, annotations := metav1.GetControllerOf(object), object.GetAnnotations()
	uid, told := annotations[v1alpha1.AnnotationRingUID]
	known := told && uid == string(r.UID) || owner != nil && owner.UID == r.UID
	labelled := contains(object.GetLabels(), objectLabels(r))
	// What is left of a HashRing that was deleted and made again is taken over, but not what another controller owns.
	adoptable := labelled && (owner == nil || isHashRing(owner, r.Name))
	if !known && !adoptable {
		return plan.Foreign, false
	}
	_, buried := annotations[v1alpha1.AnnotationTombstoneUntil]
	return plan.Ours, labelled && !buried && len(object.GetOwnerReferences()) == 0 && contains(annotations, objectAnnotations(r, object.GetName()))
}

// contains says that all of part is in m.
func contains(m, part map[string]string) bool {
	for key, value := range part {
		if got, ok := m[key]; !ok || got != value {
			return false
		}
	}
	return true
}

func isHashRing(owner *metav1.OwnerReference, name string) bool {
	group, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && group.Group == v1alpha1.GroupName && owner.Kind == "HashRing" && owner.Name == name
}

// Adopt makes what is left of an earlier HashRing of the name of r, or of an earlier version of the operator, that of r, and
// gives what is that of r the metadata back that it shall have. It does so whether r can be published or not: what was published
// before stays, and must not go to its grave while r is there. A conflict means that seen is out of date.
func (p *Publisher) Adopt(ctx context.Context, r *v1alpha1.HashRing, seen Seen) error {
	for _, name := range slices.Sorted(maps.Keys(seen.objects)) {
		if err := p.adoptOne(ctx, r, seen.objects[name]); err != nil {
			return fmt.Errorf("adopting ConfigMap %s: %w", name, err)
		}
	}
	for _, record := range seen.records {
		if err := p.adoptOne(ctx, r, record); err != nil {
			return fmt.Errorf("adopting ControllerRevision %s: %w", record.Name, err)
		}
	}
	return nil
}

func (p *Publisher) adoptOne(ctx context.Context, r *v1alpha1.HashRing, old client.Object) error {
	if who, intact := holder(r, old); who != plan.Ours || intact {
		return nil
	}
	annotations := map[string]any{v1alpha1.AnnotationTombstoneUntil: nil}
	for key, value := range objectAnnotations(r, old.GetName()) {
		annotations[key] = value
	}
	version, err := p.patchMetadata(ctx, old, map[string]any{
		"labels": objectLabels(r), "annotations": annotations, "ownerReferences": nil,
	})
	if err == nil {
		old.SetResourceVersion(version)
	}
	return err
}

// patchMetadata changes metadata of an object as it was seen, and returns the version that it then has. An apply could not take
// an owner reference or an annotation away: they go only with all their owners, and the create that claimed the object is one.
func (p *Publisher) patchMetadata(ctx context.Context, old client.Object, metadata map[string]any) (string, error) {
	kind, err := apiutil.GVKForObject(old, p.Client.Scheme())
	if err != nil {
		return "", err
	}
	// Both have to be as they were seen, otherwise it is a conflict.
	metadata["uid"], metadata["resourceVersion"] = old.GetUID(), old.GetResourceVersion()
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return "", err
	}
	// Of the object only metadata comes back, and not a megabyte of payload.
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: old.GetNamespace(), Name: old.GetName()}}
	object.SetGroupVersionKind(kind)
	err = p.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager))
	return object.ResourceVersion, err
}
