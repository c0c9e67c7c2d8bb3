// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/catalog"
	"github.com/ringwright/ringwright/internal/plan"
)

// CatalogPublisher reads and writes the catalog and its copies.
type CatalogPublisher struct {
	Publisher
	// Namespace is where they are.
	Namespace string
}

// CatalogSeen is what the cluster holds of them.
type CatalogSeen struct {
	Copies []catalog.Copy
	// current is nil where there is no catalog; copies are in the order of their names.
	current *corev1.ConfigMap
	copies  []*corev1.ConfigMap
}

// Observe reads the catalog and its copies, without their payload.
func (p *CatalogPublisher) Observe(ctx context.Context) (CatalogSeen, error) {
	var seen CatalogSeen
	var err error
	if seen.current, err = p.get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: catalog.Name}, true); err != nil {
		return seen, fmt.Errorf("reading ConfigMap %s: %w", catalog.Name, err)
	}
	list := &corev1.ConfigMapList{}
	if err := p.Client.List(ctx, list, client.InNamespace(p.Namespace), client.MatchingLabels(catalogLabels(v1alpha1.CatalogCopy))); err != nil {
		return seen, fmt.Errorf("listing the copies of the catalog: %w", err)
	}
	for i := range list.Items {
		cm := &list.Items[i]
		if _, ok := catalog.CopyTime(cm.Name); !ok || !ptr.Deref(cm.Immutable, false) {
			continue // Somebody else's: a copy cannot be changed.
		}
		if _, err := StripPayload(cm); err != nil { // What comes from the cache is stripped already.
			return seen, err
		}
		seen.copies = append(seen.copies, cm)
	}
	slices.SortFunc(seen.copies, func(a, b *corev1.ConfigMap) int { return cmp.Compare(a.Name, b.Name) })
	for _, cm := range seen.copies {
		seen.Copies = append(seen.Copies, catalog.Copy{Name: cm.Name, Digest: cm.Annotations[seenContent]})
	}
	return seen, nil
}

// Write brings the catalog into the cluster where it is not there as it shall be, and says whether it has written. The error is a
// [TakenError] where somebody else has its name; a conflict means that seen is out of date.
func (p *CatalogPublisher) Write(ctx context.Context, seen CatalogSeen, payload catalog.Payload) (bool, error) {
	want := plan.ConfigMap{Name: catalog.Name, Data: payload.Data, BinaryData: payload.BinaryData, Annotations: map[string]string{
		v1alpha1.AnnotationContentDigest: plan.ContentDigest(payload.Data, payload.BinaryData),
	}}
	if old := seen.current; old != nil {
		if old.Labels[v1alpha1.LabelCatalog] == "" && old.Annotations[v1alpha1.AnnotationContentDigest] == "" {
			return false, &TakenError{Kind: "ConfigMap", Namespace: p.Namespace, Name: catalog.Name}
		}
		if contains(old.Labels, catalogLabels(v1alpha1.CatalogCurrent)) && contains(old.Annotations, want.Annotations) &&
			old.Annotations[seenContent] == want.Annotations[v1alpha1.AnnotationContentDigest] {
			return false, nil
		}
	}
	return true, p.write(ctx, place{namespace: p.Namespace, labels: catalogLabels(v1alpha1.CatalogCurrent)}, seen.current, want)
}

// Copy takes a copy under a name that is free.
func (p *CatalogPublisher) Copy(ctx context.Context, name string, payload catalog.Payload) error {
	err := p.Client.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: name, Labels: catalogLabels(v1alpha1.CatalogCopy),
			Annotations: map[string]string{v1alpha1.AnnotationContentDigest: plan.ContentDigest(payload.Data, payload.BinaryData)},
		},
		Data: payload.Data, BinaryData: payload.BinaryData, Immutable: ptr.To(true),
	}, client.FieldOwner(v1alpha1.FieldManager))
	if err != nil {
		return fmt.Errorf("creating ConfigMap %s: %w", name, err)
	}
	return nil
}

// Drop deletes copies.
func (p *CatalogPublisher) Drop(ctx context.Context, seen CatalogSeen, names []string) error {
	for _, cm := range seen.copies {
		if !slices.Contains(names, cm.Name) {
			continue
		}
		if err := p.Client.Delete(ctx, cm, client.Preconditions{UID: ptr.To(cm.UID)}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting ConfigMap %s: %w", cm.Name, err)
		}
	}
	return nil
}

func catalogLabels(kind string) map[string]string {
	return map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByRingwright, v1alpha1.LabelCatalog: kind}
}
