// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// Remains is what is published of a HashRing that is gone, and what a write of it needs.
type Remains struct {
	Parts   []plan.Remnant
	objects map[string]client.Object
}

// Remains reads what is left of the HashRing key. What somebody else has under our labels is not among it.
func (p *Publisher) Remains(ctx context.Context, key client.ObjectKey) (Remains, error) {
	left := Remains{objects: map[string]client.Object{}}
	ours := []client.ListOption{client.InNamespace(key.Namespace), client.MatchingLabels(ringLabels(key.Name))}
	configMaps := &corev1.ConfigMapList{}
	if err := p.Client.List(ctx, configMaps, ours...); err != nil {
		return Remains{}, fmt.Errorf("listing ConfigMaps: %w", err)
	}
	for i := range configMaps.Items {
		if cm := &configMaps.Items[i]; plan.IsConfigMapName(key.Name, cm.Name) {
			left.add(key.Name, cm)
		}
	}
	records := &appsv1.ControllerRevisionList{}
	if err := p.Client.List(ctx, records, ours...); err != nil {
		return Remains{}, fmt.Errorf("listing ControllerRevisions: %w", err)
	}
	for i := range records.Items {
		if record := &records.Items[i]; record.Name == plan.RecordName(key.Name, record.Revision) {
			left.add(key.Name, record)
		}
	}
	return left, nil
}

func (l *Remains) add(ringName string, object client.Object) {
	if owner := metav1.GetControllerOf(object); owner != nil && !isHashRing(owner, ringName) {
		return
	}
	l.objects[object.GetName()] = object
	l.Parts = append(l.Parts, plan.Remnant{Name: object.GetName(), Annotations: object.GetAnnotations()})
}

// Mark writes on a part of what is left until when it stays. A conflict means that left is out of date.
func (p *Publisher) Mark(ctx context.Context, left Remains, name string, until time.Time) error {
	_, err := p.patchMetadata(ctx, left.objects[name], map[string]any{
		"annotations": map[string]any{v1alpha1.AnnotationTombstoneUntil: plan.FormatUntil(until)},
	})
	if err != nil {
		return fmt.Errorf("marking %s: %w", name, err)
	}
	return nil
}

// Bury deletes parts of what is left, one after the other. A conflict means that left is out of date.
func (p *Publisher) Bury(ctx context.Context, left Remains, names []string) error {
	for _, name := range names {
		object := left.objects[name]
		uid, version := object.GetUID(), object.GetResourceVersion()
		err := p.Client.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s: %w", name, err)
		}
	}
	return nil
}
