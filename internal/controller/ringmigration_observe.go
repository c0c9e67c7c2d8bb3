// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/gate"
	"github.com/ringwright/ringwright/internal/migration"
	"github.com/ringwright/ringwright/internal/migrationapi"
	"github.com/ringwright/ringwright/pkg/routing"
)

// maxMigratedRings is how many HashRings a migration moves in step.
const maxMigratedRings = 16

// hurry is for how long after each look the consumers of a ring are asked more often.
const hurry = time.Minute

// migrationSeen is what a step is decided upon, and what its effects need.
type migrationSeen struct {
	migration.Observation
	figures map[string]migrationapi.Figures
	// rings are the HashRings by name, actions the actions by UID.
	rings   map[string]*v1alpha1.HashRing
	actions map[string]*v1alpha1.RingMigrationAction
	// strangers are actions that were given to an earlier RingMigration of the name.
	strangers []*v1alpha1.RingMigrationAction
}

// observe reads everything that a step is decided upon.
func (r *RingMigrationReconciler) observe(
	ctx context.Context, m *v1alpha1.RingMigration, s migration.State, now time.Time,
) (migrationSeen, error) {
	seen := migrationSeen{rings: map[string]*v1alpha1.HashRing{}, actions: map[string]*v1alpha1.RingMigrationAction{}}
	seen.Self, seen.Deleted = string(m.UID), !m.DeletionTimestamp.IsZero()
	spec, problem := migrationapi.Spec(m.Spec)
	spec.Interval = r.Interval
	problem = errors.Join(problem, gateProblems(m.Spec.Gates))
	rings, err := r.ringsOf(ctx, m, s)
	if err != nil {
		return seen, err
	}
	if len(rings) > maxMigratedRings {
		problem = errors.Join(problem, fmt.Errorf("spec.ringSelector selects %d HashRings, at most %d move in step", len(rings), maxMigratedRings))
		rings = rings[:maxMigratedRings]
	}
	if problem != nil {
		spec.Problem = strings.ReplaceAll(problem.Error(), "\n", "; ")
	}
	seen.Spec = spec
	for _, ring := range rings {
		if err := r.observeRing(ctx, &seen, ring, s, now); err != nil {
			return seen, err
		}
	}
	if n := datacenterCount(seen.Fleets); n > routing.MaxDatacenters {
		problem = fmt.Errorf("consumers are in %d datacenters, a split has at most %d", n, routing.MaxDatacenters)
		seen.Spec.Problem = strings.TrimPrefix(seen.Spec.Problem+"; "+problem.Error(), "; ")
	}
	if seen.Unasked { // What is known of some says nothing about who is where.
		seen.Fleets = nil
	}
	r.measure(&seen, m, s)
	return seen, r.observeActions(ctx, m, &seen)
}

// datacenterCount counts the datacenters with consumers.
func datacenterCount(fleets []migration.Fleet) int {
	names := map[string]bool{}
	for _, f := range fleets {
		names[f.Datacenter] = true
	}
	return len(names)
}

// gateProblems says what is wrong with gates; nil where nothing is.
func gateProblems(gates []v1alpha1.MigrationGate) error {
	var errs []error
	for _, g := range gates {
		errs = append(errs, gate.Validate(g)) // It names the gate and the field.
	}
	return errors.Join(errs...)
}

// ringsOf returns the HashRings of a migration in the order of their names: those that spec means, and from when it has taken their
// candidates exactly those. One that is gone is left out.
func (r *RingMigrationReconciler) ringsOf(ctx context.Context, m *v1alpha1.RingMigration, s migration.State) ([]*v1alpha1.HashRing, error) {
	names := []string{}
	for name := range s.Candidates {
		names = append(names, name)
	}
	if len(names) == 0 && m.Spec.RingRef != nil {
		names = append(names, m.Spec.RingRef.Name)
	}
	var rings []*v1alpha1.HashRing
	for _, name := range names {
		ring := &v1alpha1.HashRing{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: name}, ring)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading HashRing %s: %w", name, err)
		}
		if err == nil {
			rings = append(rings, ring)
		}
	}
	if len(s.Candidates) == 0 && m.Spec.RingSelector != nil {
		selected, err := r.selectRings(ctx, m)
		if err != nil {
			return nil, err
		}
		rings = selected
	}
	slices.SortFunc(rings, func(a, b *v1alpha1.HashRing) int { return strings.Compare(a.Name, b.Name) })
	return rings, nil
}

func (r *RingMigrationReconciler) selectRings(ctx context.Context, m *v1alpha1.RingMigration) ([]*v1alpha1.HashRing, error) {
	selector, err := metav1.LabelSelectorAsSelector(m.Spec.RingSelector)
	if err != nil {
		return nil, nil //nolint:nilerr // A selector that is none selects nothing, and hold NoCandidate says so.
	}
	list := &v1alpha1.HashRingList{}
	if err := r.Client.List(ctx, list, client.InNamespace(m.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing HashRings: %w", err)
	}
	var rings []*v1alpha1.HashRing
	for i := range list.Items {
		rings = append(rings, &list.Items[i])
	}
	return rings, nil
}

// observeRing adds what is seen of one HashRing and its consumers.
func (r *RingMigrationReconciler) observeRing(
	ctx context.Context, seen *migrationSeen, ring *v1alpha1.HashRing, s migration.State, now time.Time,
) error {
	published, err := r.Published(ctx, ring)
	if err != nil {
		return fmt.Errorf("reading what is published of HashRing %s: %w", ring.Name, err)
	}
	holder, err := r.holderOf(ctx, ring, seen.Self)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(ring)
	seen.rings[ring.Name] = ring
	seen.Rings = append(seen.Rings, migration.Ring{
		Name: ring.Name, Holder: holder, Candidate: candidateOf(ring, s), Emptied: published.Emptied, Drift: driftOf(ring),
	})
	if published.Complete {
		last := &seen.Rings[len(seen.Rings)-1]
		last.Published = migrationapi.Published(published.File)
		last.Behind = holder == seen.Self && isBehind(ring.Status.Migration, last.Published)
	}
	if ring.Spec.Consumers == nil {
		return nil
	}
	if r.Hurry != nil {
		r.Hurry(key, now.Add(hurry))
	}
	known := r.Consumers(key)
	if known == nil {
		seen.Unasked = true
		return nil
	}
	seen.Fleets = append(seen.Fleets, migrationapi.Fleets(ring.Name, published.File, s.Versions[ring.Name], known.List)...)
	return nil
}

// isBehind says that a lock asks for another split than the one that is published.
func isBehind(lock *v1alpha1.RingLock, published migration.Published) bool {
	if lock.Phase != v1alpha1.LockSplit {
		return false
	}
	told := migration.Split{}
	for _, share := range lock.Split {
		told[share.Datacenter] = int(share.BasisPoints)
	}
	return !told.Equal(published.Split)
}

// holderOf says who has the lock of a HashRing: self, or another one by name. The lock of one that is gone, such as one whose finalizer
// somebody took away or that was restored under another UID, has nobody: it would never be given back.
func (r *RingMigrationReconciler) holderOf(ctx context.Context, ring *v1alpha1.HashRing, self string) (string, error) {
	lock := ring.Status.Migration
	switch {
	case lock == nil:
		return "", nil
	case lock.UID == self:
		return self, nil
	}
	holder := &metav1.PartialObjectMetadata{}
	holder.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RingMigration"))
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: ring.Namespace, Name: lock.Name}, holder)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(holder.UID) != lock.UID:
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading who has the lock of HashRing %s: %w", ring.Name, err)
	}
	return fmt.Sprintf("RingMigration %s", lock.Name), nil
}

// candidateOf returns the digest of the ring that a HashRing could go to. Where nobody has looked at its spec yet, or it cannot be followed,
// what it went to is still what it goes to: only a spec that asks for the published ring takes a migration back.
func candidateOf(ring *v1alpha1.HashRing, s migration.State) string {
	switch c := ring.Status.Candidate; {
	case ring.Status.ObservedGeneration != ring.Generation, c == nil && refused(ring):
		return s.Candidates[ring.Name]
	case c == nil:
		return ""
	default:
		return c.Digest
	}
}

// refused says that a HashRing cannot be followed, for another cause than backends that are lost.
func refused(ring *v1alpha1.HashRing) bool {
	ready := meta.FindStatusCondition(ring.Status.Conditions, string(v1alpha1.ConditionReady))
	return ready != nil && ready.Status == metav1.ConditionFalse &&
		ready.Reason != string(v1alpha1.ReasonSuddenLoss) && ready.Reason != string(v1alpha1.ReasonBelowMinimum)
}

// driftOf returns the part of the weight that has left, in basis points.
func driftOf(ring *v1alpha1.HashRing) int {
	if c := ring.Status.Candidate; c != nil && c.WeightLost != "" {
		if n, err := migrationapi.BasisPoints(c.WeightLost); err == nil {
			return n
		}
	}
	return 0
}

// measure adds what the gates have said.
func (r *RingMigrationReconciler) measure(seen *migrationSeen, m *v1alpha1.RingMigration, s migration.State) {
	switch judged := s.At == migration.Preparing || s.InStep(); {
	case r.Gates == nil:
		return
	case !judged || seen.Deleted:
		r.Gates.Forget(m.UID)
		return
	}
	subject := gate.Subject{
		UID: m.UID, Namespace: m.Namespace, Name: m.Name, Token: s.Token(), Datacenters: s.Moving(seen.Observation), Effective: s.Effective,
		SelfTest: s.At == migration.Preparing,
	}
	for _, ring := range seen.Rings {
		subject.Rings = append(subject.Rings, ring.Name)
	}
	seen.figures = map[string]migrationapi.Figures{}
	seen.Measurements = r.Gates.Follow(subject, m.Spec.Gates)
	for _, reading := range r.Gates.Readings(m.UID) {
		seen.figures[reading.Gate] = migrationapi.Figures{
			Value: migrationapi.Number(reading.Value), Baseline: migrationapi.Number(reading.Baseline), Samples: migrationapi.Number(reading.Samples),
		}
	}
}

// observeActions adds the actions that nobody has decided on, in the order of their creation.
func (r *RingMigrationReconciler) observeActions(ctx context.Context, m *v1alpha1.RingMigration, seen *migrationSeen) error {
	list := &v1alpha1.RingMigrationActionList{}
	if err := r.Client.List(ctx, list, client.InNamespace(m.Namespace), client.MatchingFields{indexMigration: m.Name}); err != nil {
		return fmt.Errorf("listing actions: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.RingMigrationAction) int {
		return cmp.Or(rollbackFirst(a, b), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for i := range list.Items {
		a := &list.Items[i]
		if a.Status.Phase != "" || !a.DeletionTimestamp.IsZero() {
			continue
		}
		if ofAnother(a, m) {
			seen.strangers = append(seen.strangers, a)
			continue
		}
		action := migration.Action{
			ID: string(a.UID), Name: a.Name, Type: migration.ActionType(a.Spec.Type), Actor: a.Spec.Actor.Username, Reason: a.Spec.Reason,
		}
		if a.Spec.Step != nil {
			action.Token = a.Spec.Step.Token
		}
		seen.actions[action.ID] = a
		seen.Actions = append(seen.Actions, action)
	}
	return nil
}

// rollbackFirst puts rollbacks before everything else: a flood of other actions must not hold one up.
func rollbackFirst(a, b v1alpha1.RingMigrationAction) int {
	rank := func(a v1alpha1.RingMigrationAction) int {
		if a.Spec.Type == v1alpha1.ActionRollback {
			return 0
		}
		return 1
	}
	return cmp.Compare(rank(a), rank(b))
}

// ofAnother says that an action was given to an earlier RingMigration of the name. What else controls an action, such as the workflow
// that gave it, does not say that.
func ofAnother(a *v1alpha1.RingMigrationAction, m *v1alpha1.RingMigration) bool {
	if owner := metav1.GetControllerOf(a); owner != nil && owner.Kind == "RingMigration" {
		return owner.UID != m.UID
	}
	return a.CreationTimestamp.Time.Before(m.CreationTimestamp.Time)
}
