// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/plan"
)

// history adds the records of r that carry our labels, in ascending order.
func (p *Publisher) history(ctx context.Context, r *v1alpha1.HashRing, seen *Seen) error {
	list := &appsv1.ControllerRevisionList{}
	if err := p.Client.List(ctx, list, client.InNamespace(r.Namespace), client.MatchingLabels(objectLabels(r))); err != nil {
		return fmt.Errorf("listing ControllerRevisions: %w", err)
	}
	for i := range list.Items {
		record := &list.Items[i]
		if record.Name != plan.RecordName(r.Name, record.Revision) {
			continue // Somebody else's, whatever its labels.
		}
		if _, err := StripRecord(record); err != nil { // What comes from the cache is stripped already.
			return err
		}
		seen.records = append(seen.records, record)
	}
	slices.SortFunc(seen.records, func(a, b *appsv1.ControllerRevision) int { return cmp.Compare(a.Revision, b.Revision) })
	for _, record := range seen.records {
		seen.History = append(seen.History, describeRecord(r, record))
	}
	return nil
}

// describeRecord describes a record that has been stripped.
func describeRecord(r *v1alpha1.HashRing, record *appsv1.ControllerRevision) plan.Recorded {
	recorded := plan.Recorded{Revision: record.Revision, Object: plan.Object{
		Name: record.Name, ContentDigest: record.Annotations[seenContent], FileDigest: record.Annotations[seenFile],
	}, UID: record.UID}
	recorded.Holder, recorded.MetadataIntact = holder(r, record)
	return recorded
}

// TakenError says that somebody else has an object of a name that is needed.
type TakenError struct {
	Kind, Namespace, Name string
}

// Error names the object.
func (e *TakenError) Error() string {
	return fmt.Sprintf("%s %s/%s is somebody else's", e.Kind, e.Namespace, e.Name)
}

// WriteRecord brings a record into the cluster. The error is a [TakenError] where somebody else has its name; a conflict or
// an object that exists already mean that what was seen is out of date.
func (p *Publisher) WriteRecord(ctx context.Context, r *v1alpha1.HashRing, seen Seen, want plan.Record) error {
	if err := p.writeRecord(ctx, r, seen, want); err != nil {
		return fmt.Errorf("writing ControllerRevision %s: %w", want.Name, err)
	}
	return nil
}

func (p *Publisher) writeRecord(ctx context.Context, r *v1alpha1.HashRing, seen Seen, want plan.Record) error {
	exists := p.createRecord(ctx, r, want)
	if !apierrors.IsAlreadyExists(exists) {
		return exists
	}
	old := &appsv1.ControllerRevision{}
	if err := p.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: want.Name}, old); err != nil {
		return err
	}
	if _, err := StripRecord(old); err != nil {
		return err
	}
	decidedOn := slices.ContainsFunc(seen.History, func(o plan.Recorded) bool { return o.UID == old.UID })
	switch now := describeRecord(r, old); {
	case now.Holder != plan.Ours:
		return &TakenError{Kind: "ControllerRevision", Namespace: r.Namespace, Name: want.Name}
	case now.MetadataIntact && !decidedOn && now.Revision == want.Revision:
		return exists // The cache is behind, and so is the decision.
	case !now.Holds(want):
		// Its data cannot be changed. That it has others means that somebody made it by hand: what is published has a number
		// that no other ring was ever recorded under.
		if err := p.deleteRecord(ctx, old); err != nil {
			return err
		}
		return p.createRecord(ctx, r, want)
	default:
		return p.adoptOne(ctx, r, old) // It has lost its labels, and was out of sight.
	}
}

// createRecord makes a record with all that it holds, and fails where there is one.
func (p *Publisher) createRecord(ctx context.Context, r *v1alpha1.HashRing, want plan.Record) error {
	data, err := json.Marshal(recordData{Digest: want.Digest, Recipe: want.Recipe, Declared: want.Declared})
	if err != nil {
		return err
	}
	return p.Client.Create(ctx, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: want.Name, Namespace: r.Namespace, Labels: objectLabels(r), Annotations: objectAnnotations(r, want.Name),
		},
		Revision: want.Revision,
		Data:     runtime.RawExtension{Raw: data},
	}, client.FieldOwner(v1alpha1.FieldManager))
}

// DeleteRecords deletes records that are out of date. One that has been replaced since it was seen stays.
func (p *Publisher) DeleteRecords(ctx context.Context, r *v1alpha1.HashRing, records []plan.Recorded) error {
	var errs []error
	for _, record := range records {
		object := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: record.Name, UID: record.UID,
		}}
		if err := client.IgnoreNotFound(p.deleteRecord(ctx, object)); err != nil {
			errs = append(errs, fmt.Errorf("deleting ControllerRevision %s: %w", record.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (p *Publisher) deleteRecord(ctx context.Context, record *appsv1.ControllerRevision) error {
	return p.Client.Delete(ctx, record, client.Preconditions{UID: &record.UID})
}
