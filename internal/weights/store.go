// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// errLost means that another replica has taken the policy over.
var errLost = errors.New("another replica has taken the policy over")

// storedSets is what is known of the WeightSets in the cluster.
type storedSets struct {
	versions map[string]string // The resource versions, by name.
	at       time.Time
	file     string // The ConfigMap that they name.
}

// listSets reads the WeightSets of a policy from the API server.
func listSets(ctx context.Context, live client.Reader, policy types.NamespacedName) ([]v1alpha1.WeightSet, error) {
	list := &v1alpha1.WeightSetList{}
	err := live.List(ctx, list, client.InNamespace(policy.Namespace), client.MatchingLabels{v1alpha1.LabelWeightPolicy: policy.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the WeightSets of WeightPolicy %s: %w", policy, err)
	}
	return ownSets(policy.Name, list.Items), nil
}

// acquire takes a policy over: it reads what the last holder left and raises the epoch, which of several replicas one can. The epoch is
// above all that are known: WeightSets may have been deleted, and the other replicas have heard of higher ones.
func (r *Reconciler) acquire(ctx context.Context, policy *v1alpha1.WeightPolicy, endpoints []Endpoint) (*holding, error) {
	key := client.ObjectKeyFromObject(policy)
	sets, err := listSets(ctx, r.Live, key)
	if err != nil {
		return nil, err
	}
	now, byZone := r.Clock.Now(), len(policy.Spec.Locality) > 0
	kept := restore(sets, byZone, now)
	h := &holding{
		policy: key, uid: policy.UID, served: kept.served, states: kept.states, byZone: byZone, version: kept.version,
		changedAt: later(kept.storedAt, policy.CreationTimestamp.Time), stored: storedSets{versions: map[string]string{}},
	}
	if policy.Status.Rollout != nil {
		h.rollout = policy.Status.Rollout.DeepCopy()
	}
	if policy.Status.Shard != nil {
		h.epoch = policy.Status.Shard.Epoch
	}
	var first *v1alpha1.WeightSet
	for i := range sets {
		h.stored.versions[sets[i].Name] = sets[i].ResourceVersion
		h.epoch = max(h.epoch, sets[i].Epoch)
		if setIndex(&sets[i]) == 0 {
			first = &sets[i]
			h.fileName, h.stored.file = first.Annotations[annotationConfigMap], first.Annotations[annotationConfigMap]
		}
	}
	if heard, ok := r.Board.Get(key.String()); ok {
		if heard.Version > h.version {
			h.hear(heard, byZone, sets, endpoints, now)
		}
		h.epoch = max(h.epoch, heard.Epoch)
	}
	h.epoch++
	if err := r.claim(ctx, policy, h, first); err != nil {
		return nil, err
	}
	if h.record, err = r.lastRecord(ctx, key); err != nil {
		return nil, err
	}
	return h, nil
}

// hear takes over weights that the last holder has announced and not stored. Where they were the controller's own they are again. Endpoints that
// came since have what they were announced with.
func (h *holding) hear(heard Announcement, byZone bool, sets []v1alpha1.WeightSet, endpoints []Endpoint, now time.Time) {
	known := make(map[string]bool, len(heard.Weights))
	for i := range sets {
		for j := range sets[i].Endpoints {
			e := &sets[i].Endpoints[j]
			known[e.ID] = true
			if units, ok := heard.Weights[e.ID]; ok {
				e.Weight = int32(units) // Computed is absent where it equals weight, so that it follows.
			}
		}
	}
	var came v1alpha1.WeightSet
	for _, e := range endpoints {
		if units, ok := heard.Weights[e.ID]; ok && !known[e.ID] {
			came.Endpoints = append(came.Endpoints, v1alpha1.WeightedEndpoint{
				ID: e.ID, Name: e.Pod, Address: e.Address, Port: e.Port, Zone: e.Zone, Weight: int32(units),
			})
		}
	}
	kept := restore(append(slices.Clip(sets), came), byZone, now)
	h.served, h.states, h.version = heard.Weights, kept.states, heard.Version
	complete(sets, came.Endpoints)
}

// complete adds endpoints to a single WeightSet, which replicas serve as soon as it is written. Where they do not fit it is written as one of two, so
// that they wait; and so they do with several, of which only the first has the new version until all are stored.
func complete(sets []v1alpha1.WeightSet, came []v1alpha1.WeightedEndpoint) {
	i := slices.IndexFunc(sets, func(s v1alpha1.WeightSet) bool { return setIndex(&s) == 0 && s.Sets == 1 })
	if i < 0 {
		return
	}
	all := append(slices.Clip(sets[i].Endpoints), came...)
	if len(all) > v1alpha1.MaxWeightSetEndpoints {
		sets[i].Sets = 2
		return
	}
	slices.SortFunc(all, func(a, b v1alpha1.WeightedEndpoint) int { return strings.Compare(a.ID, b.ID) })
	sets[i].Endpoints = all
}

// claim writes the epoch into the first WeightSet, which is errLost where another replica was faster. It has the version of the weights that go on
// to be served: with that of older ones, replicas would take the new epoch for newer weights.
func (r *Reconciler) claim(ctx context.Context, policy *v1alpha1.WeightPolicy, h *holding, first *v1alpha1.WeightSet) error {
	identity := v1alpha1.PolicyIdentity{Name: policy.Name, UID: string(policy.UID), Tombstone: policy.Spec.Deletion.Tombstone, Ring: ringOf(policy)}
	if first == nil {
		first = &v1alpha1.WeightSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: policy.Namespace, Name: setName(policy.Name, 0), Labels: setLabels(policy)},
			Policy:     identity, Epoch: h.epoch, Holder: r.Self, Version: h.version, Sets: 1, UpdatedAt: secondsOf(r.Clock.Now()),
		}
		if err := r.Client.Create(ctx, first, client.FieldOwner(v1alpha1.FieldManagerBalancer)); err != nil {
			return faster(fmt.Errorf("creating WeightSet %s: %w", first.Name, err))
		}
	} else {
		first.Policy, first.Epoch, first.Holder, first.Version, first.TombstoneUntil = identity, h.epoch, r.Self, h.version, nil
		if err := r.Client.Update(ctx, first, client.FieldOwner(v1alpha1.FieldManagerBalancer)); err != nil {
			return faster(fmt.Errorf("taking WeightSet %s over: %w", first.Name, err))
		}
	}
	h.stored.versions[first.Name] = first.ResourceVersion
	return nil
}

// faster makes errLost of the errors by which another replica shows.
func faster(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return errors.Join(errLost, err)
	}
	return err
}

// storeSets writes the WeightSets of a policy, and deletes those that it has no endpoints for any more. The error is errLost where
// a higher epoch is there.
func (r *Reconciler) storeSets(ctx context.Context, policy *v1alpha1.WeightPolicy, h *holding) error {
	now := r.Clock.Now()
	sets := h.sets(policy, r.Self, now)
	wanted := map[string]bool{}
	// The first one names how many there are, so it is written last: until then the old ones are whole, or none are.
	for i := len(sets) - 1; i >= 0; i-- {
		wanted[sets[i].Name] = true
		if err := r.storeSet(ctx, h, &sets[i]); err != nil {
			return err
		}
	}
	for name := range h.stored.versions {
		if wanted[name] {
			continue
		}
		set := &v1alpha1.WeightSet{ObjectMeta: metav1.ObjectMeta{Namespace: policy.Namespace, Name: name}}
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, set)); err != nil {
			return fmt.Errorf("deleting WeightSet %s: %w", name, err)
		}
		delete(h.stored.versions, name)
	}
	h.stored.at, h.stored.file = now, fileOf(policy)
	return nil
}

// storeSet writes one WeightSet, over what somebody else may have made of it.
func (r *Reconciler) storeSet(ctx context.Context, h *holding, set *v1alpha1.WeightSet) error {
	for range 3 {
		err := r.writeSet(ctx, h, set)
		if err == nil {
			h.stored.versions[set.Name] = set.ResourceVersion
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("writing WeightSet %s: %w", set.Name, err)
		}
		found := &v1alpha1.WeightSet{}
		switch err := r.Live.Get(ctx, client.ObjectKeyFromObject(set), found); {
		case apierrors.IsNotFound(err):
			delete(h.stored.versions, set.Name)
		case err != nil:
			return fmt.Errorf("reading WeightSet %s: %w", set.Name, err)
		case found.Epoch > h.epoch:
			return errLost
		default:
			h.stored.versions[set.Name] = found.ResourceVersion
		}
	}
	return fmt.Errorf("WeightSet %s is changed by somebody else all the time", set.Name)
}

func (r *Reconciler) writeSet(ctx context.Context, h *holding, set *v1alpha1.WeightSet) error {
	version, known := h.stored.versions[set.Name]
	if !known {
		set.ResourceVersion = ""
		return r.Client.Create(ctx, set, client.FieldOwner(v1alpha1.FieldManagerBalancer))
	}
	set.ResourceVersion = version
	return r.Client.Update(ctx, set, client.FieldOwner(v1alpha1.FieldManagerBalancer))
}
