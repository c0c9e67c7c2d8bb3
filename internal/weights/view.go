// SPDX-License-Identifier: Apache-2.0

package weights

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/balance"
	"github.com/ringwright/ringwright/internal/xds"
)

// Assignments is where what clients are given of a policy is served.
type Assignments interface {
	Set(xds.Assignment) error
	Delete(policy string)
	Synced()
}

// View serves all policies, whoever owns them: the endpoints as the cluster has them now, with the latest weights that were announced or
// stored. It goes on with the last ones when the owners or the API server are away.
type View struct {
	Client   client.Client
	Resolver *Resolver
	Board    *Board
	// Serving is nil where xDS is not served.
	Serving Assignments
	// Directory is filled with what the gateway has to know.
	Directory *Directory

	wake     chan event.GenericEvent
	mu       sync.Mutex
	pending  map[types.NamespacedName]bool // What has to be served before clients are told that anything does not exist; nil after that.
	prepared bool
}

// Reconcile serves one policy.
func (v *View) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	err := v.serve(ctx, req.NamespacedName)
	if err == nil {
		err = v.served(ctx, req.NamespacedName)
	}
	var problem *targetError
	if errors.As(err, &problem) { // The owner reports it; the last assignment goes on to be served.
		return ctrl.Result{RequeueAfter: statusInterval}, v.served(ctx, req.NamespacedName)
	}
	return ctrl.Result{}, err
}

func (v *View) serve(ctx context.Context, key types.NamespacedName) error {
	sets := &v1alpha1.WeightSetList{}
	// There can be a hundred of them with a thousand endpoints each, which are only read.
	if err := v.Client.List(ctx, sets, client.InNamespace(key.Namespace), client.MatchingLabels{v1alpha1.LabelWeightPolicy: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the WeightSets of %s: %w", key, err)
	}
	sets.Items = ownSets(key.Name, slices.Clone(sets.Items))
	v.takeStored(key.String(), sets.Items)
	policy := &v1alpha1.WeightPolicy{}
	err := v.Client.Get(ctx, key, policy)
	switch {
	case apierrors.IsNotFound(err) && len(sets.Items) > 0:
		return v.serveRemains(key, sets.Items)
	case apierrors.IsNotFound(err):
		v.forget(key.String())
		return nil
	case err != nil:
		return fmt.Errorf("reading WeightPolicy %s: %w", key, err)
	}
	endpoints, err := v.Resolver.Resolve(ctx, policy)
	if err != nil && policy.Spec.TargetRef.Kind == v1alpha1.TargetHashRing {
		return errors.Join(err, v.served(ctx, key)) // No xDS client waits for it.
	}
	if err != nil {
		return err
	}
	v.Directory.Set(policy, endpoints)
	return v.assign(policy, endpoints)
}

// takeStored puts what the WeightSets of a policy say on the board, if that is later. Where they do not belong together, because they are being
// written or one was deleted, they are better than nothing, and give way to whatever is.
func (v *View) takeStored(policy string, sets []v1alpha1.WeightSet) {
	known, ok := v.Board.Get(policy)
	whole := Complete(sets)
	if whole != nil {
		a := Announcement{Policy: policy, Epoch: whole[0].Epoch, Version: whole[0].Version}
		if ok && !a.after(known) {
			return
		}
		a.Weights = storedWeights(whole)
		v.Board.Put(a)
		return
	}
	if weights := storedWeights(sets); !ok && len(weights) > 0 {
		v.Board.Put(Announcement{Policy: policy, Weights: weights})
	}
}

func storedWeights(sets []v1alpha1.WeightSet) Served {
	weights := Served{}
	for i := range sets {
		for _, e := range sets[i].Endpoints {
			weights[e.ID] = uint32(max(e.Weight, 1))
		}
	}
	return weights
}

// assign hands the endpoints of a policy to the xDS server.
func (v *View) assign(policy *v1alpha1.WeightPolicy, endpoints []Endpoint) error {
	if v.Serving == nil || policy.Spec.TargetRef.Kind == v1alpha1.TargetHashRing {
		return nil
	}
	a := xds.Assignment{
		Policy: policyName(policy), Mode: policy.Spec.Publish.EDS.Mode, Locality: policy.Spec.Locality, CustomMetric: policy.Spec.Load.CustomMetric,
	}
	if source, ok := sourceOf(policy, v1alpha1.SourceLRS); ok {
		a.ReportInterval = interval(source)
	}
	latest, _ := v.Board.Get(a.Policy)
	a.Epoch, a.Version = latest.Epoch, latest.Version
	d := decimals{}
	cold := d.number("limits.coldStartWeight", policy.Spec.Limits.ColdStartWeight)
	for _, e := range endpoints {
		weight, ok := latest.Weights[e.ID]
		switch {
		case !ok && len(latest.Weights) == 0:
			weight = v1alpha1.WeightScale // Nothing is known of any: all are equal.
		case !ok:
			weight = balance.Units(cold)
		}
		a.Endpoints = append(a.Endpoints, xds.Endpoint{
			ID: e.ID, Name: e.Pod, Address: e.Address, Port: e.Port, Zone: e.Zone, Weight: weight, Ready: e.Ready,
		})
	}
	return ignoreStale(v.Serving.Set(a))
}

// serveRemains serves what a policy that is gone has left, until its tombstone is over.
func (v *View) serveRemains(key types.NamespacedName, sets []v1alpha1.WeightSet) error {
	whole := Complete(sets)
	if v.Serving == nil || whole == nil || whole[0].Policy.Ring != "" {
		return nil
	}
	v.Directory.Remove(key.String())
	latest, _ := v.Board.Get(key.String())
	a := xds.Assignment{Policy: key.String(), Epoch: latest.Epoch, Version: latest.Version}
	for i := range whole {
		for _, e := range whole[i].Endpoints {
			if units, ok := latest.Weights[e.ID]; ok {
				e.Weight = int32(units) // It may be announced and not stored.
			}
			a.Endpoints = append(a.Endpoints, xds.Endpoint{
				ID: e.ID, Name: e.Name, Address: e.Address, Port: e.Port, Zone: e.Zone, Weight: uint32(max(e.Weight, 1)), Ready: e.State != v1alpha1.EndpointNotReady,
			})
		}
	}
	return ignoreStale(v.Serving.Set(a))
}

// ignoreStale takes that something later is served for success.
func ignoreStale(err error) error {
	var stale *xds.StaleError
	if errors.As(err, &stale) {
		return nil
	}
	return err
}

// forget ends the service of a policy of which nothing is left.
func (v *View) forget(policy string) {
	v.Board.Remove(policy)
	v.Directory.Remove(policy)
	if v.Serving != nil {
		v.Serving.Delete(policy)
	}
}

// served notes that a policy has been looked at. Once all have that were there at the beginning, clients are told what does not exist.
func (v *View) served(ctx context.Context, key types.NamespacedName) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.prepared || v.pending == nil {
		return nil
	}
	delete(v.pending, key)
	v.synced(ctx)
	return nil
}

func (v *View) synced(ctx context.Context) {
	if len(v.pending) > 0 {
		return
	}
	v.pending = nil
	if v.Serving != nil {
		v.Serving.Synced()
	}
	log.FromContext(ctx).Info("All policies are served")
}

// Start finds out which policies there are, and carries what the board hears to the policies' reconciliation.
func (v *View) Start(ctx context.Context) error {
	policies := &v1alpha1.WeightPolicyList{}
	sets := &v1alpha1.WeightSetList{}
	if err := errors.Join(v.Client.List(ctx, policies), v.Client.List(ctx, sets)); err != nil {
		return fmt.Errorf("listing the policies that there are: %w", err)
	}
	v.mu.Lock()
	v.pending, v.prepared = map[types.NamespacedName]bool{}, true
	for i := range policies.Items {
		v.pending[client.ObjectKeyFromObject(&policies.Items[i])] = true
	}
	for i := range sets.Items {
		v.pending[types.NamespacedName{Namespace: sets.Items[i].Namespace, Name: sets.Items[i].Policy.Name}] = true
	}
	keys := make([]types.NamespacedName, 0, len(v.pending))
	for key := range v.pending {
		keys = append(keys, key)
	}
	v.synced(ctx)
	v.mu.Unlock()
	for _, key := range keys { // Those that were looked at before are looked at once more.
		if !v.poke(ctx, key) {
			return nil
		}
	}
	watcher := v.Board.Watch()
	defer watcher.Close()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-watcher.Ready:
		}
		for _, a := range watcher.Take() {
			namespace, name, _ := strings.Cut(a.Policy, "/")
			if !v.poke(ctx, types.NamespacedName{Namespace: namespace, Name: name}) {
				return nil
			}
		}
	}
}

// NeedLeaderElection says that every replica serves.
func (v *View) NeedLeaderElection() bool { return false }

// poke has a policy reconciled; false where ctx is done.
func (v *View) poke(ctx context.Context, key types.NamespacedName) bool {
	policy := &v1alpha1.WeightPolicy{}
	policy.Namespace, policy.Name = key.Namespace, key.Name
	select {
	case v.wake <- event.GenericEvent{Object: policy}:
		return true
	case <-ctx.Done():
		return false
	}
}
