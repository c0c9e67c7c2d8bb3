// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/weighthistory"
)

// keptRecords is how many records of weights a policy has, and recordedChange the change of a weight that makes another one.
const (
	keptRecords    = 20
	recordedChange = 0.10
)

// recorded is the last record of a policy.
type recorded struct {
	revision int64
	at       time.Time
	served   Served
	// step is the step of the rollout that it is of.
	step string
}

// recordReason says why what is served is worth a record, "" where it is not.
func (h *holding) recordReason(now time.Time) string {
	step := h.rolloutStep()
	switch {
	case len(h.served) == 0:
		return ""
	case h.record.revision == 0:
		return "first weights"
	case h.record.served == nil: // Of the last holder, whose weights are not kept here.
		h.record.served, h.record.step = h.served, step
		return ""
	case h.record.step != step:
		return "rollout at " + h.rollout.Percent
	case now.Sub(h.record.at) < recordInterval:
		return ""
	}
	for id, units := range h.served {
		before, ok := h.record.served[id]
		if !ok || math.Abs(float64(units)/float64(before)-1) > recordedChange {
			return "weights changed"
		}
	}
	return ""
}

func (h *holding) rolloutStep() string {
	return h.rollout.Digest + " " + strconv.Itoa(int(h.rollout.Step)) + " " + h.rollout.Aborted
}

// keepRecord writes a record of what is served where it is worth one, and deletes the oldest.
func (r *Reconciler) keepRecord(ctx context.Context, policy *v1alpha1.WeightPolicy, h *holding) error {
	now := r.Clock.Now()
	reason := h.recordReason(now)
	if reason == "" || h.pin.weight != nil {
		return nil
	}
	record := weighthistory.Record{Version: h.version, At: now, Holder: r.Self, Reason: reason, Weights: map[string]int32{}}
	if o := h.overview(); !math.IsNaN(o.maxOverAverage) {
		record.MaxOverAverage = ratio(o.maxOverAverage)
	}
	for id, units := range h.served {
		record.Weights[id] = int32(units)
	}
	data, err := weighthistory.Encode(record)
	if err != nil {
		return fmt.Errorf("recording the weights: %w", err)
	}
	revision := h.record.revision + 1
	object := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: policy.Namespace, Name: weighthistory.Name(policy.Name, revision),
			Labels: map[string]string{v1alpha1.LabelWeightPolicy: policy.Name},
		},
		Revision: revision, Data: data,
	}
	if err := r.Client.Create(ctx, object, client.FieldOwner(v1alpha1.FieldManagerBalancer)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("recording the weights as ControllerRevision %s: %w", object.Name, err)
	}
	h.record = recorded{revision: revision, at: now, served: h.served, step: h.rolloutStep()}
	return r.dropRecords(ctx, h.policy, revision)
}

// records lists the records of a policy without their data, the newest last.
func (r *Reconciler) records(ctx context.Context, policy types.NamespacedName) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ControllerRevisionList"))
	err := r.Live.List(ctx, list, client.InNamespace(policy.Namespace), client.MatchingLabels{v1alpha1.LabelWeightPolicy: policy.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the records of WeightPolicy %s: %w", policy, err)
	}
	slices.SortFunc(list.Items, func(a, b metav1.PartialObjectMetadata) int {
		return int(revisionOf(policy.Name, a.Name) - revisionOf(policy.Name, b.Name))
	})
	return list.Items, nil
}

// revisionOf is the number of a record by its name, 0 where the name is of another form.
func revisionOf(policy, name string) int64 {
	for digits := len(name); digits > 0; digits-- {
		if c := name[digits-1]; c < '0' || c > '9' {
			number, err := strconv.ParseInt(name[digits:], 10, 64)
			if err == nil && weighthistory.Name(policy, number) == name {
				return number
			}
			return 0
		}
	}
	return 0
}

// lastRecord finds where the numbers of records go on.
func (r *Reconciler) lastRecord(ctx context.Context, policy types.NamespacedName) (recorded, error) {
	list, err := r.records(ctx, policy)
	if err != nil || len(list) == 0 {
		return recorded{}, err
	}
	newest := list[len(list)-1]
	return recorded{revision: revisionOf(policy.Name, newest.Name), at: newest.CreationTimestamp.Time}, nil
}

// dropRecords deletes all but the newest records. While a policy is pinned there is no new one, so that its record stays.
func (r *Reconciler) dropRecords(ctx context.Context, policy types.NamespacedName, newest int64) error {
	list, err := r.records(ctx, policy)
	if err != nil {
		return err
	}
	var errs []error
	for i := range list {
		if revisionOf(policy.Name, list[i].Name) > newest-keptRecords {
			break
		}
		errs = append(errs, client.IgnoreNotFound(r.Client.Delete(ctx, &list[i])))
	}
	return errors.Join(errs...)
}

// readPin returns the weights that a policy is pinned to by its annotation; the zero pin where it is not. The error is a *targetError where
// there is no such record.
func (r *Reconciler) readPin(ctx context.Context, policy *v1alpha1.WeightPolicy, before pin) (pin, error) {
	text, ok := policy.Annotations[v1alpha1.AnnotationPinnedWeights]
	if !ok {
		return pin{}, nil
	}
	revision, err := strconv.ParseInt(text, 10, 64)
	if err != nil || revision < 1 {
		return pin{}, refused(v1alpha1.ReasonInvalidSpec, "annotation %s: %q is not the number of a revision", v1alpha1.AnnotationPinnedWeights, text)
	}
	if before.revision == revision {
		return before, nil
	}
	object := &appsv1.ControllerRevision{}
	key := client.ObjectKey{Namespace: policy.Namespace, Name: weighthistory.Name(policy.Name, revision)}
	if err := r.Live.Get(ctx, key, object); apierrors.IsNotFound(err) {
		return pin{}, refused(v1alpha1.ReasonRevisionNotFound, "annotation %s: revision %d is not kept", v1alpha1.AnnotationPinnedWeights, revision)
	} else if err != nil {
		return pin{}, fmt.Errorf("reading the record of revision %d: %w", revision, err)
	}
	record, err := weighthistory.Decode(object.Data)
	if err != nil {
		return pin{}, refused(v1alpha1.ReasonRevisionNotFound, "revision %d cannot be read: %v", revision, err)
	}
	return pin{revision: revision, weight: record.Weight}, nil
}
